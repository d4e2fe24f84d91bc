"""The Plan workflow: the root of a tree of phases and steps (design 4 and 5).

It applies its strategy to its phases, runs each as a child, mirrors their steps, and carries out
commands. All decisions are in ``domain``.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.commands import (
    Command,
    CommandRefused,
    Decision,
    Order,
    Outcome,
    Result,
    Verb,
    apply_order,
    apply_plan,
    decide,
    find_element,
    halt_orders,
)
from temporal_plans.domain.plans.explain import ElementQuery, Explanations, explain
from temporal_plans.domain.plans.history_rollover import HistoryRollover
from temporal_plans.domain.plans.selection import StrategyFailed
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.plan_views import PlanView, PlanViewer, details
from temporal_plans.messages.plans import (
    CommandLog,
    CommandMessage,
    EngineInput,
    FirstCommand,
    LeaseRequest,
    OwnerContext,
    PhaseDelta,
    PhaseInput,
    PhaseResult,
    PlanFaults,
    PlanInput,
    PlanResult,
    PlanRevision,
    Supersede,
)
from temporal_plans.workflows.mechanics.background import Background
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import (
    send_signal,
    should_continue_as_new,
    wait_or_timeout,
)
from temporal_plans.workflows.mechanics.tokens import new_token
from temporal_plans.workflows.mechanics.tracing import span
from temporal_plans.workflows.plans.log import CommandLogger
from temporal_plans.workflows.plans.plan_input import arguments_of, faults_of, refuse_forged
from temporal_plans.workflows.plans.plan_reports import PlanReports
from temporal_plans.workflows.plans.plan_verbs import PlanVerbs
from temporal_plans.workflows.plans.registry import registry
from temporal_plans.workflows.plans.revisions import Revisions
from temporal_plans.workflows.plans.running_phase import RunningPhase

RUNNING_PHASES_LIMIT = 16
ORDERS_TIMEOUT = timedelta(seconds=10)
"""How long an update waits for its phases to carry out its orders before it answers."""
WAIT_MINIMUM = timedelta(milliseconds=1)


@workflow.defn(name="Plan")
class Plan(PlanVerbs):
    """Runs until all phases are complete. A cancellation cancels the running phases."""

    @workflow.init
    def __init__(self, input: PlanInput) -> None:
        self._id = workflow.info().workflow_id
        self._input = input
        self._engine = engine = input.engine or EngineInput()
        self._arguments = dict(input.arguments)
        self._seed = workflow.random().getrandbits(32) if engine.seed is None else engine.seed
        self._registry = registry()
        self._board = PlanBoard(
            input,
            engine.state,
            seed=self._seed,
            strategies=self._registry.all_strategies,
            faults=engine.errors,
            standing=engine.standing,
        )
        if engine.state is None:
            self._board.interrupted = input.interrupted
        self._started = engine.started or workflow.now()
        self._log = CommandLogger(engine.log)
        self._running: dict[int, RunningPhase] = {}
        self._viewer = PlanViewer(self._id)
        self._rollover = HistoryRollover()
        self._superseded: Supersede | None = None
        self._revisions = Revisions(
            self._board, engine.revision, lambda phase: faults_of(phase, self._id)
        )
        self._reports = PlanReports(self._board, self._revisions, engine.context)
        self._leased = dict(engine.leased)
        self._releasing: set[str] = set()
        self._begun = self._end_reported = self._halted = False
        self._dirty = True
        self._last_timeout = workflow.now()

    @workflow.run
    async def run(self, input: PlanInput) -> PlanResult:
        require_plugin()
        refuse_forged(self._input, self._id)
        try:
            arguments = arguments_of(
                self._input, self._id, self._registry, interrupted=self._board.interrupted
            )
        except ApplicationError as error:
            self._log_start(Outcome.refusing(Refusal.of(Code.INVALID, error.message)))
            await self._report_end()  # else the service would take it for running
            raise
        self._arguments = self._arguments if arguments is None else arguments
        with span(f"plan {self._input.name}", id=self._id):
            try:
                await self._run_until_over()
            except asyncio.CancelledError:
                for phase in list(self._running.values()):
                    phase.cancel()
                await workflow.wait_condition(lambda: not self._running)
                await self._report_end()
                raise
        workflow.set_current_details(details(self._board))
        return PlanResult(
            status=self._board.status,
            view=self.status(),
            state=self._board.state,
            superseded=self._is_superseded,
        )

    def _apply_first(self, first: FirstCommand) -> None:
        """Apply the command that started the run to the final state of the former run."""
        try:
            decision = decide(self._board, self._id, first.verb, first.command)
        except CommandRefused as refused:
            outcome = refused.outcome
        else:
            outcome = decision.outcome
            apply_plan(self._board, decision)
            self._apply(decision.orders)
            if decision.arguments is not None:
                self._arguments = dict(decision.arguments)
        self._log.command(first.verb, first.command, outcome, via="start", now=workflow.now())

    def _log_start(self, outcome: Outcome) -> None:
        command = Command(
            parameters=self._input.arguments, by=self._input.by, reason=self._input.reason
        )
        self._log.command(Verb.START, command, outcome, via="start", now=workflow.now())

    async def _run_until_over(self) -> None:
        """Run until the plan has ended and its end is reported; continue as new when needed."""
        if self._input.engine is None and (self._input.by or self._input.reason):
            started = f"plan {self._input.name} is started"
            self._log_start(Outcome(result=Result.DONE, message=started))
        for first in self._engine.first:
            self._apply_first(first)
        while True:
            reporter = Background(self._reports.run)
            try:
                await self._run()
            finally:
                reporter.over = True
            await reporter.stop()
            reported = self._over
            if reported:
                self._end_reported = self._engine.context is not None
                await self._report_end()
            await workflow.wait_condition(
                lambda: workflow.all_handlers_finished() and not self._releasing
            )
            if reported and self._over:  # no command in the last moment restarted it
                return
            if not self._over and not self._running and self._rollover.under_way:
                workflow.continue_as_new(self._next_input())
            self._dirty = True
            self._reports.reset()

    async def _run(self) -> None:
        """Run until no phase runs, and the plan is over or must continue as new."""
        while True:
            self._dirty = False
            self._advance()
            self._begun = True
            if not self._running and (self._over or self._rollover.under_way):
                return
            if not await wait_or_timeout(lambda: self._dirty, self._next_timeout()):
                self._last_timeout = workflow.now()

    @property
    def _over(self) -> bool:
        """Whether the plan has ended. A standing plan ends only when it is superseded."""
        return self._is_superseded or (self._board.complete and not self._engine.standing)

    @property
    def _is_superseded(self) -> bool:
        """Whether another run takes the place of this one. A complete plan is not superseded."""
        complete = self._board.complete and not self._engine.standing
        return self._superseded is not None and not complete

    def _next_timeout(self) -> timedelta | None:
        """Return the time until work is due without a message; None when there is none."""
        now = workflow.now()
        waits = [
            self._rollover.time_left(now),
            *(p.time_to_cancel(now) for p in self._running.values()),
        ]
        if self._engine.standing:
            waits.append(self._revisions.time_to_expiry(self._running, now))
        known = [wait for wait in waits if wait is not None]
        return max(min(known), WAIT_MINIMUM) if known else None

    def _next_input(self) -> PlanInput:
        """Return the next run's input, with the current phases and new phase numbers."""
        numbers = self._board.numbers
        engine = self._engine.but(
            state=self._board.state,
            log=self._log.log,
            seed=self._seed,
            started=self._started,
            leased={i: self._leased[n] for i, n in enumerate(numbers) if n in self._leased},
            first=(),
            errors=self._board.faults,
            revision=self._revisions.number,
        )
        phases, arguments = self._board.spec.phases, self._arguments
        return self._input.but(phases=phases, arguments=arguments, engine=engine)

    # --- which phases may be worked on ---

    def _advance(self) -> None:
        """Start the phases that the strategy picks, and revoke the permission of others."""
        now = workflow.now()
        if should_continue_as_new(self._input.history_limit):
            self._rollover.begin(now)
        for phase in list(self._running.values()):
            if (left := phase.time_to_cancel(now)) is not None and left <= timedelta(0):
                phase.cancel()
        if self._engine.standing:
            # Validators of updates depend on the phases that exist, and the time of an activation
            # with only signals may differ in a replay (worker.sdk.empty_activation).
            self._revisions.drop_expired(self._running, self._last_timeout)
        self._follow_halt()
        try:
            self._follow_strategy()
        except StrategyFailed as failure:
            self._interrupt_failed(failure)

    def _follow_halt(self) -> None:
        """Halt the other phases when a step fails and the plan stops on errors; resume them when no
        step is in ERROR any more."""
        if self._board.halted == self._halted:
            return
        self._halted = self._board.halted
        self._permit()  # before the orders: steps that are halted must not start again
        if self._halted:
            self._dispatch(halt_orders(self._board), None)
            return
        for phase, number in zip(self._board.phases, self._board.numbers, strict=True):
            if number not in self._running:
                phase.resume()

    def _interrupt_failed(self, failure: StrategyFailed) -> None:
        """Interrupt the plan after its developer's strategy failed, until an operator continues it.

        The workflow continues as new, so that no replay with a corrected strategy passes the
        failure.
        """
        workflow.logger.error("%s", failure, exc_info=failure)
        self.record_problem("strategy", str(failure), failure.trace)
        self._board.interrupted = True
        self._rollover.begin(workflow.now())
        self._permit()

    def _follow_strategy(self) -> None:
        self._permit()
        if not self._may_start():
            return
        candidates = self._board.candidates()
        free = [*self._with_launched_tasks(candidates), *filter(self._may_be_started, candidates)]
        for index in free[: max(RUNNING_PHASES_LIMIT - len(self._running), 0)]:
            self._start(index, permitted=index in candidates)

    def _with_launched_tasks(self, candidates: Collection[int]) -> list[int]:
        """Return the phases with tasks that an earlier run launched: their statuses must be
        followed, whatever the strategy picks now."""
        return [
            index
            for index, phase in enumerate(self._board.phases)
            if index not in candidates and phase.launched() and self._may_be_started(index)
        ]

    def _may_be_started(self, index: int) -> bool:
        name = self._board.phases[index].spec.name
        return self._board.numbers[index] not in self._running and name not in self._releasing

    def _permit(self) -> None:
        """Send running phases the permission to begin new work, or its revocation."""
        if not self._running:
            return
        permitted, leave = self._board.permitted(), not self._may_start()
        for index, number in enumerate(self._board.numbers):
            if phase := self._running.get(number):
                phase.permit(index in permitted, leave=leave)

    def _may_start(self) -> bool:
        """Whether phases may start: not before a continue-as-new, unless that is delayed."""
        return self._superseded is None and self._rollover.may_start(
            workflow.now(), self._running, workflow.info().get_current_history_length()
        )

    def _start(self, index: int, *, permitted: bool) -> None:
        phase, number = self._board.phases[index], self._board.numbers[index]
        input = PhaseInput(
            index=number,
            token=new_token(),
            spec=phase.spec,
            state=phase.state,
            inline=self._input.steps == "inline",
            reserving=True,
            stops_on_error=self._input.on_error == "stop",
            permitted=permitted,
            arguments=self._arguments,
            backoff=self._input.backoff,
            context=self._engine.context,
            seed=self._seed,
            leased=self._leased.pop(number, ()),
            history_limit=self._input.history_limit,
        )
        self._running[number] = RunningPhase(
            input, f"{self._id}/{phase.spec.name}", self._phase_ended
        )

    def _phase_ended(
        self, phase: RunningPhase, result: PhaseResult | None, error: Exception | None
    ) -> None:
        """Take over the state of an ended phase, and apply its unacknowledged orders to that state;
        unless a revision replaces the phase."""
        del self._running[phase.index]
        self._dirty = True
        if self._revisions.ended(phase.name):
            if error is not None or (result is not None and result.leased):
                self._release_leases(phase.name)
            return
        if result is not None:
            self._board.take(self._board.numbers.index(phase.index), result.state)
            phase.acknowledge(result.order)
            if result.leased:
                self._leased[phase.index] = result.leased
        elif error is not None:
            self._board.of_number(phase.index).fail(
                f"its workflow ended: {typed_failure_text(error)}"
            )
            self._release_leases(phase.name)
        for orders in phase.unacknowledged.values():
            for order in orders:
                apply_order(self._board.of_number(phase.index), order, workflow.now())
        phase.unacknowledged = {}

    def _release_leases(self, phase: str) -> None:
        """Return the leases of a phase that was terminated, or that left with its leases.

        The phase is not started again before the signal to the service has been sent: otherwise the
        service would take back leases that it has just granted to the new start.
        """
        if self._engine.context is not None and phase not in self._releasing:
            self._releasing.add(phase)
            asyncio.create_task(self._send_release(phase, self._engine.context))  # noqa: RUF006

    async def _send_release(self, phase: str, context: OwnerContext) -> None:
        request = LeaseRequest(phase=f"{self._id}/{phase}", ended=True)
        await send_signal(context.workflow_id, "leases", request)
        self._releasing.discard(phase)
        self._dirty = True

    @workflow.signal(name="phase_changed", description="From a phase: the steps that changed.")
    def on_phase_changed(self, delta: PhaseDelta) -> None:
        phase = self._running.get(delta.phase)
        if phase is None or not phase.accepts(delta):
            return
        board = self._board.of_number(delta.phase)
        board.set_interrupted(delta.interrupted)
        board.set_gate(delta.gate)
        for index, state in delta.steps.items():
            board.set(index, state)
        phase.acknowledge(delta.order)
        self._dirty = True

    # --- signals of the service ---

    @workflow.signal(name="supersede", description="From the service: another run takes its place.")
    def on_supersede(self, message: Supersede) -> None:
        """Start no more work, and leave the steps in their state. The leases are returned only with
        the last report, so that the next run gets them before other plans."""
        if self._superseded is None:
            self._superseded, self._dirty = message, True
            for phase in self._running.values():
                phase.end_early(workflow.now(), return_leases=False)

    @workflow.signal(name="revise", description="From the service: phases to put and to drop.")
    def on_revise(self, revision: PlanRevision) -> None:
        if not self._engine.standing:
            self.record_problem("revise", "only a standing plan accepts revisions")
            return
        before = {
            n: p.spec.name for n, p in zip(self._board.numbers, self._board.phases, strict=True)
        }
        self._revisions.take(revision, self._running, workflow.now())
        for number in sorted(self._leased.keys() - set(self._board.numbers)):
            del self._leased[number]
            self._release_leases(before[number])
        self._dirty = True

    @workflow.signal(name="faults", description="From the service: errors of a configuration.")
    def on_faults(self, message: PlanFaults) -> None:
        if self._end_reported:
            return  # too late: the service has the report that the plan has ended
        self._board.faults, self._dirty = message.errors, True

    # --- commands ---

    def check(self, verb: Verb, command: Command) -> None:
        """Refuse an impossible command, with the valid names (validator of the updates)."""
        try:
            self._decide(verb, command)
        except CommandRefused as refused:
            raise refusal_error(refused.refusal) from None

    async def command(self, verb: Verb, command: Command, via: str) -> Outcome:
        if isinstance(command, CommandMessage) and command.malformed:
            self.record_problem(verb, command.malformed)
            return Outcome.refusing(Refusal.of(Code.MALFORMED, command.malformed))
        # An update may arrive in the activation of the start, and on replay in the one after it:
        # wait, so that the start comes first in both.
        await workflow.wait_condition(lambda: self._begun)
        try:
            decision = self._decide(verb, command)
        except CommandRefused as refused:
            outcome = refused.outcome
        else:
            outcome = await self._carry_out(decision)
        self._log.command(verb, command, outcome, via=via, now=workflow.now())
        return outcome

    def _decide(self, verb: Verb, command: Command) -> Decision:
        """Return what a command does. Raises CommandRefused."""
        if self._superseded is not None:
            why = f" ({self._superseded.why})" if self._superseded.why else ""
            text = f"this run is superseded{why} and is ending"
            raise CommandRefused(Code.SUPERSEDED, text, fix="send the command to the next run")
        if self._end_reported:
            raise CommandRefused(
                Code.ENDING,
                "the plan has just ended",
                fix="start the plan again through its service",
            )
        return decide(self._board, self._id, verb, command, arguments=self._arguments)

    async def _carry_out(self, decision: Decision) -> Outcome:
        apply_plan(self._board, decision)
        self._permit()  # before the orders: steps that a stop resets must not start again
        if decision.arguments is not None:
            self._arguments = dict(decision.arguments)
        expected = self._dispatch(decision.orders, decision.arguments)
        self._dirty = True
        answered = await wait_or_timeout(
            lambda: all(
                self._running.get(phase.index) is not phase or not phase.unacknowledged.get(number)
                for phase, number in expected
            ),
            ORDERS_TIMEOUT,
        )
        if answered:
            return decision.outcome
        return decision.outcome.but(
            result=Result.UNDER_WAY, message=f"{decision.outcome.message} (under way)"
        )

    def _dispatch(
        self, orders: Sequence[Order], arguments: dict[str, str] | None
    ) -> list[tuple[RunningPhase, int]]:
        """Send the orders to running phases, and apply those to others here. Return those sent."""
        by_phase: dict[int, list[Order]] = defaultdict(list)
        for order in orders:
            by_phase[order.phase].append(order)
        if arguments is not None:
            for index, number in enumerate(self._board.numbers):
                if number in self._running:
                    by_phase.setdefault(index, [])
        sent: list[tuple[RunningPhase, int]] = []
        for index, group in by_phase.items():
            if phase := self._running.get(self._board.numbers[index]):
                sent.append((phase, phase.order(group, arguments)))
            else:
                self._apply(group)
        return sent

    def _apply(self, orders: Sequence[Order]) -> None:
        for order in orders:
            apply_order(self._board.phases[order.phase], order, workflow.now())

    def record_problem(self, name: str, text: str, trace: str = "") -> None:
        """Record a message whose handler failed (the guard calls this), or a failure of developers'
        code with its ``trace``, in the command log."""
        self._log.problem(name, text, now=workflow.now(), trace=trace)

    @workflow.signal(dynamic=True, description="Signals with unknown names are kept in the log.")
    def on_unknown_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.record_problem(name, f"unknown signal {name}; {suggestion(name, list(Verb))}")

    # --- queries ---

    @workflow.query(name="status", description="The plan, its phases and steps, as they are now.")
    def status(self) -> PlanView:
        return self._viewer.plan(
            self._board,
            service=self._engine.context.owner if self._engine.context else "",
            arguments=self._arguments,
            started=self._started,
        )

    @workflow.query(name="log", description="The commands: sender, reason and outcome of each.")
    def log(self) -> CommandLog:
        return self._log.log

    @workflow.query(
        name="explain",
        description="Why an element does not proceed. Input {phase, step}, optional.",
    )
    def explain(self, query: ElementQuery = ElementQuery()) -> Explanations:
        phase, step = find_element(self._board.spec.phases, self._id, query.phase, query.step)
        return explain(self._board, phase, step)

    async def _report_end(self) -> None:
        await self._reports.end(superseded=self._is_superseded)
