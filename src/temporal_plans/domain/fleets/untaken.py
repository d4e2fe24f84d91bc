"""Whether plans that were issued, and that no spoke has taken, would still be issued."""

from collections.abc import Set as AbstractSet
from datetime import datetime

from temporal_plans.domain.fleets.constraints import CONSTRAINTS
from temporal_plans.domain.fleets.constraints.ramp import RAMP
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, Outcome, PlanView
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.plans import ActivePlan, EntityVersion, Intent

_CONSTRAINTS = tuple(one for one in CONSTRAINTS if one is not RAMP)
"""A ramp has counted the starts of the plans already."""


def withdrawals(snapshot: Snapshot, names: AbstractSet[str], now: datetime) -> dict[str, str]:
    """Return of which of the named entities the issued plan would not be issued now, and why, for
    people. They are judged as if none of these plans had been issued. What carries out a command
    stays: nothing holds it back."""
    untaken = {
        one.name: one.state.active_plan
        for one in snapshot.environment.entities
        if one.name in names and _may_be_withdrawn(one)
    }
    if not untaken:
        return {}
    without = _without_plans(snapshot, untaken.keys())
    answer = decide(without, now, constraints=_CONSTRAINTS, only=untaken.keys())
    decisions = {one.entity.partition("/")[2]: one for one in answer.decisions}
    return {
        name: f"it was withdrawn before its spoke took it: {_reason(decisions[name])}"
        for name, plan in untaken.items()
        if plan is not None and not _is_issued(plan, decisions[name])
    }


def _may_be_withdrawn(entity: Entity) -> bool:
    plan = entity.state.active_plan
    return plan is not None and plan.intent is not Intent.BREAK_GLASS


def _without_plans(snapshot: Snapshot, names: AbstractSet[str]) -> Snapshot:
    environment = snapshot.environment
    entities = tuple(
        one.but(state=one.state.but(active_plan=None)) if one.name in names else one
        for one in environment.entities
    )
    return Snapshot.model_construct(
        environment=environment.but(entities=entities), products=snapshot.products
    )


def _is_issued(plan: ActivePlan, decision: Decision) -> bool:
    other = decision.plan
    return decision.outcome is Outcome.ISSUE and other is not None and _is_same(plan, other)


def _is_same(plan: ActivePlan, other: PlanView) -> bool:
    to = EntityVersion(version=other.to, config=other.config)
    return (plan.kind, plan.intent) == (other.kind, other.intent) and not plan.to.differs(to)


def _reason(decision: Decision) -> str:
    plan = decision.plan
    if plan is not None and decision.outcome is Outcome.ISSUE:
        return f"{plan.intent} {plan.to or ''}".strip() + " is wanted instead"
    code = decision.code
    texts = [one.message for one in decision.constraints if one.code == code]
    texts += [one.message for one in decision.rejected_targets if one.code == code]
    return f"{code} {texts[0] if texts else ''}".strip()
