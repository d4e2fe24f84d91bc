"""What is told of a plan, line by line, where no tree can be redrawn."""

import pytest

from builders.plan_views import phase, plan, step
from temporal_plans.cli.terminal.changes import changes
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView


def view(
    one: Status, two: Status, of_phase: Status, of_plan: Status, *, message: str = ""
) -> PlanView:
    return plan(
        of_plan,
        phase("p", "serial", of_phase, step("one", one), step("two", two, message=message)),
    )


PENDING = view(Status.PENDING, Status.PENDING, Status.PENDING, Status.PENDING)
BEGUN = view(Status.STARTING, Status.PENDING, Status.STARTING, Status.STARTING)
HALF = view(Status.COMPLETE, Status.PENDING, Status.IN_PROGRESS, Status.IN_PROGRESS)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(None, PlanRun(PENDING), ["deploy PENDING"], id="first-look-at-nothing"),
        pytest.param(
            None,
            PlanRun(BEGUN),
            ["deploy/p/one STARTING", "deploy/p STARTING", "deploy STARTING"],
            id="first-look-in-the-middle",
        ),
        pytest.param(
            PlanRun(BEGUN),
            PlanRun(HALF),
            ["deploy/p/one COMPLETE", "deploy/p IN_PROGRESS", "deploy IN_PROGRESS"],
            id="step-done",
        ),
        pytest.param(PlanRun(HALF), PlanRun(HALF), [], id="nothing-new"),
        pytest.param(
            PlanRun(HALF),
            PlanRun(
                view(
                    Status.COMPLETE,
                    Status.PREPARED,
                    Status.IN_PROGRESS,
                    Status.IN_PROGRESS,
                    message="no agent fits",
                )
            ),
            ["deploy/p/two PREPARED: no agent fits"],
            id="with-its-reason",
        ),
        pytest.param(
            PlanRun(HALF),
            PlanRun(HALF.but(waiting=("phase p is interrupted",), errors=("p: two: bad",))),
            ["waiting: phase p is interrupted", "error: p: two: bad"],
            id="waits-and-errors",
        ),
        pytest.param(
            PlanRun(HALF),
            PlanRun(HALF, Ended.FAILED, "no such strategy"),
            ["deploy has failed: no such strategy"],
            id="ended-early",
        ),
    ],
)
def test_changes(before: PlanRun | None, after: PlanRun, lines: list[str]) -> None:
    assert changes(before, after) == lines


def test_a_halt_is_told_once() -> None:
    failed = view(Status.ERROR, Status.PENDING, Status.ERROR, Status.ERROR)
    halted = PlanRun(failed.but(halted="step one of phase p is in error"))
    assert changes(PlanRun(failed), halted) == ["halted: step one of phase p is in error"]
    assert changes(halted, halted) == []
