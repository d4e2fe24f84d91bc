"""Watching plans, over workflows that answer from memory."""

from datetime import timedelta

import pytest

from builders.plan_views import plan
from temporal_plans.client.errors import (
    PlansError,
    WorkerUnreachable,
)
from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
from temporal_plans.client.reading.watching import watch
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow

# --- watching -----------------------------------------------------------------------------------


class Look:
    """Looks at a plan, one after the other."""

    def __init__(self, *seen: PlanRun | Exception) -> None:
        self._seen = list(seen)

    async def __call__(self) -> PlanRun:
        now = self._seen.pop(0)
        if isinstance(now, Exception):
            raise now
        return now


RUNNING = PlanRun(plan(Status.IN_PROGRESS))
COMPLETE = PlanRun(plan(Status.COMPLETE), Ended.COMPLETED)
SHORT = timedelta(milliseconds=1)


async def test_watching_tells_what_is_new_and_ends_with_the_plan() -> None:
    look = Look(RUNNING, RUNNING, COMPLETE)
    assert [seen async for seen in watch(look, interval=SHORT)] == [RUNNING, COMPLETE]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(PlanRun(plan(Status.ERROR)), id="error"),
        pytest.param(PlanRun(plan(Status.WAITING), Ended.TERMINATED), id="terminated"),
        pytest.param(PlanRun(plan(Status.COMPLETE)), id="complete-and-about-to-end"),
    ],
)
async def test_watching_ends_when_nothing_more_will_happen(last: PlanRun) -> None:
    assert [seen async for seen in watch(Look(last), interval=SHORT)] == [last]


@pytest.mark.parametrize(
    "gone",
    [ServerUnreachableError("x", "y"), WorkerUnreachable("backup")],
    ids=["server", "worker"],
)
async def test_watching_outlives_server_and_worker(gone: Exception) -> None:
    look = Look(RUNNING, gone, RUNNING, COMPLETE)
    seen = [seen async for seen in watch(look, interval=SHORT, retry_interval=SHORT)]
    trouble = seen.pop(1)
    assert isinstance(trouble, WatchProblem)
    assert trouble.text == str(gone)
    assert seen == [RUNNING, RUNNING, COMPLETE]


SUPERSEDED = PlanRun(plan(Status.IN_PROGRESS), Ended.COMPLETED, superseded=True)


async def test_watching_goes_on_with_the_run_that_takes_its_place() -> None:
    look = Look(RUNNING, SUPERSEDED, RUNNING, COMPLETE)
    seen = [seen async for seen in watch(look, interval=SHORT)]
    assert seen == [RUNNING, SUPERSEDED, RUNNING, COMPLETE]


async def test_watching_does_not_wait_for_ever_for_the_next_run() -> None:
    look = Look(RUNNING, SUPERSEDED)
    seen = [seen async for seen in watch(look, interval=SHORT, timeout=timedelta())]
    assert seen == [RUNNING, SUPERSEDED]


async def test_watching_names_what_stands_still() -> None:
    stuck = StuckWorkflow(workflow_id="p/a", type="Phase", parent="p", failure="no such strategy")

    async def examined() -> list[StuckWorkflow]:
        return [stuck]

    look = Look(RUNNING, RUNNING, COMPLETE)
    watching = watch(look, stuck=examined, interval=SHORT, examine_interval=timedelta())
    first, problem, *_, last = [seen async for seen in watching]
    assert (first, last) == (RUNNING, COMPLETE)
    assert isinstance(problem, WatchProblem)
    assert "no such strategy" in problem.text


async def test_watching_ends_when_it_never_began() -> None:
    with pytest.raises(WorkerUnreachable):
        _ = [seen async for seen in watch(Look(WorkerUnreachable("backup")), interval=SHORT)]


async def test_watching_has_not_endless_patience() -> None:
    look = Look(RUNNING, *[WorkerUnreachable("backup")] * 3)
    with pytest.raises(WorkerUnreachable):
        _ = [
            s async for s in watch(look, interval=SHORT, retry_interval=SHORT, timeout=timedelta())
        ]


def test_the_tree_of_errors_is_complete() -> None:
    """The docstring draws every class."""
    from temporal_plans.client import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), PlansError)
        assert f" {name}" in (errors.__doc__ or "") or name == "PlansError"
