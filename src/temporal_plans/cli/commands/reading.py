"""Commands that read: list, show, explain, log, history, agents, logs."""

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import (
    ConnectionFlags,
    JsonOption,
    PhaseArgument,
    ServiceOption,
    StepArgument,
    VerboseOption,
)

if TYPE_CHECKING:
    from temporal_plans.cli.terminal.listing import ListedPlan
    from temporal_plans.client.errors import PlansError
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.reading.task_logs import TaskAt


class Dialect(StrEnum):
    """Forms of ``show --json`` beside our own."""

    OPERATOR = "operator"


def list_(
    flags: ConnectionFlags,
    json: JsonOption = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="At most this many plans without a service.")
    ] = 100,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Only plans with this status, as WAITING or FAILED; repeatable.",
        ),
    ] = None,
    scheduled: Annotated[
        bool,
        typer.Option("--scheduled", help="Also the ended runs that schedules of files started."),
    ] = False,
    service: ServiceOption = None,
) -> None:
    """List the plans of all services or of one, and those without a service.

    Of the runs that a schedule of a plan file started, those that have ended are listed with
    --scheduled only; `temporal plan schedule show` has them, too.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.statuses import statuses_of
    from temporal_plans.cli.terminal.listing import list_plans, plan_table
    from temporal_plans.cli.terminal.output import print_json, print_line, print_lines

    wanted = statuses_of(status or ())

    async def asked(client: "PlansClient") -> "list[ListedPlan]":
        return await list_plans(client, service, limit, scheduled=scheduled)

    plans = [
        plan for plan in call_client(flags, asked) if not wanted or wanted & plan.shown_statuses
    ]
    if json:
        print_json([plan.as_json() for plan in plans])
    elif wanted and not plans:
        print_line(f"No plans are {' or '.join(sorted(wanted))}.")
    elif plans:
        print_lines(plan_table(plans))
    else:
        print_line(
            "No plans. Deploy a service (`temporal plan deploy`) or run a plan file (`... run`)."
        )


def show(
    flags: ConnectionFlags,
    plan: Annotated[
        str,
        typer.Argument(
            help="A plan. [default: all plans of the service]", autocompletion=completion.plans
        ),
    ] = "",
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", "-w", help="Follow the plan to its end; exit with 0 if COMPLETE, else 1."
        ),
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="DURATION",
            help="With --watch: stop after this time, as 90s or 10m, and exit with 1.",
        ),
    ] = None,
    dialect: Annotated[
        Dialect | None,
        typer.Option(
            "--dialect",
            help="With --json, of a whole package: its status document as its first users know it.",
        ),
    ] = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Show a plan as a tree, with statuses, times and waiting elements."""
    from temporal_plans.cli.actions import showing
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.durations import timeout_of

    if watch and (json or not plan):
        raise typer.BadParameter("--watch needs a PLAN, and excludes --json")
    if dialect and (plan or not json):
        raise typer.BadParameter("--dialect needs --json, and excludes a PLAN")
    limit = timeout_of(timeout, waits=watch, option="--watch")
    if dialect:
        call_client(flags, lambda client: showing.show_operator_status(client, service))
    elif watch:
        raise typer.Exit(showing.watch_plan(flags, plan, service, limit))
    elif plan:
        call_client(flags, lambda client: showing.show_plan(client, plan, service, json=json))
    else:
        call_client(flags, lambda client: showing.show_service(client, service, json=json))


