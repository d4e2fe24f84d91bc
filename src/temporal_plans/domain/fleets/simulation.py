"""What would happen in a fleet over some time: with given events, and plans of a given length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, Outcome, VerdictState
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.events import Fleet, FleetEvent, after, event_refusal
from temporal_plans.domain.fleets.plans import ActiveStatus, EndStatus
from temporal_plans.domain.fleets.progress import carried_out, ended
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
    complete: bool = Field(
        default=True, description="False when it stopped early, at the limit of decisions."
    )


@dataclass(slots=True)
class _Run:
    """A simulation under way. ``due`` are the ends of running plans, ``wakeups`` the next times to
    decide, ``told`` the last reason that was listed of each entity."""

    fleet: Fleet
    plan_duration: timedelta
    entries: list[TimelineEntry] = field(default_factory=list[TimelineEntry])
    due: dict[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])
    wakeups: dict[str, datetime] = field(default_factory=dict[str, datetime])
    told: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    answers: dict[str, FleetDecision] = field(default_factory=dict[str, FleetDecision])
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
    plan_duration: timedelta = PLAN_DURATION,
) -> Simulation:
    """Decide again and again from a time to another, as events, the ends of plans and the decisions
    themselves require. All plans take ``plan_duration`` and succeed, but those that events let
    fail. Plans that run at the start end as if they had begun then."""
    products = {one.id: one for snapshot in snapshots for one in snapshot.products}
    environments = {one.environment.name: one.environment for one in snapshots}
    run = _Run(Fleet(products, environments, {}), plan_duration)
    for name, environment in environments.items():
        for entity in environment.entities:
            if entity.state.active_plan is not None:
                run.due[name, entity.name] = start + plan_duration
    waiting = sorted((one for one in events if one.at <= end), key=lambda one: one.at)
    run.wakeups = dict.fromkeys(environments, start)
    while run.count < DECISIONS_LIMIT:
        times = [*run.wakeups.values(), *run.due.values(), *(one.at for one in waiting[:1])]
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
        complete=run.count < DECISIONS_LIMIT,
    )


def _step(run: _Run, events: Sequence[FleetEvent], now: datetime) -> None:
    """Let happen what happens at a time, and decide about the environments that it concerns."""
    dirty = {name for name, at in run.wakeups.items() if at <= now}
    for key in sorted(key for key, at in run.due.items() if at <= now):
        dirty.add(key[0])
        _end(run, *key, now)
    for event in events:
        dirty |= set(run.fleet.environments)
        _happen(run, event, now)
    for name in sorted(dirty):
        _decide(run, name, now)


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
        environment=environment, products=tuple(run.fleet.products.values())
    )
    answer = decide(snapshot, now)
    changed = carried_out(snapshot, answer)
    run.fleet = replace(
        run.fleet,
        products={one.id: one for one in changed.products},
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
