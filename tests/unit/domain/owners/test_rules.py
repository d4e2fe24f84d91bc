"""Rules: the first that does not hold answers, or all of them; and what every owner asks."""

from datetime import datetime

import pytest

from builders.clock import NOW
from builders.plans import phase_spec
from temporal_plans.domain.constraints.rule import Rule, all_refusals, first_refusal
from temporal_plans.domain.owners.admission import RULES, OwnerSituation, StartRequest
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.plan import ParameterSpec, PlanSpec
from temporal_plans.domain.values.refusal import Code, Refusal


def above(limit: int) -> Rule[int, None]:
    def rule(subject: int, world: None, now: datetime) -> Refusal | None:
        return None if subject > limit else Refusal.of("too-low", f"not above {limit}")

    return rule


@pytest.mark.parametrize(
    ("subject", "first", "all_"),
    [
        pytest.param(9, [], [], id="holds"),
        pytest.param(4, ["not above 5"], ["not above 5"], id="one"),
        pytest.param(1, ["not above 5"], ["not above 5", "not above 3"], id="several"),
    ],
)
def test_rules_are_asked_in_order(subject: int, first: list[str], all_: list[str]) -> None:
    rules = [above(5), above(3)]
    refusal = first_refusal(rules, subject, None, NOW)
    assert [str(one) for one in (refusal,) if one is not None] == first
    assert [str(one) for one in all_refusals(rules, subject, None, NOW)] == all_


BACKUP = PlanSpec(
    name="backup",
    phases=(phase_spec("copy"),),
    parameters=(ParameterSpec(name="LABEL", required=True),),
)
OWNER = OwnerSituation("service shop", False, ("backup", "recovery"), {"backup": BACKUP})
GIVEN = {"LABEL": "a"}
ONCE = OWNER._replace(startable={"backup": BACKUP.but(reentrant=False)})
PART = Command(phase="copy")


@pytest.mark.parametrize(
    ("plan", "verb", "command", "owner", "code"),
    [
        pytest.param("backup", Verb.START, Command(parameters=GIVEN), OWNER, None, id="start"),
        pytest.param("backup", Verb.RESTART, Command(phase="copy"), OWNER, None, id="restart"),
        pytest.param("backup", Verb.RESTART, Command(), ONCE, None, id="all-of-it-again"),
        pytest.param("backup", Verb.RESTART, PART, ONCE, Code.NOT_REENTRANT, id="a-part-again"),
        pytest.param("backup", Verb.RESTART, PART.but(force=True), ONCE, None, id="by-force"),
        pytest.param("bakcup", Verb.START, Command(), OWNER, Code.NOT_FOUND, id="unknown"),
        pytest.param(
            "backup",
            Verb.START,
            Command(parameters=GIVEN),
            OWNER._replace(uninstalling=True),
            Code.UNINSTALLING,
            id="going",
        ),
        pytest.param("recovery", Verb.START, Command(), OWNER, Code.BY_ITSELF, id="by-itself"),
        pytest.param(
            "backup", Verb.RESTART, Command(phase="cpoy"), OWNER, Code.NOT_FOUND, id="no-phase"
        ),
        pytest.param(
            "backup", Verb.RESTART, Command(step="a"), OWNER, Code.MISSING_PHASE, id="no-step"
        ),
        pytest.param("backup", Verb.START, Command(), OWNER, Code.INVALID, id="no-parameter"),
    ],
)
def test_what_every_owner_asks(
    plan: str, verb: Verb, command: Command, owner: OwnerSituation, code: Code | None
) -> None:
    refusal = first_refusal(RULES, StartRequest(plan, verb, command), owner, NOW)
    assert (refusal and refusal.code) == code
