"""The Step workflow: one unit of work with an id and a history of its own."""

import asyncio
from datetime import datetime
from typing import assert_never

from temporalio import workflow

from temporal_plans.domain.kinds.work import Begins
from temporal_plans.domain.plans.board import element_id
from temporal_plans.domain.plans.plan import StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, begun, prepared, releasing, working
from temporal_plans.messages.plan_views import StepView, step_view
from temporal_plans.messages.plans import StepDelta, StepInput, StepOrder, StepResult
from temporal_plans.messages.pools import AgentLostMessage, OfferedMessage
from temporal_plans.messages.tasks import TaskStatuses
from temporal_plans.workflows.mechanics.externs import require_parent, require_plugin
from temporal_plans.workflows.mechanics.handlers import (
    send_signal,
    should_continue_as_new,
    wait_or_timeout,
)
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.attempt import StepPlace
from temporal_plans.workflows.plans.machine import StepMachine
from temporal_plans.workflows.plans.registry import registry


@workflow.defn(name="Step")
class Step:
    """Child of a Phase. Ends when its work is complete, or early with its state when asked to."""

    @workflow.init
    def __init__(self, input: StepInput) -> None:
        self._input = input
        info = workflow.info()
        self._parent = info.parent.workflow_id if info.parent else ""
        start = assumed(input.spec, input.state, workflow.now(), input.reserving)
        self._last_reported = _reported_fields(start)
        self._reserves = input.reserving and input.spec.work.begins is Begins.RESERVING
        self._reporting = False
        self._order = input.order
        self._rollover = False
        self._permitted = input.permitted
        self._leave_ordered = False
        self._machine = StepMachine(
            StepPlace(
                index=input.index,
                spec=input.spec,
                address=info.workflow_id,
                element=info.workflow_id,
                backoff=input.backoff,
                context=input.context,
            ),
            input.state,
            arguments=dict(input.arguments),
            registry=registry(),
            on_change=self._on_change,
            permitted=input.permitted,
        )

    @workflow.run
    async def run(self, input: StepInput) -> StepResult:
        require_plugin()
        require_parent("Phase")
        complete = await self._machine.run()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not complete and self._rollover and not self._leave_ordered:
            workflow.continue_as_new(
                self._input.but(
                    state=self._machine.state, order=self._order, permitted=self._permitted
                )
            )
        return StepResult(state=self._machine.state, order=self._order, yielded=not complete)

    # --- reports to the phase ---

    def _on_change(self, state: StepState) -> None:
        """Report a change, but not the start, which the phase assumes, nor the end, its result."""
        if should_continue_as_new():
            self._rollover = self._machine.leaving = True
        if (
            not state.complete
            and not self._reporting
            and _reported_fields(state) != self._last_reported
        ):
            self._reporting = True
            self._reporter = asyncio.create_task(self._report())

    async def _report(self) -> None:
        """Send one signal at a time, with the newest state."""
        if self._reserves:
            await self._launch_settled()
        while (fields := _reported_fields(self._machine.state)) != self._last_reported:
            self._last_reported = fields
            state = self._machine.state.mirrored
            if not state.complete:
                delta = StepDelta(
                    token=self._input.token,
                    index=self._input.index,
                    order=self._order,
                    state=state,
                )
                await send_signal(self._parent, "step_changed", delta)
        self._reporting = False

    async def _launch_settled(self) -> None:
        """Wait a little while the first report would say no more than STARTING: most launches get
        further by then, or end the step, which saves its phase a signal for each step."""
        self._reserves = False
        delay = engine_settings().launch_report_delay
        await wait_or_timeout(lambda: not _is_starting(self._machine.state), delay)

    # --- signals ---

    @workflow.signal(
        name="order", description="From the phase: a new state, or the permission to begin."
    )
    def on_order(self, order: StepOrder) -> None:
        if order.token != self._input.token:
            return
        self._order = max(self._order, order.number)
        self._permitted, self._leave_ordered = order.permitted, order.leave
        self._machine.order(order)
        self._machine.leaving = order.leave or self._rollover

    @workflow.signal(name="task_statuses", description="Statuses of the step's tasks.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        self._machine.report(statuses.statuses)

    @workflow.signal(name="offered", description="From the pool: the requirement fits now.")
    def on_offered(self, _: OfferedMessage) -> None:
        self._machine.offer()

    @workflow.signal(name="agent_lost", description="From the pool: an agent is lost.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        self._machine.lose_agent(message.agent, message.at)

    @workflow.query(name="status", description="The step as it is now.")
    def status(self) -> StepView:
        return step_view(
            self._input.spec,
            self._machine.state,
            element_id(workflow.info().workflow_id),
        )


def assumed(spec: StepSpec, state: StepState, now: datetime, reserving: bool) -> StepState:
    """Return the state that a phase assumes when it starts a step; it is not reported.
    ``reserving`` as in PhaseInput."""
    if state.status is not Status.PENDING:
        return state
    match spec.work.begins:
        case Begins.STARTED:
            return begun(state, now)
        case Begins.WORKING:
            return working(state, now)
        case Begins.RELEASING:
            return releasing(state, now)
        case Begins.RESERVING:
            return prepared(state, "") if reserving else begun(state, now)
        case Begins.REPORTED:
            return state
        case _:
            assert_never(spec.work.begins)


def _is_starting(state: StepState) -> bool:
    return state.status is Status.STARTING and not state.reason


def _reported_fields(state: StepState) -> tuple[object, ...]:
    """Return the part of a step's state whose changes are reported to the phase."""
    return state.status, state.interrupted, state.reason, state.cause, state.delayed_until
