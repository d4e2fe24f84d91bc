"""The Step workflow: one unit of work with an id and a history of its own."""

import asyncio
from datetime import datetime

from temporalio import workflow

from temporal_plans.domain.board import element_id
from temporal_plans.domain.plan import StepSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import StepState, begun, releasing, working
from temporal_plans.messages.cluster import AgentLostMessage, OfferedMessage, TaskStatuses
from temporal_plans.messages.plan import (
    StepDelta,
    StepInput,
    StepOrder,
    StepResult,
    StepView,
)
from temporal_plans.workflows.handlers import should_continue_as_new, tell
from temporal_plans.workflows.machine import StepMachine
from temporal_plans.workflows.registry import registry
from temporal_plans.workflows.step_context import StepPlace
from temporal_plans.workflows.views import step_view


@workflow.defn(name="Step")
class Step:
    """Child of a Phase. Ends when its work is complete, or early, with its state, when asked to."""

    @workflow.init
    def __init__(self, input: StepInput) -> None:
        self._input = input
        info = workflow.info()
        self._parent = info.parent.workflow_id if info.parent else ""
        self._told = _gist(assumed(input.spec, input.state, workflow.now()))
        self._telling = False
        self._order = input.order
        self._rolling = False
        self._permitted = input.permitted
        self._told_to_leave = False
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
        complete = await self._machine.run()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not complete and self._rolling and not self._told_to_leave:
            workflow.continue_as_new(
                self._input.but(
                    state=self._machine.state, order=self._order, permitted=self._permitted
                )
            )
        return StepResult(state=self._machine.state, order=self._order, yielded=not complete)

    # --- what the phase hears ---

    def _on_change(self, state: StepState) -> None:
        """The phase assumes the beginning, and hears of the end by the result: both are free."""
        if should_continue_as_new():
            self._rolling = self._machine.leaving = True
        if not state.complete and not self._telling and _gist(state) != self._told:
            self._telling = True
            self._teller = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """One signal at a time, always with the newest state."""
        while (gist := _gist(self._machine.state)) != self._told:
            self._told = gist
            state = self._machine.state.but(tasks={})
            if not state.complete:
                delta = StepDelta(
                    token=self._input.token,
                    index=self._input.index,
                    order=self._order,
                    state=state,
                )
                await tell(self._parent, "step_changed", delta)
        self._telling = False

    # --- what it is told ---

    @workflow.signal(name="order", description="From its phase: a new state, or may it begin.")
    def on_order(self, order: StepOrder) -> None:
        if order.token != self._input.token:
            return
        self._order = max(self._order, order.number)
        self._permitted, self._told_to_leave = order.permitted, order.leave
        self._machine.order(order)
        self._machine.leaving = order.leave or self._rolling

    @workflow.signal(name="task_statuses", description="What became of the step's tasks.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        self._machine.report(statuses.statuses)

    @workflow.signal(name="offered", description="From the pool: the requirement fits now.")
    def on_offered(self, _: OfferedMessage) -> None:
        self._machine.offer()

    @workflow.signal(name="agent_lost", description="From the pool: an agent was given up.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        self._machine.lose_agent(message.agent, message.at)

    @workflow.query(name="status", description="The step as it is now.")
    def status(self) -> StepView:
        return step_view(
            self._input.spec,
            self._machine.state,
            element_id(workflow.info().workflow_id),
        )


def assumed(spec: StepSpec, state: StepState, now: datetime) -> StepState:
    """What a phase takes for granted of a step that it starts, and so is not told."""
    if state.status is not Status.PENDING or spec.work.kind == "approval":
        return state
    if spec.work.kind in ("kill", "erase"):
        return working(state, now)
    if spec.work.kind in ("unreserve", "deregister"):
        return releasing(state, now)
    return begun(state, now)


def _gist(state: StepState) -> tuple[object, ...]:
    """What the phase shows of a step, and must hear of when it changes."""
    return state.status, state.interrupted, state.reason, state.delayed_until
