"""Developers mend and redeploy their code while plans run: nothing is lost, nothing is wedged."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from pauses import PATIENCE, until
from temporal_plans import build
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import Element
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.testing import PlanEnvironment
from temporal_plans.workflows.plans.step_context import StepContext

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


class Shelf:
    """An activity whose outcome the test decides."""

    def __init__(self) -> None:
        self.items: set[str] = set()

    @activity.defn
    async def on_shelf(self, item: str) -> bool:
        return item in self.items

    @activity.defn
    def noop(self) -> None:
        return None


async def fetch(step: StepContext) -> str:
    """Needs its item on the shelf; says what it does, and stumbles over an item that is no text."""
    step.say(f"looks for {step.input}")
    wanted = step.input.strip()
    if not await workflow.execute_activity(
        "on_shelf", wanted, result_type=bool, start_to_close_timeout=timedelta(seconds=10)
    ):
        raise ApplicationError(f"no {wanted} on the shelf", type="Missing")
    return f"fetched {wanted}"


def backwards(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    left = [e for e in elements if not e.complete]
    return [e for e in left[-1:] if e.eligible]


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return Shelf()


def _noops(count: int) -> list[build.Step]:
    return [build.activity("noop") for _ in range(count)]


def raises(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    raise KeyError("zone")


def answers_nothing(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Any:
    return None


def answers_names(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Any:
    return [element.name[:1] for element in elements]


def stumbles(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Right until the first step is complete; and it does not expect to be asked when all are."""
    left = [e for e in elements if not e.complete]
    return left[:1] if len(left) == len(elements) else raises(elements, spec, seed)


BAD = {
    "raises": (raises, "KeyError: 'zone'"),
    "answers-nothing": (answers_nothing, "TypeError: "),
    "answers-names": (answers_names, "TypeError: it returned "),
    "stumbles": (stumbles, "KeyError: 'zone'"),
}


"""Strategies of developers in a hurry, and what is told of each."""


@MODES
@pytest.mark.parametrize("name", BAD)
async def test_a_phases_strategy_that_fails_is_told_and_the_mended_one_goes_on(
    env: WorkflowEnvironment, shelf: Shelf, name: str, mode: Any
) -> None:
    plan = build.plan("p", build.phase("a", *_noops(2), strategy=name), steps=mode)
    bad, told = BAD[name]
    async with PlanEnvironment(
        client=env.client, activities=[shelf.noop], strategies={name: bad}
    ) as plans:
        running = await plans.start(plan)
        [error, *_] = (await running.until(Status.ERROR)).errors
        assert f"the strategy {name} failed: {told}" in error
        await running.restart(phase="a", reason="not mended yet")
        await running.until(Status.ERROR)
        await plans.restart_worker(strategies={name: backwards})
        await running.restart(phase="a", reason="mended")
        assert (await running.at_rest()).complete


@pytest.mark.parametrize("name", BAD)
async def test_a_plans_strategy_that_fails_holds_the_plan_until_it_is_continued(
    env: WorkflowEnvironment, shelf: Shelf, name: str
) -> None:
    phases = [build.phase(phase, *_noops(2)) for phase in ("a", "b")]
    bad, told = BAD[name]
    async with PlanEnvironment(
        client=env.client, activities=[shelf.noop], strategies={name: bad}
    ) as plans:
        running = await plans.start(build.plan("p", *phases, strategy=name))
        await running.until(Status.WAITING)
        [entry] = (await plans.plans.log(running.id)).entries
        assert f"the strategy {name} failed: {told}" in entry.outcome.message
        handle = plans.client.get_workflow_handle(running.id)
        run_id = (await handle.describe()).run_id
        await running.proceed(reason="not mended yet")
        await _until_another_run(handle, run_id)
        await plans.restart_worker(strategies={name: backwards})
        await running.proceed(reason="mended")
        assert (await running.at_rest()).complete


