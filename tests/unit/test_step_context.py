"""What a step kind is told."""

from datetime import timedelta

import pytest

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.plan import ApprovalWork, StepSpec
from temporal_plans.domain.transitions import StepState
from temporal_plans.workflows.machine import StepMachine
from temporal_plans.workflows.registry import Registry
from temporal_plans.workflows.step_context import StepContext, StepPlace
from unit.services import NOW

PLACE = StepPlace(
    index=0,
    spec=StepSpec(name="s", work=ApprovalWork()),
    address="p/q",
    element="p/q/s",
    backoff=Backoff(),
    context=None,
)
HELD = Reservation(id="r", owner="p/q", pod="s", index=0, agent="a", hostname="h", created=NOW)


@pytest.mark.parametrize(
    ("agent", "after", "lost"),
    [
        pytest.param("a", 1, True, id="given-up-since"),
        pytest.param("a", -1, False, id="given-up-before-and-back"),
        pytest.param("b", 1, False, id="another"),
    ],
)
def test_an_agent_is_lost_for_what_was_reserved_before(agent: str, after: int, lost: bool) -> None:
    machine = StepMachine(
        PLACE, StepState(), arguments={}, registry=Registry(), on_change=lambda _: None
    )
    machine.lose_agent(agent, NOW + timedelta(seconds=after))
    assert StepContext(machine).agent_lost(HELD) is lost
