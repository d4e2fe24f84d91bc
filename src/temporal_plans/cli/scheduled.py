"""Schedules: read from the command line, and shown."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.text import Text

from temporal_plans.cli.columns import columns
from temporal_plans.cli.duration import duration
from temporal_plans.cli.files import FileKind, expect
from temporal_plans.cli.listing import moment
from temporal_plans.cli.output import printable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.schedules import ScheduleLine, ScheduleView, Timetable
from temporal_plans.domain.model import parse_duration
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.loading.plans import load_plan

_NEXT = 3
"""Coming runs that are shown."""

_SHORTEST = timedelta(seconds=1)


def timetable(cron: Sequence[str] | None, every: Sequence[str] | None, time_zone: str) -> Timetable:
    """Raises typer.BadParameter for what is no time."""
    if not cron and not every:
        raise typer.BadParameter("say when: --cron '0 3 * * *', or --every 6h")
    if time_zone:
        try:
            ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise typer.BadParameter(
                f"{time_zone!r} is no time zone, as Europe/Oslo is", param_hint="--time-zone"
            ) from None
    return Timetable(
        cron=tuple(cron or ()), every=tuple(map(_interval, every or ())), time_zone=time_zone
    )


def _interval(text: str) -> timedelta:
    try:
        length = parse_duration(text)
    except ValueError:
        length = None
    if not isinstance(length, timedelta) or length < _SHORTEST:
        raise typer.BadParameter(
            f"{text!r} is no length of time from 1s, as 30m, 6h or 1d are", param_hint="--every"
        )
    return length


def plan_in(path: Path) -> PlanSpec:
    """The plan in a file. Raises SpecError, typer.BadParameter."""
    if not path.is_file():
        raise typer.BadParameter(f"{str(path)!r} is no file", param_hint="PLAN")
    expect(path, FileKind.PLAN)
    return load_plan(path)


def schedule_table(schedules: Sequence[ScheduleLine]) -> list[Text]:
    if not schedules:
        return [Text("No schedules. Make one with `temporal plan schedule create`.")]
    rows = [
        (
            one.id,
            when_text(one.when),
            Text("paused", style="yellow") if one.paused else moment(next(iter(one.next), None)),
            moment(one.recent[-1].at) if one.recent else "",
            one.note,
        )
        for one in schedules
    ]
    return columns(("SCHEDULE", "WHEN", "NEXT", "LAST", "NOTE"), rows)


def when_text(when: Timetable) -> str:
    """``0 3 * * * (Europe/Oslo), every 6h 00m``"""
    zone = f" ({when.time_zone})" if when.time_zone else ""
    parts = [f"{cron}{zone}" for cron in when.cron]
    return ", ".join([*parts, *(f"every {duration(every)}" for every in when.every)])


async def outcomes(client: PlansClient, schedule: ScheduleView) -> dict[str, str]:
    """How the last runs ended, by workflow id."""
    ids = [run.workflow_id for run in schedule.recent]
    found = await asyncio.gather(*(client.ended(workflow_id) for workflow_id in ids))
    return dict(zip(ids, found, strict=True))


def schedule_lines(schedule: ScheduleView, ended: dict[str, str]) -> list[Text]:
    begins = f"{schedule.plan} of {schedule.service}" if schedule.service else schedule.plan
    given = " ".join(f"{name}={value}" for name, value in schedule.parameters.items())
    facts = {
        "begins": f"plan {begins}" + (f" with {given}" if given else ""),
        "when": when_text(schedule.when),
        "overlap": str(schedule.overlap),
        "note": schedule.note,
        "runs": _counted(schedule),
        "next": "paused" if schedule.paused else ", ".join(map(moment, schedule.next[:_NEXT])),
    }
    width = max(map(len, facts)) + 2
    lines = [Text(printable(schedule.id), style="bold")]
    lines += [Text(printable(f"  {name:{width}}{value}")) for name, value in facts.items() if value]
    for run in reversed(schedule.recent):
        how = ended.get(run.workflow_id, "")
        lines.append(Text(printable(f"  {moment(run.at)}  {how:12}{run.workflow_id}")))
    return lines


def _counted(schedule: ScheduleView) -> str:
    parts = [str(schedule.runs)]
    if schedule.skipped:
        parts.append(f"{schedule.skipped} skipped, for the run before was not over")
    if schedule.missed:
        parts.append(f"{schedule.missed} missed, for the server was down")
    return ", ".join(parts)
