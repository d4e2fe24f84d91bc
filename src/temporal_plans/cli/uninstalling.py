"""``uninstall``: say what is destroyed, ask, and follow it to the end."""

import sys
from collections.abc import Sequence

import typer

from temporal_plans.cli.names import the_service
from temporal_plans.cli.output import complain, printable, say
from temporal_plans.cli.showing import waited
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.generation import DEPLOY
from temporal_plans.messages.service import PodView


async def uninstalled(
    client: PlansClient, said: str | None, *, yes: bool, wait: bool, by: str, reason: str
) -> int:
    """The exit code. Raises typer.BadParameter when somebody must be asked and can't be."""
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter(
            "this can't be undone, and nobody can be asked here; say --yes", param_hint="--yes"
        )
    service = await the_service(client, said)
    if not yes:
        for line in destroyed(service, await client.pods(service)):
            say(line)
        typer.confirm("Uninstall it?", abort=True)
    outcome = await client.uninstall(service, by=by, reason=reason)
    if outcome.refused:
        complain(outcome.message)
        return 1
    plan = f"{service}/{DEPLOY}"
    say(f'Service "{service}" is being uninstalled; plan {plan} shows how far.')
    await _tell_schedules(client, service)
    if not wait:
        return 0
    if code := await waited(client, plan):
        return code
    if not await client.gone(service):
        complain(f"plan {plan} is COMPLETE, but the service is still there; is a worker running?")
        return 1
    return 0


def destroyed(service: str, pods: Sequence[PodView]) -> list[str]:
    """What an uninstall destroys, for people to read before they say yes."""
    lines = [f'This takes the service "{printable(service)}" away for good:']
    for pod in pods:
        where = f" on {pod.agent}" if pod.agent else ""
        tasks = ", ".join(record.task for record in pod.tasks if record.live)
        volumes = [
            f"{resource.name} ({resource.value:g} MB)"
            for resource in (pod.reservation.resources if pod.reservation else ())
            if resource.kind == "volume"
        ]
        line = f"- pod {pod.name}{where}" + (f", running {tasks}" if tasks else "")
        lines.append(line + (f", with the data of {', '.join(volumes)}" if volumes else ""))
    if not pods:
        lines.append("- it has no pods")
    return lines


async def _tell_schedules(client: PlansClient, service: str) -> None:
    """They are Temporal's, not the service's, and would go on to fail."""
    for schedule in await client.schedules(service):
        say(
            f"Its schedule {schedule.id} stays; "
            f"`temporal plan schedule delete {schedule.id}` ends it."
        )
