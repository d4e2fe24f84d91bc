"""``uninstall``: print what will be destroyed, ask, and follow the plan to its end."""

import sys
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import typer

from temporal_plans.cli.actions.showing import wait_for_plan, wait_until_begun
from temporal_plans.cli.inputs.names import resolve_service
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, printable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.messages.owners import UninstallRequest
from temporal_plans.messages.services import PodView

_OBJECTS_NAMED = 20


async def uninstall_service(
    client: PlansClient,
    service_option: str | None,
    request: UninstallRequest,
    *,
    yes: bool,
    wait: bool,
    timeout: timedelta | None = None,
    json: bool = False,
) -> int:
    """Uninstall the service; return the exit code. ``timeout`` limits the waiting. With ``json``
    the confirmation is asked on standard error.

    Raises typer.BadParameter when a confirmation is needed and standard input is no terminal.
    """
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter(
            "an uninstall can't be undone and needs a confirmation, and standard input is no "
            "terminal; add --yes",
            param_hint="--yes",
        )
    service = await resolve_service(client, service_option)
    if not yes:
        for line in await _what_is_destroyed(client, service, request):
            typer.echo(line, err=json)
        typer.confirm("Uninstall the service?", abort=True, err=json)
    removal = await client.removal_plan(service)
    plan = f"{service}/{removal}"
    outcome = await client.uninstall(
        service,
        volumes=request.volumes,
        force=request.force,
        by=request.by,
        reason=request.reason,
    )
    schedules = [] if outcome.refused else [one.id for one in await client.schedules(service)]
    if json:
        print_json({"service": service, "plan": plan, "outcome": outcome, "schedules": schedules})
    if outcome.refused:
        print_error(outcome.message)
        return 1
    if not json:
        print_line(f'Service "{service}" is being uninstalled; plan {plan} shows the progress.')
        _print_schedules(schedules)
    if not wait:
        return 0
    first = partial(wait_until_begun, client, plan, quiet=json) if removal == CLEANUP else None
    if code := await wait_for_plan(client, plan, quiet=json, timeout=timeout, first=first):
        return code
    if not json and (stays := await client.what_stays(plan)):
        print_line(f"Note: {stays}")
    if not await client.wait_until_gone(service):
        print_error(
            f"plan {plan} is COMPLETE, but the service is still there; is a worker running?"
        )
        return 1
    return 0


async def _what_is_destroyed(
    client: PlansClient, service: str, request: UninstallRequest
) -> list[str]:
    if await client.content_of(service) != "package":
        return destroyed(service, await client.pods(service))
    found = await client.inventory(service)
    lines = [
        f'This removes the package "{printable(service)}" from cluster '
        f"{printable(found.package.cluster)}, namespace {printable(found.package.namespace)}:"
    ]
    lines += [f"- {printable(str(one))}" for one in found.objects[:_OBJECTS_NAMED]]
    if more := len(found.objects) - _OBJECTS_NAMED:
        lines += [f"- and {more} more objects"] if more > 0 else []
    return lines + ["- the claims of its pods, with their data"] * request.volumes


def destroyed(service: str, pods: Sequence[PodView]) -> list[str]:
    """Return lines about what an uninstall destroys, for the confirmation."""
    lines = [f'This removes the service "{printable(service)}" permanently:']
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


def _print_schedules(schedules: Sequence[str]) -> None:
    """Print the schedules that remain. They belong to Temporal, and their runs would fail."""
    for schedule in schedules:
        print_line(
            f"Its schedule {schedule} remains; delete it with "
            f"`temporal plan schedule delete {schedule}`."
        )
