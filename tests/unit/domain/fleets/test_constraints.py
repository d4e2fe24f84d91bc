"""The list of constraints, and the row of each."""

import re

import pytest

from builders.fleets import NOW, decision, simple, stop
from temporal_plans.domain.fleets.constraints import CONSTRAINTS
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import VerdictState

ROWS = """
K1  target IN UP RO             | CM
K2  target IN UP RO             | CM
K3  target UP                   | CM
K4  target IN UP RO             | RB CM
K5  target UP RO                | CF UN RB CM
K6  target RO                   | CM
K7  target IN UP CF RO RB CM    |
K8  target IN UP RO RB          | CM
K9  target IN UP UN RO RB       | CM
K10 target IN UP RO RB          | CM
K11 target IN UP RO RB          | CM
K12 target IN UP RO RB          | CM
K13 issue  IN                   | CM
K14 issue  IN UP RO             | RB CM
K15 issue  IN UP CF UN RO RB    | CM
K16 issue  IN UP CF UN RO       | RB CM
K17 issue  IN UP CF UN RO       | RB CM
K18 issue  IN UP CF UN          | RO RB CM
K20 issue  IN UP CF UN RO       | RB CM
K21 issue  IN UP CF UN RO       | RB CM
K22 issue  UP                   | IN CF UN RO RB CM
K23 issue  UP                   | CF UN RO RB CM
K24 issue  IN UP CF UN RO RB CM |
K25 issue  IN UP CF UN RO RB    |
K26 issue  IN UP CF UN RO RB CM |
K27 issue  UN                   | CM
K28 input  IN UP CF UN          |
K29 target UP RO                | CM
K30 issue  UN                   |
"""
"""Each constraint with its class, the plans it applies to and those that ignore it. Of K20, leaving
a recalled release is exempt unless a setting says otherwise."""


def _row(one: Constraint) -> tuple[str, str, set[str], set[str]]:
    return one.id, one.stage.value, set(one.applies.split()), set(one.ignored.split())


def test_every_constraint_has_its_row() -> None:
    rows = [re.split(r" +", line, maxsplit=2) for line in ROWS.strip().splitlines()]
    wanted = [
        (name, stage, *(set(part.split()) for part in columns.split("|")))
        for name, stage, columns in rows
    ]
    assert sorted(map(_row, CONSTRAINTS), key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("one", CONSTRAINTS, ids=lambda one: one.id)
def test_every_constraint_is_a_file_with_its_record(one: Constraint) -> None:
    module = one.rule.__module__
    assert module.startswith("temporal_plans.domain.fleets.constraints.")
    assert one.title
    assert one.who_can_act
    assert not set(one.applies.split()) & set(one.ignored.split())
    assert len({other.rule.__module__ for other in CONSTRAINTS}) == len(CONSTRAINTS)


def test_stages_are_all_used() -> None:
    assert {one.stage for one in CONSTRAINTS} == set(Stage)


def test_t209_suppressions_are_shown_before_windows() -> None:
    given = simple(
        "1.0.0",
        "1.1.0",
        suppressions=[stop()],
        settings={"windows": {"w": {}}, "no_downtime_window": "w", "downtime_window": "w"},
    )
    found = decision(decide(given, NOW))
    failed = [one for one in found.constraints if one.state is VerdictState.FAILED]
    assert [one.id for one in failed] == ["K15", "K20"]
    assert found.code == "SUPPRESSED"
    assert failed[1].data == {"window": [{"class": "no-downtime", "next_opening": None}]}


def test_a_developers_constraint_is_judged_with_the_others() -> None:
    from datetime import datetime

    from temporal_plans.domain.fleets.proposal import Proposal
    from temporal_plans.domain.fleets.world import World
    from temporal_plans.domain.values.refusal import Refusal

    def no_fridays(_proposal: Proposal, _world: World, now: datetime, /) -> Refusal | None:
        return Refusal.of("FRIDAY", "it is Friday") if now.weekday() == 4 else None

    mine = Constraint("mine", "not on Fridays", Stage.ISSUE, no_fridays, applies="UP")
    given, friday = simple("1.0.0", "1.1.0"), NOW.replace(day=9)
    found = decision(decide(given, friday, constraints=(*CONSTRAINTS, mine)))
    assert (found.outcome, found.code) == ("BLOCKED", "FRIDAY")
    assert decision(decide(given, NOW, constraints=(*CONSTRAINTS, mine))).outcome == "ISSUE"
