"""Commands about schedules: schedule create, list, show, pause, unpause, trigger, delete."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.flags import (
    ConnectionFlags,
    JsonOption,
    ParameterOption,
    ReasonOption,
    ServiceOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.schedules import ScheduleLine, ScheduleView

_FILES = (".yml", ".yaml", ".json")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A schedule, as hello/backup.")]


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
        typer.Option("--cron", metavar="'M H D M W'", help="When, as cron; repeatable."),
    ] = None,
    every: Annotated[
        list[str] | None,
        typer.Option("--every", metavar="DURATION", help="How often: 30m, 6h, 1d; repeatable."),
    ] = None,
    time_zone: Annotated[
        str,
        typer.Option("--time-zone", metavar="NAME", help="For --cron: Europe/Oslo. [default: UTC]"),
    ] = "",
    param: ParameterOption = None,
    overlap: Annotated[
        _Overlap, typer.Option("--overlap", help="What if the run before is not over.")
    ] = _Overlap.SKIP,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Tells several of a plan apart.")
    ] = "",
    reason: ReasonOption = "",
    service: ServiceOption = None,
) -> None:
    """Have a plan begun by the clock, by a Temporal Schedule.

    A run lasts until the plan has ended, and fails if the plan does. When a plan of a service is at
    work anyway, because somebody started it, the run leaves it alone and says so; `cancel-other`
    stops it first. A plan file is taken as it is now: later changes of it need a new schedule.
    """
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import say
    from temporal_plans.cli.pairs import pairs
    from temporal_plans.cli.running import ask
    from temporal_plans.cli.scheduled import plan_in, timetable
    from temporal_plans.cli.who import whoami
    from temporal_plans.client.schedules import Overlap
    from temporal_plans.domain.names import name_fault

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
        owner = await the_service(client, service)
        return await client.schedule(
            owner, plan, when, name=name, arguments=arguments, overlap=policy, note=note
        )

    say(f'Schedule "{ask(flags, created)}" is set.')


def list_(flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None) -> None:
    """The schedules of plans: when, and when next."""
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.cli.scheduled import schedule_table

    async def asked(client: "PlansClient") -> "list[ScheduleLine]":
        return await client.schedules(service or "")

    found = ask(flags, asked)
    if json:
        print_json(found)
    else:
        say_all(schedule_table(found))


def show(flags: ConnectionFlags, schedule: IdArgument, json: JsonOption = False) -> None:
    """A schedule: what it begins, when, and what became of its last runs."""
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.cli.scheduled import outcomes, schedule_lines

    async def asked(client: "PlansClient") -> "tuple[ScheduleView, dict[str, str]]":
        view = await client.show_schedule(schedule)
        return view, await outcomes(client, view)

    view, ended = ask(flags, asked)
    if json:
        print_json(view)
    else:
        say_all(schedule_lines(view, ended))


def pause(flags: ConnectionFlags, schedule: IdArgument, reason: ReasonOption = "") -> None:
    """Let no further runs begin; one that is under way goes on."""
    _tell(flags, schedule, "pause", reason, "is paused")


def unpause(flags: ConnectionFlags, schedule: IdArgument, reason: ReasonOption = "") -> None:
    """Let runs begin again. Those that were due meanwhile are not made up for."""
    _tell(flags, schedule, "unpause", reason, "goes on")


def trigger(flags: ConnectionFlags, schedule: IdArgument) -> None:
    """Begin a run now, as the overlap policy allows."""
    _tell(flags, schedule, "trigger", "", "was triggered")


def delete(flags: ConnectionFlags, schedule: IdArgument) -> None:
    """Forget a schedule. A run that is under way goes on."""
    _tell(flags, schedule, "delete", "", "is deleted")


def _tell(flags: ConnectionFlags, schedule: str, what: str, reason: str, done: str) -> None:
    from temporal_plans.cli.output import say
    from temporal_plans.cli.running import ask
    from temporal_plans.cli.who import whoami

    note = f"{whoami()}: {reason}" if reason else f"{what}d by {whoami()}"

    async def told(client: "PlansClient") -> None:
        match what:
            case "pause":
                await client.pause_schedule(schedule, note)
            case "unpause":
                await client.unpause_schedule(schedule, note)
            case "trigger":
                await client.trigger_schedule(schedule)
            case _:
                await client.delete_schedule(schedule)

    ask(flags, told)
    say(f'Schedule "{schedule}" {done}.')


def add_to(app: typer.Typer) -> None:
    commands = group(
        app,
        "schedule",
        "Have plans begun by the clock.",
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
