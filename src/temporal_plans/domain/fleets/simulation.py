"""What would happen in a fleet over some time: with given events, and plans of a given length."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, Outcome, VerdictState
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.events import Fleet, FleetEvent, after, event_refusal
from temporal_plans.domain.fleets.plans import ActiveStatus, EndStatus
from temporal_plans.domain.fleets.progress import carried_out, ended
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import (
    ProductDecision,
    PromotionDecision,
    PromotionOutcome,
)
from temporal_plans.domain.fleets.promotion.events import Reported
from temporal_plans.domain.fleets.promotion.events import after as after_event
from temporal_plans.domain.fleets.promotion.progress import promoted, with_tests
from temporal_plans.domain.fleets.promotion.reports import EntityReport, reports_of
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.values.model import Value

DECISIONS_LIMIT = 100_000
"""How many times a simulation decides about an environment before it stops."""

PLAN_DURATION = timedelta(minutes=10)


class LineKind(StrEnum):
    EVENT = "EVENT"
    REFUSED = "REFUSED"
    ISSUED = "ISSUED"
    BLOCKED = "BLOCKED"
    STOPPED = "STOPPED"
    RESUMED = "RESUMED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    PROMOTED = "PROMOTED"
    HELD = "HELD"
    RECALLED = "RECALLED"
    EXPIRED = "EXPIRED"


class TimelineEntry(Value):
    """Something that happens in a simulation."""

    at: AwareDatetime = Field(description="When.")
    kind: LineKind = Field(description="What.")
    environment: str = Field(default="", description="Where.")
    entity: str = Field(default="", description="The entity.")
    text: str = Field(default="", description="More, for people.")


class Simulation(Value):
    """What `temporal plan fleet simulate --json` prints."""

    start: AwareDatetime = Field(description="The first time.")
    end: AwareDatetime = Field(description="The last time.")
    entries: tuple[TimelineEntry, ...] = Field(description="What happens, in order.")
    final: tuple[FleetDecision, ...] = Field(description="What is decided at the end.")
    products: tuple[ProductDecision, ...] = Field(
        default=(), description="What is decided of products with a pipeline at the end."
    )
    complete: bool = Field(
        default=True, description="False when it stopped early, at the limit of decisions."
    )


@dataclass(slots=True)
class _Run:
    """A simulation under way. ``due`` are the ends of running plans, ``wakeups`` and ``looks`` the
    next times to decide about environments and products, ``told`` the last reason that was listed
    of each entity, and of each release in a stage."""

    fleet: Fleet
    plan_duration: timedelta
    entries: list[TimelineEntry] = field(default_factory=list[TimelineEntry])
    due: dict[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])
    wakeups: dict[str, datetime] = field(default_factory=dict[str, datetime])
    looks: dict[str, datetime] = field(default_factory=dict[str, datetime])
    told: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    answers: dict[str, FleetDecision] = field(default_factory=dict[str, FleetDecision])
    promotions: dict[str, ProductDecision] = field(default_factory=dict[str, ProductDecision])
    count: int = 0

    def add(
        self, at: datetime, kind: LineKind, environment: str = "", entity: str = "", text: str = ""
    ) -> None:
        self.entries.append(
            TimelineEntry(at=at, kind=kind, environment=environment, entity=entity, text=text)
        )


def simulate(
    snapshots: Sequence[Snapshot],
    events: Sequence[FleetEvent],
    start: datetime,
    end: datetime,
    *,
    products: Sequence[ProductState] = (),
    plan_duration: timedelta = PLAN_DURATION,
) -> Simulation:
    """Decide again and again from a time to another, as events, the ends of plans and the decisions
    themselves require. All plans take ``plan_duration`` and succeed, but those that events let
    fail. Plans that run at the start end as if they had begun then. ``products``: those with a
    pipeline, or rules of channels; of the others nothing is promoted."""
    known = {one.id: ProductState(product=one) for each in snapshots for one in each.products}
    known |= {one.id: one for one in products}
    environments = {one.environment.name: one.environment for one in snapshots}
    run = _Run(Fleet(known, environments, {}), plan_duration)
    for name, environment in environments.items():
        for entity in environment.entities:
            if entity.state.active_plan is not None:
                run.due[name, entity.name] = start + plan_duration
    waiting = sorted((one for one in events if one.at <= end), key=lambda one: one.at)
    run.wakeups = dict.fromkeys(environments, start)
    run.looks = {name: start for name, one in known.items() if one.pipeline is not None}
    while run.count < DECISIONS_LIMIT:
        times = [*run.wakeups.values(), *run.looks.values(), *run.due.values()]
        times += [one.at for one in waiting[:1]]
        now = max(min(times, default=end), start)
        if now > end or not times:
            break
        happening = [one for one in waiting if one.at <= now]
        waiting = waiting[len(happening) :]
        _step(run, happening, now)
    return Simulation(
        start=start,
        end=end,
        entries=tuple(run.entries),
        final=tuple(run.answers[name] for name in sorted(run.answers)),
        products=tuple(run.promotions[name] for name in sorted(run.promotions)),
        complete=run.count < DECISIONS_LIMIT,
    )


def _step(run: _Run, events: Sequence[FleetEvent], now: datetime) -> None:
    """Let happen what happens at a time, and decide about the environments that it concerns."""
    dirty = {name for name, at in run.wakeups.items() if at <= now}
    for key in sorted(key for key, at in run.due.items() if at <= now):
        dirty.add(key[0])
        _end(run, *key, now)
    changed = {name for name, at in run.looks.items() if at <= now}
    for event in events:
        dirty |= set(run.fleet.environments)
        changed |= {event.product or ""} & set(run.fleet.products)
        _happen(run, event, now)
    for name in sorted(dirty):
        changed |= _report(run, run.fleet.environments[name], now)
    for name in sorted(changed):
        dirty |= _promote(run, name, now)
    for name in sorted(dirty):
        _decide(run, name, now)


def _report(run: _Run, environment: Environment, now: datetime) -> set[str]:
    """Report what is new of the entities of an environment; returns the products concerned."""
    found: dict[str, list[EntityReport]] = defaultdict(list)
    reported: dict[str, dict[tuple[str, str], EntityReport]] = {}
    for (product, report), (_, first) in zip(
        reports_of(environment, now), reports_of(environment), strict=True
    ):
        state = run.fleet.products.get(product)
        if state is None or state.pipeline is None:
            continue
        if product not in reported:
            reported[product] = {one.key: one for one in state.reports}
        known = reported[product].get(report.key)
        if known is None or known.reported_at is None:
            since = first.reported_at or now
            found[product].append(first.but(reported_at=since))
        elif not known.says(report):
            found[product].append(report)
    for name, reports in found.items():
        state = after_event(Reported(reports=tuple(reports)), run.fleet.products[name], now)
        _put(run, state)
    return set(found)


def _put(run: _Run, state: ProductState) -> None:
    run.fleet = replace(run.fleet, products={**run.fleet.products, state.id: state})


def _promote(run: _Run, name: str, now: datetime) -> set[str]:
    """Decide about the releases of a product until there is nothing to carry out; returns the
    environments that this concerns."""
    state = run.fleet.products[name]
    run.looks.pop(name, None)
    if state.pipeline is None:
        return set()
    concerned: set[str] = set()
    while True:
        run.count += 1
        answer = decide_promotions(state, now)
        state = promoted(state, answer)
        for one in answer.promotions:
            _tell_promotion(run, name, one, now)
        if not answer.acts or run.count >= DECISIONS_LIMIT:
            break
        concerned = set(run.fleet.environments)
    _put(run, state)
    run.promotions[name] = answer
    if answer.next_wakeup is not None:
        run.looks[name] = answer.next_wakeup
    for environment in run.fleet.environments.values():
        changed = with_tests(environment, name, answer.tests, now)
        if changed is not environment:
            concerned.add(environment.name)
            environments = {**run.fleet.environments, environment.name: changed}
            run.fleet = replace(run.fleet, environments=environments)
    return concerned


_KINDS = {
    PromotionOutcome.PROMOTE: LineKind.PROMOTED,
    PromotionOutcome.RECALL: LineKind.RECALLED,
    PromotionOutcome.CANCEL: LineKind.EXPIRED,
}


def _tell_promotion(run: _Run, product: str, one: PromotionDecision, now: datetime) -> None:
    """List what is done with a release in a stage, and why it waits when that is another reason."""
    text = f"{one.version} from {one.source} to {one.target}"
    key = f"{product} {text}"
    kind = _KINDS.get(one.outcome)
    if kind is None and run.told.get(key) == (one.outcome, one.code):
        return
    run.told[key] = (one.outcome, one.code)
    why = f": {one.code}: {one.message}" if one.code else ""
    run.add(now, kind or LineKind.HELD, "", product, f"{text}{why}")


def _end(run: _Run, environment: str, entity: str, now: datetime) -> None:
    del run.due[environment, entity]
    key, found = (environment, entity), run.fleet.environments[environment]
    plan = next(one.state.active_plan for one in found.entities if one.name == entity)
    left = run.fleet.failing.get(key, 0)
    status = EndStatus.FAILED if left else EndStatus.SUCCEEDED
    if plan is not None and plan.status is ActiveStatus.CANCELLING:
        status = EndStatus.CANCELLED
    changed = ended(found, entity, status, now)
    failing = {**run.fleet.failing, key: max(left - 1, 0)}
    run.fleet = replace(
        run.fleet,
        environments={**run.fleet.environments, environment: changed},
        failing=failing,
    )
    text = f"{plan.intent} {plan.to.version or ''}".strip() if plan else ""
    run.add(now, LineKind(status.value), environment, entity, text)


def _happen(run: _Run, event: FleetEvent, now: datetime) -> None:
    subject = event.product or event.entity or ""
    refusal = event_refusal(event, run.fleet)
    what = ", ".join(one.replace("_", "-") for one in event.deeds())
    if refusal is not None:
        text = f"{what}: {refusal}" if what else str(refusal)
        run.add(now, LineKind.REFUSED, event.environment or "", subject, text)
        return
    run.fleet = after(event, run.fleet, now)
    run.add(now, LineKind.EVENT, event.environment or "", subject, _event_text(event, what))


def _event_text(event: FleetEvent, what: str) -> str:
    detail: Mapping[str, str] = {
        "publish": event.publish.version if event.publish else "",
        "health": event.health or "",
        "pipeline": "enabled" if event.pipeline else "disabled",
        "promote": ", ".join(f"{v} to {c}" for v, c in (event.promote or {}).items()),
        "recall": event.recall.id if event.recall else "",
        "revert": event.revert or "",
        "suppress": event.suppress.id if event.suppress else "",
        "unsuppress": event.unsuppress or "",
        "override": event.override.id if event.override else "",
        "command": f"{event.command} {event.version or ''}".strip() if event.command else "",
        "fail-next": str(event.fail_next or ""),
    }
    return f"{what} {detail.get(what, '')}".strip()


def _decide(run: _Run, name: str, now: datetime) -> None:
    run.count += 1
    environment = run.fleet.environments[name]
    snapshot = Snapshot.model_construct(
        environment=environment,
        products=tuple(one.product for one in run.fleet.products.values()),
    )
    answer = decide(snapshot, now)
    changed = carried_out(snapshot, answer)
    run.fleet = replace(
        run.fleet,
        products={one.id: run.fleet.products[one.id].but(product=one) for one in changed.products},
        environments={**run.fleet.environments, name: changed.environment},
    )
    run.answers[name] = answer
    run.wakeups.pop(name, None)
    if answer.next_wakeup is not None:
        run.wakeups[name] = answer.next_wakeup
    if answer.threshold.created is not None:
        run.add(now, LineKind.STOPPED, name, text=answer.threshold.created.reason)
    if answer.threshold.removed:
        run.add(now, LineKind.RESUMED, name, text=", ".join(answer.threshold.removed))
    for decision in answer.decisions:
        _tell(run, name, decision, now)


def _tell(run: _Run, environment: str, decision: Decision, now: datetime) -> None:
    """List an issued plan, and a reason for which an entity is blocked when it is another."""
    entity = decision.entity.partition("/")[2]
    plan = decision.plan
    text = f"{plan.intent} {plan.to or ''}".strip() if plan else ""
    if decision.outcome is Outcome.ISSUE:
        run.due[environment, entity] = now + run.plan_duration
        run.told.pop(decision.entity, None)
        run.add(now, LineKind.ISSUED, environment, entity, text)
    elif decision.outcome is Outcome.BLOCKED:
        failed = [one for one in decision.constraints if one.state is VerdictState.FAILED]
        why = "; ".join(f"{one.id} {one.code}: {one.message}" for one in failed) or decision.code
        told = (text, ", ".join(one.code for one in failed) or decision.code)
        if run.told.get(decision.entity) != told:
            run.told[decision.entity] = told
            wanted = text or f"wanted {decision.wanted}" if decision.wanted or text else ""
            run.add(
                now, LineKind.BLOCKED, environment, entity, f"{wanted}: {why}".removeprefix(": ")
            )
    elif decision.outcome is Outcome.NO_WORK:
        run.told.pop(decision.entity, None)
