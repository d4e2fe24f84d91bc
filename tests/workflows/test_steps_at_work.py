"""What `explain` says of the work of steps: who has it, how it failed, and whether anybody asks."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from pauses import until
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanations, PendingWork
from workflows.plan_kit import Kit, Run

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


@workflow.defn
class Failing:
    """Fails, and is begun again by Temporal."""

    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("no such\ntable")


@workflow.defn
class Broken:
    """Has an error in its code, which fails its workflow task."""

    @workflow.run
    async def run(self) -> None:
        raise KeyError("a programmer's mistake")


async def started(plans: Kit, *steps: Mapping[str, Any], mode: str = "child") -> Run:
    named = {f"s{number}": step for number, step in enumerate(steps)}
    phase = {"strategy": "parallel", "steps": named}
    return await plans.start({"steps": mode, "phases": {"p": phase}})


async def work_of(
    plans: Kit, run: Run, wanted: Callable[[Sequence[PendingWork]], object] = bool
) -> Sequence[PendingWork]:
    """All work that is told of, once it is as wanted."""
    return await until(lambda: _work(plans, run), wanted)


async def _work(plans: Kit, run: Run) -> Sequence[PendingWork]:
    return [work for one in (await explain(plans, run)).explanations for work in one.work]


async def explain(plans: Kit, run: Run) -> Explanations:
    return await PlansClient(plans.client).explain(run.handle.id)


@MODES
async def test_an_activity_that_no_worker_takes(plans: Kit, mode: str) -> None:
    queue = f"nobody-{uuid4()}"
    run = await started(plans, {"activity": {"type": "dump", "task-queue": queue}}, mode=mode)
    [work] = await work_of(plans, run)
    assert (work.type, work.task_queue, work.started) == ("dump", queue, False)
    assert work.last_poll is None
    assert Cause.WORKER in {one.cause for one in (await explain(plans, run)).explanations}
    await run.handle.cancel()


async def test_an_activity_that_a_worker_has(plans: Kit) -> None:
    plans.recorder.gates["held"] = asyncio.Event()
    run = await started(plans, {"activity": {"type": "work", "input": "held"}})
    [work] = await work_of(plans, run, lambda work: work and work[0].started)
    assert (work.type, work.attempt, bool(work.worker)) == ("work", 1, True)
    [one] = (await explain(plans, run)).explanations
    assert one.cause is Cause.RUNNING
    plans.recorder.gates.pop("held").set()
    await run.result()


async def test_an_activity_that_is_tried_again(plans: Kit) -> None:
    retry = {"initial-interval": "1h"}
    run = await started(plans, {"activity": {"type": "nothing", "retry": retry}})
    [work] = await work_of(plans, run, lambda work: work and work[0].next_attempt)
    assert (work.attempt, work.started) == (2, False)
    assert "nothing" in work.last_failure
    assert "not registered" in work.last_failure
    await run.handle.cancel()


@MODES
@pytest.mark.parametrize("id", ["", "own"])
async def test_a_workflow_that_no_worker_takes(plans: Kit, mode: str, id: str) -> None:
    named = {"id": f"own-{uuid4()}"} if id else {}
    step = {"workflow": {"type": "Sweep", "task-queue": f"nobody-{uuid4()}", **named}}
    run = await started(plans, step, mode=mode)
    # It exists a moment before its first workflow task does.
    [work] = await work_of(plans, run, lambda work: work and not work[0].started)
    assert work.type == "Sweep"
    assert work.workflow_id.startswith(named.get("id", f"{run.handle.id}/p/s0/"))
    await run.handle.cancel()


async def test_workflows_that_fail(plans: Kit) -> None:
    queue = f"children-{uuid4()}"
    async with Worker(
        plans.client,
        task_queue=queue,
        workflows=[Failing, Broken],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        retry = {"initial-interval": "1h"}
        run = await started(
            plans,
            {"workflow": {"type": "Failing", "task-queue": queue, "retry": retry}},
            {"workflow": {"type": "Broken", "task-queue": queue}},
        )
        failing, broken = await work_of(
            plans, run, lambda work: len(work) == 2 and all(one.last_failure for one in work)
        )
        assert (failing.last_failure, failing.attempt) == ("no such table", 2)
        assert failing.next_attempt is not None
        assert "a programmer's mistake" in broken.last_failure
        assert broken.started
        await run.handle.terminate()


async def test_a_plan_that_had_child_steps_before(plans: Kit) -> None:
    """Its steps' workflows are closed, and tell nothing of its inline steps."""
    step = {"activity": {"type": "dump", "task-queue": f"nobody-{uuid4()}"}}
    run = await started(plans, step)
    await work_of(plans, run)
    await run.handle.terminate()
    phases = {"p": {"steps": {"s0": step}}}
    again = await plans.start({"steps": "inline", "phases": phases}, id=run.handle.id)
    [work] = await work_of(plans, again, lambda work: work and work[0].type == "dump")
    assert not work.started
    await again.handle.cancel()
