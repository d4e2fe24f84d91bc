"""Which spoke may act for an environment, and which plan numbers a spoke takes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.fleets.spokes import (
    SpokeInfo,
    SpokeStanding,
    registered,
    registration_refusal,
    stranger_refusal,
)
from temporal_plans.domain.fleets.taken import (
    TakenEnd,
    TakenPlan,
    TakenRecord,
    Taking,
    bound,
    marked,
    may_begin,
    refused_before,
    settled,
    taken,
    taking,
    unwanted,
)
from temporal_plans.domain.values.refusal import Code

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
DONE = TakenEnd(status=EndStatus.SUCCEEDED)


def _info(lineage: str = "a", record: str = "r", boot: str = "1") -> SpokeInfo:
    return SpokeInfo(lineage=lineage, record=record, boot=boot, hostname="host")


def _known(*, away: bool = False) -> SpokeStanding:
    return SpokeStanding(info=_info(), since=THEN, away=away)


@pytest.mark.parametrize(
    ("known", "info", "refused"),
    [
        pytest.param(None, _info(), False, id="first"),
        pytest.param(_known(), _info(boot="2"), False, id="started-again"),
        pytest.param(_known(), _info("b"), True, id="another-work-directory"),
        pytest.param(_known(), _info(record="s"), True, id="another-server"),
        pytest.param(_known(away=True), _info("b", "s"), False, id="replaces-one-that-is-gone"),
    ],
)
def test_one_spoke_acts_for_an_environment(
    known: SpokeStanding | None, info: SpokeInfo, refused: bool
) -> None:
    refusal = registration_refusal(known, info)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert refusal.code == Code.NAME_TAKEN
        assert "another spoke on host is connected since 2026-01-01" in str(refusal)
        assert refusal.reasons[0].fix


@pytest.mark.parametrize(
    ("known", "info", "since"),
    [
        pytest.param(None, _info(), NOW, id="first"),
        pytest.param(_known(), _info(boot="2"), THEN, id="it-was-there-all-the-time"),
        pytest.param(_known(away=True), _info(boot="2"), NOW, id="back"),
        pytest.param(_known(away=True), _info("b"), NOW, id="another"),
    ],
)
def test_since_when_it_is_there(
    known: SpokeStanding | None, info: SpokeInfo, since: datetime
) -> None:
    assert registered(known, info, NOW) == SpokeStanding(info=info, since=since)


@pytest.mark.parametrize(
    ("known", "lineage", "record", "refused"),
    [
        (None, "a", "r", True),
        (_known(), "a", "r", False),
        (_known(away=True), "a", "r", False),
        (_known(), "b", "r", True),
        (_known(), "a", "s", True),
    ],
)
def test_only_the_registered_one_is_heard(
    known: SpokeStanding | None, lineage: str, record: str, refused: bool
) -> None:
    assert (stranger_refusal(known, lineage, record) is not None) is refused


def _plan(number: int, entity: str = "web", **more: Any) -> TakenPlan:
    return TakenPlan(entity=entity, number=number, at=THEN, **more)


def _record(*plans: TakenPlan) -> TakenRecord:
    record = TakenRecord(starter="run")
    for plan in plans:
        record = taken(record, plan, _name(plan))
    return record


def _name(plan: TakenPlan) -> str:
    return f"{plan.entity}.{plan.number}"


FORGOTTEN = settled(_record(_plan(3, end=DONE)), ["web.3"])


@pytest.mark.parametrize(
    ("record", "starter", "plan", "verdict"),
    [
        pytest.param(_record(), "run", _plan(1), Taking.TAKEN, id="first"),
        pytest.param(_record(_plan(1)), "run", _plan(1), Taking.KNOWN, id="twice"),
        pytest.param(_record(_plan(1, end=DONE)), "run", _plan(1), Taking.KNOWN, id="ended"),
        pytest.param(_record(_plan(1)), "run", _plan(2), Taking.TAKEN, id="next"),
        pytest.param(_record(_plan(3)), "run", _plan(2), Taking.STALE, id="late"),
        pytest.param(FORGOTTEN, "run", _plan(3), Taking.STALE, id="acknowledged"),
        pytest.param(FORGOTTEN, "run", _plan(4), Taking.TAKEN, id="after-it"),
        pytest.param(FORGOTTEN, "run", _plan(1, "db"), Taking.TAKEN, id="another-entity"),
        pytest.param(_record(), "other", _plan(1), Taking.FOREIGN, id="another-environment"),
        pytest.param(TakenRecord(), "run", _plan(1), Taking.FOREIGN, id="unbound"),
    ],
)
def test_a_number_is_taken_once(
    record: TakenRecord, starter: str, plan: TakenPlan, verdict: Taking
) -> None:
    assert taking(record, starter, plan, _name(plan)) is verdict


def test_a_plan_that_is_given_up_before_it_arrives_is_not_taken_any_more() -> None:
    never = refused_before("web", 2, THEN)
    record = taken(_record(_plan(1, end=DONE)), never, "web.2")
    assert never.end == TakenEnd(status=EndStatus.CANCELLED)
    assert taking(record, "run", _plan(2), "web.2") is Taking.KNOWN
    assert taking(settled(record, ["web.2"]), "run", _plan(2), "web.2") is Taking.STALE


@pytest.mark.parametrize(
    ("plans", "may"),
    [
        ((_plan(2),), True),
        ((_plan(1), _plan(2)), False),
        ((_plan(1, begun=True, started=True), _plan(2)), False),
        ((_plan(1, end=DONE), _plan(2)), True),
        ((_plan(1, lost="terminated"), _plan(2)), True),
        ((_plan(1, "db"), _plan(2)), True),
        ((_plan(2), _plan(3)), True),
    ],
)
def test_a_plan_waits_for_an_earlier_one_of_its_entity(
    plans: tuple[TakenPlan, ...], may: bool
) -> None:
    assert may_begin(_record(*plans), "web.2") is may


def test_only_what_is_over_is_forgotten() -> None:
    record = _record(_plan(1, end=DONE), _plan(1, "db"), _plan(1, "mq", lost="gone"))
    left = settled(record, ["web.1", "db.1", "mq.1", "unknown.1"])
    assert set(left.plans) == {"db.1"}
    assert left.highest == {"web": 1, "db": 1, "mq": 1}
    assert settled(record, ["db.1"]) is record


def test_what_the_hub_has_given_up_is_asked_to_end_once() -> None:
    record = _record(_plan(1, end=DONE), _plan(1, "db"), _plan(1, "mq", ending="before"))
    asked = unwanted(record, ["web.1", "db.1", "mq.1", "unknown.1"], "why")
    assert {name: one.ending for name, one in asked.plans.items()} == {
        "web.1": "",
        "db.1": "why",
        "mq.1": "before",
    }
    assert unwanted(asked, ["db.1"], "again") is asked


def test_marks_of_a_plan_that_is_not_there_are_ignored() -> None:
    record = _record(_plan(1))
    assert marked(record, "db.1", started=True) is record
    assert marked(record, "web.1", started=True).plans["web.1"].started


def test_another_environment_of_the_name_counts_from_one_again() -> None:
    record = _record(_plan(5))
    assert bound(record, "run") is record
    assert bound(record, "new") == TakenRecord(starter="new")
