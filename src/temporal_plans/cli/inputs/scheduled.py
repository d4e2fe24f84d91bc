"""Schedules: their timetables from the command line, and their tables."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.text import Text

from temporal_plans.cli.inputs.durations import duration_of
from temporal_plans.cli.inputs.files import FileKind, expect
from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.listing import moment
from temporal_plans.cli.terminal.output import printable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.schedules import ScheduleSummary, ScheduleView, Timetable
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.loading.plans import load_plan

_NEXT_RUNS_LIMIT = 3
"""At most this many future runs are shown."""

_INTERVAL_MINIMUM = timedelta(seconds=1)


def timetable(cron: Sequence[str] | None, every: Sequence[str] | None, time_zone: str) -> Timetable:
    """Return the times of a schedule. Raises typer.BadParameter for a malformed one."""
    if not cron and not every:
        raise typer.BadParameter("no times given; add for example --cron '0 3 * * *' or --every 6h")
    if time_zone:
        try:
            ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise typer.BadParameter(
                f"not a time zone (found {time_zone!r}); write for example Europe/Oslo",
                param_hint="--time-zone",
            ) from None
    intervals = tuple(
        duration_of(text, "--every", minimum=_INTERVAL_MINIMUM) for text in every or ()
    )
    return Timetable(cron=tuple(cron or ()), every=intervals, time_zone=time_zone)


def plan_in(path: Path) -> PlanSpec:
    """Load the plan in a file. Raises SpecError, typer.BadParameter."""
    if not path.is_file():
        raise typer.BadParameter(f"not a file (found {str(path)!r})", param_hint="PLAN")
    expect(path, FileKind.PLAN)
    return load_plan(path)


def schedule_table(schedules: Sequence[ScheduleSummary]) -> list[Text]:
    if not schedules:
        return [Text("No schedules. Create one with `temporal plan schedule create`.")]
    rows = [
        (
            schedule.id,
            when_text(schedule.when),
            Text("paused", style="yellow")
            if schedule.paused
            else moment(next(iter(schedule.next), None)),
            moment(schedule.recent[-1].at) if schedule.recent else "",
            schedule.note,
        )
        for schedule in schedules
    ]
    return columns(("SCHEDULE", "WHEN", "NEXT", "LAST", "NOTE"), rows)


def when_text(when: Timetable) -> str:
    """``0 3 * * * (Europe/Oslo), every 6h 00m``"""
    parts = [f"{cron} ({when.time_zone or 'UTC'})" for cron in when.cron]
    return ", ".join([*parts, *(f"every {duration(every)}" for every in when.every)])


async def outcomes(client: PlansClient, schedule: ScheduleView) -> dict[str, str]:
    """Return how the last runs ended, by workflow id."""
    ids = [run.workflow_id for run in schedule.recent]
    found = await asyncio.gather(*(client.ended(workflow_id) for workflow_id in ids))
    return dict(zip(ids, found, strict=True))


def schedule_lines(schedule: ScheduleView, ended: dict[str, str]) -> list[Text]:
    """Return a block of facts about a schedule, and a line for each of its last runs."""
    plan = f"{schedule.plan} of {schedule.service}" if schedule.service else schedule.plan
    given = " ".join(f"{name}={value}" for name, value in schedule.parameters.items())
    facts = {
        "starts": f"plan {plan}" + (f" with {given}" if given else ""),
        "when": when_text(schedule.when),
        "overlap": str(schedule.overlap),
        "note": schedule.note,
        "runs": _counted(schedule),
        "next": "paused"
        if schedule.paused
        else ", ".join(map(moment, schedule.next[:_NEXT_RUNS_LIMIT])),
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
        parts.append(f"{schedule.skipped} skipped because the previous run was not over")
    if schedule.missed:
        parts.append(f"{schedule.missed} missed because the server was down")
    return ", ".join(parts)
