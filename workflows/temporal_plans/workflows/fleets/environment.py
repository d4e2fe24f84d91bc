"""The Environment workflow: settings, entities, suppressions and plans of a place.

It alone issues plans there. The main loop decides whenever something has changed, and at the time
that the last decision named; nothing is polled but whether plans still run.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.fleets.answers import Answers
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.standing import Pass, passed
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.fleets.catalogues import (
    Announcement,
    FetchCatalogue,
    KnownProduct,
    StopFollowing,
)
from temporal_plans.messages.fleets.declarations import DeclaredEnvironment, ReadEnvironment
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.environments import (
    DecideEnvironment,
    EnvironmentInput,
    EnvironmentState,
)
from temporal_plans.messages.plans import PlanReport
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import ask, start
from temporal_plans.workflows.fleets.canary_reports import CanaryReporting, with_tested
from temporal_plans.workflows.fleets.environment_queries import EnvironmentQueries
from temporal_plans.workflows.fleets.environment_spoke import EnvironmentSpoke, SpokeSide
from temporal_plans.workflows.fleets.environment_verbs import EnvironmentVerbs
from temporal_plans.workflows.fleets.issues import Issues
from temporal_plans.workflows.fleets.room import Room
from temporal_plans.workflows.fleets.turns import Turns
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.plans.log import CommandLogger

FIRST_APPLY_TIMEOUT = timedelta(seconds=10)
"""How long an environment waits for its first document: a refused one leaves nothing behind."""

LONGEST_TIMER = timedelta(days=30)

WINDOWS_MARGIN = timedelta(days=30)
"""Windows are computed again when they are known for less than this."""


REPLAYED_WORK = 400_000
"""Events times entities of one run: their replay takes less than a second."""


FETCH_EVENTS = 10
"""Events of a catalogue that is fetched, or less."""


class _Decided(NamedTuple):
    """``complete``: nothing has happened meanwhile that has to be decided, too."""

    answer: Pass
    complete: bool = True


@workflow.defn(name="Environment")
class EnvironmentWorkflow(EnvironmentVerbs, EnvironmentSpoke, EnvironmentQueries):
    """The entity ``environment/<name>``. Ends when it is deleted."""

    kind = "environment"
    until_gone = frozenset({"register_spoke", "spoke_report"})
    grows = frozenset({"apply", "override", "report", "suppress"})

    @workflow.init
    def __init__(self, input: EnvironmentInput) -> None:
        self.input = input
        self.declared = input.state is not None
        carried = input.state
        self.state = book.with_configs(carried) if carried else EnvironmentState.of(input.name)
        self.log = CommandLogger(self.state.log)
        self.turns = Turns()
        self.room = Room(self._next_input)
        self.alarm = Alarm(self.changed)
        self.issues = Issues(self)
        self.spoke_side = SpokeSide(self)
        self.canaries = CanaryReporting(self)
        self.undecided = ""
        self._decided: EnvironmentState | None = None
        self._answers: Answers | None = None
        self._issued = False
        """Whether the last decision issued plans: their neighbours are then decided again."""
        self._fetching: dict[str, FetchCatalogue] = {}
        self._meanwhile: dict[str, int] = {}
        """The newest revision that each product has announced while its catalogue was fetched."""
        self._reading_windows = self._leaving = False
        self._known_answers()

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
            if self.may_continue_as_new(self._history_limit):
                self.room.continue_as_new()
            await workflow.wait_condition(
                lambda: self._changed or self.over or self.may_continue_as_new(self._history_limit)
            )
        await self._leave(self.state.following)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    def _next_input(self) -> EnvironmentInput:
        known = self._decided is self.state and not self._issued
        answers = self._answers if known else None
        again = dict(answers.again) if answers is not None else None
        state = self.state.but(log=self.log.log, again=again)
        if not book.fits(state):
            state = state.without_catalogues()
        return self.input.but(state=book.with_configs_once(state))

    @property
    def _history_limit(self) -> int:
        """After how many events it continues as new: work on many entities takes longer, and a
        replay repeats it."""
        count = len(self.state.environment.entities)
        limit = max(min(self.input.history_limit, REPLAYED_WORK // max(count, 1)), 50)
        if book.fits(self.state):
            return limit
        return limit + FETCH_EVENTS * len(self.state.products)  # the next run fetches them again

    def _known_answers(self) -> None:
        """Go on from the answers of the last run, if nothing had changed since."""
        if self.state.again is None:
            return
        self._answers = Answers(book.snapshot_of(self.state))
        self._answers.take(self.state.again)
        self._decided = self.state

    async def _advance(self) -> None:
        self._fetch_catalogues()
        self._refresh_windows(workflow.now())
        unused = set(self.state.following) - book.products_of(self.state)
        if unused and not self._leaving:
            self._leaving = True
            start(self._leave(tuple(sorted(unused))))
        await self._decide()
        now = workflow.now()
        again = self.issues.advance(now)
        orders = self.spoke_side.advance(now)
        self.canaries.advance(now)
        expiry = self.expire_requests(now)
        wakeup = self.state.next_wakeup
        if wakeup is not None and wakeup <= now:
            wakeup = None  # no decision is possible before something is known, which wakes, too
        for when in (again, orders, wakeup, expiry):
            if when is not None:
                self.alarm.at(min(when, workflow.now() + LONGEST_TIMER))

    # --- what decisions need ---

    @workflow.signal(name="announced", description="From a product: it has a new revision.")
    def on_announced(self, message: Announcement) -> None:
        if message.malformed:
            self.record_problem("announced", message.malformed)
            return
        if message.life:
            self.state = book.begun_again(self.state, message.product, message.life)
        else:
            self.state = book.announced(
                self.state, message.product, message.revision, deleted=message.deleted
            )
            if message.product in self._fetching:
                earlier = self._meanwhile.get(message.product, 0)
                self._meanwhile[message.product] = max(message.revision, earlier)
        if message.deleted:  # what is being fetched is of the former product
            self._fetching.pop(message.product, None)
        self.changed()

    def _fetch_catalogues(self) -> None:
        """Fetch what products have announced, and the catalogues whose windows run out."""
        limit = workflow.now() + WINDOWS_MARGIN
        old = {
            name
            for name, one in self.state.products.items()
            if one.until is not None and one.until < limit
        }
        for name in sorted({*self.state.stale, *old} - self._fetching.keys()):
            request = FetchCatalogue(
                product=name,
                environment=self.input.name,
                now=workflow.now(),
                follow=name not in self.state.following,
            )
            self._fetching[name] = request
            self._meanwhile.pop(name, None)
            start(self._fetch(name, request, self.state.stale.get(name, 0)))

    async def _fetch(self, name: str, request: FetchCatalogue, announced: int) -> None:
        try:
            known = await ask("fetch_catalogue", request, KnownProduct, summary=name)
            if self._fetching.get(name) is not request:
                return
            if (
                not request.follow
                and book.is_another(self.state, name, known, announced)
                and workflow.patched("a product that began again")
            ):
                self.state = book.to_follow(self.state, name)
                return
            asked = self._answered(name, announced, known)
            self.state = book.with_product(self.state, name, known, asked)
            self._hear_meanwhile(name, known, asked)
            if name in self.state.products:
                self.state = with_tested(self.state, name, known, workflow.now())
        except Exception as error:
            await self.failed(f"fetch {name}", error)
        finally:
            if self._fetching.get(name) is request:
                del self._fetching[name]
            self.changed()

    def _answered(self, name: str, announced: int, known: KnownProduct) -> int:
        """Return up to which announced revision a catalogue is the newest one. A product that was
        asked after an announcement answers it: what it does not have was announced by another
        sender, or before it was restored."""
        if announced <= known.revision or not workflow.patched("announced by others"):
            return 0
        text = f"revision {announced} of {name} was announced, and it has {known.revision}"
        self.record_problem("announced", shortened(text, 500))
        return announced

    def _hear_meanwhile(self, name: str, known: KnownProduct, asked: int) -> None:
        """Take an announcement for new that came while a catalogue was fetched, and is of a lower
        revision than others had announced."""
        number = self._meanwhile.get(name, 0)
        if known.revision < number <= asked and workflow.patched("announced meanwhile"):
            self.state = book.announced(self.state, name, number, deleted=False)

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
        except Exception as error:
            await self.failed("read_environment", error)
        finally:
            self._reading_windows = False
            self.changed()

    async def _leave(self, products: tuple[str, ...]) -> None:
        """Hear no more of products of which there are no entities any more."""
        if products:
            request = StopFollowing(products=products, environment=self.input.name)
            await ask("stop_following", request, type(None))
        for name in sorted(set(products) - book.products_of(self.state)):
            self.state = with_tested(self.state, name, None, workflow.now())
        left = tuple(one for one in self.state.following if one not in products)
        used = book.products_of(self.state) & set(products)  # named again meanwhile
        stale = {**dict.fromkeys(sorted(used), 0), **self.state.stale}
        self.state = self.state.but(following=left, stale=stale)
        self._leaving = False
        self.changed()

    # --- decisions ---

    async def _decide(self) -> None:
        """Decide, unless nothing has changed since and no answer changes by itself before later.

        Until the catalogues of all its products are known, nothing is decided.
        """
        now = workflow.now()
        wakeup = self.state.next_wakeup
        if self.state is self._decided and (wakeup is None or now < wakeup or self.undecided):
            return
        if not book.knows_catalogues(self.state):
            return
        try:
            done = await self._pass(now)
        except Exception as error:  # a retry of the workflow task would fail as well
            self._answers = None
            self.undecided = f"{type(error).__name__}: {error}"[:500]
            self.record_problem("decide", self.undecided)
            self._decided = self.state
            return
        self.undecided = ""
        if self.over:
            return
        self.state = book.decided(self.state, done.answer)
        self._issued = bool(done.answer.issued)
        self._decided = self.state if done.complete else None
        if not done.complete:
            self.changed()

    async def _pass(self, now: datetime) -> _Decided:
        """Return what a decision changes. Answers of before are kept: only those that may be others
        are decided again, here when they are few, else by an activity."""
        snapshot = book.snapshot_of(self.state)
        if self._answers is None:
            self._answers = Answers(snapshot)
        else:
            self._answers.change_to(snapshot)
        answers = self._answers
        few = len(answers.concerned(now)) <= self.input.workflow_limit
        if few or not book.fits(self.state):
            return _Decided(passed(snapshot, answers.decide(now), self.state.standings))
        request = DecideEnvironment(
            environment=snapshot.environment,
            products=snapshot.products,
            standings=self.state.standings,
            now=now,
        )
        count = len(snapshot.environment.entities)
        done = await ask("decide_environment", request, Pass, summary=f"{count} entities")
        answers.take(done.again)
        later = book.snapshot_of(self.state)
        if self.state.stale:  # a release that it chose may have been recalled
            self._answers = None
            return _Decided(Pass(at=now, next_wakeup=self.state.next_wakeup), complete=False)
        if _same(snapshot, later):
            return _Decided(done)
        kept = answers.without_changed(done, later, workflow.now())
        return _Decided(kept, complete=False)

    # --- plans ---

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        self.issues.reported(report)


def _same(before: Snapshot, after: Snapshot) -> bool:
    """Whether nothing that decisions depend on has changed: everything is the same object."""
    pairs = zip(before.products, after.products, strict=False)
    return (
        before.environment is after.environment
        and len(before.products) == len(after.products)
        and all(old is new for old, new in pairs)
    )
