"""A plan's handle of a running phase: a child workflow, and the orders in flight to it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from temporal_plans.domain.plans.commands import Order
from temporal_plans.messages.plans import PhaseDelta, PhaseInput, PhaseOrders, PhaseResult
from temporal_plans.workflows.mechanics.children import start_when_id_free
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.phase import Phase

OnEnd = Callable[["RunningPhase", PhaseResult | None, Exception | None], None]


class RunningPhase:
    """``index`` is the phase's number in its plan; ``unacknowledged`` are the orders that the phase
    has not answered yet, by number."""

    def __init__(self, input: PhaseInput, workflow_id: str, on_end: OnEnd) -> None:
        self.index = input.index
        self.name = input.spec.name
        self.unacknowledged: dict[int, tuple[Order, ...]] = {}
        self._input = input
        self._id = workflow_id
        self._on_end = on_end
        self._number = input.order
        self._permitted = input.permitted
        self._leave = False
        self._return_leases: bool = False
        self._end_requested: datetime | None = None
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
        """Set whether the phase may begin new work, and whether it must end with its state."""
        leave = leave or self._end_requested is not None
        if (permitted, leave) != (self._permitted, self._leave):
            self._permitted, self._leave = permitted, leave
            self._send(self._orders())

    def end_early(self, now: datetime, *, return_leases: bool) -> None:
        """Have the phase leave its steps and end permanently. With ``return_leases`` the phase
        returns its leases; otherwise the plan keeps them until it ends itself."""
        if self._end_requested is None:
            self._end_requested = now
        if not self._leave or (return_leases and not self._return_leases):
            self._leave, self._return_leases = True, self._return_leases or return_leases
            self._send(self._orders())

    def time_to_cancel(self, now: datetime) -> timedelta | None:
        """Return the time left until a phase that is ended early is cancelled; None for others."""
        if self._end_requested is None or self._cancelled:
            return None
        return self._end_requested + engine_settings().leave_timeout - now

    def order(self, orders: Sequence[Order], arguments: dict[str, str] | None) -> int:
        """Send orders. Return the number with which the phase will acknowledge them."""
        self._number += 1
        self.unacknowledged[self._number] = tuple(orders)
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
            dismissed=self._return_leases,
            arguments=arguments,
        )

    def accepts(self, delta: PhaseDelta) -> bool:
        """Whether the report is from this start of the phase, not from an earlier start."""
        return delta.token == self._input.token

    def acknowledge(self, number: int) -> None:
        """Note that the phase has carried out all orders up to ``number``."""
        self.unacknowledged = {n: orders for n, orders in self.unacknowledged.items() if n > number}

    def cancel(self) -> None:
        self._cancelled = True
        self._task.cancel()

    async def _run(self) -> None:
        try:
            self._handle = await start_when_id_free(
                Phase.run,
                self._input,
                id=self._id,
                summary=f"phase {self._input.spec.name}",
                cancelled=lambda: self._outdated,
            )
            result = self._unstarted_result() if self._handle is None else await self._handle
        except asyncio.CancelledError:
            self._on_end(self, None, None)
        except Exception as error:
            ours = self._cancelled and is_cancelled_exception(error)
            self._on_end(self, None, None if ours else error)
        else:
            self._on_end(self, result, None)

    def _unstarted_result(self) -> PhaseResult:
        """Return the result of a phase that never started; its plan starts it again, if it may."""
        input = self._input
        return PhaseResult(state=input.state, order=input.order, leased=input.leased, yielded=True)

    def _send(self, orders: PhaseOrders) -> None:
        self._outdated = True  # the input, if the child has not started yet
        before = self._last
        self._last = asyncio.create_task(self._deliver(orders, before))

    async def _deliver(self, orders: PhaseOrders, before: "asyncio.Task[None] | None") -> None:
        """Send the orders one after the other, once the child has started."""
        if before is not None:
            await before
        await workflow.wait_condition(lambda: self._handle is not None or self._task.done())
        if self._handle is None or self._task.done():
            return  # unacknowledged orders are applied to its result
        try:
            await self._handle.signal("orders", orders)
        except Exception as error:
            workflow.logger.info("orders were not delivered to phase %s: %s", self._id, error)
