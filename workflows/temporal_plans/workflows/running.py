"""A step at work, as its phase holds it: a child workflow, or a machine inside the phase."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from temporalio import workflow

from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.plan import PodWork
from temporal_plans.domain.task import TaskStatus
from temporal_plans.domain.transitions import StepState
from temporal_plans.messages.plan import PhaseInput, StepDelta, StepInput, StepOrder, StepResult
from temporal_plans.workflows.children import started_when_free
from temporal_plans.workflows.machine import StepMachine
from temporal_plans.workflows.registry import Registry
from temporal_plans.workflows.step import Step
from temporal_plans.workflows.step_context import StepPlace
from temporal_plans.workflows.tokens import new_token

OnChange = Callable[[int, StepState], None]
OnEnd = Callable[[int, StepState | None, Exception | None], None]


class RunningStep(Protocol):
    """What a phase says to a step at work."""

    def permit(self, permitted: bool, *, leave: bool) -> None: ...
    def order(self, order: StepOrder) -> None: ...
    def report(self, statuses: Iterable[TaskStatus]) -> None: ...
    def offer(self, reservation: Reservation | None) -> None: ...
    def lose_agent(self, agent: str, at: datetime) -> None: ...
    def believes(self, delta: StepDelta) -> bool: ...
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
    """The step as a child workflow of its phase."""
    spec = phase.spec.steps[index]
    return _Child(
        StepInput(
            index=index,
            token=new_token(),
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
            handle = await started_when_free(
                Step.run,
                self._input,
                id=self._id,
                summary=f"{self._input.spec.work.kind} step {self._input.spec.name}",
                called_off=lambda: self._outdated,
            )
            if handle is None:  # its phase begins it anew, if it still may
                self._on_end(index, self._state, None)
                return
            self._handle.set_result(handle)
            result = await handle
        except asyncio.CancelledError:
            self._on_end(index, None, None)
        except Exception as error:
            self._on_end(index, None, error)
        else:
            heard = result.order == self._orders
            self._on_end(index, result.state if heard else None, None)

    def believes(self, delta: StepDelta) -> bool:
        """Not what the step said before it heard the last order, or in an earlier run."""
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

    def cancel(self) -> None:
        self._task.cancel()

    def _send(self, order: StepOrder) -> None:
        self._outdated = True  # what it is to begin with, should it not have begun yet
        before = self._last
        self._last = asyncio.create_task(self._deliver(order, before))

    async def _deliver(self, order: StepOrder, before: "asyncio.Task[None] | None") -> None:
        """One after the other, and none before the child has started."""
        if before is not None:
            await before
        await workflow.wait_condition(lambda: self._handle.done() or self._task.done())
        if self._task.done():
            return
        order = order.but(token=self._input.token)
        try:
            await self._handle.result().signal("order", order)
        except Exception as error:
            workflow.logger.info("step %s did not hear an order: %s", self._id, error)

    # A child workflow gets these by itself.
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
    """The step inside its phase."""
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
        self._told = permitted, False
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        index = self._machine.place.index
        try:
            await self._machine.run()
        except asyncio.CancelledError:
            self._on_end(index, self._machine.state, None)
        except Exception as error:  # else nobody would hear of it, and the step stand still
            self._on_end(index, None, error)
        else:
            self._on_end(index, self._machine.state, None)

    def cancel(self) -> None:
        self._task.cancel()

    def permit(self, permitted: bool, *, leave: bool) -> None:
        if (permitted, leave) != self._told:
            self._told = permitted, leave
            self._machine.order(StepOrder(permitted=permitted, leave=leave))

    def believes(self, delta: StepDelta) -> bool:
        return False  # it says nothing by message

    def order(self, order: StepOrder) -> None:
        permitted, leave = order.permitted, self._told[1]
        self._told = permitted, leave
        self._machine.order(order.but(leave=leave))

    def report(self, statuses: Iterable[TaskStatus]) -> None:
        self._machine.report(statuses)

    def offer(self, reservation: Reservation | None) -> None:
        """The pool says so of one pod, or of any."""
        work = self._machine.place.spec.work
        if reservation is None:
            meant = True
        elif isinstance(work, PodWork):
            meant = (work.pod, work.index) == (reservation.pod, reservation.index)
        else:
            meant = reservation.pod == self._machine.place.spec.name
        if meant:
            self._machine.offer()

    def lose_agent(self, agent: str, at: datetime) -> None:
        self._machine.lose_agent(agent, at)
