"""How an entity stands: the last decision about it in short, and since when it is so."""

from collections.abc import Mapping
from datetime import datetime

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decisions import (
    Decision,
    FleetDecision,
    Outcome,
    ThresholdChange,
    VerdictState,
)
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Environment, Snapshot
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
    """What a decision about an environment changes: the entities whose state is another, how all
    stand whose standing is another, and the numbers of the plans that may begin."""

    at: AwareDatetime
    entities: tuple[Entity, ...] = ()
    standings: dict[str, EntityStanding] = {}
    issued: tuple[str, ...] = ()
    threshold: ThresholdChange = ThresholdChange()
    next_wakeup: AwareDatetime | None = None


def passed(snapshot: Snapshot, answer: FleetDecision, former: Mapping[str, EntityStanding]) -> Pass:
    """Return what an answer changes of a snapshot, in which entities stood as in ``former``."""
    before = {one.name: one for one in snapshot.environment.entities}
    after = carried_out(snapshot, answer).environment.entities
    standings: dict[str, EntityStanding] = {}
    for decision in answer.decisions:
        name = decision.entity.partition("/")[2]
        stands = standing(decision, former.get(name))
        if stands != former.get(name):
            standings[name] = stands
    return Pass(
        at=answer.at,
        entities=tuple(one for one in after if one != before[one.name]),
        standings=standings,
        issued=tuple(
            one.entity.partition("/")[2] for one in answer.decisions if one.outcome is Outcome.ISSUE
        ),
        threshold=answer.threshold,
        next_wakeup=answer.next_wakeup,
    )


def after_pass(environment: Environment, done: Pass, now: datetime) -> Environment:
    """Return the environment after a pass, without suppressions and overrides that are over."""
    changed = {one.name: one for one in done.entities}
    entities = tuple(changed.get(one.name, one) for one in environment.entities)
    suppressions = with_change(environment.suppressions, done.threshold)
    kept = tuple(one for one in suppressions if one.end is None or one.end > now)
    open_ = tuple(one for one in environment.overrides if one.end > now)
    return environment.but(entities=entities, suppressions=kept, overrides=open_)
