"""A phase's handle of a running step: a child workflow, or a machine inside the phase."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from temporalio import workflow

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.messages.plans import PhaseInput, StepDelta, StepInput, StepOrder, StepResult
from temporal_plans.workflows.mechanics.children import start_when_id_free
from temporal_plans.workflows.mechanics.tokens import new_token
from temporal_plans.workflows.plans.attempt import StepPlace
from temporal_plans.workflows.plans.machine import StepMachine
from temporal_plans.workflows.plans.registry import Registry
from temporal_plans.workflows.plans.step import Step

OnChange = Callable[[int, StepState], None]
OnEnd = Callable[[int, StepState | None, Exception | None], None]


class RunningStep(Protocol):
    """The operations of a phase on a running step."""

    def permit(self, permitted: bool, *, leave: bool) -> None: ...
    def order(self, order: StepOrder) -> None: ...
    def halt(self, reason: str) -> None: ...
    def report(self, statuses: Iterable[TaskStatus]) -> None: ...
    def offer(self, reservation: Reservation | None) -> None: ...
    def lose_agent(self, agent: str, at: datetime) -> None: ...
    def accepts(self, delta: StepDelta) -> bool: ...
    def cancel(self) -> None: ...


def run_child(
    phase: PhaseInput,
    *,
    index: int,
    phase_id: str,
    state: StepState,
    permitted: bool,
    arguments: dict[str, str],
    registry: Registry,
    on_change: OnChange,
    on_end: OnEnd,
) -> RunningStep:
    """Run the step as a child workflow of its phase."""
    spec = phase.spec.steps[index]
    return _Child(
        StepInput(
            index=index,
            token=new_token(),
            reserving=phase.reserving,
            spec=spec,
            state=state,
            arguments=arguments,
            permitted=permitted,
            backoff=phase.backoff,
            context=phase.context,
        ),
        f"{phase_id}/{spec.name}",
        on_end,
    )


class _Child:
    def __init__(self, input: StepInput, workflow_id: str, on_end: OnEnd) -> None:
        self._input = input
        self._id = workflow_id
        self._on_end = on_end
        self._permitted = input.permitted
        self._leaving = False
        self._orders = 0
        self._state = input.state
        self._outdated = False
        self._handle: asyncio.Future[workflow.ChildWorkflowHandle[Step, StepResult]] = (
            asyncio.get_event_loop().create_future()
        )
        self._last: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        index = self._input.index
        try:
            handle = await start_when_id_free(
                Step.run,
                self._input,
                id=self._id,
                summary=f"{self._input.spec.work.kind} step {self._input.spec.name}",
                cancelled=lambda: self._outdated,
            )
            if handle is None:  # its phase starts it again, if it still may
                self._on_end(index, self._state, None)
                return
            self._handle.set_result(handle)
            result = await handle
        except asyncio.CancelledError:
            self._on_end(index, None, None)
        except Exception as error:
            self._on_end(index, None, error)
        else:
            current = result.order == self._orders
            self._on_end(index, result.state if current else None, None)

    def accepts(self, delta: StepDelta) -> bool:
        """Whether the step sent this after the last order, and in this start."""
        return delta.order == self._orders and delta.token == self._input.token

    def permit(self, permitted: bool, *, leave: bool) -> None:
        if (permitted, leave) == (self._permitted, self._leaving):
            return
        self._permitted, self._leaving = permitted, leave
        self._send(StepOrder(permitted=permitted, leave=leave))

    def order(self, order: StepOrder) -> None:
        self._permitted = order.permitted
        self._state = order.state or self._state
        self._orders += 1
        self._send(order.but(leave=self._leaving, number=self._orders))

    def halt(self, reason: str) -> None:
        self._permitted = False
        self._send(StepOrder(permitted=False, leave=self._leaving, halt=reason))

    def cancel(self) -> None:
        self._task.cancel()

    def _send(self, order: StepOrder) -> None:
        self._outdated = True  # the input, if the child has not started yet
        before = self._last
        self._last = asyncio.create_task(self._deliver(order, before))

    async def _deliver(self, order: StepOrder, before: "asyncio.Task[None] | None") -> None:
        """Send the orders one after the other, once the child has started."""
        if before is not None:
            await before
        await workflow.wait_condition(lambda: self._handle.done() or self._task.done())
        if self._task.done():
            return
        order = order.but(token=self._input.token)
        try:
            await self._handle.result().signal("order", order)
        except Exception as error:
            workflow.logger.info("an order was not delivered to step %s: %s", self._id, error)

    # A child workflow gets these as signals of its own.
    def report(self, statuses: Iterable[TaskStatus]) -> None: ...
    def offer(self, reservation: Reservation | None) -> None: ...
    def lose_agent(self, agent: str, at: datetime) -> None: ...


def run_inline(
    phase: PhaseInput,
    *,
    index: int,
    phase_id: str,
    state: StepState,
    permitted: bool,
    arguments: dict[str, str],
    registry: Registry,
    on_change: OnChange,
    on_end: OnEnd,
) -> RunningStep:
    """Run the step inside its phase."""
    spec = phase.spec.steps[index]
    place = StepPlace(
        index=index,
        spec=spec,
        address=phase_id,
        element=f"{phase_id}/{spec.name}",
        backoff=phase.backoff,
        context=phase.context,
    )
    machine = StepMachine(
        place,
        state,
        arguments=arguments,
        registry=registry,
        on_change=lambda new: on_change(index, new),
        permitted=permitted,
    )
    return _Inline(machine, on_end, permitted=permitted)


class _Inline:
    def __init__(self, machine: StepMachine, on_end: OnEnd, *, permitted: bool) -> None:
        self._machine = machine
        self._on_end = on_end
        self._last_permission = permitted, False
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        index = self._machine.place.index
        try:
            await self._machine.run()
        except asyncio.CancelledError:
            self._on_end(index, self._machine.state, None)
        except Exception as error:  # else the failure would be lost, and the step stuck
            self._on_end(index, None, error)
        else:
            self._on_end(index, self._machine.state, None)

    def cancel(self) -> None:
        self._task.cancel()

    def permit(self, permitted: bool, *, leave: bool) -> None:
        if (permitted, leave) != self._last_permission:
            self._last_permission = permitted, leave
            self._machine.order(StepOrder(permitted=permitted, leave=leave))

    def accepts(self, delta: StepDelta) -> bool:
        return False  # it sends no messages

    def order(self, order: StepOrder) -> None:
        permitted, leave = order.permitted, self._last_permission[1]
        self._last_permission = permitted, leave
        self._machine.order(order.but(leave=leave))

    def halt(self, reason: str) -> None:
        self._last_permission = False, self._last_permission[1]
        self._machine.order(StepOrder(permitted=False, leave=self._last_permission[1], halt=reason))

    def report(self, statuses: Iterable[TaskStatus]) -> None:
        self._machine.report(statuses)

    def offer(self, reservation: Reservation | None) -> None:
        """Pass on the pool's offer: for one pod, or (without a reservation) for any."""
        spec = self._machine.place.spec
        wanted = spec.work.reserves_for(spec.name)
        if reservation is None or wanted == (reservation.pod, reservation.index):
            self._machine.offer()

    def lose_agent(self, agent: str, at: datetime) -> None:
        self._machine.lose_agent(agent, at)
