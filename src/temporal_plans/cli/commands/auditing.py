"""The command that compares agents with services: audit."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ConnectionFlags, JsonOption, ReasonOption

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.reading.audit import Audit
    from temporal_plans.domain.tasks.statuses import TaskStatus


def audit(
    flags: ConnectionFlags,
    end: Annotated[
        str,
        typer.Option("--end", metavar="TASK", help="End the task with this id."),
    ] = "",
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Compare the tasks that agents run with those that services know.

    They differ after Temporal was restored from a backup: tasks run that no service knows, and
    services count tasks as running that have ended. Each is listed with the command that helps.
    --end ends a task that no service knows.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.terminal.audit_lines import audit_lines
    from temporal_plans.cli.terminal.output import print_json, print_line, print_lines

    async def ended(client: "PlansClient") -> "TaskStatus":
        return await client.end_task(end, reason=reason)

    async def compared(client: "PlansClient") -> "Audit":
        return await client.audit()

    if end:
        status = call_client(flags, ended)
        if json:
            print_json(status)
        else:
            print_line(f"{status.task_id} is {status.state}.")
        return
    found = call_client(flags, compared)
    if json:
        print_json(found)
    else:
        print_lines(audit_lines(found))


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        audit,
        "audit",
        "temporal-plan audit",
        "temporal-plan audit --end shop__web-0-server__5d3f6a",
    )
