"""What a snapshot becomes when decisions are carried out and plans end."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, Outcome, PlanView
from temporal_plans.domain.fleets.entities import Entity, EntityState
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.plans import (
    ActivePlan,
    ActiveStatus,
    EndedPlan,
    EndStatus,
    EntityVersion,
    FailureCount,
    Intent,
    PlanContent,
    PlanKind,
    ProposedPlan,
)
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.suppressions import Origin, Suppression
from temporal_plans.domain.fleets.threshold import with_change

SUPPRESSION_STEPS = (1, 2, 6)
"""How many times the first suppression those after the first, second and third failure in a row of
one version last. After the next failure plans to that version are stopped until it changes."""


def carried_out(snapshot: Snapshot, answer: FleetDecision) -> Snapshot:
    """Return the snapshot after an answer: issued plans run, blocked ones wait, and the
    environment's stop is as decided."""
    environment = snapshot.environment
    decisions = {one.entity.partition("/")[2]: one for one in answer.decisions}
    entities = tuple(
        _with_decision(one, decisions[one.name], answer.at) if one.name in decisions else one
        for one in environment.entities
    )
    suppressions = with_change(environment.suppressions, answer.threshold)
    return Snapshot(
        environment=environment.but(entities=entities, suppressions=suppressions),
        products=_with_starts(snapshot, answer.decisions),
    )


def _with_decision(entity: Entity, decision: Decision, at: datetime) -> Entity:
    state = entity.state
    plan = decision.plan
    waiting = decision.waiting.plan if decision.waiting else None
    if decision.outcome is Outcome.ACTIVE:
        if decision.cancel is None or state.active_plan is None:
            return entity
        active = state.active_plan.but(status=ActiveStatus.CANCELLING)
        return entity.but(state=state.but(active_plan=active))
    proposed = plan if decision.outcome is Outcome.BLOCKED else waiting
    numbers = [state.last_number, *(one.number for one in (plan, waiting) if one is not None)]
    kept = _proposed(proposed) if proposed is not None else None
    same = kept == state.proposed_plan and max(numbers) == state.last_number
    if same and decision.outcome is not Outcome.ISSUE:
        return entity  # the same object, so that an index knows that nothing has changed
    state = state.but(proposed_plan=kept, last_number=max(numbers))
    if decision.outcome is Outcome.ISSUE and plan is not None:
        state = state.but(
            active_plan=ActivePlan(
                **_content(plan),
                status=ActiveStatus.ISSUED,
                issued_at=at,
                before=state.current,
                secrets=plan.secrets,
            ),
            command=None if plan.intent is Intent.BREAK_GLASS else state.command,
        )
    return entity.but(state=state)


def _content(plan: PlanView) -> dict[str, Any]:
    to = EntityVersion(version=plan.to, config=plan.config)
    return {"number": plan.number, "kind": plan.kind, "intent": plan.intent, "to": to}


def _proposed(plan: PlanView) -> ProposedPlan:
    return ProposedPlan.model_validate(
        {
            **_content(plan),
            "proposed_at": plan.proposed_at,
            "blocked_since": plan.blocked_since,
            "skipped": plan.skipped,
        }
    )


def _with_starts(snapshot: Snapshot, decisions: Iterable[Decision]) -> tuple[Product, ...]:
    """Count the upgrades that were issued in the ramps that pace them."""
    if not any(one.ramps for one in snapshot.products):
        return snapshot.products
    entities = {one.name: one for one in snapshot.environment.entities}
    default = snapshot.environment.settings.release_channel
    starts: list[tuple[str, str, str | None]] = []
    for one in decisions:
        entity = entities[one.entity.partition("/")[2]]
        if one.outcome is not Outcome.ISSUE or one.plan is None or entity.settings is None:
            continue
        if one.plan.intent is Intent.UPGRADE:
            channel = entity.settings.release_channel or default
            starts.append((entity.product, channel, one.plan.to))

    def counted(product: Product, ramp: Ramp) -> Ramp:
        count = starts.count((product.id, ramp.channel, ramp.version))
        return ramp.but(started=ramp.started + count)

    return tuple(
        one.but(ramps=tuple(counted(one, ramp) for ramp in one.ramps)) if one.ramps else one
        for one in snapshot.products
    )


