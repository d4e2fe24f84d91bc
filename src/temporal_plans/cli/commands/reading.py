"""Commands that read: list, show, explain, log, history, agents, logs."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import (
    ConnectionFlags,
    JsonOption,
    PhaseArgument,
    PlanArgument,
    ServiceOption,
    StepArgument,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.task_logs import TaskAt


def list_(
    flags: ConnectionFlags,
    json: JsonOption = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Plans without a service shown at most.")
    ] = 100,
    service: ServiceOption = None,
) -> None:
    """The plans: of all services or one, and those without a service."""
    from temporal_plans.cli.listing import list_plans, plan_table
    from temporal_plans.cli.output import print_json, say, say_all
    from temporal_plans.cli.running import ask

    plans = ask(flags, lambda client: list_plans(client, service, limit))
    if json:
        print_json([plan.as_json() for plan in plans])
    elif plans:
        say_all(plan_table(plans))
    else:
        say("No plans. Deploy a service (`temporal plan deploy`) or run a plan file (`... run`).")


def show(
    flags: ConnectionFlags,
    plan: Annotated[
        str,
        typer.Argument(help="A plan; all plans of the service when left out."),
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it until it ends; 0 if COMPLETE, else 1.")
    ] = False,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """A plan as a tree, with statuses, times and what waits."""
    from temporal_plans.cli import showing
    from temporal_plans.cli.running import ask

    if watch and (json or not plan):
        raise typer.BadParameter("--watch is for one PLAN, and without --json")
    if watch:
        raise typer.Exit(showing.watched(flags, plan, service))
    if plan:
        ask(flags, lambda client: showing.show_one(client, plan, service, json=json))
    else:
        ask(flags, lambda client: showing.show_service(client, service, json=json))


def explain(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Why something is not moving, and what would move it."""
    from temporal_plans.cli.explaining import explanation_lines
    from temporal_plans.cli.names import the_plan
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.domain.explain import Explanations

    async def explained(client: "PlansClient") -> Explanations:
        return await client.explain(await the_plan(client, plan, service), phase, step)

    explanations = ask(flags, explained)
    if json:
        print_json(explanations)
    else:
        say_all(explanation_lines(plan, explanations, service))


def log(
    flags: ConnectionFlags,
    plan: Annotated[
        str, typer.Argument(help="A plan; what the service itself was told when left out.")
    ] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """The commands that a plan, or a service, was given: when, by whom, why, and what they did."""
    from temporal_plans.cli.listing import log_lines
    from temporal_plans.cli.names import the_plan, the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.messages.plan import CommandLog

    async def logged(client: "PlansClient") -> CommandLog:
        if not plan:
            return await client.service_log(await the_service(client, service))
        return await client.log(await the_plan(client, plan, service))

    commands = ask(flags, logged)
    if json:
        print_json(commands)
    else:
        say_all(log_lines(commands))


def history(
    flags: ConnectionFlags,
    plan: Annotated[
        str, typer.Argument(help="A plan; all plans of the service when left out.")
    ] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """The runs of a plan: when, how long, by whom, what changed, and how they ended."""
    from temporal_plans.cli.history_lines import history_lines
    from temporal_plans.cli.names import the_plan, the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.messages.service import RunHistory

    async def asked(client: "PlansClient") -> RunHistory:
        if not plan:
            return await client.history(await the_service(client, service))
        plan_id = await the_plan(client, plan, service)
        owner, _, name = plan_id.rpartition("/")
        if owner and owner in await client.services():
            return await client.history(owner, name)
        return await client.own_history(plan_id)

    runs = ask(flags, asked)
    if json:
        print_json(runs)
    else:
        say_all(history_lines(runs))


def agents(
    flags: ConnectionFlags,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAME", help="One pool; all when left out.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """The agents with what they have free, and what waits for room."""
    from temporal_plans.cli.listing import agent_lines
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.messages.cluster import PoolStatus

    async def asked(client: "PlansClient") -> list[PoolStatus]:
        names = [pool] if pool else await client.pools()
        return [await client.pool(name) for name in names]

    pools = ask(flags, asked)
    if json:
        print_json(pools)
    else:
        say_all(agent_lines(pools))


def logs(
    flags: ConnectionFlags,
    task: Annotated[
        str,
        typer.Argument(help="A task's name, or the id of one launch; with --plan: PHASE/STEP."),
    ],
    stderr: Annotated[bool, typer.Option("--stderr", help="Its stderr, not its stdout.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="N", min=0, help="The last N lines first.")
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="ID", help="The agent that has a launch's files.")
    ] = "",
    plan: Annotated[
        str, typer.Option("--plan", "-p", metavar="PLAN", help="The plan of a command's step.")
    ] = "",
    service: ServiceOption = None,
) -> None:
    """What a task wrote, or the command of a plan's step."""
    import sys

    from temporal_plans.cli.names import the_plan
    from temporal_plans.cli.running import ask

    async def found_task(client: "PlansClient") -> "TaskAt":
        if plan:
            return await client.find_task_of_step(await the_plan(client, plan, service), task)
        return await client.find_task(task, service=(service or "").strip("/"), agent=agent)

    async def copied(client: "PlansClient") -> None:
        found = await found_task(client)
        pieces = client.read_log(found, "stderr" if stderr else "stdout", tail=tail, follow=follow)
        async for text in pieces:
            sys.stdout.write(text)
            sys.stdout.flush()

    try:
        ask(flags, copied)
    except KeyboardInterrupt:
        if not follow:
            raise


def add_to(app: typer.Typer) -> None:
    offer(app, list_, "list", "temporal-plan list", "temporal-plan list -s hello-world --json")
    offer(
        app,
        show,
        "show",
        "temporal-plan show deploy",
        "temporal-plan show deploy --watch",
        "temporal-plan show -s hello-world --json",
        aliases=("status",),
    )
    offer(
        app,
        explain,
        "explain",
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
