"""Runs one step: waits until it may begin, makes attempts, follows orders.

The same machine runs inside a Step workflow and, for plans with ``steps: inline``, inside a Phase.
What an attempt does is the step kind's; what every event makes of the state is in
``domain.transitions``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from temporal_plans.domain import transitions
from temporal_plans.domain.plan import PodWork, StepSpec
from temporal_plans.domain.service import task_instance_name
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskStatus
from temporal_plans.domain.transitions import StepState, TaskProgress
from temporal_plans.messages.plan import StepOrder
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.kinds import kind_for
from temporal_plans.workflows.registry import Registry
from temporal_plans.workflows.step_context import StepContext, StepPlace
from temporal_plans.workflows.tracing import span

_AT_WORK = (Status.PREPARED, Status.STARTING, Status.STARTED, Status.IN_PROGRESS)
"""Statuses of an attempt that has not come to its end; at its beginning, of one that was left."""

_READY = (Status.PENDING, *_AT_WORK)
"""Statuses in which an attempt may begin."""


def keeps_its_place(spec: StepSpec) -> bool:
    """Whether a step stays at work, with its assets, during a back-off.

    A recovery does not: what it brings back may be what a deployment is about to mend. Its phase
    begins it again when the back-off is over and nobody else works on the pod.
    """
    return not (isinstance(spec.work, PodWork) and spec.work.recovery is not None)


def _task_names(spec: StepSpec) -> frozenset[str]:
    """The task instances that a step launches."""
    work = spec.work
    if not isinstance(work, PodWork):
        return frozenset()
    return frozenset(task_instance_name(work.pod, work.index, task) for task in work.tasks)


class StepMachine:
    """One step at work. ``on_change`` is called with every new state."""

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
        self._names = _task_names(place.spec)
        self._early: dict[str, TaskStatus] = {}

    # --- what comes in ---

    def order(self, order: StepOrder) -> None:
        """A new state by command, the permission to begin, or the request to leave."""
        self._permitted = order.permitted
        self.leaving = order.leave
        if order.state is not None:
            self._epoch += 1
            self.set(order.state)

    def report(self, statuses: Iterable[TaskStatus]) -> None:
        """What became of tasks. Those of other launches count for nothing, but for the one that is
        being prepared: it is on record, and may be lost with its agent, before the step knows."""
        for status in statuses:
            if status.task_id in self.state.tasks:
                self._reported(status)
            elif status.name in self._names:
                self._early[status.name] = status

    def launched(self, tasks: dict[str, TaskProgress]) -> None:
        """These are being started, if nothing was heard of their end yet."""
        self.set(transitions.launched(self.state, tasks, workflow.now()))
        heard, self._early = self._early, {}
        for status in heard.values():
            if status.task_id in tasks:
                self._reported(status)

    def _reported(self, status: TaskStatus) -> None:
        self.set(transitions.reported(self.state, status, self.place.backoff, workflow.now()))

    def offer(self) -> None:
        """The pool has something for this step, if it asks again."""
        self.offered = True

    def lose_agent(self, agent: str, at: datetime) -> None:
        self.lost_agents[agent] = at

    def set(self, state: StepState) -> None:
        if state != self.state:
            self.state = state
            self._on_change(state)

    # --- the run ---

    async def run(self) -> bool:
        """Until the step is complete, failed, was asked to leave, or may not go on; whether it is
        complete.

        One that may not go on holds its pod from others for nothing: its phase takes that back, and
        begins the step again when it may. A restart of one that failed is a new run, so that code
        that developers mend is not replayed past the failure that they mended.
        """
        while not self.state.complete:
            if self.leaving or not self._may_go_on or self.state.status is Status.ERROR:
                return False
            if self.state.delayed_until is not None and not keeps_its_place(self.place.spec):
                return False
            if self._may_begin():
                await self._attempt()
            else:
                await self._idle()
        return True

    def _may_begin(self) -> bool:
        return (
            (self._under_way or not self.state.interrupted)
            and self.state.status in _READY
            and self.state.delayed_until is None
        )

    @property
    def _may_go_on(self) -> bool:
        return self._permitted or self._under_way

    @property
    def _under_way(self) -> bool:
        """Tasks were launched by an earlier run: they are followed whatever is permitted."""
        return bool(self.state.tasks) and self.state.status in (Status.STARTING, Status.STARTED)

    async def _idle(self) -> None:
        """Until something changed that lets the step begin, end or leave."""
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
                    or not self._may_go_on
                ),
                timeout=timeout,
                timeout_summary=f"back-off of {self.place.element}",
            )
        except TimeoutError:
            if transitions.delay_left(self.state, workflow.now()) <= timedelta(0):
                self.set(transitions.due(self.state))

    async def _attempt(self) -> None:
        epoch = self._epoch
        context = StepContext(self)
        kind = kind_for(self.place.spec.work, self._registry)
        with span(f"step {self.place.spec.name}", id=self.place.element):
            work = asyncio.create_task(self._settled(kind(context)))
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
        if work.cancelled():  # by somebody else: trying again at once might never end
            self.set(transitions.failed(self.state, "its work was cancelled"))
        else:
            self._end(work.result())

    @staticmethod
    async def _stop(work: "asyncio.Task[Exception | None]") -> None:
        """Cancel what is still under way, and let it clean up."""
        if not work.done():
            work.cancel()
            await workflow.wait([work])

    @staticmethod
    async def _settled(work: Awaitable[object]) -> Exception | None:
        """The failure of an attempt as a value: nothing that a kind raises may wedge the plan."""
        try:
            await work
        except Exception as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            return error
        return None

    def _end(self, error: Exception | None) -> None:
        """What an attempt that came to its end means, unless a report has said it already."""
        if error is not None:
            self.set(transitions.failed(self.state, failure_text(error)))
        elif self.state.status in _AT_WORK:
            self.set(transitions.completed(self.state, workflow.now()))
