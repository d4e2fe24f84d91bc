"""The Phase workflow: applies its strategy to its steps (design 4).

It waits for a change, gets the steps that may be worked on from the board, starts those, revokes
the permission of others, and reports changes to the plan.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from temporalio import workflow

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.domain.plans.board import PhaseBoard
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import OrderVerb, apply_order
from temporal_plans.domain.plans.history_rollover import HistoryRollover
from temporal_plans.domain.plans.plan import STEPS_AT_ONCE
from temporal_plans.domain.plans.selection import StrategyFailed
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, delay_left, due, failed, with_reason
from temporal_plans.messages.plan_views import PhaseView, PlanViewer
from temporal_plans.messages.plans import (
    LeaseGrant,
    PhaseDelta,
    PhaseInput,
    PhaseOrders,
    PhaseResult,
    StepDelta,
    StepOrder,
)
from temporal_plans.messages.pools import AgentLostMessage, OfferedMessage
from temporal_plans.messages.tasks import TaskStatuses
from temporal_plans.workflows.mechanics.background import Background
from temporal_plans.workflows.mechanics.externs import require_parent, require_plugin
from temporal_plans.workflows.mechanics.handlers import (
    send_signal,
    should_continue_as_new,
    wait_or_timeout,
)
from temporal_plans.workflows.mechanics.tracing import span
from temporal_plans.workflows.plans.leases import PhaseLeases
from temporal_plans.workflows.plans.registry import registry
from temporal_plans.workflows.plans.running import RunningStep, run_child, run_inline
from temporal_plans.workflows.plans.step import assumed

WAIT_MINIMUM = timedelta(milliseconds=1)

STARTS_LIMIT = 500
"""Steps that a phase starts in one activation. Steps that are done at once would else all be
carried out in one, which Temporal gives two seconds."""


@workflow.defn(name="Phase")
class Phase:
    """Child of a Plan. Ends when all steps are complete, or early with its state when asked to."""

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
            stops_on_error=input.stops_on_error,
        )
        self._arguments = dict(input.arguments)
        self._permitted = input.permitted
        self._order = input.order
        self._leave = False
        self._dismissed = False
        self._rollover = HistoryRollover()
        self._running: dict[int, RunningStep] = {}
        self._unreported: set[int] = set(input.unreported)
        self._dirty = True
        self._urgent = False
        self._starts, self._starts_at = 0, workflow.now()
        self._leases = PhaseLeases(input, self._id)

    @workflow.run
    async def run(self, input: PhaseInput) -> PhaseResult:
        require_plugin()
        require_parent("Plan")
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
                await wait_or_timeout(lambda: self._dirty, self._next_timeout())
        except asyncio.CancelledError:
            await self._cancel()
            await reporter.stop()
            raise
        except StrategyFailed as failure:
            # The developer's strategy failed. The phase ends here with ERROR, so that no replay
            # with the corrected strategy passes the failure; an operator restarts the phase.
            self._leave = True
            await self._stop_steps()
            workflow.logger.error("%s", failure, exc_info=failure)
            self._board.fail(str(failure), failure.trace)
        await reporter.stop()
        await self._leases.end(
            keep=not self._board.complete
            and self._board.status is not Status.ERROR
            and not self._dismissed
        )
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._rollover.under_way and not self._leave and not self._board.complete:
            workflow.continue_as_new(self._next_input())
        return PhaseResult(
            state=self._board.state,
            order=self._order,
            yielded=not self._board.complete,
            leased=self._leases.held,
        )

    async def _stop_steps(self) -> None:
        """Start no more steps, and wait until running steps have ended or left."""
        for step in list(self._running.values()):
            step.permit(False, leave=True)
        await self._wait_for_steps()

    async def _cancel(self) -> None:
        """Cancel the running steps; they clean up before the phase returns its leases."""
        for step in list(self._running.values()):
            step.cancel()
        await self._wait_for_steps()
        await self._leases.end(keep=False)

    async def _wait_for_steps(self) -> None:
        """Wait until the last step has ended; leases of ended steps are returned meanwhile."""
        while self._running:
            self._dirty = False
            await workflow.wait_condition(lambda: self._dirty)
            self._leases.flush()

    def _at_end(self) -> bool:
        return self._board.complete or self._leave or self._rollover.under_way

    def _next_input(self) -> PhaseInput:
        return self._input.but(
            state=self._board.state,
            arguments=self._arguments,
            permitted=self._permitted,
            order=self._order,
            leased=self._leases.held,
            unreported=tuple(sorted(self._unreported)),
        )

    # --- which steps may be worked on ---

    def _advance(self) -> None:
        """Start the steps that the strategy picks, and revoke the permission of others."""
        if should_continue_as_new(self._input.history_limit):
            self._rollover.begin(workflow.now())
        self._follow_halt()
        self._end_delays()
        candidates = self._board.candidates() if self._permitted else []
        chosen = {*candidates, *self._board.approvals()}  # a step that waits for approval has begun
        stay = self._may_start() and not self._leave
        for index, step in list(self._running.items()):
            step.permit(index in chosen, leave=not stay)
        if not stay:
            return
        delayed = self._delayed()
        ready = [i for i in (*self._board.launched(), *candidates) if i not in delayed]
        room = self._room()
        for index in ready:
            if room <= 0:
                break
            if index not in self._running and self._leases.has(index):
                self._start(index, permitted=index in chosen)
                room -= 1
        if self._input.context is None:
            return
        kept = (i for i in delayed if self._input.spec.steps[i].work.keeps_its_place)
        self._leases.return_others({*ready, *kept, *self._running})
        self._leases.request([i for i in ready if i not in self._running])

    def _follow_halt(self) -> None:
        """Halt the other steps while a step is in ERROR, where the plan stops on errors. A halt by
        another phase is an order of the plan, and over when the plan permits work again."""
        if reason := self._board.halt_reason:
            self._halted(self._board.halt(reason), reason)
        elif self._permitted:
            self._unreported.update(self._board.resume())

    def _halted(self, indexes: Iterable[int], reason: str) -> None:
        for index in indexes:
            self._unreported.add(index)
            if index in self._running:
                self._running[index].halt(f"halted: {reason}")

    def _room(self) -> int:
        """Return how many steps may be started now. An activation has one time."""
        if self._starts_at != workflow.now():
            self._starts, self._starts_at = 0, workflow.now()
        room = STEPS_AT_ONCE["inline" if self._input.inline else "child"] - len(self._running)
        return min(room, STARTS_LIMIT - self._starts)

    # --- back-offs of steps that do not run: they request no lease before the back-off ends ---

    def _delayed(self) -> set[int]:
        return self._board.delayed - self._running.keys()

    def _end_delays(self) -> None:
        for index in sorted(self._delayed()):
            if delay_left(self._board.steps[index], workflow.now()) <= timedelta(0):
                self._set(index, due(self._board.steps[index]))

    def _next_timeout(self) -> timedelta | None:
        """Return the time until work is due without a message; None when there is none."""
        now = workflow.now()
        if self._starts >= STARTS_LIMIT and self._starts_at == now:
            return WAIT_MINIMUM
        delays = [delay_left(self._board.steps[i], now) for i in self._delayed()]
        rollover = self._rollover.time_left(now)
        waits = delays if rollover is None else [*delays, rollover]
        return max(min(waits), WAIT_MINIMUM) if waits else None

    def _may_start(self) -> bool:
        return self._rollover.may_start(
            workflow.now(),
            self._running,
            workflow.info().get_current_history_length(),
        )

    def _start(self, index: int, *, permitted: bool) -> None:
        self._starts += 1
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
            self._set(index, assumed(spec, state, workflow.now(), self._input.reserving))

    # --- changes of steps ---

    def _set(self, index: int, state: StepState) -> None:
        if self._board.set(index, state):
            self._unreported.add(index)
            self._dirty = True
            self._urgent = self._urgent or self._board.halted  # the plan has to stop at once

    def _step_changed(self, index: int, state: StepState) -> None:
        self._set(index, state)

    def _step_ended(self, index: int, state: StepState | None, error: Exception | None) -> None:
        del self._running[index]
        if error is not None:
            state = failed(
                self._board.steps[index], f"its workflow ended: {typed_failure_text(error)}"
            )
        if state is not None:
            self._set(index, state)
            if state.complete:
                self._leases.return_lease(index)
        self._dirty = True

    # --- reports to the plan ---

    async def _report(self, task: Background) -> None:
        """Send changes in batches, at most one each ``pace``; answer orders at once.

        A phase that ends soon sends no report: its result has all, and costs no signal.
        """
        while True:
            await workflow.wait_condition(
                lambda: bool(self._unreported) or self._urgent or task.over
            )
            await wait_or_timeout(lambda: self._urgent or task.over, self._input.pace)
            if task.over:
                return
            changed, self._unreported, self._urgent = self._unreported, set(), False
            delta = PhaseDelta(
                phase=self._input.index,
                token=self._input.token,
                order=self._order,
                interrupted=self._board.interrupted,
                gate=self._board.gate,
                steps={i: self._board.steps[i].mirrored for i in sorted(changed)},
            )
            if not await send_signal(self._parent, "phase_changed", delta):
                self._unreported |= changed

    # --- signals ---

    @workflow.signal(
        name="orders", description="From the plan: commands, and the permission to begin work."
    )
    def on_orders(self, orders: PhaseOrders) -> None:
        if orders.token != self._input.token:
            return
        self._permitted = orders.permitted
        self._leave = orders.leave
        self._dismissed = orders.dismissed
        if orders.arguments is not None:
            self._arguments = dict(orders.arguments)
        for order in orders.orders:
            changed = apply_order(self._board, order, workflow.now())
            if order.verb is OrderVerb.HALT:
                self._halted(changed, order.reason)
            else:
                for index in changed:
                    self._apply_ordered(index)
        if orders.number > self._order:
            self._order, self._urgent = orders.number, True
        self._dirty = True

    def _apply_ordered(self, index: int) -> None:
        state = self._board.steps[index]
        self._unreported.add(index)
        if index in self._running:
            permitted = self._permitted and index in self._board.shown_candidates()
            self._running[index].order(StepOrder(state=state, permitted=permitted))
        elif state.complete:
            self._leases.return_lease(index)

    @workflow.signal(name="step_changed", description="From a step: its new state.")
    def on_step_changed(self, delta: StepDelta) -> None:
        step = self._running.get(delta.index)
        if step is not None and step.accepts(delta):
            self._set(delta.index, delta.state)

    @workflow.signal(
        name="leased", description="From the service: leases granted, and the holders of others."
    )
    def on_leased(self, grant: LeaseGrant) -> None:
        for index, holder in self._leases.apply_grant(grant).items():
            state = self._board.steps[index]
            text = f"waits for its pod, which {holder} works on"
            self._set(index, with_reason(state, text, Cause.ASSET))
        for index in grant.granted:
            if self._board.steps[index].cause is Cause.ASSET:
                self._set(index, with_reason(self._board.steps[index], ""))
        self._dirty = True

    @workflow.signal(name="task_statuses", description="Statuses of the tasks of inline steps.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        for step in self._inline():
            step.report(statuses.statuses)

    @workflow.signal(name="offered", description="From the pool: a requirement fits now.")
    def on_offered(self, offer: OfferedMessage) -> None:
        for step in self._inline():
            step.offer(offer.reservation)

    @workflow.signal(name="agent_lost", description="From the pool: an agent is lost.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        for step in self._inline():
            step.lose_agent(message.agent, message.at)

    def _inline(self) -> Iterable[RunningStep]:
        return list(self._running.values())

    @workflow.query(name="status", description="The phase and its steps as they are now.")
    def status(self) -> PhaseView:
        return PlanViewer(self._parent).phase(self._board)
