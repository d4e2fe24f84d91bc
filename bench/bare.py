"""The baseline: the smallest hand-written workflows that do the same work on Temporal.

Plan > Phase > Step as child workflows with one activity each; and Plan > Phase with the activities
in the phase. Without statuses, commands and queries their cost is Temporal's own. They also limit
the steps in flight, because the server stalls otherwise.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow

from bench.noop import noop

TASK_QUEUE = "bare"
WINDOW_SIZE = 32
"""Steps that one phase has in flight."""

_ACTIVITY_TIMEOUT = timedelta(minutes=1)


@dataclass(frozen=True)
class Tree:
    """``phases`` with ``steps`` each; ``serial``: one step at a time; ``inline``: no child workflow
    per step."""

    phases: int
    steps: int
    serial: bool = False
    inline: bool = False

    @property
    def size(self) -> int:
        return self.phases * self.steps


@workflow.defn
class BareStep:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(noop, start_to_close_timeout=_ACTIVITY_TIMEOUT)


@workflow.defn
class BarePhase:
    @workflow.run
    async def run(self, tree: Tree) -> None:
        run_step = self._activity if tree.inline else self._child
        if tree.serial:
            for step in range(tree.steps):
                await run_step(step)
        else:
            await _windowed(run_step, tree.steps)

    async def _child(self, step: int) -> None:
        own = workflow.info().workflow_id
        await workflow.execute_child_workflow(BareStep.run, id=f"{own}/{step}")

    async def _activity(self, step: int) -> None:
        await workflow.execute_activity(noop, start_to_close_timeout=_ACTIVITY_TIMEOUT)


@workflow.defn
class BarePlan:
    @workflow.run
    async def run(self, tree: Tree) -> None:
        own = workflow.info().workflow_id
        await asyncio.gather(
            *(
                workflow.execute_child_workflow(BarePhase.run, tree, id=f"{own}/{phase}")
                for phase in range(tree.phases)
            )
        )


@workflow.defn
class BareTarget:
    """What a BareEnvironment starts."""

    @workflow.run
    async def run(self) -> None:
        return None


@workflow.defn
class BareEnvironment:
    """Waits for signals; for each it runs an activity, and one that starts a workflow."""

    def __init__(self) -> None:
        self._announced: list[int] = []

    @workflow.run
    async def run(self) -> None:
        while True:
            await workflow.wait_condition(lambda: bool(self._announced))
            number = self._announced.pop(0)
            await workflow.execute_activity(noop, start_to_close_timeout=_ACTIVITY_TIMEOUT)
            await workflow.execute_activity(
                "start_target",
                f"{workflow.info().workflow_id}/{number}",
                start_to_close_timeout=_ACTIVITY_TIMEOUT,
            )

    @workflow.signal
    def announced(self, number: int) -> None:
        self._announced.append(number)


async def _windowed(run_step: Callable[[int], Awaitable[None]], count: int) -> None:
    slots = asyncio.Semaphore(WINDOW_SIZE)

    async def run_in_slot(step: int) -> None:
        async with slots:
            await run_step(step)

    await asyncio.gather(*(run_in_slot(step) for step in range(count)))
