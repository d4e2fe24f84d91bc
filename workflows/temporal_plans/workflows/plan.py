"""The Plan workflow: the face of a tree of phases and steps (DESIGN 4 and 5).

It applies its strategy to its phases, runs each as a child, mirrors their steps, and takes the
commands. Everything that decides is in ``domain``.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
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
from temporal_plans.domain.explain import explain
from temporal_plans.domain.selection import StrategyFailed
from temporal_plans.messages.plan import (
    PLAN_ENDING,
    CommandLog,
    CommandMessage,
    ElementQuery,
    Explanations,
    FirstCommand,
    PhaseDelta,
    PhaseInput,
    PhaseResult,
    PlanFaults,
    PlanInput,
    PlanResult,
    PlanRevision,
    PlanView,
    ServiceContext,
    Supersede,
)
from temporal_plans.messages.service import LeaseRequest
from temporal_plans.workflows.background import Background
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.handlers import (
    leave_a_command,
    should_continue_as_new,
    tell,
    wait_or_timeout,
)
from temporal_plans.workflows.log import CommandLogger
from temporal_plans.workflows.plan_input import arguments_of, faults_of
from temporal_plans.workflows.plan_reports import PlanReports
from temporal_plans.workflows.plan_verbs import PlanVerbs
from temporal_plans.workflows.registry import registry
from temporal_plans.workflows.revisions import Revisions
from temporal_plans.workflows.rolling import Rolling
from temporal_plans.workflows.running_phase import RunningPhase
from temporal_plans.workflows.tokens import new_token
from temporal_plans.workflows.tracing import span
from temporal_plans.workflows.views import PlanViewer, details

PHASES_AT_ONCE = 16
ANSWER_WITHIN = timedelta(seconds=10)
"""How long an update waits for a phase to carry its order out before it answers 202."""
SHORTEST_WAIT = timedelta(milliseconds=1)


class _Ending(CommandRefused):
    """The plan has nothing left to do but to end; its next run takes the command."""


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
            input,
            input.state,
            seed=self._seed,
            strategies=self._registry.all_strategies,
            faults=input.errors,
            standing=input.standing,
        )
        if input.state is None:
            self._board.interrupted = input.interrupted
        self._started = input.started or workflow.now()
        self._log = CommandLogger(input.log)
        self._running: dict[int, RunningPhase] = {}
        self._viewer = PlanViewer(self._id)
        self._rolling = Rolling()
        self._superseded: Supersede | None = None
        self._revisions = Revisions(
            self._board, input.revision, lambda phase: faults_of(phase, self._id)
        )
        self._reports = PlanReports(self._board, self._revisions, input.context)
        self._leased = dict(input.leased)
        self._returning: set[str] = set()
        self._begun = self._told = False
        self._dirty = True

    @workflow.run
    async def run(self, input: PlanInput) -> PlanResult:
        try:
            given = arguments_of(
                self._input, self._id, self._registry, interrupted=self._board.interrupted
            )
        except ApplicationError:
            await self._report_end()  # else its service would think that it runs
            raise
        self._arguments = self._arguments if given is None else given
        with span(f"plan {self._input.name}", id=self._id):
            try:
                await self._until_over()
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

    async def _until_over(self) -> None:
        """Run, and begin new runs of the workflow, until nobody has anything more to do."""
        for first in self._input.first:
            self._begin_with(first)
        while True:
            reporter = Background(self._reports.run)
            try:
                await self._run()
            finally:
                reporter.over = True
            await reporter.stop()
            told = self._over
            if told:
                self._told = self._input.context is not None
                await self._report_end()
            await workflow.wait_condition(
                lambda: workflow.all_handlers_finished() and not self._returning
            )
            if told and self._over:  # nobody restarted anything in the last moment
                return
            if not self._over and not self._running and self._rolling.under_way:
                workflow.continue_as_new(self._carried())
            self._dirty = True
            self._reports.begin_anew()

    async def _run(self) -> None:
        """Until it is over, or a new run is to begin and no phase runs."""
        while True:
            self._dirty = False
            self._advance()
            self._begun = True
            if not self._running and (self._over or self._rolling.under_way):
                return
            if not await wait_or_timeout(lambda: self._dirty, self._patience()):
                leave_a_command()

    @property
    def _over(self) -> bool:
        """Whether the plan has come to its end. A standing one has none of its own."""
        return self._is_superseded or (self._board.complete and not self._input.standing)

    @property
    def _is_superseded(self) -> bool:
        """What is complete is complete, whoever was to take its place."""
        complete = self._board.complete and not self._input.standing
        return self._superseded is not None and not complete

    def _patience(self) -> timedelta | None:
        """How long until there is something to do without anything happening."""
        now = workflow.now()
        waits = [self._rolling.patience(now), *(p.patience(now) for p in self._running.values())]
        if self._input.standing:
            waits.append(self._revisions.until_old(self._running, now))
        known = [wait for wait in waits if wait is not None]
        return max(min(known), SHORTEST_WAIT) if known else None

    def _carried(self) -> PlanInput:
        """The next run's input, with the phases that there are now, numbered anew."""
        numbers = self._board.numbers
        return self._input.but(
            phases=self._board.spec.phases,
            state=self._board.state,
            arguments=self._arguments,
            log=self._log.log,
            seed=self._seed,
            started=self._started,
            leased={i: self._leased[n] for i, n in enumerate(numbers) if n in self._leased},
            first=(),
            errors=self._board.faults,
            revision=self._revisions.number,
        )

    # --- which phases may be worked on ---

    def _advance(self) -> None:
        """Start what the strategy picks, hold what it no longer picks."""
        now = workflow.now()
        if should_continue_as_new(self._input.history_limit):
            self._rolling.begin(now)
        for phase in list(self._running.values()):
            if (left := phase.patience(now)) is not None and left <= timedelta(0):
                phase.cancel()
        if self._input.standing and self._revisions.forget_old(self._running, now):
            leave_a_command()
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
        if not self._may_start():
            return
        candidates = self._board.candidates()
        free = [*self._to_follow(candidates), *filter(self._may_be_started, candidates)]
        for index in free[: max(PHASES_AT_ONCE - len(self._running), 0)]:
            self._start(index, permitted=index in candidates)

    def _to_follow(self, candidates: Collection[int]) -> list[int]:
        """Phases with tasks that were launched by an earlier run: somebody must follow them,
        whatever the strategy lets begin now."""
        return [
            index
            for index, phase in enumerate(self._board.phases)
            if index not in candidates and phase.launched() and self._may_be_started(index)
        ]

    def _may_be_started(self, index: int) -> bool:
        name = self._board.phases[index].spec.name
        return self._board.numbers[index] not in self._running and name not in self._returning

    def _permit(self) -> None:
        """Tell running phases whether they may begin new work."""
        if not self._running:
            return
        permitted, leave = self._board.permitted(), not self._may_start()
        for index, number in enumerate(self._board.numbers):
            if phase := self._running.get(number):
                phase.permit(index in permitted, leave=leave)

    def _may_start(self) -> bool:
        """While it would continue as new it begins nothing, unless a long phase holds it up."""
        return self._superseded is None and self._rolling.may_start(
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
            permitted=permitted,
            arguments=self._arguments,
            backoff=self._input.backoff,
            context=self._input.context,
            seed=self._seed,
            leased=self._leased.pop(number, ()),
            history_limit=self._input.history_limit,
        )
        self._running[number] = RunningPhase(input, f"{self._id}/{phase.spec.name}", self._ended)

    def _ended(
        self, phase: RunningPhase, result: PhaseResult | None, error: Exception | None
    ) -> None:
        """A phase is over: what it leaves behind is the truth, and unheard orders apply to that;
        unless another takes its place."""
        leave_a_command()
        del self._running[phase.index]
        self._dirty = True
        if self._revisions.ended(phase.name):
            if error is not None or (result is not None and result.leased):
                self._give_back_leases(phase.name)
            return
        if result is not None:
            self._board.take(self._board.numbers.index(phase.index), result.state)
            phase.heard(result.order)
            if result.leased:
                self._leased[phase.index] = result.leased
        elif error is not None:
            self._board.of_number(phase.index).fail(f"its workflow ended: {failure_text(error)}")
            self._give_back_leases(phase.name)
        for orders in phase.unheard.values():
            for order in orders:
                apply_order(self._board.of_number(phase.index), order, workflow.now())
        phase.unheard = {}

    def _give_back_leases(self, phase: str) -> None:
        """A phase that was terminated could not, and one that was left did not. It is not started
        again before its service has heard of it, which would else take back what it was just
        given."""
        if self._input.context is not None and phase not in self._returning:
            self._returning.add(phase)
            asyncio.create_task(self._given_back(phase, self._input.context))  # noqa: RUF006

    async def _given_back(self, phase: str, context: ServiceContext) -> None:
        request = LeaseRequest(phase=f"{self._id}/{phase}", ended=True)
        await tell(context.workflow_id, "leases", request)
        self._returning.discard(phase)
        self._dirty = True

    @workflow.signal(name="phase_changed", description="From a phase: which of its steps changed.")
    def on_phase_changed(self, delta: PhaseDelta) -> None:
        phase = self._running.get(delta.phase)
        if phase is None or not phase.says(delta):
            return
        board = self._board.of_number(delta.phase)
        board.set_interrupted(delta.interrupted)
        board.set_gate(delta.gate)
        for index, state in delta.steps.items():
            board.set(index, state)
        phase.heard(delta.order)
        self._dirty = True

    # --- what its service tells it ---

    @workflow.signal(name="supersede", description="From its service: another takes its place.")
    def on_supersede(self, message: Supersede) -> None:
        """It begins nothing more and leaves its steps where they are. Its assets are given back
        with its last word, so that whoever comes next is not outrun by others."""
        if self._superseded is None:
            self._superseded, self._dirty = message, True
            for phase in self._running.values():
                phase.let_go(workflow.now(), gives_back=False)

    @workflow.signal(name="revise", description="From its service: phases to put and to drop.")
    def on_revise(self, revision: PlanRevision) -> None:
        if not self._input.standing:
            self.record_problem("revise", "only a standing plan is given phases")
            return
        before = {
            n: p.spec.name for n, p in zip(self._board.numbers, self._board.phases, strict=True)
        }
        self._revisions.take(revision, self._running, workflow.now())
        for number in sorted(self._leased.keys() - set(self._board.numbers)):
            del self._leased[number]
            self._give_back_leases(before[number])
        self._dirty = True

    @workflow.signal(name="faults", description="From its service: errors of a configuration.")
    def on_faults(self, message: PlanFaults) -> None:
        if self._told:
            return  # too late: its service has heard that it is over
        self._board.faults, self._dirty = message.errors, True

    # --- commands ---

    def check(self, verb: Verb, command: Command) -> None:
        """The validator of the updates: refuses what can't be, naming what can."""
        try:
            self._decide(verb, command)
        except CommandRefused as refusal:
            kind = PLAN_ENDING if isinstance(refusal, _Ending) else "CommandRefused"
            raise ApplicationError(str(refusal), type=kind) from None

    async def command(self, verb: Verb, command: Command, via: str) -> Outcome:
        if isinstance(command, CommandMessage) and command.malformed:
            self.record_problem(verb, command.malformed)
            return Outcome(code=400, message=command.malformed, changed=False)
        # An update may come in one activation with the start, and on replay in the one after it:
        # let the start be first in both.
        await workflow.wait_condition(lambda: self._begun)
        try:
            decision = self._decide(verb, command)
        except CommandRefused as refusal:
            outcome = refusal.outcome
        else:
            outcome = await self._carry_out(decision)
        self._log.command(verb, command, outcome, via=via, now=workflow.now())
        return outcome

    def _decide(self, verb: Verb, command: Command) -> Decision:
        """What a command does. Raises CommandRefused."""
        if self._superseded is not None:
            why = f" ({self._superseded.why})" if self._superseded.why else ""
            text = f"another run takes the place of this one{why}; it is ending, so ask the next"
            raise CommandRefused(409, text)
        if self._told:
            raise _Ending(409, "the plan has just ended; have its service start it again")
        return decide(self._board, self._id, verb, command, arguments=self._arguments)

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
            for index, number in enumerate(self._board.numbers):
                if number in self._running:
                    by_phase.setdefault(index, [])
        given: list[tuple[RunningPhase, int]] = []
        for index, group in by_phase.items():
            if phase := self._running.get(self._board.numbers[index]):
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
        phase, step = find_element(self._board.spec.phases, self._id, query.phase, query.step)
        return explain(self._board, phase, step)

    async def _report_end(self) -> None:
        await self._reports.end(superseded=self._is_superseded)
