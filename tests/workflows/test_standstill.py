"""Workflows whose workflow task fails are named, with the cause and the commands that help."""

import shlex
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.testing import WorkflowEnvironment

from pauses import until
from temporal_plans import build
from temporal_plans.client.errors import StandsStill
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import Element, Select
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.stuck import Fault, StuckWorkflow
from temporal_plans.testing import NotReached, PlanEnvironment
from temporal_plans.testing.running_plan import RunningPlan


def first(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    return [e for e in elements if not e.complete and e.eligible][:1]


def last(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    return [e for e in elements if not e.complete and e.eligible][-1:]


@activity.defn(name="noop")
def noop() -> None:
    return None


async def stuck_of(plans: PlansClient, running: RunningPlan) -> StuckWorkflow:
    [one] = await until(lambda: plans.stuck(running.id), bool)
    return one


async def changed_under(own: PlanEnvironment, plan: Any, changed: dict[str, Select]) -> RunningPlan:
    """Start a plan that waits, restart its worker with other strategies, and wake its workflows."""
    running = await own.start(plan)
    await running.until(Status.WAITING)
    await own.restart_worker(strategies=changed)
    handle = own.client.get_workflow_handle(running.id)
    await handle.signal("interrupt", {"phase": "a"})
    return running


@pytest.mark.parametrize(
    ("changed", "fault", "said"),
    [
        ({"own": last}, Fault.NONDETERMINISM, "Nondeterminism"),
        ({}, Fault.MISSING_CODE, "this worker knows no strategy 'own'"),
    ],
    ids=["changed", "missing"],
)
async def test_a_phase_whose_strategy_is_another_by_now(
    env: WorkflowEnvironment, changed: dict[str, Select], fault: Fault, said: str
) -> None:
    phase = build.phase("a", build.approval("one?"), build.activity("noop"), strategy="own")
    async with PlanEnvironment(
        client=env.client, activities=[noop], strategies={"own": first}
    ) as own:
        running = await changed_under(own, build.plan("p", phase), changed)
        plans = PlansClient(own.client)
        one = await stuck_of(plans, running)
        assert (one.workflow_id, one.type, one.fault) == (f"{running.id}/a", "Phase", fault)
        assert said in one.failure
        explained = (await plans.explain(running.id)).explanations[0]
        assert (explained.phase, explained.cause) == ("a", Cause.WORKER)
        assert said in explained.text
        with pytest.raises(
            NotReached, match=r"stands still: attempt \d+ of its workflow task"
        ) as e:
            await running.until(Status.COMPLETE, timeout=timedelta(seconds=0.1))
        assert said in str(e.value)

        # The commands that it names help.
        _, end, restart = one.hints
        assert shlex.split(end.command)[:4] == ["temporal", "workflow", "terminate", "-w"]
        await own.client.get_workflow_handle(shlex.split(end.command)[4]).terminate()
        await own.restart_worker(strategies={"own": last})
        await running.until(Status.ERROR, phase="a")
        assert shlex.split(restart.command)[2:] == ["restart", running.id, "a"]
        await running.restart(phase="a")
        await running.until(Status.COMPLETE, phase="a", step="noop")


async def test_a_plan_whose_own_strategy_is_another_by_now(env: WorkflowEnvironment) -> None:
    """It can't answer at all: every request to it names the failure."""
    phases = [build.phase(name, build.approval()) for name in ("a", "b")]
    plan = build.plan("p", *phases, strategy="own")
    async with PlanEnvironment(client=env.client, strategies={"own": first}) as own:
        running = await changed_under(own, plan, {"own": last})
        plans = PlansClient(own.client)
        one = await stuck_of(plans, running)
        assert (one.type, one.fault) == ("Plan", Fault.NONDETERMINISM)
        for request in (plans.show(running.id), plans.explain(running.id), plans.log(running.id)):
            with pytest.raises(StandsStill) as error:
                await request
            assert "Nondeterminism" in str(error.value)
            assert f"temporal plan restart {running.id}" in str(error.value)
        with pytest.raises(NotReached, match="Nondeterminism"):
            await running.until(Status.COMPLETE, timeout=timedelta(seconds=0.1))


async def test_a_plan_that_proceeds_does_not_stand_still(env: WorkflowEnvironment) -> None:
    async with PlanEnvironment(client=env.client) as own:
        running = await own.start(build.plan("p", build.phase("a", build.approval())))
        await running.until(Status.WAITING)
        assert not await PlansClient(own.client).stuck(running.id)
