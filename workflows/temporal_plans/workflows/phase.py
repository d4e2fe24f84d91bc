"""The Phase workflow: applies its strategy to its steps (DESIGN 4).

It waits for something to change, lets the board say which steps may be worked on, starts those,
holds back what may no longer begin, and tells the plan what changed.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.board import PhaseBoard
from temporal_plans.domain.commands import apply_order
from temporal_plans.domain.explain import ASSET_REASON
from temporal_plans.domain.plan import STEPS_AT_ONCE
from temporal_plans.domain.selection import StrategyFailed
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import StepState, delay_left, due, failed
from temporal_plans.messages.cluster import AgentLostMessage, OfferedMessage, TaskStatuses
from temporal_plans.messages.plan import (
    PhaseDelta,
    PhaseInput,
    PhaseOrders,
    PhaseResult,
    PhaseView,
    StepDelta,
    StepOrder,
)
from temporal_plans.messages.service import LeaseGrant
from temporal_plans.workflows.background import Background
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.handlers import (
    leave_a_command,
    should_continue_as_new,
    tell,
    wait_or_timeout,
)
from temporal_plans.workflows.leases import PhaseLeases
from temporal_plans.workflows.machine import keeps_its_place
from temporal_plans.workflows.registry import registry
from temporal_plans.workflows.rolling import Rolling
from temporal_plans.workflows.running import RunningStep, run_child, run_inline
from temporal_plans.workflows.step import assumed
from temporal_plans.workflows.tracing import span
from temporal_plans.workflows.views import PlanViewer

SHORTEST_WAIT = timedelta(milliseconds=1)


@workflow.defn(name="Phase")
class Phase:
    """Child of a Plan. Ends when all steps are complete, or early, with its state, when asked."""

    @workflow.init
    def __init__(self, input: PhaseInput) -> None:
        info = workflow.info()
        self._id = info.workflow_id
        self._parent = info.parent.workflow_id if info.parent else ""
        self._input = input
        self._registry = registry()
        self._board = PhaseBoard(
            input.spec,
            input.state,
            seed=input.seed,
            strategies=self._registry.all_strategies,
        )
        self._arguments = dict(input.arguments)
        self._permitted = input.permitted
        self._order = input.order
        self._leave = False
        self._dismissed = False
        self._rolling = Rolling()
        self._running: dict[int, RunningStep] = {}
        self._changed: set[int] = set(input.unreported)
        self._dirty = True
        self._urgent = False
        self._leases = PhaseLeases(input, self._id)

    @workflow.run
    async def run(self, input: PhaseInput) -> PhaseResult:
        with span(f"phase {self._input.spec.name}", id=self._id):
            return await self._run()

    async def _run(self) -> PhaseResult:
        reporter = Background(self._report)
        try:
            while True:
                self._dirty = False
                self._advance()
                if not self._running and self._at_end():
                    break
                self._leases.flush()
                if not await wait_or_timeout(lambda: self._dirty, self._patience()):
                    leave_a_command()
        except asyncio.CancelledError:
            await self._cancel()
            await reporter.stop()
            raise
        except StrategyFailed as failure:
            # The developer's strategy. The phase ends here, so that no replay with the mended one
            # comes past the failure; somebody restarts what now reads ERROR.
            self._leave = True
            await self._left()
            self._board.fail(str(failure))
        await reporter.stop()
        await self._leases.end(
            keep=not self._board.complete
            and self._board.status is not Status.ERROR
            and not self._dismissed
        )
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._rolling.under_way and not self._leave and not self._board.complete:
            workflow.continue_as_new(self._carried())
        return PhaseResult(
            state=self._board.state,
            order=self._order,
            yielded=not self._board.complete,
            leased=self._leases.held,
        )

    async def _left(self) -> None:
        """Begin nothing more, and let what is at work come to its end, or to where it can stop."""
        for step in list(self._running.values()):
            step.permit(False, leave=True)
        await self._none_at_work()

    async def _cancel(self) -> None:
        """The plan was cancelled: what is at work is too, and cleans up before the pods go back."""
        for step in list(self._running.values()):
            step.cancel()
        await self._none_at_work()
        await self._leases.end(keep=False)

    async def _none_at_work(self) -> None:
        """Until the last step has ended; the assets of those before it go back meanwhile."""
        while self._running:
            self._dirty = False
            await workflow.wait_condition(lambda: self._dirty)
            self._leases.flush()

    def _at_end(self) -> bool:
        return self._board.complete or self._leave or self._rolling.under_way

    def _carried(self) -> PhaseInput:
        return self._input.but(
            state=self._board.state,
            arguments=self._arguments,
            permitted=self._permitted,
            order=self._order,
            leased=self._leases.held,
            unreported=tuple(sorted(self._changed)),
        )

    # --- what may be worked on ---

    def _advance(self) -> None:
        """Start what the strategy picks, hold what it no longer picks."""
        if should_continue_as_new(self._input.history_limit):
            self._rolling.begin(workflow.now())
        self._end_delays()
        candidates = self._board.candidates() if self._permitted else []
        chosen = {*candidates, *self._board.approvals()}  # what waits for approval has begun
        stay = self._may_start() and not self._leave
        for index, step in list(self._running.items()):
            step.permit(index in chosen, leave=not stay)
        if not stay:
            return
        delayed = self._delayed()
        ready = [i for i in (*self._board.launched(), *candidates) if i not in delayed]
        room = STEPS_AT_ONCE["inline" if self._input.inline else "child"] - len(self._running)
        for index in ready:
            if room <= 0:
                break
            if index not in self._running and self._leases.has(index):
                self._start(index, permitted=index in chosen)
                room -= 1
        kept = (i for i in delayed if keeps_its_place(self._input.spec.steps[i]))
        self._leases.keep_only({*ready, *kept, *self._running})
        self._leases.want([i for i in ready if i not in self._running])

    # --- back-offs of steps that are not at work: they ask for no asset before it is time ---

    def _delayed(self) -> set[int]:
        return self._board.delayed - self._running.keys()

    def _end_delays(self) -> None:
        for index in sorted(self._delayed()):
            if delay_left(self._board.steps[index], workflow.now()) <= timedelta(0):
                self._set(index, due(self._board.steps[index]))

    def _patience(self) -> timedelta | None:
        """How long until there is something to do without anything happening."""
        now = workflow.now()
        delays = [delay_left(self._board.steps[i], now) for i in self._delayed()]
        rolling = self._rolling.patience(now)
        waits = delays if rolling is None else [*delays, rolling]
        return max(min(waits), SHORTEST_WAIT) if waits else None

    def _may_start(self) -> bool:
        return self._rolling.may_start(
            workflow.now(),
            self._running,
            workflow.info().get_current_history_length(),
        )

    def _start(self, index: int, *, permitted: bool) -> None:
        spec, state = self._input.spec.steps[index], self._board.steps[index]
        run = run_inline if self._input.inline else run_child
        self._running[index] = run(
            self._input,
            index=index,
            phase_id=self._id,
            state=state,
            permitted=permitted,
            arguments=self._arguments,
            registry=self._registry,
            on_change=self._step_changed,
            on_end=self._step_ended,
        )
        if not self._input.inline:
            self._set(index, assumed(spec, state, workflow.now()))

    # --- what steps say ---

    def _set(self, index: int, state: StepState) -> None:
        if self._board.set(index, state):
            self._changed.add(index)
            self._dirty = True

    def _step_changed(self, index: int, state: StepState) -> None:
        self._set(index, state)

    def _step_ended(self, index: int, state: StepState | None, error: Exception | None) -> None:
        del self._running[index]
        if error is not None:
            state = failed(self._board.steps[index], f"its workflow ended: {failure_text(error)}")
        if state is not None:
            self._set(index, state)
            if state.complete:
                self._leases.give_back(index)
        self._dirty = True

    # --- what the plan hears ---

    async def _report(self, task: Background) -> None:
        """Changes, many at a time and not too often; answers to orders at once.

        A phase that ends soon never says anything: its result says it all, and is free.
        """
        while True:
            await workflow.wait_condition(lambda: bool(self._changed) or self._urgent or task.over)
            await wait_or_timeout(lambda: self._urgent or task.over, self._input.pace)
            if task.over:
                return
            changed, self._changed, self._urgent = self._changed, set(), False
            delta = PhaseDelta(
                phase=self._input.index,
                token=self._input.token,
                order=self._order,
                interrupted=self._board.interrupted,
                gate=self._board.gate,
                steps={i: self._board.steps[i].but(tasks={}) for i in sorted(changed)},
            )
            if not await tell(self._parent, "phase_changed", delta):
                self._changed |= changed

    # --- what it is told ---

    @workflow.signal(name="orders", description="From its plan: commands, and may it begin work.")
    def on_orders(self, orders: PhaseOrders) -> None:
        if orders.token != self._input.token:
            return
        self._permitted = orders.permitted
        self._leave = orders.leave
        self._dismissed = orders.dismissed
        if orders.arguments is not None:
            self._arguments = dict(orders.arguments)
        for order in orders.orders:
            for index in apply_order(self._board, order, workflow.now()):
                self._ordered(index)
        if orders.number > self._order:
            self._order, self._urgent = orders.number, True
        self._dirty = True

    def _ordered(self, index: int) -> None:
        state = self._board.steps[index]
        self._changed.add(index)
        if index in self._running:
            permitted = self._permitted and index in self._board.shown_candidates()
            self._running[index].order(StepOrder(state=state, permitted=permitted))
        elif state.complete:
            self._leases.give_back(index)

    @workflow.signal(name="step_changed", description="From a step: its new state.")
    def on_step_changed(self, delta: StepDelta) -> None:
        step = self._running.get(delta.index)
        if step is not None and step.believes(delta):
            self._set(delta.index, delta.state)

    @workflow.signal(name="leased", description="From the service: assets given, or held by whom.")
    def on_leased(self, grant: LeaseGrant) -> None:
        for index, holder in self._leases.granted(grant).items():
            state = self._board.steps[index]
            self._set(index, state.but(reason=f"{ASSET_REASON}, which {holder} works on"))
        for index in grant.granted:
            if self._board.steps[index].reason.startswith(ASSET_REASON):
                self._set(index, self._board.steps[index].but(reason=""))
        self._dirty = True

    @workflow.signal(name="task_statuses", description="What became of tasks of inline steps.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        for step in self._inline():
            step.report(statuses.statuses)

    @workflow.signal(name="offered", description="From the pool: a requirement fits now.")
    def on_offered(self, offer: OfferedMessage) -> None:
        for step in self._inline():
            step.offer(offer.reservation)

    @workflow.signal(name="agent_lost", description="From the pool: an agent was given up.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        for step in self._inline():
            step.lose_agent(message.agent, message.at)

    def _inline(self) -> Iterable[RunningStep]:
        return list(self._running.values())

    @workflow.query(name="status", description="The phase and its steps as they are now.")
    def status(self) -> PhaseView:
        return PlanViewer(self._parent).phase(self._board)