def ended(
    environment: Environment,
    name: str,
    status: EndStatus,
    now: datetime,
    *,
    reached: EntityVersion | None = None,
    errors: tuple[str, ...] = (),
) -> Environment:
    """Return the environment after the running plan of an entity has ended.

    ``reached`` is what is installed then: without it what the plan leads to, or for a plan that did
    not succeed what was installed before it. A failed plan suppresses its entity: for longer each
    time the same version fails, a failed rollback until a person removes the suppression. An entity
    without a running plan is not changed.
    """
    entity = next((one for one in environment.entities if one.name == name), None)
    plan = entity.state.active_plan if entity is not None else None
    if entity is None or plan is None:
        return environment
    if reached is None:
        reached = plan.to if status is EndStatus.SUCCEEDED else plan.before
    done = status is EndStatus.SUCCEEDED
    state = entity.state.but(
        version=reached.version,
        config=reached.config,
        active_plan=None,
        pending_secrets=_secrets_left(entity.state, plan) if done else entity.state.pending_secrets,
        last_plan=EndedPlan(
            **_shared(plan), status=status, ended_at=now, before=plan.before, errors=errors
        ),
        failures=_failures(entity.state, plan, status),
    )
    entities = tuple(
        entity.but(state=state) if one.name == name else one for one in environment.entities
    )
    suppressions = environment.suppressions
    if status is EndStatus.FAILED:
        suppressions = (*suppressions, _suppression(environment, entity, state, plan, now))
    return environment.but(entities=entities, suppressions=suppressions)


def _secrets_left(state: EntityState, plan: ActivePlan) -> tuple[str, ...]:
    """Return the secrets that wait after a success: those that were reported while it ran. What is
    uninstalled needs none; a plan of a former version does not know which it applied."""
    if plan.to.version is None:
        return ()
    applied = state.pending_secrets if plan.secrets is None else plan.secrets
    return tuple(one for one in state.pending_secrets if one not in applied)


def _shared(plan: PlanContent) -> dict[str, Any]:
    return {"number": plan.number, "kind": plan.kind, "intent": plan.intent, "to": plan.to}


def _failures(state: EntityState, plan: PlanContent, status: EndStatus) -> tuple[FailureCount, ...]:
    """Return the failures by version: a success of a version forgets those of that version."""
    version, config = plan.to.version, plan.to.config.revision
    others = tuple(one for one in state.failures if (one.version, one.config) != (version, config))
    if status is EndStatus.SUCCEEDED:
        return others
    if status is EndStatus.CANCELLED or plan.intent is Intent.ROLLBACK:
        return state.failures
    count = _count(state.failures, plan) + 1
    return (*others, FailureCount(version=version, config=config, count=count))[-100:]


def _count(failures: Iterable[FailureCount], plan: PlanContent) -> int:
    key = (plan.to.version, plan.to.config.revision)
    return next((one.count for one in failures if (one.version, one.config) == key), 0)


def _suppression(
    environment: Environment,
    entity: Entity,
    state: EntityState,
    plan: PlanContent,
    now: datetime,
) -> Suppression:
    shared = Suppression(
        id=f"failed-{entity.name}-{plan.number}",
        origin=Origin.FAILED_PLAN,
        entity=entity.name,
        start=now,
        reason=f"plan {plan.number} ({plan.intent} {plan.to.version or ''}) failed",
    )
    if plan.intent is Intent.ROLLBACK:
        return shared
    count = _count(state.failures, plan)
    if count > len(SUPPRESSION_STEPS) and plan.kind is not PlanKind.UNINSTALL:
        return shared.but(target_version=plan.to.version, target_config=plan.to.config.revision)
    step = SUPPRESSION_STEPS[min(count, len(SUPPRESSION_STEPS)) - 1]
    return shared.but(end=now + step * environment.settings.failure_suppression)
