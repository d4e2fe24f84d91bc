"""Lines for change requests."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.cli.terminal.fleet_lines import time_text
from temporal_plans.messages.fleets.change_requests import ChangeRequest, PlannedChange

_HEAD = ("ENVIRONMENT", "ID", "STATUS", "CHANGE", "BY", "REASON", "APPROVED BY", "UNTIL")


def request_lines(found: Sequence[tuple[str, ChangeRequest]]) -> Iterator[str | Text]:
    """Yield a table of change requests, then what each that is open would change."""
    if not found:
        yield "no change requests"
        return
    yield from columns(_HEAD, [_row(environment, one) for environment, one in found])
    for environment, one in found:
        if not one.open:
            continue
        yield f"{environment} {one.id}, because of {', '.join(one.kinds)}:"
        for planned in one.planned:
            yield f"  {environment}/{planned.entity}: {_planned(planned)}"
        if one.others:
            yield f"  and {one.others} entities more"
        if not one.planned:
            yield "  nothing would be planned otherwise"


def _row(environment: str, one: ChangeRequest) -> tuple[Cell, ...]:
    status = f"{one.status}, held" if one.held and one.open else str(one.status)
    names = ", ".join(approval.by for approval in one.approvals)
    end = one.closed
    until = time_text(end.at) if end else time_text(one.expires_at)
    approved = f"{names or '-'} ({len(one.approvals)} of {one.needed})"
    reason = f"{one.reason}; {end.reason}" if end and end.reason else one.reason
    return (environment, one.id, status, one.subject, one.by, reason, approved, until)


def _planned(one: PlannedChange) -> str:
    stands = one.standing
    target = f" {stands.target}" if stands.target else ""
    plan = f" {stands.intent}{target}" if stands.intent else ""
    why = f": {stands.code} {stands.message}".rstrip() if stands.code else ""
    return f"{stands.outcome}{plan}{why}"
