"""A phase at work, as its plan holds it: a child workflow, and the orders on their way to it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from temporal_plans.domain.commands import Order
from temporal_plans.messages.plan import PhaseDelta, PhaseInput, PhaseOrders, PhaseResult
from temporal_plans.workflows.children import started_when_free
from temporal_plans.workflows.phase import Phase

OnEnd = Callable[["RunningPhase", PhaseResult | None, Exception | None], None]

PATIENCE = timedelta(seconds=20)
"""How long a phase that is let go may take to leave its steps; then it is cancelled."""


class RunningPhase:
    """``index`` is the number by which the plan knows it; ``unheard`` are the orders that the phase
    has not answered to, by number."""

    def __init__(self, input: PhaseInput, workflow_id: str, on_end: OnEnd) -> None:
        self.index = input.index
        self.name = input.spec.name
        self.unheard: dict[int, tuple[Order, ...]] = {}
        self._input = input
        self._id = workflow_id
        self._on_end = on_end
        self._number = input.order
        self._permitted = input.permitted
        self._leave = False
        self._gives_back: bool = False
        self._let_go: datetime | None = None
        self._cancelled = False
        self._outdated = False
        self._handle: workflow.ChildWorkflowHandle[Phase, PhaseResult] | None = None
        self._last: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run())

    @property
    def number(self) -> int:
        """The number of the last order given."""
        return self._number

    def permit(self, permitted: bool, *, leave: bool) -> None:
        """Whether it may begin new work, and whether it shall end with its state."""
        leave = leave or self._let_go is not None
        if (permitted, leave) != (self._permitted, self._leave):
            self._permitted, self._leave = permitted, leave
            self._send(self._orders())

    def let_go(self, now: datetime, *, gives_back: bool) -> None:
        """It shall leave its steps and end, for good; ``gives_back`` its assets, too, else they are
        its plan's until that ends."""
        if self._let_go is None:
            self._let_go = now
        if not self._leave or (gives_back and not self._gives_back):
            self._leave, self._gives_back = True, self._gives_back or gives_back
            self._send(self._orders())

    def patience(self, now: datetime) -> timedelta | None:
        """How much longer it has, once it was let go; None when it has for ever."""
        if self._let_go is None or self._cancelled:
            return None
        return self._let_go + PATIENCE - now

    def order(self, orders: Sequence[Order], arguments: dict[str, str] | None) -> int:
        """Hand orders on; the number that the phase will answer with."""
        self._number += 1
        self.unheard[self._number] = tuple(orders)
        self._send(self._orders(tuple(orders), arguments))
        return self._number

    def _orders(
        self, orders: tuple[Order, ...] = (), arguments: dict[str, str] | None = None
    ) -> PhaseOrders:
        return PhaseOrders(
            number=self._number,
            token=self._input.token,
            orders=orders,
            permitted=self._permitted,
            leave=self._leave,
            dismissed=self._gives_back,
            arguments=arguments,
        )

    def says(self, delta: PhaseDelta) -> bool:
        """Whether this is of this start of the phase, and not of an earlier one."""
        return delta.token == self._input.token

    def heard(self, number: int) -> None:
        """The phase has carried out all orders up to this one."""
        self.unheard = {n: orders for n, orders in self.unheard.items() if n > number}

    def cancel(self) -> None:
        self._cancelled = True
        self._task.cancel()

    async def _run(self) -> None:
        try:
            self._handle = await started_when_free(
                Phase.run,
                self._input,
                id=self._id,
                summary=f"phase {self._input.spec.name}",
                called_off=lambda: self._outdated,
            )
            result = self._as_it_was() if self._handle is None else await self._handle
        except asyncio.CancelledError:
            self._on_end(self, None, None)
        except Exception as error:
            ours = self._cancelled and is_cancelled_exception(error)
            self._on_end(self, None, None if ours else error)
        else:
            self._on_end(self, result, None)

    def _as_it_was(self) -> PhaseResult:
        """What it leaves that never began: its plan begins it anew, if it still may."""
        input = self._input
        return PhaseResult(state=input.state, order=input.order, leased=input.leased, yielded=True)

    def _send(self, orders: PhaseOrders) -> None:
        self._outdated = True  # what it is to begin with, should it not have begun yet
        before = self._last
        self._last = asyncio.create_task(self._deliver(orders, before))

    async def _deliver(self, orders: PhaseOrders, before: "asyncio.Task[None] | None") -> None:
        """One after the other, and none before the child has started."""
        if before is not None:
            await before
        await workflow.wait_condition(lambda: self._handle is not None or self._task.done())
        if self._handle is None or self._task.done():
            return  # what it did not hear is applied to what it leaves behind
        try:
            await self._handle.signal("orders", orders)
        except Exception as error:
            workflow.logger.info("phase %s did not hear its orders: %s", self._id, error)