def explain(
    flags: ConnectionFlags,
    plan: Annotated[
        str,
        typer.Argument(
            help="A plan, or an entity of a fleet as ENV/ENTITY. [default: all that is wrong with "
            "the service]"
        ),
    ] = "",
    phase: PhaseArgument = "",
    step: StepArgument = "",
    verbose: VerboseOption = False,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Explain why an element makes no progress, and which command would help.

    Without PLAN: what is wrong with the service, in one answer: its configuration, plans, pods,
    agents, and your own code. Of an entity of a fleet: as fleet explain.
    """
    from temporal_plans.cli.actions.fleet_showing import explained_entity
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_plan, resolve_service
    from temporal_plans.cli.terminal.explaining import diagnosis_lines, explanation_lines
    from temporal_plans.cli.terminal.fleet_status_lines import explanation_lines as entity_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.client.errors import NotFound
    from temporal_plans.client.reading.diagnosis import Diagnosis
    from temporal_plans.domain.fleets.explanation import Explanation
    from temporal_plans.domain.plans.explain import Explanations

    async def diagnosed(client: "PlansClient") -> Diagnosis:
        return await client.explain_service(await resolve_service(client, service))

    if not plan:
        diagnosis = call_client(flags, diagnosed)
        if json:
            print_json(diagnosis)
        else:
            print_lines(diagnosis_lines(diagnosis, verbose=verbose))
        return

    async def explained(client: "PlansClient") -> "Explanations | Explanation":
        try:
            plan_id = await resolve_plan(client, plan, service)
        except NotFound:
            entity = None if phase or service else await explained_entity(client, plan)
            if entity is None:
                raise
            return entity
        return await client.explain(plan_id, phase, step)

    explanations = call_client(flags, explained)
    if isinstance(explanations, Explanation):
        if json:
            print_json(explanations)
        else:
            print_lines(entity_lines(explanations))
        return
    if json:
        print_json(explanations)
    else:
        print_lines(explanation_lines(plan, explanations, service, verbose=verbose))


def log(
    flags: ConnectionFlags,
    plan: Annotated[
        str,
        typer.Argument(
            help="A plan. [default: commands to the service itself]",
            autocompletion=completion.plans,
        ),
    ] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Show the commands to a plan or a service: time, author, reason and outcome."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_plan, resolve_service
    from temporal_plans.cli.terminal.listing import log_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.messages.plans import CommandLog

    async def logged(client: "PlansClient") -> CommandLog:
        if not plan:
            return await client.service_log(await resolve_service(client, service))
        return await client.log(await resolve_plan(client, plan, service))

    commands = call_client(flags, logged)
    if json:
        print_json(commands)
    else:
        print_lines(log_lines(commands))


def history(
    flags: ConnectionFlags,
    plan: Annotated[str, typer.Argument(help="A plan. [default: all plans of the service]")] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Show the runs of a plan: time, duration, author, change and result."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_plan, resolve_service
    from temporal_plans.cli.terminal.history_lines import history_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.client.errors import ServiceNotFound
    from temporal_plans.domain.owners.runs import RunHistory

    async def asked(client: "PlansClient") -> RunHistory:
        if not plan:
            return await client.history(await resolve_service(client, service))
        plan_id = await resolve_plan(client, plan, service)
        owner, _, name = plan_id.rpartition("/")
        if owner:
            with suppress(ServiceNotFound):  # a plan of its own, whose id has a slash
                return await client.history(owner, name)
        return await client.own_history(plan_id)

    runs = call_client(flags, asked)
    if json:
        print_json(runs)
    else:
        print_lines(history_lines(runs))


def agents(
    flags: ConnectionFlags,
    pool: Annotated[
        str,
        typer.Option(
            "--pool",
            metavar="NAME",
            help="A pool. [default: all pools]",
            autocompletion=completion.pools,
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """List the agents with their free resources, and the pods that wait for resources."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.terminal.listing import agent_lines
    from temporal_plans.cli.terminal.output import print_error, print_json, print_lines
    from temporal_plans.messages.pools import PoolStatus

    async def asked(client: "PlansClient") -> "dict[str, PoolStatus | PlansError]":
        return {pool: await client.pool(pool)} if pool else {**await client.show_pools()}

    answers = call_client(flags, asked).items()
    silent = [f"pool {name}: {error}" for name, error in answers if isinstance(error, Exception)]
    pools = [one for _, one in answers if isinstance(one, PoolStatus)]
    if pools or not silent:
        if json:
            print_json(pools)
        else:
            print_lines(agent_lines(pools))
    for line in silent:
        print_error(line)
    if silent:
        raise typer.Exit(1)


def logs(
    flags: ConnectionFlags,
    task: Annotated[
        str,
        typer.Argument(
            help="A task's name, or the id of a launch; with --plan: PHASE/STEP.",
            autocompletion=completion.tasks,
        ),
    ],
    stderr: Annotated[
        bool, typer.Option("--stderr", help="Print stderr instead of stdout.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the output until the task has ended.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", metavar="N", min=0, help="Start with the last N lines."),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="ID",
            help="The agent that has the files of the launch.",
            autocompletion=completion.agents,
        ),
    ] = "",
    plan: Annotated[
        str,
        typer.Option(
            "--plan",
            "-p",
            metavar="PLAN",
            help="The plan of a command step.",
            autocompletion=completion.plans,
        ),
    ] = "",
    service: ServiceOption = None,
) -> None:
    """Print the output of a task, or of a command step of a plan."""
    import sys

    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_plan

    async def found_task(client: "PlansClient") -> "TaskAt":
        if plan:
            return await client.find_task_of_step(await resolve_plan(client, plan, service), task)
        return await client.find_task(task, service=(service or "").strip("/"), agent=agent)

    async def copied(client: "PlansClient") -> None:
        found = await found_task(client)
        pieces = client.read_log(found, "stderr" if stderr else "stdout", tail=tail, follow=follow)
        async for text in pieces:
            sys.stdout.write(text)
            sys.stdout.flush()

    try:
        call_client(flags, copied)
    except KeyboardInterrupt:
        if not follow:
            raise


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        list_,
        "list",
        "temporal-plan list",
        "temporal-plan list -s hello-world --json",
        "temporal-plan list --status error --status failed",
    )
    offer(
        app,
        show,
        "show",
        "temporal-plan show deploy",
        "temporal-plan show deploy --watch",
        "temporal-plan show -s hello-world --json",
        "temporal-plan show -s store --dialect operator --json",
        aliases=("status",),
    )
    offer(
        app,
        explain,
        "explain",
        "temporal-plan explain -s hello-world",
        "temporal-plan explain deploy",
        "temporal-plan explain deploy world 'world-1:[server]'",
    )
    offer(app, log, "log", "temporal-plan log deploy", "temporal-plan log -s hello-world")
    offer(
        app,
        history,
        "history",
        "temporal-plan history -s hello-world",
        "temporal-plan history backup --json",
    )
    offer(app, agents, "agents", "temporal-plan agents")
    offer(
        app,
        logs,
        "logs",
        "temporal-plan logs hello-0-server --follow",
        "temporal-plan logs world-1-server --stderr --tail 20",
        "temporal-plan logs --plan maintenance inspect/disk",
    )
