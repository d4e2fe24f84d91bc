"""Lines for environments and products as they are."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.fleet_lines import STYLES, time_text
from temporal_plans.client.errors import PlansError
from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.decisions import Decision, Outcome, Verdict, VerdictState
from temporal_plans.domain.fleets.explanation import Candidate, Explanation
from temporal_plans.domain.fleets.suppressions import Suppression, WindowClass, WindowOverride
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.messages.fleets.product_views import ProductView

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
        yield from columns(_HEAD, rows, hanging=True)
    else:
        yield "no entities; apply a document of an environment with `temporal plan fleet apply -f`"
    for name, status in fleet.items():
        if isinstance(status, PlansError):
            yield f"environment {name}: {status}"
        else:
            yield from stop_lines(status, now)


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


def stop_lines(status: EnvironmentStatus, now: datetime) -> Iterator[str]:
    """Yield what holds an environment or its entities back, and what opens its windows."""
    yield from (suppression_text(status.name, one, now) for one in status.suppressions)
    yield from (override_text(status.name, one) for one in status.overrides)
    if status.connection != "agents-connected":
        yield f"{status.name}: {status.connection}"
    yield from (f"{status.name}: {problem}" for problem in status.problems)


def suppression_text(environment: str, one: Suppression, now: datetime | None = None) -> str:
    """Return in a sentence what a suppression stops, from when if it begins after ``now``, up to
    when, and why."""
    later = now is not None and one.start > now
    since = f" from {time_text(one.start)}" if later else ""
    until = f" until {time_text(one.end)}" if one.end else ""
    what = f"{place_text(environment, one)} {'will be' if later else 'is'} suppressed"
    return f"{what} ({one.origin} {one.id}){since}{until}: {one.reason or 'no reason'}"


def override_text(environment: str, one: WindowOverride) -> str:
    """Return in a sentence when which windows are open, once."""
    span = f"from {time_text(one.start)} to {time_text(one.end)}"
    return f"{place_text(environment, one)}: windows are open for {one.admits} {span} ({one.id})"


def place_text(environment: str, one: Suppression | WindowOverride) -> str:
    """Return what it concerns: an entity, or the whole environment."""
    return f"{environment}/{one.entity}" if one.entity else environment


_PUBLISH = (
    "publish one: temporal plan fleet publish PRODUCT VERSION --channel {0}, or bring one there: "
    "temporal plan fleet promote PRODUCT VERSION --to {0}"
)


def explanation_lines(answer: Explanation) -> Iterator[str | Text]:
    """Yield everything about an entity: the decision, then every release of its channel with the
    verdicts about it, and what would cure those that do not hold."""
    yield from _explained(answer.decision)
    if answer.channel and not answer.candidates:
        yield f"the channel {answer.channel} has no releases"
        yield f"       to do: {_PUBLISH.format(answer.channel)}"
    for one in answer.candidates:
        yield from _candidate(one, answer.decision.entity)
    if (more := answer.count - len(answer.candidates)) > 0:
        yield f"{more} older releases are not shown"


def _candidate(one: Candidate, entity: str) -> Iterator[str | Text]:
    words = [
        text for text, is_so in (("installed", one.installed), ("chosen", one.chosen)) if is_so
    ]
    failed = [verdict.code for verdict in one.failed]
    words += [f"held back: {', '.join(dict.fromkeys(failed))}"] if failed else []
    yield Text(f"release {one.version}: {'; '.join(words) or 'could be used'}", style="bold")
    for verdict in one.verdicts:
        yield from _verdict(verdict, entity)


def _explained(decision: Decision) -> Iterator[str | Text]:
    plan = decision.plan
    what = f" {plan.intent} {plan.to or ''}".rstrip() if plan else ""
    code = f" ({decision.code})" if decision.code else ""
    head = f"{decision.entity}: {decision.outcome}{what}{code}"
    yield Text(head, style="bold")
    yield f"installed: {decision.installed or 'nothing'}"
    for one in decision.constraints:
        yield from _verdict(one, decision.entity)
    for note in decision.notes:
        yield f"{note.code}: {note.message}"
    if decision.waiting is not None:
        waiting = decision.waiting.plan
        yield f"waits beside: {waiting.intent} {waiting.to or ''}".rstrip()
        for one in decision.waiting.constraints:
            yield from _verdict(one, decision.entity)
    if decision.next_evaluation_at is not None:
        yield f"looked at again: {time_text(decision.next_evaluation_at)}"


def _verdict(one: Verdict, entity: str) -> Iterator[str]:
    message = f": {one.message}" if one.message else ""
    code = f" {one.code}" if one.code else ""
    yield f"  {one.id:4} {one.state:9} {one.title}{code}{message}"
    yield from (f"       to do: {action}" for action in one.actions)
    if one.state is VerdictState.FAILED:
        yield from (f"       command: {command}" for command in _cures(one, entity))
    if one.next_change_at is not None:
        yield f"       changes by itself: {time_text(one.next_change_at)}"


def _cures(one: Verdict, entity: str) -> Iterator[str]:
    """Yield the commands that would cure a verdict, where they are known to the last word."""
    environment = entity.partition("/")[0]
    if one.code == FleetCode.SUPPRESSED:
        for found in one.data.get("suppressions", ()):
            yield f"temporal plan fleet unsuppress {environment} {found['id']}"
    if one.code == FleetCode.OUTSIDE_WINDOW:
        downtime = any(found["class"] == WindowClass.DOWNTIME for found in one.data["window"])
        option = " --downtime" if downtime else ""
        yield f"temporal plan fleet override {entity} --for 1h{option} --reason WHY"


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
            f"{one.intent} by {one.by}: {one.reason}" if one.by else str(one.intent),
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
    for ramp in product.ramps:
        yield (
            f"upgrades to {ramp.version} on {ramp.channel} are spread over "
            f"{duration(ramp.duration)} from {_time(ramp.started_at)}"
        )
    if product.environments:
        yield f"followed by {', '.join(product.environments)}"