async def test_a_worker_that_lacks_a_strategy_loses_nothing(
    env: WorkflowEnvironment, shelf: Shelf
) -> None:
    """It makes no progress; a worker that knows the strategy goes on where the plan was."""
    approval = build.phase("a", build.approval())
    plan = build.plan("p", approval, build.phase("b", *_noops(2), strategy="backwards"))
    async with PlanEnvironment(
        client=env.client, activities=[shelf.noop], strategies={"backwards": backwards}
    ) as plans:
        running = await plans.start(plan)
        await running.until(Status.WAITING)
        await plans.restart_worker()
        await running.proceed(phase="a", step="approval")
        await running.until(Status.COMPLETE, phase="a")
        phase = plans.client.get_workflow_handle(f"{running.id}/b")
        await _until_a_task_fails(phase, "this worker knows no strategy 'backwards'")
        await plans.restart_worker(strategies={"backwards": backwards})
        assert (await running.at_rest()).complete


async def _until_another_run(handle: WorkflowHandle[Any, Any], run_id: str) -> None:
    await until(handle.describe, lambda run: run.run_id != run_id)


async def _until_a_task_fails(handle: WorkflowHandle[Any, Any], text: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await _task_failed(handle, text):
            await asyncio.sleep(0.05)


async def _task_failed(handle: WorkflowHandle[Any, Any], text: str) -> bool:
    try:
        history = await handle.fetch_history()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:  # its parent has only just asked for it
            return False
        raise
    return any(
        text in event.workflow_task_failed_event_attributes.failure.message
        for event in history.events
    )


async def test_a_worker_that_lacks_a_step_kind_loses_nothing(
    env: WorkflowEnvironment, shelf: Shelf
) -> None:
    """The plan was accepted; then the worker was replaced by one without the step kind."""
    plan = build.plan("p", build.phase("a", build.approval(), build.custom("fetch", "tea")))
    shelf.items.add("tea")
    async with PlanEnvironment(
        client=env.client, activities=[shelf.on_shelf], step_kinds={"fetch": fetch}
    ) as plans:
        running = await plans.start(plan)
        await running.until(Status.WAITING)
        await plans.restart_worker(step_kinds={"brew": fetch})
        await running.proceed(phase="a", step="approval")
        await running.until(Status.STARTING, phase="a", step="fetch")
        step = plans.client.get_workflow_handle(f"{running.id}/a/fetch")
        await _until_a_task_fails(step, "this worker knows no step kind 'fetch'; it knows: brew")
        await plans.restart_worker(step_kinds={"fetch": fetch})
        assert (await running.at_rest()).complete


async def fetch_mended(step: StepContext) -> str:
    """Takes numbers, too, and looks twice."""
    await workflow.sleep(timedelta(milliseconds=1))
    return await fetch(step) if isinstance(step.input, str) else f"fetched number {step.input}"


async def test_a_mended_step_kind_goes_on_after_a_restart(
    env: WorkflowEnvironment, shelf: Shelf
) -> None:
    plan = build.plan("p", build.phase("a", build.custom("fetch", 3)))
    async with PlanEnvironment(
        client=env.client, activities=[shelf.on_shelf], step_kinds={"fetch": fetch}
    ) as plans:
        running = await plans.start(plan)
        await running.until(Status.ERROR)
        await plans.restart_worker(step_kinds={"fetch": fetch_mended})
        await running.until(Status.ERROR)
        await running.restart(phase="a", step="fetch")
        assert (await running.until(Status.COMPLETE)).errors == ()


async def test_a_command_right_after_a_restart_of_the_worker_is_judged_by_the_newest_state(
    env: WorkflowEnvironment, shelf: Shelf
) -> None:
    """The phase's end is the last thing that the plan heard, and it needed no command."""
    gate = asyncio.Event()

    @activity.defn
    async def held() -> None:
        await gate.wait()

    plan = build.plan("p", build.phase("a", build.activity(held)), build.phase("b", *_noops(1)))
    async with PlanEnvironment(client=env.client, activities=[held, shelf.noop]) as own:
        running = await own.start(plan)
        await running.until(Status.STARTING, phase="a", step="held")
        await running.interrupt()
        gate.set()
        await running.until(Status.COMPLETE, phase="a")
        await own.client.get_workflow_handle(f"{running.id}/a").result()
        await running.view()  # the plan has heard of it
        await own.restart_worker()
        await running.restart(phase="a")
        await own.restart_worker()
        await running.until(Status.PENDING, phase="a")
        await running.proceed()
        assert (await running.ended()).complete
