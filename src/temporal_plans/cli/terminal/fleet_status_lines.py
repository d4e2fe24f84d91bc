"""Lines for environments and products as they are."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.fleet_lines import STYLES, time_text
from temporal_plans.client.errors import PlansError
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, Outcome, Verdict
from temporal_plans.messages.fleets import EnvironmentStatus, PlanRow, ProductView, StatusRow

_HEAD = ("ENVIRONMENT", "ENTITY", "CURRENT", "TARGET", "PLAN", "SINCE", "WHY NOT")


def status_lines(
    fleet: Mapping[str, EnvironmentStatus | PlansError], now: datetime
) -> Iterator[str | Text]:
    """Yield a table of all entities, then what holds whole environments back."""
    rows = [
        _row(row, now)
        for status in fleet.values()
        if isinstance(status, EnvironmentStatus)
        for row in status.rows
    ]
    if rows:
        yield from columns(_HEAD, rows)
    else:
        yield "no entities; apply a document of an environment with `temporal plan fleet apply -f`"
    for name, status in fleet.items():
        if isinstance(status, PlansError):
            yield f"environment {name}: {status}"
        else:
            yield from _stops(status)


def _row(row: StatusRow, now: datetime) -> tuple[Cell, ...]:
    stands = row.standing
    target = stands.target if stands.target != stands.installed else ""
    plan = f"{stands.number} {stands.intent} {row.plan_status}".strip() if row.plan_id else ""
    waiting = f"{stands.number} {stands.intent}" if stands.number else ""
    reason = f"{stands.code} {stands.message}".strip()
    return (
        row.environment,
        row.entity,
        stands.installed or "-",
        target or "",
        Text(plan or waiting, style=STYLES[stands.outcome]),
        duration(now - stands.since),
        "" if stands.outcome is Outcome.ACTIVE and not stands.message else reason,
    )


def _stops(status: EnvironmentStatus) -> Iterator[str]:
    for one in status.suppressions:
        until = f" until {time_text(one.end)}" if one.end else ""
        what = f"{status.name}/{one.entity}" if one.entity else status.name
        yield f"{what} is suppressed ({one.origin} {one.id}){until}: {one.reason or 'no reason'}"
    for open_ in status.overrides:
        what = f"{status.name}/{open_.entity}" if open_.entity else status.name
        end = time_text(open_.end)
        yield f"{what}: windows are open for {open_.admits} until {end} ({open_.id})"
    if status.connection != "agents-connected":
        yield f"{status.name}: {status.connection}"
    yield from (f"{status.name}: {problem}" for problem in status.problems)


def explanation_lines(answer: FleetDecision) -> Iterator[str | Text]:
    """Yield everything about the decisions: each constraint's verdict, and what would cure it."""
    for one in answer.decisions:
        yield from _explained(one)


def _explained(decision: Decision) -> Iterator[str | Text]:
    plan = decision.plan
    what = f" {plan.intent} {plan.to or ''}".rstrip() if plan else ""
    code = f" ({decision.code})" if decision.code else ""
    head = f"{decision.entity}: {decision.outcome}{what}{code}"
    yield Text(head, style="bold")
    yield f"installed: {decision.installed or 'nothing'}"
    for one in decision.constraints:
        yield from _verdict(one)
    for rejected in decision.rejected_targets:
        yield f"not {rejected.version}: {', '.join(rejected.codes)}: {rejected.message}"
    for note in decision.notes:
        yield f"{note.code}: {note.message}"
    if decision.waiting is not None:
        waiting = decision.waiting.plan
        yield f"waits beside: {waiting.intent} {waiting.to or ''}".rstrip()
        for one in decision.waiting.constraints:
            yield from _verdict(one)
    if decision.next_evaluation_at is not None:
        yield f"looked at again: {time_text(decision.next_evaluation_at)}"


def _verdict(one: Verdict) -> Iterator[str]:
    message = f": {one.message}" if one.message else ""
    code = f" {one.code}" if one.code else ""
    yield f"  {one.id:4} {one.state:9} {one.title}{code}{message}"
    yield from (f"       to do: {action}" for action in one.actions)
    if one.next_change_at is not None:
        yield f"       changes by itself: {time_text(one.next_change_at)}"


def plan_lines(environment: str, rows: tuple[PlanRow, ...]) -> Iterator[str | Text]:
    """Yield a table of plans, newest first, with the errors of those that failed."""
    if not rows:
        yield "no plans yet"
        return
    head = ("ENTITY", "PLAN", "INTENT", "FROM", "TO", "STATUS", "ISSUED", "ENDED", "ERRORS")
    cells = [
        (
            f"{environment}/{one.entity}",
            one.plan_id,
            str(one.intent),
            one.from_version or "-",
            one.to or "-",
            one.status,
            _time(one.issued_at),
            _time(one.ended_at),
            "; ".join(one.errors),
        )
        for one in rows
    ]
    yield from columns(head, cells)


def _time(time: datetime | None) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z" if time else ""


def release_lines(product: ProductView) -> Iterator[str | Text]:
    """Yield a table of releases, newest first, then the recalls."""
    if not product.releases:
        yield f"{product.name} has no releases; publish one with `temporal plan fleet publish`"
    else:
        rows = [
            (
                one.version,
                ", ".join(one.channels),
                _time(one.published_at),
                ", ".join(one.recalls),
                ", ".join(one.files),
            )
            for one in product.releases
        ]
        yield from columns(("VERSION", "CHANNELS", "PUBLISHED", "RECALLED BY", "FILES"), rows)
    for one in product.recalls:
        end = "" if one.single else f" up to {one.end}" if one.end else " and later"
        yield f"recall {one.id} ({one.status}): {one.start}{end}: {one.reason or 'no reason'}"
    if product.environments:
        yield f"followed by {', '.join(product.environments)}"
