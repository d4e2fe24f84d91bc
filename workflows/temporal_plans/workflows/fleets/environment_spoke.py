"""An environment and its spoke: registration, sign of life, orders and reports."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.fleets.spokes import (
    SpokeInfo,
    SpokeStanding,
    registration_refusal,
    stranger_refusal,
)
from temporal_plans.domain.fleets.untaken import withdrawals
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.fleets.environments import EnvironmentInput, EnvironmentState
from temporal_plans.messages.fleets.plans import IssuedPlan
from temporal_plans.messages.spokes import (
    RegisterSpoke,
    SpokeAccepted,
    SpokeAnswer,
    SpokeEnd,
    SpokeOrder,
    SpokeReport,
    Taken,
    WatchSpoke,
    environment_queue,
)
from temporal_plans.workflows.fleets import book, spoke_book
from temporal_plans.workflows.fleets.audited import (
    ACTIVITY_TIMEOUT,
    RETRY,
    Audited,
    refusal_in_failure,
    start,
)
from temporal_plans.workflows.fleets.issues import HasState
from temporal_plans.workflows.fleets.work_by_key import WorkByKey
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.mechanics.settings import engine_settings

Answer = TypeVar("Answer")
_Work = Callable[[], Coroutine[Any, Any, None]]

_WATCH_TIMEOUT = timedelta(days=3650)
_WHY_LENGTH = 300


class SpokeSide:
    """The work of an environment with its spoke. Everything here may be begun again by the next run
    of the workflow: the spoke takes a number once."""

    def __init__(self, owner: HasState) -> None:
        self._owner = owner
        self._work = WorkByKey(owner)
        self._watch: workflow.ActivityHandle[None] | None = None

    @property
    def _state(self) -> EnvironmentState:
        return self._owner.state

    def _put(self, state: EnvironmentState) -> None:
        self._owner.state = state
        self._owner.changed()

    def advance(self, now: datetime) -> datetime | None:
        """Begin all work that is due. Return when to look again, if nothing happens before."""
        end = spoke_book.lease_end(self._state)
        if end is not None and now >= end:
            self._put(spoke_book.with_lost_lease(self._state))
            end = None
        spoke = self._state.spoke
        if spoke is None:
            return end
        if not spoke.away and self._watch is None:
            self._start_watch(spoke.info)
        offers = self._offers(spoke, now)
        for name, plan in self._state.issued.items():
            if name in offers:
                self._begin(f"take {name}", name, offers[name])
            elif plan.spoke == spoke.info.record and plan.ending and not plan.asked:
                self._begin(f"end {name}", name, partial(self._end, name, plan))
        return end

    def _begin(self, key: str, name: str, work: _Work) -> None:
        if self._work.has_room(key):
            self._work.begin(key, name, work())

    # --- sign of life ---

    def _start_watch(self, info: SpokeInfo) -> None:
        """A heartbeating activity: it costs no history while the spoke is there."""
        timeout = engine_settings().spoke_timeout
        self._watch = workflow.start_activity(
            "watch_spoke",
            WatchSpoke(boot=info.boot, heartbeat=timeout / 3),
            task_queue=environment_queue(self._state.environment.name),
            schedule_to_start_timeout=timeout,
            start_to_close_timeout=_WATCH_TIMEOUT,
            heartbeat_timeout=timeout,
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            summary=f"watch {info.hostname}"[:190],
        )
        start(self._follow(self._watch))

    async def _follow(self, watch: workflow.ActivityHandle[None]) -> None:
        with suppress(ActivityError):
            await watch
        if watch is self._watch:  # not when the spoke has registered again
            self._watch = None
            self._put(spoke_book.without_contact(self._state, workflow.now()))

    def registered(self) -> None:
        """Watch the process that has just registered."""
        former, self._watch = self._watch, None
        if former is not None and not former.done():
            former.cancel()
        self._owner.changed()

    # --- orders ---

    def _offers(self, spoke: SpokeStanding, now: datetime) -> dict[str, _Work]:
        """Return what gives the orders that the spoke has not taken, by entity. None is left in the
        queue of a spoke that is away: when that is back, what was issued before is judged by what
        is known then."""
        untaken = {
            name: plan
            for name, plan in self._state.issued.items()
            if plan.spoke == spoke.info.record
            and not (plan.started or plan.ending)
            and self._work.has_room(f"take {name}")
        }
        why: dict[str, str] = {}
        if untaken and self._withdraws():
            if spoke.away:
                return {}
            late = {name for name in untaken if self._was_away(name, spoke)}
            if late and not book.knows_catalogues(self._state):
                untaken = {name: one for name, one in untaken.items() if name not in late}
            elif late:
                why = withdrawals(book.snapshot_of(self._state), late, now)
        return {
            name: partial(self._withdraw, name, plan, why[name])
            if name in why
            else partial(self._order, name, plan)
            for name, plan in untaken.items()
        }

    def _withdraws(self) -> bool:
        return workflow.patched("untaken plans are withdrawn")

    def _was_away(self, name: str, spoke: SpokeStanding) -> bool:
        """Whether the spoke was not there, at some time since a plan was issued."""
        entity = book.entity_of(self._state, name)
        active = entity.state.active_plan if entity else None
        issued_at = active.issued_at if active else None
        return issued_at is not None and spoke.since > issued_at

    async def _order(self, name: str, plan: IssuedPlan) -> None:
        withdraws = self._withdraws()
        info = workflow.info()
        order = book.order_of(self._state, name, info.workflow_id, info.first_execution_run_id)
        spoke = self._state.spoke
        if order is None or spoke is None:
            self._put(book.without_issued(self._state, name))
            return
        lineage = spoke.info.lineage
        request = SpokeOrder(lineage=lineage, record=plan.spoke, order=order)
        try:
            taken = await self._ask(
                "take_order",
                request,
                Taken,
                order.plan_id,
                lambda: (
                    self._is_to_be_taken(name, plan, lineage)
                    and not (withdraws and self._is_away())
                ),
            )
        except ActivityError as error:
            reasons = tuple(map(str, refusal_in_failure(error).reasons))
            self._finish(name, plan, EndStatus.FAILED, reasons)
            return
        self._answered(name, plan, taken)

    async def _withdraw(self, name: str, plan: IssuedPlan, why: str) -> None:
        """Have the spoke refuse the number of a plan that is not wanted any more: its report ends
        the plan. One that it has taken, without the answer being heard, goes on."""
        request = self._end_of(name, plan, why, untaken=True)
        if request is None:
            return
        taken = await self._ask(
            "end_order",
            request,
            Taken,
            name,
            lambda: self._is_to_be_taken(name, plan, request.lineage) and not self._is_away(),
        )
        self._answered(name, plan, taken)

    def _is_away(self) -> bool:
        return self._state.spoke is None or self._state.spoke.away

    def _answered(self, name: str, plan: IssuedPlan, taken: Taken | None) -> None:
        if taken is None or not self._is_current(name, plan):
            return
        if taken.taken:
            self._put(book.with_issued(self._state, name, started=True))
        elif taken.highest >= plan.number:
            self._finish(name, plan, EndStatus.CANCELLED, (taken.why,) if taken.why else ())
            highest = {"last_number": taken.highest}
            self._put(book.with_entity_state(self._state, name, **highest))
        else:
            self._put(book.plan_lost(self._state, name, taken.why))

    def _end_of(
        self, name: str, plan: IssuedPlan, why: str, *, untaken: bool = False
    ) -> SpokeEnd | None:
        spoke, entity = self._state.spoke, book.entity_of(self._state, name)
        active = entity.state.active_plan if entity else None
        if spoke is None or active is None or active.issued_at is None:
            return None
        return SpokeEnd(
            lineage=spoke.info.lineage,
            record=plan.spoke,
            starter=workflow.info().first_execution_run_id,
            entity=name,
            number=plan.number,
            at=active.issued_at,
            why=shortened(why, _WHY_LENGTH) if untaken else why,
            untaken=untaken,
        )

    async def _end(self, name: str, plan: IssuedPlan) -> None:
        request = self._end_of(name, plan, plan.ending)
        if request is None:
            return
        answer = await self._ask(
            "end_order",
            request,
            Taken,
            name,
            lambda: self._is_current(name, plan) and self._is_at(plan, request.lineage),
        )
        if answer is None or not self._is_current(name, plan):
            return
        state = book.with_issued(self._state, name, asked=True)
        if not answer.taken:  # no report will come
            state = book.plan_lost(state, name, answer.why or "its spoke has forgotten it")
        self._put(state)

    def _is_current(self, name: str, plan: IssuedPlan) -> bool:
        current = self._state.issued.get(name)
        return current is not None and current.number == plan.number

    def _is_to_be_taken(self, name: str, plan: IssuedPlan, lineage: str) -> bool:
        wanted = self._is_current(name, plan) and not self._state.issued[name].ending
        return wanted and self._is_at(plan, lineage)

    def _is_at(self, plan: IssuedPlan, lineage: str) -> bool:
        """Whether the spoke of a plan is still the registered one."""
        spoke = self._state.spoke
        return spoke is not None and (spoke.info.record, spoke.info.lineage) == (
            plan.spoke,
            lineage,
        )

    def _finish(
        self, name: str, plan: IssuedPlan, status: EndStatus, errors: tuple[str, ...]
    ) -> None:
        if self._is_current(name, plan):
            now = workflow.now()
            self._put(
                book.plan_ended(self._state, name, status, now, changed=False, errors=errors[:20])
            )

    async def _ask(
        self,
        activity: str,
        request: object,
        kind: type[Answer],
        summary: str,
        wanted: Callable[[], bool],
    ) -> Answer | None:
        """Return the answer of the spoke's process, however long that is away; None when it is not
        wanted any more."""
        handle: workflow.ActivityHandle[Answer] = workflow.start_activity(
            activity,
            request,
            result_type=kind,
            task_queue=environment_queue(self._state.environment.name),
            start_to_close_timeout=ACTIVITY_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=RETRY,
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            summary=summary[:190],
        )
        await workflow.wait_condition(lambda: handle.done() or not wanted())
        if not handle.done():
            handle.cancel()
            return None
        return await handle


class EnvironmentSpoke(Audited):
    """A base class of the Environment workflow."""

    input: EnvironmentInput
    state: EnvironmentState
    declared: bool
    spoke_side: SpokeSide

    @workflow.update(name="register_spoke", description="From a spoke: it is there.")
    async def register_spoke(self, request: RegisterSpoke) -> SpokeAccepted:
        self._check_register_spoke(request)  # another may have registered meanwhile
        known, info = self.state.spoke, request.info
        self.state = spoke_book.with_spoke(self.state, info, workflow.now())
        if known is None or info.is_other_than(known.info):
            outcome = Outcome(result=Result.DONE, message=f"the spoke on {info.hostname} is there")
            self.log.command(
                "register spoke",
                Command(by=info.hostname[:200]),
                outcome,
                via="update",
                now=workflow.now(),
            )
        self.spoke_side.registered()
        return SpokeAccepted(starter=workflow.info().first_execution_run_id)

    @register_spoke.validator
    def _check_register_spoke(self, request: RegisterSpoke) -> None:
        if not self.declared:  # its first document is being applied
            text = f"environment {self.input.name} has no document yet"
            self.refuse(Refusal.of(Code.UNAVAILABLE, text, fix="retry"))
        if not self.state.environment.settings.spoke:
            fix = "set `spoke: true` in its settings"
            text = f"environment {self.input.name} has no spoke"
            self.refuse(Refusal.of(Code.INVALID, text, field="settings.spoke", fix=fix))
        self.refuse(registration_refusal(self.state.spoke, request.info))

    @workflow.update(name="spoke_report", description="From a spoke: what became of its plans.")
    async def spoke_report(self, report: SpokeReport) -> SpokeAnswer:
        self._check_spoke_report(report)
        self.state, answer, notes = spoke_book.reported(self.state, report, workflow.now())
        for note in notes:
            self.record_problem("spoke_report", note)
        self.changed()
        return answer

    @spoke_report.validator
    def _check_spoke_report(self, report: SpokeReport) -> None:
        self.refuse(stranger_refusal(self.state.spoke, report.lineage or "", report.record))
        if report.starter != workflow.info().first_execution_run_id:
            text = "the environment was deleted and created again; register again"
            self.refuse(Refusal.of(Code.SUPERSEDED, text, field="starter"))
