"""The record of a spoke: which plan numbers it took, and what became of them.

A number is taken once. The record forgets a plan when the hub has acknowledged its end, and keeps
the highest number of each entity, so that an order that comes late starts nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import EntityName, Text
from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.values.model import CompactValue, Name

ERRORS_LIMIT = 5


class TakenEnd(CompactValue):
    """How a plan ended. ``changed``: steps of its change had begun."""

    status: EndStatus
    changed: bool = False
    errors: tuple[Text, ...] = Field(default=(), max_length=ERRORS_LIMIT)


class TakenPlan(CompactValue):
    """A plan that a spoke took, at the time ``at`` of its issue. The marks are those of a plan that
    was issued (``IssuedPlan``); ``end`` is how it ended. ``begun``: it may have been started."""

    entity: EntityName
    number: int
    at: AwareDatetime
    begun: bool = False
    started: bool = False
    ending: Text = ""
    asked: bool = False
    failed: bool = False
    closed: bool = False
    lost: Text = ""
    end: TakenEnd | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more happens with it here."""
        return self.end is not None or bool(self.lost)


class TakenRecord(CompactValue):
    """All plans that the hub has not acknowledged, by name, and the highest number that was taken
    of each entity. ``starter`` is the first run of the environment at the hub: another one counts
    from 1 again."""

    starter: Name = ""
    plans: dict[str, TakenPlan] = {}
    highest: dict[EntityName, int] = {}


class Taking(StrEnum):
    TAKEN = "taken"
    KNOWN = "known"
    """it was taken before"""
    STALE = "stale"
    """a later one was taken, or it was and has been forgotten"""
    FOREIGN = "foreign"
    """it is of another environment of this name"""


def bound(record: TakenRecord, starter: str) -> TakenRecord:
    """Return the record of a spoke whose hub has this environment. Plans of a former environment of
    the name are forgotten: what runs is left alone."""
    return record if record.starter == starter else TakenRecord(starter=starter)


def taking(record: TakenRecord, starter: str, plan: TakenPlan, name: str) -> Taking:
    """Return what a spoke does with an order."""
    if starter != record.starter:
        return Taking.FOREIGN
    if name in record.plans:
        return Taking.KNOWN
    return Taking.STALE if plan.number <= record.highest.get(plan.entity, 0) else Taking.TAKEN


def taken(record: TakenRecord, plan: TakenPlan, name: str) -> TakenRecord:
    """Return the record with one plan more."""
    highest = max(plan.number, record.highest.get(plan.entity, 0))
    return record.but(
        plans={**record.plans, name: plan}, highest={**record.highest, plan.entity: highest}
    )


def marked(record: TakenRecord, name: str, **changes: Any) -> TakenRecord:
    """Return the record with changes of a plan; without such a plan as it is."""
    if name not in record.plans:
        return record
    return record.but(plans={**record.plans, name: record.plans[name].but(**changes)})


def refused_before(entity: str, number: int, at: datetime, why: str = "") -> TakenPlan:
    """Return the plan of a number that was ended before it was taken: it will not be started."""
    end = TakenEnd(status=EndStatus.CANCELLED, errors=(why,) if why else ())
    return TakenPlan(entity=entity, number=number, at=at, closed=True, end=end)


def may_begin(record: TakenRecord, name: str) -> bool:
    """Whether no earlier plan of the entity is at work: one that an operator resolved at the hub
    may be."""
    plan = record.plans[name]
    return all(
        one.over or one.entity != plan.entity or one.number >= plan.number
        for one in record.plans.values()
    )


def settled(record: TakenRecord, names: Iterable[str]) -> TakenRecord:
    """Return the record without plans whose end the hub has acknowledged."""
    gone = {name for name in names if name in record.plans and record.plans[name].over}
    if not gone:
        return record
    return record.but(plans={name: one for name, one in record.plans.items() if name not in gone})


def unwanted(record: TakenRecord, names: Iterable[str], why: str) -> TakenRecord:
    """Return the record with plans that the hub does not want any more: they are asked to end."""
    changed: Mapping[str, TakenPlan] = {
        name: record.plans[name].but(ending=why)
        for name in names
        if name in record.plans and not record.plans[name].over and not record.plans[name].ending
    }
    return record.but(plans={**record.plans, **changed}) if changed else record
