"""Commands to pods, and the wait for their effect."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta

from temporal_plans.cli.actions.showing import limited
from temporal_plans.cli.inputs.names import resolve_service
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, print_lines
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.pod_arrival import stays_down
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.hint import plan_hint
from temporal_plans.domain.services.plan_names import RECOVERY
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.messages.services import PodCommand, PodCommandResult, PodView

_DONE = {
    PodVerb.RESTART: "is being restarted",
    PodVerb.REPLACE: "is being replaced",
    PodVerb.PAUSE: "is being paused",
    PodVerb.RESUME: "is being resumed",
}


async def command_pod(
    client: PlansClient,
    service: str | None,
    verb: PodVerb,
    command: PodCommand,
    *,
    wait: bool,
    timeout: timedelta | None,
    json: bool,
) -> int:
    """Execute the command, print its result and, with ``wait``, wait for its effect; return the
    exit code."""
    name = await resolve_service(client, service)
    before = await client.launches(name, command.pod) if wait else {}
    result = await client.command_pod(
        name, verb, command.pod, tasks=command.tasks, by=command.by, reason=command.reason
    )
    if json:
        print_json(result)
    if result.outcome.refused or not result.outcome.changed:
        print_error(result.outcome.message)
        return 1
    if not json:
        killed = ", ".join(result.tasks) or "no task was running"
        print_line(f'Pod "{result.pod}" {_DONE[verb]}: {killed}.')
        print_lines(await _held_up(client, name))
    if not wait:
        return 0
    replaced = {task: before.get(task, "") for task in result.tasks}
    paused = verb is PodVerb.PAUSE
    waiting = _effect(client, name, result, replaced, paused=paused, quiet=json)
    try:
        return await limited(waiting, f'pod "{result.pod}"', timeout)
    except asyncio.CancelledError:
        print_line("\nThe service continues; see `temporal plan pods`.")
        raise


async def _held_up(client: PlansClient, service: str) -> list[str]:
    """Return a warning when the plan that launches the tasks again is interrupted."""
    try:
        explained = await client.explain(f"{service}/{RECOVERY}")
    except PlansError:
        return []  # it was never started, or does not answer: then the command says all there is
    if not any(one.remedy == (Verb.CONTINUE,) for one in explained.explanations):
        return []
    resumed = plan_hint("to continue", Verb.CONTINUE, RECOVERY, service=service)
    return [f"Warning: plan {RECOVERY} is interrupted, so no task is launched yet.", f"  {resumed}"]


async def _effect(
    client: PlansClient,
    service: str,
    result: PodCommandResult,
    replaced: Mapping[str, str],
    *,
    paused: bool,
    quiet: bool,
) -> int:
    pod = await client.wait_for_pod(service, result.pod, replaced, paused=paused)
    if not quiet:
        print_lines(_arrived(pod, replaced, paused=paused))
    return 0


def _arrived(pod: PodView, replaced: Mapping[str, str], *, paused: bool) -> Iterator[str]:
    down = {one.name for one in pod.tasks if stays_down(one)}
    if any(one.name not in down for one in pod.tasks):
        yield f'Pod "{pod.name}" {"is paused" if paused else "runs"}.'
    if killed := sorted(down & replaced.keys()):
        yield f"Launched again only by a plan that has them: {', '.join(killed)}."
