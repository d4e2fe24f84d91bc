"""The step machine: waits until a step may begin, makes attempts, follows orders.

The same machine runs inside a Step workflow and, for plans with ``steps: inline``, inside a Phase.
The step kind defines what an attempt does; ``domain.plans.transitions`` defines the state after
each event.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import failure_trace, typed_failure_text
from temporal_plans.domain.plans import transitions
from temporal_plans.domain.plans.plan import StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, TaskProgress
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.messages.plans import StepOrder
from temporal_plans.workflows.mechanics.tracing import span
from temporal_plans.workflows.plans.attempt import StepAttempt, StepPlace
from temporal_plans.workflows.plans.registry import Registry

_AT_WORK = (Status.PREPARED, Status.STARTING, Status.STARTED, Status.IN_PROGRESS)
"""Statuses of an attempt that has not ended, or that an earlier run left."""

_READY = (Status.PENDING, *_AT_WORK)
"""Statuses in which an attempt may begin."""


def _task_names(spec: StepSpec) -> frozenset[str]:
    """The task instances that a step launches."""
    asset = spec.work.asset
    if asset is None:
        return frozenset()
    return frozenset(task_instance_name(asset.pod, asset.number, task) for task in asset.tasks)


class StepMachine:
    """One running step. ``on_change`` is called with every new state."""

    def __init__(
        self,
        place: StepPlace,
        state: StepState,
        *,
        arguments: dict[str, str],
        registry: Registry,
        on_change: Callable[[StepState], None],
        permitted: bool = True,
    ) -> None:
        self.place = place
        self.state = state
        self.arguments = arguments
        self.leaving = False
        self.offered = False
        self.lost_agents: dict[str, datetime] = {}
        self._permitted = permitted
        self._on_change = on_change
        self._registry = registry
        self._epoch = 0
        self._own_tasks = _task_names(place.spec)
        self._early_statuses: dict[str, TaskStatus] = {}

    # --- input ---

    def order(self, order: StepOrder) -> None:
        """Apply an order: a new state, the permission to begin, or the request to leave."""
        self._permitted = order.permitted
        self.leaving = order.leave
        state = order.state
        if order.halt and self.state.at_work:
            state = transitions.halted(self.state, order.halt)
        if state is not None:
            self._epoch += 1
            self.set(state)

    def report(self, statuses: Iterable[TaskStatus]) -> None:
        """Apply statuses of the step's tasks. Those of other launches are ignored, except for the
        launch that is being prepared: its tasks are recorded, and may be lost with their agent,
        before the step gets their ids."""
        for status in statuses:
            if status.task_id in self.state.tasks:
                self._apply_status(status)
            elif status.name in self._own_tasks:
                self._early_statuses[status.name] = status

    def launched(self, tasks: dict[str, TaskProgress]) -> None:
        """Set the tasks of a new launch, and apply their statuses that arrived early."""
        self.set(transitions.launched(self.state, tasks, workflow.now()))
        early, self._early_statuses = self._early_statuses, {}
        for status in early.values():
            if status.task_id in tasks:
                self._apply_status(status)

    def _apply_status(self, status: TaskStatus) -> None:
        self.set(transitions.reported(self.state, status, self.place.backoff, workflow.now()))

    def offer(self) -> None:
        """Note that the pool has an offer for this step, which must request it again."""
        self.offered = True

    def lose_agent(self, agent: str, at: datetime) -> None:
        self.lost_agents[agent] = at

    def set(self, state: StepState) -> None:
        if state != self.state:
            self.state = state
            self._on_change(state)

    # --- the run ---

    async def run(self) -> bool:
        """Run until the step is complete, has failed, was asked to leave, or may not proceed.

        Return True when it is complete. A step that may not proceed would block its pod for other
        plans: its phase returns the lease, and starts the step again when it may. A restart of a
        failed step is a new run, so that corrected code of developers is not replayed past the
        failure.
        """
        while not self.state.complete:
            if self.leaving or not self._may_proceed or self.state.status is Status.ERROR:
                return False
            if self.state.delayed_until is not None and not self.place.spec.work.keeps_its_place:
                return False
            if self._may_begin():
                await self._attempt()
            else:
                await self._wait_for_change()
        return True

    def _may_begin(self) -> bool:
        return (
            (self._has_launched or not self.state.interrupted)
            and self.state.status in _READY
            and self.state.delayed_until is None
        )

    @property
    def _may_proceed(self) -> bool:
        return self._permitted or self._has_launched

    @property
    def _has_launched(self) -> bool:
        """Whether tasks of an earlier run are under way: those are followed without permission."""
        return bool(self.state.tasks) and self.state.status in (Status.STARTING, Status.STARTED)

    async def _wait_for_change(self) -> None:
        """Wait until the step may begin, end or leave."""
        epoch = self._epoch
        left = transitions.delay_left(self.state, workflow.now())
        timeout = max(left, timedelta(milliseconds=1)) if self.state.delayed_until else None
        try:
            await workflow.wait_condition(
                lambda: (
                    self._epoch != epoch
                    or self.leaving
                    or self.state.complete
                    or self._may_begin()
                    or not self._may_proceed
                ),
                timeout=timeout,
                timeout_summary=f"back-off of {self.place.element}",
            )
        except TimeoutError:
            if transitions.delay_left(self.state, workflow.now()) <= timedelta(0):
                self.set(transitions.due(self.state))

    async def _attempt(self) -> None:
        epoch = self._epoch
        context = StepAttempt(self)
        run = self._registry.runner_of(self.place.spec.work)
        with span(f"step {self.place.spec.name}", id=self.place.element):
            work = asyncio.create_task(self._failure_of(run(context)))
            try:
                await workflow.wait_condition(
                    lambda: (
                        work.done()
                        or self._epoch != epoch
                        or (self.leaving and context.can_leave)
                        or (not self._permitted and not context.committed)
                    )
                )
            except asyncio.CancelledError:
                await self._stop(work)
                raise
            stopped = not work.done()
            await self._stop(work)
        self.lost_agents.clear()
        if stopped or self._epoch != epoch:
            return
        if work.cancelled():  # not by this machine: a retry at once might loop
            self.set(transitions.failed(self.state, "its work was cancelled"))
        else:
            self._end(work.result())

    @staticmethod
    async def _stop(work: "asyncio.Task[Exception | None]") -> None:
        """Cancel the attempt if it still runs, and wait for its cleanup."""
        if not work.done():
            work.cancel()
            await workflow.wait([work])

    @staticmethod
    async def _failure_of(work: Awaitable[object]) -> Exception | None:
        """Return an attempt's failure as a value: no error of a step kind may block the plan."""
        try:
            await work
        except Exception as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            return error
        return None

    def _log(self, error: Exception) -> None:
        """Log a failure with its traceback. Step kinds raise ApplicationError on purpose: then the
        place does not matter."""
        if not isinstance(error, FailureError):
            workflow.logger.error("step %s failed", self.place.element, exc_info=error)

    def _end(self, error: Exception | None) -> None:
        """Set the state after an attempt has ended, unless a report has set it already."""
        if error is not None:
            self._log(error)
            text, trace = typed_failure_text(error), failure_trace(error)
            self.set(transitions.failed(self.state, text, trace))
        elif self.state.status in _AT_WORK:
            self.set(transitions.completed(self.state, workflow.now()))
