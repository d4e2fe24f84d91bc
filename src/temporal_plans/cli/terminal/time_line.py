"""What happened to a service, in the order of time, as a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.output import coloured
from temporal_plans.domain.owners.runs import RunRecord


@dataclass(frozen=True)
class Event:
    """Something that happened to a ``subject``; ``result`` and ``took`` are those of a plan."""

    at: datetime
    what: str
    subject: str = ""
    result: str = ""
    took: timedelta | None = None


def run_events(runs: Iterable[RunRecord]) -> list[Event]:
    """Return an event for each run of a plan."""
    return [
        Event(
            at=run.started,
            what=f"{run.what} ({run.reason})" if run.reason else run.what,
            subject=run.plan,
            result=run.status,
            took=run.ended - run.started if run.ended else None,
        )
        for run in runs
    ]


def time_line(events: Sequence[Event], subjects: str = "PLAN") -> list[Text]:
    """Return a line for each event, with the time since the first. ``subjects`` is the head of the
    column that they have."""
    ordered = sorted(events, key=lambda event: event.at)
    rows = [
        (
            f"+{duration(event.at - ordered[0].at)}",
            event.subject or "-",
            coloured(event.result) if event.result else Text("-"),
            duration(event.took) if event.took is not None else "-",
            event.what,
        )
        for event in ordered
    ]
    return columns(("AFTER", subjects, "RESULT", "TOOK", "WHAT"), rows, hanging=True)
