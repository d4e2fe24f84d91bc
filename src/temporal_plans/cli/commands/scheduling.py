"""Commands about schedules: schedule create, list, show, pause, unpause, trigger, delete."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import (
    ConnectionFlags,
    JsonOption,
    ParameterOption,
    ReasonOption,
    ServiceOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.temporal.schedules import ScheduleSummary, ScheduleView

_FILES = (".yml", ".yaml", ".json")

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A schedule, as hello/backup.", autocompletion=completion.schedules
    ),
]


class _Overlap(StrEnum):
    """As ``client.schedules.Overlap``, which is slow to import."""

    SKIP = "skip"
    BUFFER_ONE = "buffer-one"
    BUFFER_ALL = "buffer-all"
    CANCEL_OTHER = "cancel-other"
    TERMINATE_OTHER = "terminate-other"
    ALLOW_ALL = "allow-all"


def create(
    flags: ConnectionFlags,
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN", help="A plan of the service, or a plan file (.yml, .yaml, .json)."
        ),
    ],
    cron: Annotated[
        list[str] | None,
        typer.Option("--cron", metavar="'M H D M W'", help="A cron expression; repeatable."),
    ] = None,
    every: Annotated[
        list[str] | None,
        typer.Option("--every", metavar="DURATION", help="An interval: 30m, 6h, 1d; repeatable."),
    ] = None,
    time_zone: Annotated[
        str,
        typer.Option(
            "--time-zone", metavar="NAME", help="Time zone of --cron: Europe/Oslo. [default: UTC]"
        ),
    ] = "",
    param: ParameterOption = None,
    overlap: Annotated[
        _Overlap, typer.Option("--overlap", help="What to do when the previous run is not over.")
    ] = _Overlap.SKIP,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="Name of the schedule, when a plan has several."
        ),
    ] = "",
    reason: ReasonOption = "",
    service: ServiceOption = None,
) -> None:
    """Start a plan at set times, by a Temporal Schedule.

    A run lasts until the plan has ended, and fails if the plan does. When the plan of a service
    runs already, because an operator started it, the run does nothing and its result says so;
    `cancel-other` stops the plan first. A plan file is copied: changes of it need a new schedule.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.inputs.pairs import pairs
    from temporal_plans.cli.inputs.scheduled import plan_in, timetable
    from temporal_plans.cli.terminal.output import print_line
    from temporal_plans.client.temporal.schedules import Overlap
    from temporal_plans.domain.values.names import name_fault

    if name and (fault := name_fault(name)):
        raise typer.BadParameter(f"{name!r}: {fault}", param_hint="--name")
    when = timetable(cron, every, time_zone)
    arguments = pairs(param or [], "-p")
    note = f"{whoami()}: {reason}" if reason else whoami()
    spec = plan_in(Path(plan)) if plan.endswith(_FILES) else None
    policy = Overlap(overlap.value)

    async def created(client: "PlansClient") -> str:
        if spec is not None:
            return await client.schedule_plan(
                spec, when, name=name, arguments=arguments, overlap=policy, note=note
            )
        owner = await resolve_service(client, service)
        return await client.schedule(
            owner, plan, when, name=name, arguments=arguments, overlap=policy, note=note
        )

    print_line(f'Schedule "{call_client(flags, created)}" is set.')


def list_(flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None) -> None:
    """List the schedules of plans: their times, and the next run."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.scheduled import schedule_table
    from temporal_plans.cli.terminal.output import print_json, print_lines

    async def asked(client: "PlansClient") -> "list[ScheduleSummary]":
        return await client.schedules(service or "")

    found = call_client(flags, asked)
    if json:
        print_json(found)
    else:
        print_lines(schedule_table(found))


def show(flags: ConnectionFlags, schedule: IdArgument, json: JsonOption = False) -> None:
    """Show a schedule: its plan, its times, and the results of its last runs."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.scheduled import outcomes, schedule_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines

    async def asked(client: "PlansClient") -> "tuple[ScheduleView, dict[str, str]]":
        view = await client.show_schedule(schedule)
        return view, await outcomes(client, view)

    view, ended = call_client(flags, asked)
    if json:
        print_json(view)
    else:
        print_lines(schedule_lines(view, ended))


def pause(flags: ConnectionFlags, schedule: IdArgument, reason: ReasonOption = "") -> None:
    """Pause a schedule: no further runs start; a run under way continues."""
    _change(flags, schedule, "pause", reason, "is paused")


def unpause(flags: ConnectionFlags, schedule: IdArgument, reason: ReasonOption = "") -> None:
    """Start runs of a paused schedule again. Runs that were due meanwhile are not caught up."""
    _change(flags, schedule, "unpause", reason, "is unpaused")


def trigger(flags: ConnectionFlags, schedule: IdArgument) -> None:
    """Start a run now, if the overlap policy allows it."""
    _change(flags, schedule, "trigger", "", "was triggered")


def delete(flags: ConnectionFlags, schedule: IdArgument) -> None:
    """Delete a schedule. A run under way continues."""
    _change(flags, schedule, "delete", "", "is deleted")


def _change(flags: ConnectionFlags, schedule: str, verb: str, reason: str, done: str) -> None:
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.terminal.output import print_line

    note = f"{whoami()}: {reason}" if reason else f"{verb}d by {whoami()}"

    async def change(client: "PlansClient") -> None:
        match verb:
            case "pause":
                await client.pause_schedule(schedule, note)
            case "unpause":
                await client.unpause_schedule(schedule, note)
            case "trigger":
                await client.trigger_schedule(schedule)
            case _:
                await client.delete_schedule(schedule)

    call_client(flags, change)
    print_line(f'Schedule "{schedule}" {done}.')


def add_to(app: typer.Typer) -> None:
    commands = group(
        app,
        "schedule",
        "Start plans at set times.",
        "temporal-plan schedule create backup -s hello-world --cron '0 3 * * *'",
        "temporal-plan schedule list",
    )
    offer(
        commands,
        create,
        "create",
        "temporal-plan schedule create backup -s db --cron '0 3 * * *' --time-zone Europe/Oslo",
        "temporal-plan schedule create backup -s db --every 6h -p LABEL=often --name often",
        "temporal-plan schedule create maintenance.yml --cron '0 4 * * SUN' --overlap buffer-one",
    )
    offer(
        commands, list_, "list", "temporal-plan schedule list", "temporal-plan schedule list -s db"
    )
    offer(commands, show, "show", "temporal-plan schedule show db/backup")
    offer(commands, pause, "pause", "temporal-plan schedule pause db/backup --reason 'moving'")
    offer(commands, unpause, "unpause", "temporal-plan schedule unpause db/backup")
    offer(commands, trigger, "trigger", "temporal-plan schedule trigger db/backup")
    offer(commands, delete, "delete", "temporal-plan schedule delete db/backup/often")
