"""Plans that exclude each other: what is idle, and what the next plan supersedes."""

import pytest

from temporal_plans.domain.owners.exclusion import PlanSituation, clearance
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code

RUNS = PlanSituation("deploy", Status.IN_PROGRESS)
FAILED = PlanSituation("backup", Status.ERROR, resting=True)


@pytest.mark.parametrize(
    ("plan", "idle"),
    [
        pytest.param(RUNS, False, id="at-work"),
        pytest.param(RUNS._replace(open=False, status=Status.COMPLETE), True, id="complete"),
        pytest.param(RUNS._replace(open=False), True, id="terminated"),
        pytest.param(FAILED, True, id="rests-in-error"),
        pytest.param(FAILED._replace(resting=False), False, id="error-and-others-continue"),
        pytest.param(PlanSituation("p", Status.PENDING), False, id="about-to-begin"),
        pytest.param(PlanSituation("p", Status.DELAYED), False, id="waits-for-its-next-attempt"),
        pytest.param(
            PlanSituation("p", Status.WAITING, resting=True, stopped=True), True, id="stopped"
        ),
        pytest.param(
            PlanSituation("p", Status.WAITING, resting=False, stopped=True), False, id="stopping"
        ),
        pytest.param(PlanSituation("p", Status.WAITING, resting=True), False, id="canary-gate"),
        pytest.param(PlanSituation("p", Status.WAITING), False, id="approval"),
    ],
)
def test_idle(plan: PlanSituation, idle: bool) -> None:
    assert plan.is_idle is idle


@pytest.mark.parametrize(
    ("others", "refused", "superseded"),
    [
        pytest.param([], [], (), id="alone"),
        pytest.param([RUNS._replace(open=False)], [], (), id="closed"),
        pytest.param([FAILED], [], ("backup",), id="idle"),
        pytest.param([RUNS], ["deploy"], (), id="busy"),
        pytest.param([RUNS, FAILED], ["deploy"], (), id="busy-and-idle"),
        pytest.param([RUNS, RUNS._replace(plan="a")], ["a", "deploy"], (), id="two-busy"),
        pytest.param([FAILED._replace(plan="restore")], [], ("restore",), id="its-earlier-run"),
    ],
)
def test_the_next_plan(
    others: list[PlanSituation], refused: list[str], superseded: tuple[str, ...]
) -> None:
    found = clearance("restore", others)
    assert found.superseded == superseded
    assert (found.refusal is not None) is bool(refused)
    if found.refusal is not None:
        assert found.refusal.code == Code.IN_USE
        assert [reason.problem.split()[1] for reason in found.refusal.reasons] == refused
        assert f"stop plan {refused[0]}" in str(found.refusal)


def test_a_removal_supersedes_everything_that_runs() -> None:
    others = [RUNS, FAILED, RUNS._replace(plan="old", open=False)]
    assert clearance("cleanup", others, overrides=True) == (None, ("backup", "deploy"))
