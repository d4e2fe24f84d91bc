"""The state that a phase assumes of a step that it starts."""

import pytest

from builders.clock import NOW
from builders.plans import step_spec
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.workflows.plans.step import assumed

POD = PodWork(pod="web", index=0, tasks=("server",))
COMMAND = CommandWork(cmd="true")


@pytest.mark.parametrize(
    ("work", "reserving", "status", "attempt"),
    [
        pytest.param(ActivityWork(type="a"), True, Status.STARTING, 1, id="activity"),
        pytest.param(ApprovalWork(), True, Status.PENDING, 0, id="approval"),
        pytest.param(KillWork(task="t"), True, Status.IN_PROGRESS, 1, id="kill"),
        pytest.param(UnreserveWork(resource="r", key="k"), True, Status.PREPARED, 1, id="release"),
        pytest.param(POD, True, Status.PREPARED, 0, id="pod"),
        pytest.param(COMMAND, True, Status.PREPARED, 0, id="command"),
        pytest.param(POD, False, Status.STARTING, 1, id="pod-of-an-older-phase"),
        pytest.param(COMMAND, False, Status.STARTING, 1, id="command-of-an-older-phase"),
    ],
)
def test_a_new_step(work: Work, reserving: bool, status: Status, attempt: int) -> None:
    state = assumed(step_spec("s", work), StepState(), NOW, reserving)
    assert (state.status, state.attempt) == (status, attempt)
    assert state.touched is (status is not Status.PENDING)


def test_a_step_that_has_begun_keeps_its_state() -> None:
    state = StepState(status=Status.STARTED, attempt=2)
    assert assumed(step_spec("s", POD), state, NOW, True) is state
