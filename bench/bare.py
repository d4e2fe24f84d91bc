"""The floor: the least that does the same work on Temporal, written by hand.

Plan > Phase > Step as child workflows with one activity each; and Plan > Phase with the activities
in the phase. No statuses, no commands, no queries: what these cost is what Temporal costs. The
bound on what a phase has in flight stays, because without it the server stalls.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow

from bench.noop import noop

TASK_QUEUE = "bare"
WINDOW = 32
"""Steps that one phase has in flight."""

_TIMEOUT = timedelta(minutes=1)


@dataclass(frozen=True)
class Tree:
    """``phases`` of ``steps`` each; ``serial``: one step at a time; ``inline``: no child a step."""

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
        await workflow.execute_activity(noop, start_to_close_timeout=_TIMEOUT)


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
        await workflow.execute_activity(noop, start_to_close_timeout=_TIMEOUT)


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


async def _windowed(run_step: Callable[[int], Awaitable[None]], count: int) -> None:
    slots = asyncio.Semaphore(WINDOW)

    async def within(step: int) -> None:
        async with slots:
            await run_step(step)

    await asyncio.gather(*(within(step) for step in range(count)))
