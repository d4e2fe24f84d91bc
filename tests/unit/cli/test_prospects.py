"""What is told of a plan that was restarted and can't run."""

import pytest

from builders.plan_views import plan
from temporal_plans.cli.actions.prospects import tell_what_stops
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from unit.fake_gateway import FakeGateway, FakeWorkflow


@pytest.mark.parametrize(
    ("workflow", "code", "told"),
    [
        pytest.param(
            FakeWorkflow("Plan", {"status": plan(Status.PENDING)}, ended=Ended.FAILED),
            1,
            "its new run has failed: the fake has no answer",
            id="failed",
        ),
        pytest.param(
            FakeWorkflow("Plan", {"status": plan(Status.ERROR, errors=("no\ncpus", "more"))}),
            0,
            "Note: it stays in ERROR, which no restart removes: no cpus (and 1 more)",
            id="errors",
        ),
        pytest.param(
            FakeWorkflow("Plan", {"status": plan(Status.WAITING, waiting=("interrupted",))}),
            0,
            "Note: it waits:\n- interrupted",
            id="waits",
        ),
        pytest.param(FakeWorkflow("Plan", {"status": plan(Status.IN_PROGRESS)}), 0, "", id="runs"),
        pytest.param(None, 0, "", id="no-answer"),
    ],
)
async def test_what_stops_a_plan_is_told(
    capsys: pytest.CaptureFixture[str], workflow: FakeWorkflow | None, code: int, told: str
) -> None:
    gateway = FakeGateway({"x": workflow} if workflow else {})
    assert await tell_what_stops(PlansClient(gateway=gateway), "x") == code
    said = capsys.readouterr()
    assert (said.out + said.err).strip().removeprefix("Error: ") == told
