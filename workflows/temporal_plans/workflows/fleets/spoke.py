"""The Spoke workflow: the record of the plans that an environment's spoke took.

It runs on the server of the spoke, carries the plans out there, and reports to the hub until that
has acknowledged each end. Nothing is lost and nothing is done twice while the two are apart.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.fleets.taken import (
    ERRORS_LIMIT,
    TakenEnd,
    TakenPlan,
    Taking,
    bound,
    marked,
    may_begin,
    refused_before,
    settled,
    taken,
    taking,
    unwanted,
)
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.fleets.names import fleet_plan_id, fleet_plan_name
from temporal_plans.messages.fleets.plans import ChangeOrder, PlanOutcome
from temporal_plans.messages.fleets.reports import EntityReport
from temporal_plans.messages.plans import PlanReport
from temporal_plans.messages.spokes import (
    REPORTED_LIMIT,
    PlanAtSpoke,
    SpokeAnswer,
    SpokeBind,
    SpokeEnd,
    SpokeIdentity,
    SpokeInput,
    SpokeOrder,
    SpokeReport,
    SpokeState,
    SpokeStatus,
    Taken,
    spoke_id,
)
from temporal_plans.workflows.fleets.audited import (
    ACTIVITY_TIMEOUT,
    RETRY,
    Audited,
    refusal_in_failure,
    start,
)
from temporal_plans.workflows.fleets.plan_work import PlanWork
from temporal_plans.workflows.fleets.room import Room
from temporal_plans.workflows.fleets.turns import Turns
from temporal_plans.workflows.fleets.work_by_key import Loop
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.log import CommandLogger

_ERROR_LENGTH = 300
_GIVEN_UP = "its environment has given it up"


class TakenPlans(PlanWork):
    """The work on the plans of a record. Keys are names of plans."""

    def __init__(self, owner: "SpokeWorkflow") -> None:
        loop: Loop = owner
        super().__init__(loop)
        self._owner = owner

    @property
    def _state(self) -> SpokeState:
        return self._owner.state

    def plans(self) -> Mapping[str, TakenPlan]:
        return {name: plan for name, plan in self._state.record.plans.items() if not plan.over}

    def entity(self, key: str) -> str:
        return self._state.record.plans[key].entity

    def plan_id(self, key: str, number: int) -> str:
        return fleet_plan_id(self._owner.input.environment, self.entity(key), number)

    def order(self, key: str) -> ChangeOrder | None:
        order, info = self._state.orders.get(key), workflow.info()
        if order is None:
            return None
        return order.but(owner=info.workflow_id, starter=info.first_execution_run_id)

    def mark(self, key: str, **changes: Any) -> None:
        self._owner.put(self._state.but(record=marked(self._state.record, key, **changes)))

    def begun(self, key: str) -> None:
        self.mark(key, started=True)

    def forget(self, key: str) -> None:
        self.lose(key, "its order is not there any more")

    def lose(self, key: str, why: str) -> None:
        self.mark(key, lost=why)

    def end(self, key: str, outcome: PlanOutcome, status: EndStatus) -> None:
        errors = tuple(shortened(one, _ERROR_LENGTH) for one in outcome.errors[:ERRORS_LIMIT])
        self.mark(key, end=TakenEnd(status=status, changed=outcome.changed, errors=errors))

    def may_begin(self, key: str) -> bool:
        plan = self._state.record.plans[key]
        if plan.ending and not plan.begun:
            self.end(key, PlanOutcome(), EndStatus.CANCELLED)
            return False
        may = may_begin(self._state.record, key)
        if may and not plan.begun:
            self.mark(key, begun=True)
        return may


@workflow.defn(name="Spoke")
class SpokeWorkflow(Audited):
    """The entity ``spoke/<environment>``. It runs for as long as there is the spoke."""

    kind = "spoke"
    grows = frozenset({"take"})

    @workflow.init
    def __init__(self, input: SpokeInput) -> None:
        self.input = input
        self.state = input.state or SpokeState()
        self.log = CommandLogger(self.state.log)
        self.turns = Turns()
        self.room = Room(self._next_input, Code.UNAVAILABLE)
        self.alarm = Alarm(self.changed)
        self.work = TakenPlans(self)
        self._unreported = True
        self._reporting = self._stranger = False
        self._reported_at = workflow.now()
        self._next = 0

    @workflow.run
    async def run(self, input: SpokeInput) -> None:
        require_plugin()
        while True:
            self._changed = False
            self._advance()
            if self.may_continue_as_new(input.history_limit):
                self.room.continue_as_new()
            await workflow.wait_condition(
                lambda: self._changed or self.may_continue_as_new(input.history_limit)
            )

    def _next_input(self) -> SpokeInput:
        return self.input.but(state=self.state.but(log=self.log.log))

    def put(self, state: SpokeState) -> None:
        """Take a new state, which the hub is to hear of."""
        kept = {name: one for name, one in state.orders.items() if _needs_order(state, name)}
        self.state = state if len(kept) == len(state.orders) else state.but(orders=kept)
        self._unreported = True
        self.changed()

    def _advance(self) -> None:
        now = workflow.now()
        for when in (self.work.advance(now), self._report_if_due(now)):
            if when is not None:
                self.alarm.at(when)

    # --- orders ---

    @workflow.update(name="bind", description="From the process: the environment that it serves.")
    async def bind(self, request: SpokeBind) -> None:
        record = bound(self.state.record, request.starter)
        state = self.state if record is self.state.record else SpokeState(record=record)
        self._stranger = False
        self.put(state)

    @workflow.update(name="take", description="From the hub: a plan to carry out.")
    async def take(self, request: SpokeOrder) -> Taken:
        order = request.order
        name = fleet_plan_name(order.entity, order.number)
        plan = TakenPlan(entity=order.entity, number=order.number, at=order.at)
        verdict = taking(self.state.record, order.starter, plan, name)
        if verdict is Taking.TAKEN:
            record = taken(self.state.record, plan, name)
            self.put(self.state.but(record=record, orders={**self.state.orders, name: order}))
        known = self.state.record.plans.get(name)
        if known is not None and known.at == order.at:
            return Taken(taken=True)
        highest = self.state.record.highest.get(order.entity, 0)
        unbound = verdict is Taking.FOREIGN
        return Taken(taken=False, unbound=unbound, highest=highest, why=_WHY[verdict])

    @take.validator
    def _check_take(self, request: SpokeOrder) -> None:
        self._check_record(request.record)
        if request.order.environment != self.input.environment:
            text = f"this is the spoke of {self.input.environment}"
            self.refuse(Refusal.of(Code.INVALID, text, field="environment"))

    @workflow.update(name="end", description="From the hub: a plan is to end, or not to begin.")
    async def end(self, request: SpokeEnd) -> Taken:
        name = fleet_plan_name(request.entity, request.number)
        record = self.state.record
        if request.starter != record.starter:
            return Taken(taken=False, unbound=True, why=_WHY[Taking.FOREIGN])
        if name in record.plans:
            if not request.untaken:
                record = unwanted(record, [name], request.why or _GIVEN_UP)
        elif request.number > record.highest.get(request.entity, 0):
            why = shortened(request.why, _ERROR_LENGTH) if request.untaken else ""
            never = refused_before(request.entity, request.number, request.at, why)
            record = taken(record, never, name)
        self.put(self.state.but(record=record))
        return Taken(taken=name in record.plans, highest=record.highest.get(request.entity, 0))

    @end.validator
    def _check_end(self, request: SpokeEnd) -> None:
        self._check_record(request.record)

    def _check_record(self, record: str) -> None:
        if record != workflow.info().first_execution_run_id:
            text = "the order is for another record"
            self.refuse(Refusal.of(Code.SUPERSEDED, text, field="record"))

    # --- plans ---

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        self.work.reported(report)

    @workflow.signal(name="reported", description="From a plan of an entity: what it has reached.")
    def on_reported(self, report: EntityReport) -> None:
        if report.malformed:
            self.record_problem("reported", report.malformed)
            return
        if fleet_plan_name(report.entity, report.number) in self.state.record.plans:
            self.put(self.state.but(entities={**self.state.entities, report.entity: report}))

    # --- reports ---

    def _report_if_due(self, now: datetime) -> datetime | None:
        """Report what is new, and from time to time what runs. Return when the next is due."""
        if self._reporting or self._stranger or not self.state.record.starter:
            return None
        running = any(not plan.over for plan in self.state.record.plans.values())
        due = self._reported_at + engine_settings().progress_interval
        if not self._unreported and not (running and now >= due):
            return due if running else None
        if not self.state.record.plans and not self.state.entities:
            self._unreported = False
            return None
        self._reporting, self._reported_at = True, now
        start(self._report())
        return None

    async def _report(self) -> None:
        report = self._next_report()
        self._unreported = len(self.state.record.plans) > len(report.plans)
        try:
            answer: SpokeAnswer = await workflow.execute_activity(
                "report_to_hub",
                report,
                result_type=SpokeAnswer,
                task_queue=spoke_id(self.input.environment),
                start_to_close_timeout=ACTIVITY_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=RETRY,
            )
        except ActivityError as error:  # it reports again when its process has registered
            self._stranger = True
            self.record_problem("report_to_hub", str(refusal_in_failure(error)))
        else:
            self._acknowledged(report, answer)
        finally:
            self._reporting = False
            self.changed()

    def _next_report(self) -> SpokeReport:
        """Return a report of all plans, or of some of very many: each comes in its turn."""
        plans = self.state.record.plans
        names = sorted(plans, key=lambda name: not plans[name].over)
        if len(names) > REPORTED_LIMIT:
            first = self._next % len(names)
            names = [*names[first:], *names[:first]][:REPORTED_LIMIT]
            self._next = first + REPORTED_LIMIT
        entities = tuple(self.state.entities.values())[:REPORTED_LIMIT]
        return SpokeReport(
            record=workflow.info().first_execution_run_id,
            starter=self.state.record.starter,
            plans={name: _at_spoke(plans[name]) for name in names},
            entities=entities,
        )

    def _acknowledged(self, report: SpokeReport, answer: SpokeAnswer) -> None:
        if report.starter != self.state.record.starter:
            return
        record = unwanted(self.state.record, answer.unwanted, _GIVEN_UP)
        if record is not self.state.record:
            self._unreported = True
        told = {one.entity: one for one in report.entities}
        self.state = self.state.but(
            record=settled(record, answer.settled),
            entities={
                name: one for name, one in self.state.entities.items() if told.get(name) != one
            },
        )

    # --- queries ---

    @workflow.query(name="identity", description="The id of this record.")
    def identity(self) -> SpokeIdentity:
        return SpokeIdentity(record=workflow.info().first_execution_run_id)

    @workflow.query(name="status", description="The plans that the hub has not acknowledged.")
    def status(self) -> SpokeStatus:
        record = self.state.record
        return SpokeStatus(
            environment=self.input.environment,
            starter=record.starter,
            plans=tuple(record.plans.values()),
        )


_WHY = {
    Taking.TAKEN: "",
    Taking.KNOWN: "another plan of this number was taken before",
    Taking.STALE: "the spoke took a plan of this number, or a later one, before",
    Taking.FOREIGN: "the spoke serves another environment of this name",
}


def _needs_order(state: SpokeState, name: str) -> bool:
    plan = state.record.plans.get(name)
    return plan is not None and not plan.started and not plan.over


def _at_spoke(plan: TakenPlan) -> PlanAtSpoke:
    return PlanAtSpoke(
        entity=plan.entity,
        number=plan.number,
        at=plan.at,
        started=plan.started,
        lost=plan.lost,
        end=plan.end,
    )
