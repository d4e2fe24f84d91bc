"""The Environment workflow: settings, entities, suppressions and plans of a place.

It alone issues plans there. The main loop decides whenever something has changed, and at the time
that the last decision named; nothing is polled but whether plans still run.
"""

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.standing import Pass, passed
from temporal_plans.messages.fleets import (
    Announcement,
    DecideEnvironment,
    DeclaredEnvironment,
    EnvironmentInput,
    EnvironmentState,
    EnvironmentStatus,
    FetchCatalogue,
    KnownProduct,
    ReadEnvironment,
    StopFollowing,
)
from temporal_plans.messages.plans import PlanReport
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import ask, start
from temporal_plans.workflows.fleets.environment_queries import EnvironmentQueries
from temporal_plans.workflows.fleets.environment_verbs import EnvironmentVerbs
from temporal_plans.workflows.fleets.issues import Issues
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.plans.log import CommandLogger

FIRST_APPLY_TIMEOUT = timedelta(seconds=10)
"""How long an environment waits for its first document: a refused one leaves nothing behind."""

LONGEST_TIMER = timedelta(days=30)

WINDOWS_MARGIN = timedelta(days=30)
"""Windows are computed again when they are known for less than this."""


@workflow.defn(name="Environment")
class EnvironmentWorkflow(EnvironmentVerbs, EnvironmentQueries):
    """The entity ``environment/<name>``. Ends when it is deleted."""

    kind = "environment"

    @workflow.init
    def __init__(self, input: EnvironmentInput) -> None:
        self.input = input
        self.declared = input.state is not None
        self.state = input.state or EnvironmentState.of(input.name)
        self.log = CommandLogger(self.state.log)
        self.alarm = Alarm(self.changed)
        self.issues = Issues(self)
        self.undecided = ""
        self._decided: EnvironmentState | None = None
        self._fetching: set[str] = set()
        self._reading_windows = self._leaving = False

    @workflow.run
    async def run(self, input: EnvironmentInput) -> EnvironmentStatus:
        require_plugin()
        if not self.declared:
            await wait_or_timeout(lambda: self.declared, FIRST_APPLY_TIMEOUT)
            await workflow.wait_condition(workflow.all_handlers_finished)
        if not self.declared:
            text = f"environment {input.name} was never applied"
            raise ApplicationError(text, type="NotApplied", non_retryable=True)
        while not self.over:
            self._changed = False
            await self._advance()
            if self.may_continue_as_new(input.history_limit):
                workflow.continue_as_new(self._next_input())
            await workflow.wait_condition(
                lambda: self._changed or self.over or self.may_continue_as_new(input.history_limit)
            )
        await self._leave(self.state.following)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    def _next_input(self) -> EnvironmentInput:
        return self.input.but(state=self.state.but(log=self.log.log))

    async def _advance(self) -> None:
        self._fetch_catalogues()
        self._refresh_windows(workflow.now())
        unused = set(self.state.following) - book.products_of(self.state)
        if unused and not self._leaving:
            self._leaving = True
            start(self._leave(tuple(sorted(unused))))
        await self._decide()
        again = self.issues.advance(workflow.now())
        for when in (again, self.state.next_wakeup):
            if when is not None:
                self.alarm.at(min(when, workflow.now() + LONGEST_TIMER))

    # --- what decisions need ---

    @workflow.signal(name="announced", description="From a product: it has a new revision.")
    def on_announced(self, message: Announcement) -> None:
        if message.malformed:
            self.record_problem("announced", message.malformed)
            return
        self.state = book.announced(
            self.state, message.product, message.revision, deleted=message.deleted
        )
        self.changed()

    def _fetch_catalogues(self) -> None:
        """Fetch what products have announced, and the catalogues whose windows run out."""
        limit = workflow.now() + WINDOWS_MARGIN
        old = {
            name
            for name, one in self.state.products.items()
            if one.until is not None and one.until < limit
        }
        for name in sorted({*self.state.stale, *old} - self._fetching):
            self._fetching.add(name)
            start(self._fetch(name))

    async def _fetch(self, name: str) -> None:
        request = FetchCatalogue(
            product=name,
            environment=self.input.name,
            now=workflow.now(),
            follow=name not in self.state.following,
        )
        try:
            known = await ask("fetch_catalogue", request, KnownProduct, summary=name)
            self.state = book.with_product(self.state, name, known)
        finally:
            self._fetching.discard(name)
            self.changed()

    def _refresh_windows(self, now: datetime) -> None:
        until = self.state.until
        if until is None or until > now + WINDOWS_MARGIN or self._reading_windows:
            return
        self._reading_windows = True
        start(self._read_windows(now))

    async def _read_windows(self, now: datetime) -> None:
        declaration = self.state.declaration
        try:
            request = ReadEnvironment(declaration=declaration, now=now)
            declared = await ask("read_environment", request, DeclaredEnvironment)
            if self.state.declaration is declaration:
                self.state = book.applied(self.state, declaration, declared)
        finally:
            self._reading_windows = False
            self.changed()

    async def _leave(self, products: tuple[str, ...]) -> None:
        """Hear no more of products of which there are no entities any more."""
        if products:
            request = StopFollowing(products=products, environment=self.input.name)
            await ask("stop_following", request, type(None))
        left = tuple(one for one in self.state.following if one not in products)
        used = book.products_of(self.state) & set(products)  # named again meanwhile
        stale = {**dict.fromkeys(sorted(used), 0), **self.state.stale}
        self.state = self.state.but(following=left, stale=stale)
        self._leaving = False
        self.changed()

    # --- decisions ---

    async def _decide(self) -> None:
        """Decide, unless nothing has changed since and no answer changes by itself before later.

        Until the catalogues of all its products are known, and as new as they are announced,
        nothing is decided: a dependent whose releases are unknown could not object, and a release
        that was recalled would be chosen.
        """
        now = workflow.now()
        wakeup = self.state.next_wakeup
        if self.state is self._decided and (wakeup is None or now < wakeup or self.undecided):
            return
        if self.state.stale or book.products_of(self.state) - self.state.products.keys():
            return
        before = self.state
        try:
            done = await self._pass(now)
        except Exception as error:  # a retry of the workflow task would fail as well
            self.undecided = f"{type(error).__name__}: {error}"[:500]
            self.record_problem("decide", self.undecided)
            self._decided = self.state
            return
        self.undecided = ""
        if self.state is not before:  # something happened meanwhile: its answer may be another
            self.changed()
            return
        self.state = self._decided = book.decided(self.state, done)

    async def _pass(self, now: datetime) -> Pass:
        snapshot = book.snapshot_of(self.state)
        if len(snapshot.environment.entities) <= self.input.workflow_limit:
            return passed(snapshot, decide(snapshot, now), self.state.standings)
        request = DecideEnvironment(
            environment=snapshot.environment,
            products=snapshot.products,
            standings=self.state.standings,
            now=now,
        )
        return await ask("decide_environment", request, Pass)

    # --- plans ---

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        self.issues.reported(report)
