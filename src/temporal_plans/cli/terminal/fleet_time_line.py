"""What happened in a fleet, of what it remembers: requests, promotions, plans, and what stopped
them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from temporal_plans.cli.terminal.fleet_lines import time_text
from temporal_plans.cli.terminal.fleet_status_lines import place_text
from temporal_plans.cli.terminal.time_line import Event, time_line
from temporal_plans.domain.fleets.suppressions import Origin
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.messages.plans import CommandLog, LogEntry

_RULES = ("apply", "pipeline", "channel")
"""Documents of a product. They say what may happen, and nothing happens by them."""


def environment_events(
    status: EnvironmentStatus, plans: Iterable[PlanRow], log: CommandLog
) -> Iterator[Event]:
    """Yield what happened in an environment: its requests, its plans, the openings of its windows,
    and the suppressions that no command asked for."""
    name = status.name
    yield from (_requested(name, one) for one in log.entries)
    yield from (_plan(name, one) for one in plans if one.issued_at is not None)
    for window in status.overrides:
        until = f"until {time_text(window.end)} ({window.id})"
        what = f"windows are open for {window.admits} {until}"
        yield Event(window.start, what, place_text(name, window))
    for stop in status.suppressions:
        if stop.origin is not Origin.MANUAL:
            until = f"until {time_text(stop.end)}" if stop.end else "until it is removed"
            yield Event(stop.start, f"suppressed {until}: {stop.reason}", place_text(name, stop))


def product_events(logs: Mapping[str, CommandLog]) -> Iterator[Event]:
    """Yield what happened to products, by name: what people asked for, and promotions."""
    for name, log in logs.items():
        yield from (_requested(name, one) for one in log.entries if one.verb not in _RULES)


def fleet_time_line(events: Sequence[Event]) -> list[Text]:
    """Return a line for each event, with the time since the first."""
    return time_line(events, "WHERE")


def _requested(subject: str, entry: LogEntry) -> Event:
    _, _, argument = entry.verb.partition(" ")
    said = entry.outcome.message
    what = said if argument in said else f"{entry.verb}: {said}"
    by = f", by {entry.by}" if entry.via == "pipeline" else ""
    why = f" ({entry.reason})" if entry.reason else ""
    return Event(entry.at, f"{what}{by}{why}", subject)


def _plan(environment: str, row: PlanRow) -> Event:
    assert row.issued_at is not None
    words = [f"plan {row.number}", row.intent]
    words += [f"from {row.from_version}"] if row.from_version else []
    what = " ".join([*words, f"to {row.to or 'nothing'}"])
    errors = "; ".join(row.errors)
    return Event(
        at=row.issued_at,
        what=f"{what}: {errors}" if errors else what,
        subject=f"{environment}/{row.entity}",
        result=row.status,
        took=row.ended_at - row.issued_at if row.ended_at else None,
    )
