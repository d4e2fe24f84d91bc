"""The Plan workflow: the face of a tree of phases and steps (DESIGN 4 and 5).

It applies its strategy to its phases, runs each as a child, mirrors their steps, and takes the
commands. Everything that decides is in ``domain``.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.board import PlanBoard
from temporal_plans.domain.commands import (
    Command,
    CommandRefused,
    Decision,
    Order,
    Outcome,
    Verb,
    apply_order,
    apply_plan,
    decide,
    find_element,
    suggest,
)
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.explain import explain
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.selection import StrategyFailed
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import (
    CommandLog,
    CommandMessage,
    ElementQuery,
    Explanations,
    FirstCommand,
    PhaseDelta,
    PhaseInput,
    PhaseResult,
    PlanInput,
    PlanResult,
    PlanView,
)
from temporal_plans.messages.service import LeaseRequest, PlanReport
from temporal_plans.workflows.background import Background
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.handlers import (
    leave_a_command,
    should_continue_as_new,
    tell,
    wait_or_timeout,
)
from temporal_plans.workflows.log import CommandLogger
from temporal_plans.workflows.plan_verbs import PlanVerbs
from temporal_plans.workflows.registry import registry
from temporal_plans.workflows.rolling import Rolling
from temporal_plans.workflows.running_phase import RunningPhase
from temporal_plans.workflows.tracing import span
from temporal_plans.workflows.views import PlanViewer, details

PHASES_AT_ONCE = 16
ANSWER_WITHIN = timedelta(seconds=10)
"""How long an update waits for a phase to carry its order out before it answers 202."""
LONGEST_ID = 900
"""Bytes of a step's workflow id; the server takes 1,000, and a step's own children need some."""
REPORT_PACE = timedelta(milliseconds=300)


@workflow.defn(name="Plan")
class Plan(PlanVerbs):
    """Runs until all phases are complete. Cancelling it cancels what runs."""

    @workflow.init
    def __init__(self, input: PlanInput) -> None:
        self._id = workflow.info().workflow_id
        self._input = input
        self._arguments = dict(input.arguments)
        self._seed = workflow.random().getrandbits(32) if input.seed is None else input.seed
        self._registry = registry()
        self._board = PlanBoard(
            input, input.state, seed=self._seed, strategies=self._registry.all_strategies
        )
        if input.state is None:
            self._board.interrupted = input.interrupted
        self._started = input.started or workflow.now()
        self._log = CommandLogger(input.log)
        self._running: dict[int, RunningPhase] = {}
        self._viewer = PlanViewer(self._id)
        self._rolling = Rolling()
        self._leased = dict(input.leased)
        self._begun = False
        self._dirty = True
        self._reported: Status | None = None
        self._telling = asyncio.Lock()

    @workflow.run
    async def run(self, input: PlanInput) -> PlanResult:
        try:
            self._check_input()
        except ApplicationError:
            await self._report_end()  # else its service would think that it runs
            raise
        with span(f"plan {self._input.name}", id=self._id):
            try:
                await self._until_complete()
            except asyncio.CancelledError:
                for phase in list(self._running.values()):
                    phase.cancel()
                await workflow.wait_condition(lambda: not self._running)
                await self._report_end()
                raise
        workflow.set_current_details(details(self._board))
        return PlanResult(status=self._board.status, view=self.status(), state=self._board.state)

    def _begin_with(self, first: FirstCommand) -> None:
        """A command to the plan as it had ended: no phase runs yet that must hear of it."""
        try:
            decision = decide(self._board, self._id, first.verb, first.command)
        except CommandRefused as refusal:
            outcome = refusal.outcome
        else:
            outcome = decision.outcome
            apply_plan(self._board, decision)
            self._apply(decision.orders)
            if decision.arguments is not None:
                self._arguments = dict(decision.arguments)
        self._log.command(first.verb, first.command, outcome, via="start", now=workflow.now())

    async def _until_complete(self) -> None:
        """Run, and begin new runs of the workflow, until nobody has anything more to do."""
        for first in self._input.first:
            self._begin_with(first)
        while True:
            reporter = Background(self._report)
            try:
                await self._run()
            finally:
                reporter.over = True
            await reporter.stop()
            if self._board.complete:
                await self._report_end()
            await workflow.wait_condition(workflow.all_handlers_finished)
            if self._board.complete:  # nobody restarted anything in the last moment
                return
            if not self._running and self._rolling.under_way:
                workflow.continue_as_new(self._carried())
            self._reported, self._dirty = None, True

    async def _run(self) -> None:
        """Until all is complete, or a new run is to begin and no phase runs."""
        while True:
            self._dirty = False
            self._advance()
            self._begun = True
            if not self._running and (self._board.complete or self._rolling.under_way):
                return
            patience = self._rolling.patience(workflow.now())
            if patience is None:
                await workflow.wait_condition(lambda: self._dirty)
            else:
                await wait_or_timeout(lambda: self._dirty, patience)

    def _check_input(self) -> None:
        """Fails at once, with every reason, a plan that can't run.

        Names of the developer's own are asked for when the plan begins and never again: a worker
        that knows others would otherwise, replaying, fail a plan that runs.
        """
        begins = self._input.state is None and not workflow.unsafe.is_replaying()
        strategies = self._registry.strategy_names if begins else None
        kinds = frozenset(self._registry.kinds) if begins else None
        faults = list(problems(self._input, strategies, kinds))
        if not self._board.interrupted and self._input.state is None:
            arguments, more = check_arguments(self._input.parameters, self._input.arguments)
            faults += more
            self._arguments = dict(arguments)
        longest = max(
            (f"{self._id}/{p.name}/{s.name}" for p in self._input.phases for s in p.steps),
            key=lambda path: len(path.encode()),
            default="",
        )
        if len(longest.encode()) > LONGEST_ID:
            told = f"its steps would have ids of more than {LONGEST_ID} bytes; use shorter names"
            faults.append(Problem(path="name", message=told, value=self._id))
        if faults:
            raise ApplicationError(
                "this plan can't run:\n" + "\n".join(str(fault) for fault in faults),
                type="InvalidPlan",
                non_retryable=True,
            )

    def _carried(self) -> PlanInput:
        return self._input.but(
            state=self._board.state,
            arguments=self._arguments,
            log=self._log.log,
            seed=self._seed,
            started=self._started,
            leased=self._leased,
            first=(),
        )

    # --- which phases may be worked on ---

    def _advance(self) -> None:
        """Start what the strategy picks, hold what it no longer picks."""
        if should_continue_as_new(self._input.history_limit):
            self._rolling.begin(workflow.now())
        try:
            self._follow_strategy()
        except StrategyFailed as failure:
            self._hold(failure)

    def _hold(self, failure: StrategyFailed) -> None:
        """The developer's strategy failed: interrupt the plan until somebody continues it.

        It continues as new, so that no replay with the mended strategy comes past the failure.
        """
        self.record_problem("strategy", str(failure))
        self._board.interrupted = True
        self._rolling.begin(workflow.now())
        self._permit()

    def _follow_strategy(self) -> None:
        self._permit()
        if self._may_start():
            free = [i for i in self._board.candidates() if i not in self._running]
            for index in free[: max(PHASES_AT_ONCE - len(self._running), 0)]:
                self._start(index)

    def _permit(self) -> None:
        """Tell running phases whether they may begin new work."""
        if not self._running:
            return
        permitted, leave = self._board.permitted(), not self._may_start()
        for index, phase in self._running.items():
            phase.permit(index in permitted, leave=leave)

    def _may_start(self) -> bool:
        """While it would continue as new it begins nothing, unless a long phase holds it up."""
        return self._rolling.may_start(
            workflow.now(), self._running, workflow.info().get_current_history_length()
        )

    def _start(self, index: int) -> None:
        phase = self._board.phases[index]
        input = PhaseInput(
            index=index,
            spec=phase.spec,
            state=phase.state,
            inline=self._input.steps == "inline",
            arguments=self._arguments,
            backoff=self._input.backoff,
            context=self._input.context,
            seed=self._seed,
            leased=self._leased.pop(index, ()),
            history_limit=self._input.history_limit,
        )
        self._running[index] = RunningPhase(input, f"{self._id}/{phase.spec.name}", self._ended)

    def _ended(
        self, phase: RunningPhase, result: PhaseResult | None, error: Exception | None
    ) -> None:
        """A phase is over: what it leaves behind is the truth, and unheard orders apply to that."""
        leave_a_command()
        del self._running[phase.index]
        board = self._board.phases[phase.index]
        if result is not None:
            self._board.take(phase.index, result.state)
            phase.heard(result.order)
            if result.leased:
                self._leased[phase.index] = result.leased
        elif error is not None:
            board.fail(f"its workflow ended: {failure_text(error)}")
            self._give_back_leases(board.spec.name)
        for orders in phase.unheard.values():
            self._apply(orders)
        phase.unheard = {}
        self._dirty = True

    def _give_back_leases(self, phase: str) -> None:
        """A phase that was terminated could not."""
        if self._input.context is not None:
            request = LeaseRequest(phase=f"{self._id}/{phase}", ended=True)
            self._returning = asyncio.create_task(
                tell(self._input.context.workflow_id, "leases", request)
            )

    @workflow.signal(name="phase_changed", description="From a phase: which of its steps changed.")
    def on_phase_changed(self, delta: PhaseDelta) -> None:
        phase = self._running.get(delta.phase)
        if phase is None:
            return
        board = self._board.phases[delta.phase]
        board.set_interrupted(delta.interrupted)
        board.set_gate(delta.gate)
        for index, state in delta.steps.items():
            board.set(index, state)
        phase.heard(delta.order)
        self._dirty = True

    # --- commands ---

    def check(self, verb: Verb, command: Command) -> None:
        """The validator of the updates: refuses what can't be, naming what can."""
        try:
            decide(self._board, self._id, verb, command)
        except CommandRefused as refusal:
            raise ApplicationError(str(refusal), type="CommandRefused") from None

    async def command(self, verb: Verb, command: Command, via: str) -> Outcome:
        if isinstance(command, CommandMessage) and command.malformed:
            self.record_problem(verb, command.malformed)
            return Outcome(code=400, message=command.malformed, changed=False)
        # An update may come in one activation with the start, and on replay in the one after it:
        # let the start be first in both.
        await workflow.wait_condition(lambda: self._begun)
        try:
            decision = decide(self._board, self._id, verb, command)
        except CommandRefused as refusal:
            outcome = refusal.outcome
        else:
            outcome = await self._carry_out(decision)
        self._log.command(verb, command, outcome, via=via, now=workflow.now())
        return outcome

    async def _carry_out(self, decision: Decision) -> Outcome:
        apply_plan(self._board, decision)
        self._permit()  # before the orders: what a stop resets must not begin again
        if decision.arguments is not None:
            self._arguments = dict(decision.arguments)
        expected = self._give(decision.orders, decision.arguments)
        self._dirty = True
        answered = await wait_or_timeout(
            lambda: all(
                self._running.get(phase.index) is not phase or not phase.unheard.get(number)
                for phase, number in expected
            ),
            ANSWER_WITHIN,
        )
        if answered:
            return decision.outcome
        return decision.outcome.but(code=202, message=f"{decision.outcome.message} (under way)")

    def _give(
        self, orders: Sequence[Order], arguments: dict[str, str] | None
    ) -> list[tuple[RunningPhase, int]]:
        """Orders to running phases are handed on; others are carried out here."""
        by_phase: dict[int, list[Order]] = defaultdict(list)
        for order in orders:
            by_phase[order.phase].append(order)
        if arguments is not None:
            for index in self._running:
                by_phase.setdefault(index, [])
        given: list[tuple[RunningPhase, int]] = []
        for index, group in by_phase.items():
            if phase := self._running.get(index):
                given.append((phase, phase.order(group, arguments)))
            else:
                self._apply(group)
        return given

    def _apply(self, orders: Sequence[Order]) -> None:
        for order in orders:
            apply_order(self._board.phases[order.phase], order, workflow.now())

    def record_problem(self, name: str, text: str) -> None:
        """Keep a message that was not understood in the log (the guard calls this)."""
        self._log.problem(name, text, now=workflow.now())

    @workflow.signal(dynamic=True, description="Signals with unknown names are kept in the log.")
    def on_unknown_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.record_problem(name, f"there is no signal {name}{suggest(name, list(Verb))}")

    # --- what is read ---

    @workflow.query(name="status", description="The whole tree as it is now.")
    def status(self) -> PlanView:
        return self._viewer.plan(
            self._board,
            service=self._input.context.service if self._input.context else "",
            arguments=self._arguments,
            started=self._started,
        )

    @workflow.query(name="log", description="The commands given, by whom, why, and their outcome.")
    def log(self) -> CommandLog:
        return self._log.log

    @workflow.query(
        name="explain", description="Why an element is not moving. Input {phase, step}, optional."
    )
    def explain(self, query: ElementQuery = ElementQuery()) -> Explanations:
        phase, step = find_element(self._board, self._id, query.phase, query.step)
        return explain(self._board, phase, step)

    # --- what the service hears ---

    async def _report(self, task: Background) -> None:
        """The plan's status to its service when it changes, and the details for Temporal's UI.

        Not that it is complete: that is its end, after which nothing may call it open."""
        while True:
            await workflow.wait_condition(
                lambda: (
                    task.over
                    or (self._reported is not self._board.status and not self._board.complete)
                )
            )
            if task.over:
                return
            self._reported = self._board.status
            workflow.set_current_details(details(self._board))
            if self._input.context is None:
                continue
            await self._tell_service(open=True)
            await wait_or_timeout(lambda: task.over, REPORT_PACE)

    async def _report_end(self) -> None:
        if self._input.context is not None:
            await self._tell_service(open=False)

    async def _tell_service(self, *, open: bool) -> None:
        context = self._input.context
        assert context is not None
        async with self._telling:  # signals in flight at the same time may change places
            report = PlanReport(
                plan=self._input.name, workflow_id=self._id, status=self._board.status, open=open
            )
            await tell(context.workflow_id, "plan_changed", report)
