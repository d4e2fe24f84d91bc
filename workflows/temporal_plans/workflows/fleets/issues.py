"""The plans that an environment has issued: they are started, asked to end, and read at their end.

Everything here may be begun again by the next run of the workflow: a plan is started once for its
number, a request to end may arrive twice, and a result is read as often as one likes.
"""

from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, Protocol

from temporalio import workflow
from temporalio.exceptions import ActivityError

from temporal_plans.domain.fleets.plans import ActiveStatus, EndStatus
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.fleets import (
    EnvironmentState,
    IssuedPlan,
    PlanOutcome,
    PlanOutcomeQuery,
    fleet_plan_id,
    fleet_plan_name,
)
from temporal_plans.messages.owners import ClosedPlans, OpenPlans
from temporal_plans.messages.plans import PlanReport, Supersede
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import ask, refusal_in_failure, start
from temporal_plans.workflows.mechanics.handlers import send_signal
from temporal_plans.workflows.mechanics.settings import engine_settings

FAILED_WORK_INTERVAL = timedelta(minutes=1)
"""The pause before work on a plan is tried again that failed in an unexpected way."""

AT_ONCE = 50
"""Plans that are started, ended or read at a time."""


class HasState(Protocol):
    """The workflow: its state, which changes while activities run."""

    state: EnvironmentState

    def changed(self) -> None: ...

    def record_problem(self, name: str, text: str) -> None: ...


class Issues:
    """The work on issued plans."""

    def __init__(self, owner: HasState) -> None:
        self._owner = owner
        self._busy: set[str] = set()
        self._checking = False
        self._checked = workflow.now()

    @property
    def _state(self) -> EnvironmentState:
        return self._owner.state

    def _put(self, state: EnvironmentState) -> None:
        self._owner.state = state
        self._owner.changed()

    def advance(self, now: datetime) -> datetime | None:
        """Begin all work that is due. Return when to look again, if nothing happens before."""
        for name, plan in self._state.issued.items():
            if name in self._busy or len(self._busy) >= AT_ONCE:
                continue
            if plan.closed and not plan.lost:
                self._begin(name, self._read(name, plan))
            elif not plan.started:
                self._begin(name, self._issue(name, plan))
            elif plan.ending and not plan.asked:
                self._begin(name, self._end(name, plan))
        return self._check(now)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            try:
                await work
            except Exception as error:  # it would be begun again at once, without end
                self._owner.record_problem(name, f"{type(error).__name__}: {error}")
                await workflow.sleep(FAILED_WORK_INTERVAL)
            self._busy.discard(name)
            self._owner.changed()

        self._busy.add(name)
        start(whole())

    def _id(self, name: str, plan: IssuedPlan) -> str:
        return fleet_plan_id(self._state.environment.name, name, plan.number)

    def _is_current(self, name: str, plan: IssuedPlan) -> bool:
        current = self._state.issued.get(name)
        return current is not None and current.number == plan.number

    # --- start ---

    async def _issue(self, name: str, plan: IssuedPlan) -> None:
        info = workflow.info()
        order = book.order_of(self._state, name, info.workflow_id, info.first_execution_run_id)
        if order is None:
            self._put(book.without_issued(self._state, name))
            return
        try:
            await ask("issue_plan", order, type(None), summary=order.plan_id)
        except ActivityError as error:
            reasons = tuple(map(str, refusal_in_failure(error).reasons))
            self._finish(name, plan, EndStatus.FAILED, changed=False, errors=reasons)
            return
        if self._is_current(name, plan):
            state = book.with_issued(self._state, name, started=True)
            entity = book.entity_of(state, name)
            active = entity.state.active_plan if entity else None
            if active is not None and active.status is ActiveStatus.ISSUED:
                state = book.with_active(state, name, ActiveStatus.RUNNING)
            self._put(state)

    # --- end ---

    def reported(self, report: PlanReport) -> None:
        """Take a plan's report: one that rests in ERROR has failed, and is asked to end."""
        name = self._reporter(report)
        if name is None:
            return
        if not report.open:
            self._put(book.with_issued(self._state, name, started=True, closed=True))
        elif report.status is Status.ERROR and report.resting:
            why = self._state.issued[name].ending or "it has failed"
            changed = book.with_issued(self._state, name, started=True, failed=True, ending=why)
            self._put(changed)

    def _reporter(self, report: PlanReport) -> str | None:
        """Return the entity of a report; None for one of another plan than the running one."""
        starter = workflow.info().first_execution_run_id
        for name, plan in self._state.issued.items():
            if report.plan == fleet_plan_name(name, plan.number):
                ours = (report.run, report.starter) == (plan.number, starter)
                return name if ours else None
        return None

    async def _end(self, name: str, plan: IssuedPlan) -> None:
        sent = await send_signal(self._id(name, plan), "supersede", Supersede(why=plan.ending))
        if self._is_current(name, plan):  # one that is not there has ended, with or without word
            self._put(book.with_issued(self._state, name, asked=True, closed=not sent))

    async def _read(self, name: str, plan: IssuedPlan) -> None:
        """Read how a plan ended. Of one that was terminated it is unknown; it blocks its entity
        until an operator resolves it."""
        starter = workflow.info().first_execution_run_id
        plan_id = self._id(name, plan)
        query = PlanOutcomeQuery(plan_id=plan_id, number=plan.number, starter=starter)
        outcome = await ask("plan_outcome", query, PlanOutcome, summary=plan_id)
        if not self._is_current(name, plan):
            return
        if outcome.open:
            self._put(book.with_issued(self._state, name, closed=False))
        elif outcome.status is None:
            state = book.with_issued(self._state, name, lost=outcome.lost or "nothing is known")
            self._put(book.with_active(state, name, ActiveStatus.UNKNOWN))
        else:
            self._finish(name, plan, outcome.status, changed=outcome.changed, errors=outcome.errors)

    def _finish(
        self,
        name: str,
        plan: IssuedPlan,
        status: EndStatus,
        *,
        changed: bool,
        errors: tuple[str, ...],
    ) -> None:
        if self._is_current(name, plan):
            now = workflow.now()
            self._put(
                book.plan_ended(self._state, name, status, now, changed=changed, errors=errors[:20])
            )

    # --- plans that end without a word ---

    def _check(self, now: datetime) -> datetime | None:
        """Check from time to time whether plans still run: a terminated one sends no report."""
        running = {
            self._id(name, plan): name
            for name, plan in self._state.issued.items()
            if plan.started and not plan.closed
        }
        if not running or self._checking:
            return None
        due = self._checked + self._interval
        if now < due:
            return due
        self._checking = True
        start(self._find_closed(running))
        return None

    @property
    def _interval(self) -> timedelta:
        settings = engine_settings()
        ending = any(plan.ending for plan in self._state.issued.values())
        return settings.ending_check_interval if ending else settings.check_interval

    async def _find_closed(self, running: dict[str, str]) -> None:
        try:
            answer = await ask("closed_plans", OpenPlans(workflow_ids=tuple(running)), ClosedPlans)
            state = self._state
            for plan_id in answer.workflow_ids:
                name = running[plan_id]
                if name in state.issued and self._id(name, state.issued[name]) == plan_id:
                    state = book.with_issued(state, name, closed=True)
            self._put(state)
        finally:
            self._checked, self._checking = workflow.now(), False
            self._owner.changed()
