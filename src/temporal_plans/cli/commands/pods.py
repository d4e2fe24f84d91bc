"""Commands about pods: pods, tasks, and pod restart, replace, pause, resume (reference 10.3)."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.flags import (
    ByOption,
    ConnectionFlags,
    JsonOption,
    ReasonOption,
    ServiceOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.pod_verb import PodVerb
    from temporal_plans.messages.service import PodCommandResult

PodArgument = Annotated[str, typer.Argument(metavar="POD", help="A pod instance, as hello-0.")]
TasksOption = Annotated[
    list[str] | None,
    typer.Option("--task", "--tasks", "-t", metavar="TASK", help="Only this task; repeatable."),
]

_DONE = {
    "restart_pod": "is being restarted",
    "replace_pod": "is being replaced",
    "pause_pod": "is being paused",
    "resume_pod": "is being resumed",
}


def pods(flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None) -> None:
    """The pods of a service: where they are and how their tasks do."""
    from temporal_plans.cli.listing import pod_lines
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.messages.service import Pods

    async def asked(client: "PlansClient") -> Pods:
        return Pods(pods=await client.pods(await the_service(client, service)))

    found = ask(flags, asked)
    if json:
        print_json(found)
    else:
        say_all(pod_lines(found.pods))


def tasks(flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None) -> None:
    """The tasks of a service: the newest launch of each."""
    from temporal_plans.cli.listing import task_lines
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.messages.service import Tasks

    async def asked(client: "PlansClient") -> Tasks:
        return Tasks(tasks=await client.tasks(await the_service(client, service)))

    found = ask(flags, asked)
    if json:
        print_json(found)
    else:
        say_all(task_lines(found.tasks))


def restart(
    flags: ConnectionFlags,
    pod: PodArgument,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Kill a pod's tasks, and have them launched again in the same place with the same data."""
    from temporal_plans.domain.pod_verb import PodVerb

    _command(flags, service, PodVerb.RESTART, pod, by=by, reason=reason, json=json)


def replace(
    flags: ConnectionFlags,
    pod: PodArgument,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Kill a pod's tasks, and have them launched on other resources: its data is lost."""
    from temporal_plans.domain.pod_verb import PodVerb

    _command(flags, service, PodVerb.REPLACE, pod, by=by, reason=reason, json=json)


def pause(
    flags: ConnectionFlags,
    pod: PodArgument,
    task: TasksOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Have a pod's tasks run a placeholder in place of their command, until they are resumed.

    For looking at what a task that crashes left behind: files, environment and place are its own.
    """
    from temporal_plans.domain.pod_verb import PodVerb

    _command(flags, service, PodVerb.PAUSE, pod, task, by=by, reason=reason, json=json)


def resume(
    flags: ConnectionFlags,
    pod: PodArgument,
    task: TasksOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Have a pod's paused tasks run their own command again."""
    from temporal_plans.domain.pod_verb import PodVerb

    _command(flags, service, PodVerb.RESUME, pod, task, by=by, reason=reason, json=json)


def _command(
    flags: ConnectionFlags,
    service: str | None,
    verb: "PodVerb",
    pod: str,
    tasks: list[str] | None = None,
    *,
    by: str | None,
    reason: str,
    json: bool,
) -> None:
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import complain, print_json, say
    from temporal_plans.cli.running import ask
    from temporal_plans.cli.who import whoami

    async def commanded(client: "PlansClient") -> "PodCommandResult":
        name = await the_service(client, service)
        return await client.command_pod(
            name, verb, pod, tasks=tasks or (), by=by or whoami(), reason=reason
        )

    result = ask(flags, commanded)
    if json:
        print_json(result)
    if result.outcome.refused or not result.outcome.changed:
        complain(result.outcome.message)
        raise typer.Exit(1)
    if not json:
        killed = ", ".join(result.tasks) or "no task was running"
        say(f'Pod "{result.pod}" {_DONE[verb.value]}: {killed}.')


def add_to(app: typer.Typer) -> None:
    offer(app, pods, "pods", "temporal-plan pods -s hello-world")
    offer(app, tasks, "tasks", "temporal-plan tasks --json")
    commands = group(
        app,
        "pod",
        "Restart, replace, pause or resume a pod.",
        "temporal-plan pod restart hello-0 --reason 'stuck since the network failed'",
        "temporal-plan pod pause hello-0 --task server",
    )
    offer(commands, restart, "restart", "temporal-plan pod restart hello-0 --reason 'stuck'")
    offer(commands, replace, "replace", "temporal-plan pod replace hello-0 --reason 'bad disk'")
    offer(
        commands,
        pause,
        "pause",
        "temporal-plan pod pause hello-0",
        "temporal-plan pod pause hello-0 --task server --reason 'to look at its files'",
    )
    offer(commands, resume, "resume", "temporal-plan pod resume hello-0")
