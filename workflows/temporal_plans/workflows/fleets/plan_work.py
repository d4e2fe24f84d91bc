"""Work on plans that were issued: they are started, asked to end, and read at their end.

An environment does it for the plans that it carries out itself, a spoke for those that it took.
Everything here may be begun again by the next run of the workflow: a plan is started once for its
number, a request to end may arrive twice, and a result is read as often as one likes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from temporalio import workflow
from temporalio.exceptions import ActivityError

from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.fleets.names import fleet_plan_name
from temporal_plans.messages.fleets.plans import ChangeOrder, PlanOutcome, PlanOutcomeQuery
from temporal_plans.messages.owners import ClosedPlans, OpenPlans
from temporal_plans.messages.plans import PlanReport, Supersede
from temporal_plans.workflows.fleets.audited import ask, refusal_in_failure, start
from temporal_plans.workflows.fleets.work_by_key import Loop, WorkByKey
from temporal_plans.workflows.mechanics.handlers import send_signal
from temporal_plans.workflows.mechanics.settings import engine_settings


class FollowedPlan(Protocol):
    """The marks of a plan that was issued (``IssuedPlan``)."""

    @property
    def number(self) -> int: ...
    @property
    def started(self) -> bool: ...
    @property
    def ending(self) -> str: ...
    @property
    def asked(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def lost(self) -> str: ...


class PlanWork:
    """The work on the plans of a workflow, by a key of that workflow's choice. A subclass has the
    state."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._work = WorkByKey(loop)
        self._checking = False
        self._checked = workflow.now()

    # --- the state of a subclass ---

    def plans(self) -> Mapping[str, FollowedPlan]:
        """Return the plans that are worked on."""
        raise NotImplementedError

    def entity(self, key: str) -> str:
        """Return the entity of a plan."""
        raise NotImplementedError

    def plan_id(self, key: str, number: int) -> str:
        """Return the workflow id of a plan."""
        raise NotImplementedError

    def order(self, key: str) -> ChangeOrder | None:
        """Return the order of a plan; None for one that is not wanted any more."""
        raise NotImplementedError

    def mark(self, key: str, **changes: Any) -> None:
        """Change the marks of a plan that is there."""
        raise NotImplementedError

    def begun(self, key: str) -> None:
        """Record that a plan was started."""
        raise NotImplementedError

    def forget(self, key: str) -> None:
        """Drop a plan that is not wanted any more."""
        raise NotImplementedError

    def lose(self, key: str, why: str) -> None:
        """Record that nothing is known of a plan."""
        raise NotImplementedError

    def end(self, key: str, outcome: PlanOutcome, status: EndStatus) -> None:
        """Record how a plan ended."""
        raise NotImplementedError

    def may_begin(self, key: str) -> bool:
        """Return whether a plan that was not started may be started now."""
        return True

    # --- work ---

    def advance(self, now: datetime) -> datetime | None:
        """Begin all work that is due. Return when to look again, if nothing happens before."""
        for key, plan in self.plans().items():
            if not self._work.has_room(key):
                continue
            if plan.closed and not plan.lost:
                self._work.begin(key, key, self._read(key, plan))
            elif not plan.started:
                if self.may_begin(key):
                    self._work.begin(key, key, self._issue(key, plan))
            elif plan.ending and not plan.asked:
                self._work.begin(key, key, self._end(key, plan))
        return self._check(now)

    def _is_current(self, key: str, plan: FollowedPlan) -> bool:
        current = self.plans().get(key)
        return current is not None and current.number == plan.number

    # --- start ---

    async def _issue(self, key: str, plan: FollowedPlan) -> None:
        order = self.order(key)
        if order is None:
            self.forget(key)
            return
        try:
            await ask("issue_plan", order, type(None), summary=order.plan_id)
        except ActivityError as error:
            reasons = tuple(map(str, refusal_in_failure(error).reasons))
            if self._is_current(key, plan):
                self.end(key, PlanOutcome(errors=reasons[:20]), EndStatus.FAILED)
            return
        if self._is_current(key, plan):
            self.begun(key)

    # --- end ---

    def reported(self, report: PlanReport) -> None:
        """Take a plan's report: one that rests in ERROR has failed, and is asked to end."""
        key = self._reporter(report)
        if key is None:
            return
        if not report.open:
            self.mark(key, started=True, closed=True)
        elif report.status is Status.ERROR and report.resting:
            why = self.plans()[key].ending or "it has failed"
            self.mark(key, started=True, failed=True, ending=why)

    def _reporter(self, report: PlanReport) -> str | None:
        """Return the key of a report; None for one of another plan than the running one."""
        starter = workflow.info().first_execution_run_id
        for key, plan in self.plans().items():
            if report.plan == fleet_plan_name(self.entity(key), plan.number):
                ours = (report.run, report.starter) == (plan.number, starter)
                return key if ours else None
        return None

    async def _end(self, key: str, plan: FollowedPlan) -> None:
        plan_id = self.plan_id(key, plan.number)
        sent = await send_signal(plan_id, "supersede", Supersede(why=plan.ending))
        if self._is_current(key, plan):  # one that is not there has ended, with or without word
            self.mark(key, asked=True, closed=not sent)

    async def _read(self, key: str, plan: FollowedPlan) -> None:
        """Read how a plan ended. Of one that was terminated it is unknown; it blocks its entity
        until an operator resolves it."""
        starter = workflow.info().first_execution_run_id
        plan_id = self.plan_id(key, plan.number)
        query = PlanOutcomeQuery(plan_id=plan_id, number=plan.number, starter=starter)
        outcome = await ask("plan_outcome", query, PlanOutcome, summary=plan_id)
        if not self._is_current(key, plan):
            return
        if outcome.open:
            self.mark(key, closed=False)
        elif outcome.status is None:
            self.lose(key, outcome.lost or "nothing is known")
        else:
            self.end(key, outcome, outcome.status)

    # --- plans that end without a word ---

    def _check(self, now: datetime) -> datetime | None:
        """Check from time to time whether plans still run: a terminated one sends no report."""
        running = {
            self.plan_id(key, plan.number): key
            for key, plan in self.plans().items()
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
        ending = any(plan.ending for plan in self.plans().values())
        return settings.ending_check_interval if ending else settings.check_interval

    async def _find_closed(self, running: dict[str, str]) -> None:
        try:
            answer = await ask("closed_plans", OpenPlans(workflow_ids=tuple(running)), ClosedPlans)
            for plan_id in answer.workflow_ids:
                key = running[plan_id]
                plan = self.plans().get(key)
                if plan is not None and self.plan_id(key, plan.number) == plan_id:
                    self.mark(key, closed=True)
        finally:
            self._checked, self._checking = workflow.now(), False
            self._loop.changed()
