"""Commands about pods: pods, tasks, and pod restart, replace, pause, resume (behaviour 10.3)."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import (
    ByOption,
    ConnectionFlags,
    JsonOption,
    ReasonOption,
    ServiceOption,
    TimeoutOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.services.pod_verb import PodVerb

PodArgument = Annotated[
    str,
    typer.Argument(
        metavar="POD", help="A pod instance, as hello-0.", autocompletion=completion.pods
    ),
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        "--tasks",
        "-t",
        metavar="TASK",
        help="Only this task; repeatable.",
        autocompletion=completion.pod_tasks,
    ),
]

PodWaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Wait until the pod's tasks run and are ready, or are paused."),
]


def pods(flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None) -> None:
    """List the pods of a service: agents, ports, restarts, age and the states of their tasks.

    RESTARTS counts launches of its tasks after the first; AGE is since its place was reserved.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.listing import pod_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.messages.services import Pods

    async def asked(client: "PlansClient") -> tuple[Pods, dict[str, str]]:
        pods = await client.pods(await resolve_service(client, service))
        return Pods(pods=pods), {} if json else await client.silent_agents()

    found, silent = call_client(flags, asked)
    if json:
        print_json(found)
    else:
        print_lines(pod_lines(found.pods, silent))


def tasks(
    flags: ConnectionFlags,
    earlier: Annotated[
        bool, typer.Option("--all", "-a", help="List earlier launches, too, as far as kept.")
    ] = False,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """List the tasks of a service: the newest launch of each.

    `logs` takes the id of any launch whose files its agent still has.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.listing import task_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.messages.services import Tasks

    async def asked(client: "PlansClient") -> Tasks:
        found = await client.tasks(await resolve_service(client, service))
        return Tasks(tasks=tuple(sorted(found, key=lambda one: (one.pod, one.index, one.task))))

    found = call_client(flags, asked)
    if json:
        print_json(found)
    else:
        print_lines(task_lines(found.tasks, earlier=earlier))


def restart(
    flags: ConnectionFlags,
    pod: PodArgument,
    wait: PodWaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Kill a pod's tasks and launch them again in the same place, with the same data."""
    from temporal_plans.domain.services.pod_verb import PodVerb

    _command(
        flags,
        service,
        PodVerb.RESTART,
        pod,
        author=(by, reason),
        json=json,
        wait=wait,
        timeout=timeout,
    )


def replace(
    flags: ConnectionFlags,
    pod: PodArgument,
    wait: PodWaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Kill a pod's tasks and launch them on other resources; the pod's data is lost."""
    from temporal_plans.domain.services.pod_verb import PodVerb

    _command(
        flags,
        service,
        PodVerb.REPLACE,
        pod,
        author=(by, reason),
        json=json,
        wait=wait,
        timeout=timeout,
    )


def pause(
    flags: ConnectionFlags,
    pod: PodArgument,
    task: TasksOption = None,
    wait: PodWaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Run a placeholder in place of the commands of a pod's tasks, until they are resumed.

    Use it to inspect a task that crashes: the placeholder has its files, environment and agent.
    """
    from temporal_plans.domain.services.pod_verb import PodVerb

    _command(
        flags,
        service,
        PodVerb.PAUSE,
        pod,
        task,
        author=(by, reason),
        json=json,
        wait=wait,
        timeout=timeout,
    )


def resume(
    flags: ConnectionFlags,
    pod: PodArgument,
    task: TasksOption = None,
    wait: PodWaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Run the own commands of a pod's paused tasks again."""
    from temporal_plans.domain.services.pod_verb import PodVerb

    _command(
        flags,
        service,
        PodVerb.RESUME,
        pod,
        task,
        author=(by, reason),
        json=json,
        wait=wait,
        timeout=timeout,
    )


def _command(
    flags: ConnectionFlags,
    service: str | None,
    verb: "PodVerb",
    pod: str,
    tasks: list[str] | None = None,
    *,
    author: tuple[str | None, str],
    json: bool,
    wait: bool,
    timeout: str | None,
) -> None:
    """Execute the command, ``author`` being those of ``--by`` and ``--reason``, and print its
    outcome; exit with 1 if it changed nothing."""
    from temporal_plans.cli.actions.pod_command import command_pod
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.messages.services import PodCommand

    limit = timeout_of(timeout, waits=wait)
    by, reason = author
    command = PodCommand(pod=pod, tasks=tuple(tasks or ()), by=by or whoami(), reason=reason)
    raise typer.Exit(
        call_client_until_interrupted(
            flags,
            lambda client: command_pod(
                client, service, verb, command, wait=wait, timeout=limit, json=json
            ),
        )
    )


def add_to(app: typer.Typer) -> None:
    offer(app, pods, "pods", "temporal-plan pods -s hello-world")
    offer(app, tasks, "tasks", "temporal-plan tasks --all", "temporal-plan tasks --json")
    commands = group(
        app,
        "pod",
        "Restart, replace, pause or resume a pod.",
        "temporal-plan pod restart hello-0 --reason 'stuck since the network failed'",
        "temporal-plan pod pause hello-0 --task server",
    )
    offer(
        commands,
        restart,
        "restart",
        "temporal-plan pod restart hello-0 --reason 'stuck'",
        "temporal-plan pod restart hello-0 --wait --timeout 5m",
    )
    offer(commands, replace, "replace", "temporal-plan pod replace hello-0 --reason 'bad disk'")
    offer(
        commands,
        pause,
        "pause",
        "temporal-plan pod pause hello-0",
        "temporal-plan pod pause hello-0 --task server --reason 'to look at its files'",
    )
    offer(commands, resume, "resume", "temporal-plan pod resume hello-0")
