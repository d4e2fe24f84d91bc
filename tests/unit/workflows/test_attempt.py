"""What a step kind is told."""

from datetime import timedelta

import pytest

from builders.clock import NOW
from builders.plans import step_spec
from builders.pools import agent, reservation
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.workflows.plans.attempt import StepAttempt, StepPlace
from temporal_plans.workflows.plans.machine import StepMachine
from temporal_plans.workflows.plans.registry import Registry

PLACE = StepPlace(
    index=0,
    spec=step_spec("s", ApprovalWork()),
    address="p/q",
    element="p/q/s",
    backoff=Backoff(),
    context=None,
)
HELD = reservation("s", 0, on=agent("a"))


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
        PLACE, StepState(), arguments={}, registry=Registry(runners={}), on_change=lambda _: None
    )
    machine.lose_agent(agent, NOW + timedelta(seconds=after))
    assert StepAttempt(machine).agent_lost(HELD) is lost
