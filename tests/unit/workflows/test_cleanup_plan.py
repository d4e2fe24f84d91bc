"""The plan ``cleanup``: the package's own phases, and the removal of what is left."""

from typing import Any

import pytest

from builders.plans import phase_spec
from temporal_plans.domain.plans import plan_check
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.strategies import CANARIES, NAMES
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.workflows.packages.plan_inputs import REMOVAL, Removal, cleanup_plan

SETTINGS: dict[str, dict[str, Any]] = {"max-parallel": {"limit": 2}, "waves": {"waves": (1,)}}


def strategy(name: str) -> StrategySpec:
    settings = SETTINGS.get(CANARIES.get(name, name), {})
    return StrategySpec.model_validate({"name": name, **settings})


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_it_can_run_and_removes_last(name: str, count: int) -> None:
    phases = tuple(phase_spec(f"p{number}", "a") for number in range(count))
    own = PlanSpec(name="cleanup", strategy=strategy(name), phases=phases)
    assert not plan_check.problems(own, NAMES, may_be_empty=True)
    made = cleanup_plan(own, Removal())
    assert plan_check.problems(made, NAMES) == ()
    assert [phase.name for phase in made.phases] == [f"p{number}" for number in range(count)] + [
        REMOVAL
    ]
    assert (made.strategy.name in CANARIES) is (name in CANARIES and count > 0)
    in_order = CANARIES.get(made.strategy.name, made.strategy.name) == "serial"
    wanted = () if in_order else tuple(phase.name for phase in phases)
    assert made.phases[-1].depends_on == wanted
    assert made.strategy.proceeds <= count or made.strategy.name not in CANARIES, "no gate is its"


def test_by_force_and_without_a_plan_only_the_objects_are_removed() -> None:
    own = PlanSpec(name="cleanup", phases=(phase_spec("p", "a"),))
    for made in (cleanup_plan(own, Removal(own_plan=False)), cleanup_plan(None, Removal())):
        assert [phase.name for phase in made.phases] == [REMOVAL]
        assert PlanBoard(made).spec.strategy == StrategySpec()
