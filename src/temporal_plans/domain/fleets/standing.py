"""How an entity stands: the last decision about it in short, and since when it is so."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decisions import (
    Decision,
    FleetDecision,
    Outcome,
    ThresholdChange,
    VerdictState,
)
from temporal_plans.domain.fleets.entities import EntityState
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.products import Ramp
from temporal_plans.domain.fleets.progress import carried_out
from temporal_plans.domain.fleets.threshold import with_change
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shortened

MESSAGE_LIMIT = 200
"""Characters of the reason that is kept; ``explain`` has all of them."""


class EntityStanding(CompactValue):
    """The last decision about an entity in short."""

    outcome: Outcome
    code: str = ""
    message: str = ""
    installed: str | None = None
    target: str | None = Field(
        default=None, description="The version of the plan, or the newest one that is wanted."
    )
    intent: str = ""
    number: int | None = None
    since: AwareDatetime

    def same_as(self, other: "EntityStanding") -> bool:
        """Whether nothing but the times differs."""
        return self.but(since=other.since, message=other.message) == other


def standing(decision: Decision, former: EntityStanding | None) -> EntityStanding:
    """Return how an entity stands after a decision."""
    plan = decision.plan
    failed = [one.message for one in decision.constraints if one.state is VerdictState.FAILED]
    texts = failed or [one.message for one in decision.notes]
    now = EntityStanding(
        outcome=decision.outcome,
        code=decision.code,
        message=shortened("; ".join(texts), MESSAGE_LIMIT),
        installed=decision.installed,
        target=plan.to if plan else decision.wanted,
        intent=plan.intent if plan else "",
        number=plan.number if plan else None,
        since=decision.at,
    )
    return now.but(since=former.since) if former is not None and now.same_as(former) else now


class Pass(CompressibleValue):
    """What a decision about an environment changes: the states that are others, how all entities
    stand whose standing is another, the entities whose plans may begin, and the ramps of products
    in which they count. ``again``: when an answer may be another by itself, of all entities that
    were decided."""

    at: AwareDatetime
    states: dict[str, EntityState] = {}
    again: dict[str, AwareDatetime] = {}
    ramps: dict[str, tuple[Ramp, ...]] = {}
    standings: dict[str, EntityStanding] = {}
    issued: tuple[str, ...] = ()
    threshold: ThresholdChange = ThresholdChange()
    next_wakeup: AwareDatetime | None = None

    def without(self, names: AbstractSet[str]) -> "Pass":
        """Return the pass over other entities than these."""
        if not names:
            return self
        issued = tuple(one for one in self.issued if one not in names)
        return self.but(
            states={name: one for name, one in self.states.items() if name not in names},
            standings={name: one for name, one in self.standings.items() if name not in names},
            issued=issued,
            ramps=self.ramps if issued == self.issued else {},
        )


def passed(snapshot: Snapshot, answer: FleetDecision, former: Mapping[str, EntityStanding]) -> Pass:
    """Return what an answer changes of a snapshot, in which entities stood as in ``former``."""
    entities = snapshot.environment.entities
    after = carried_out(snapshot, answer)
    standings: dict[str, EntityStanding] = {}
    for decision in answer.decisions:
        name = decision.entity.partition("/")[2]
        stands = standing(decision, former.get(name))
        if stands != former.get(name):
            standings[name] = stands
    return Pass(
        at=answer.at,
        states={
            new.name: new.state
            for old, new in zip(entities, after.environment.entities, strict=True)
            if new is not old and new != old
        },
        again={
            one.entity.partition("/")[2]: one.next_evaluation_at
            for one in answer.decisions
            if one.next_evaluation_at is not None
        },
        ramps={
            new.id: new.ramps
            for old, new in zip(snapshot.products, after.products, strict=True)
            if new is not old and new.ramps != old.ramps
        },
        standings=standings,
        issued=tuple(
            one.entity.partition("/")[2] for one in answer.decisions if one.outcome is Outcome.ISSUE
        ),
        threshold=answer.threshold,
        next_wakeup=answer.next_wakeup,
    )


def after_pass(environment: Environment, done: Pass, now: datetime) -> Environment:
    """Return the environment after a pass, without suppressions and overrides that are over."""
    states = done.states
    entities = tuple(
        one.but(state=states[one.name]) if one.name in states else one
        for one in environment.entities
    )
    suppressions = with_change(environment.suppressions, done.threshold)
    kept = tuple(one for one in suppressions if one.end is None or one.end > now)
    open_ = tuple(one for one in environment.overrides if one.end > now)
    return environment.but(entities=entities, suppressions=kept, overrides=open_)
