"""An owner's plans: which exist, which run, and which are pending."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.owners.runs import RunBook, RunRecord
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.owners import (
    ClosedPlans,
    OpenPlans,
    OwnerState,
    PlanBegin,
    PlanRecord,
    PlanStart,
)
from temporal_plans.messages.plans import PlanInput, PlanReport, Supersede
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.owners.outbox import Outbox

_DEFAULT_PRIORITY = 10
"""The priority of the first plan without a priority of its own."""


class OwnedPlans:
    """The plans of an owner, by name.

    ``make`` returns the input of a plan that starts now. ``changed`` is called when pending work
    may have become possible. ``priorities`` says which plans get an asset first; all others follow
    in the order of their first start. Runs of ``standing`` plans are not recorded: they always run.
    ``names`` returns all plans that the owner may have.
    """

    def __init__(
        self,
        state: OwnerState,
        *,
        owner: str,
        outbox: Outbox,
        make: Callable[[PlanBegin, PlanRecord], PlanInput],
        changed: Callable[[], None],
        priorities: Mapping[str, int],
        standing: Collection[str] = (),
        names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.records = dict(state.plans)
        self.pending = dict(state.pending)
        self.runs = RunBook(state.runs)
        self._owner = owner.strip("/")
        self._outbox = outbox
        self._make = make
        self._changed = changed
        self._priorities = priorities
        self._standing = frozenset(standing)
        self._names = names
        self._starting = {start.input.name: start for start in state.starting}
        for start in state.starting:
            outbox.hold(start.workflow_id)

    @property
    def starting(self) -> tuple[PlanStart, ...]:
        """Plans that are being started."""
        return tuple(self._starting.values())

    def is_open(self, name: str) -> bool:
        return name in self.records and self.records[name].open

    def settled(self, name: str) -> bool:
        """Whether the plan is neither pending nor being started."""
        return name not in self.pending and name not in self._starting

    async def settle(self, plan: str) -> None:
        """Wait until the plan is settled, and no longer than an update may wait for it."""
        await wait_or_timeout(lambda: self.settled(plan), engine_settings().answer_timeout)

    def workflow_id(self, name: str) -> str:
        return f"{self._owner}/{name}"

    # --- start and end ---

    def begin(self, name: str, begin: PlanBegin) -> None:
        """Start a plan as soon as possible; its running run is superseded first."""
        self.pending[name] = begin
        if self.is_open(name):
            self.supersede(name, begin.what)
        self._changed()

    def supersede(self, name: str, reason: str) -> None:
        """Ask a running plan to leave its work and end."""
        self._outbox.put(self.workflow_id(name), "supersede", Supersede(why=reason))

    def drop(self, name: str) -> None:
        """Remove a plan that the owner no longer has; a running plan is superseded first."""
        self.pending.pop(name, None)
        if self.is_open(name):
            self.supersede(name, "its owner no longer has this plan")
            self.records[name] = self.records[name].but(dropped=True)
        else:
            self.records.pop(name, None)

    def start_pending(self, may_begin: Callable[[str], bool], *, config: int) -> None:
        """Start the pending plans whose former run has ended."""
        for name in list(self.pending):
            free = name not in self._starting and not self._outbox.sending(self.workflow_id(name))
            if free and not self.is_open(name) and may_begin(name):
                self._start(name, self.pending.pop(name), config)

    def _start(self, name: str, begin: PlanBegin, config: int) -> None:
        old = self.records.get(name)
        rivals = () if self.records else tuple(map(self.workflow_id, dict.fromkeys(self._names())))
        record = PlanRecord(
            name=name,
            workflow_id=self.workflow_id(name),
            priority=self._priorities.get(name, _DEFAULT_PRIORITY + len(self.records)),
            run=self._last_number(name) + 1,
            open=True,
            changed=workflow.now(),
        )
        if old is not None and name not in self._priorities:
            record = record.but(priority=old.priority)
        self.records[name] = record
        self._record_run(record, begin, config)
        self._execute(
            PlanStart(
                workflow_id=record.workflow_id,
                run=record.run,
                starter=workflow.info().first_execution_run_id,
                at=workflow.now(),
                keep_log=begin.first is None,
                rivals=rivals,
                input=self._make(begin, record),
            )
        )

    def _last_number(self, name: str) -> int:
        """Return the number of a plan's last run. A plan that was dropped and added again continues
        its numbers: a number that was used before would count as started already."""
        if name in self.records:
            return self.records[name].run
        return 0 if name in self._standing else self.runs.last_number(name)

    def resume(self) -> None:
        """Start the plans that the previous run was starting; ``start_plan`` is idempotent."""
        for start in list(self._starting.values()):
            self._execute(start)

    def _execute(self, start: PlanStart) -> None:
        self._starting[start.input.name] = start
        self._outbox.hold(start.workflow_id)
        asyncio.create_task(self._started(start))  # noqa: RUF006  # in _starting

    async def _started(self, start: PlanStart) -> None:
        name = start.input.name
        await workflow.execute_activity(
            "start_plan",
            start,
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            summary=f"start {name}",
        )
        del self._starting[name]
        self._outbox.release(start.workflow_id)
        self._changed()

    # --- reports of plans ---

    def is_newest(self, report: PlanReport) -> bool:
        """Whether the report is from the plan's newest run: not from a former run that was reset,
        nor from a plan of a terminated owner of the same name."""
        record = self.records.get(report.plan)
        if record is None or record.workflow_id != report.workflow_id:
            return False
        ours = report.starter in ("", workflow.info().first_execution_run_id)
        return ours and report.run in (0, record.run)

    def record_report(self, report: PlanReport) -> bool:
        """Record a report of a plan. Return True when the plan has ended with it."""
        record = self.records.get(report.plan)
        if record is None or not record.open or not self.is_newest(report):
            return False
        self.records[report.plan] = record.but(
            status=report.status,
            open=report.open,
            superseded=report.superseded,
            resting=report.resting,
            stopped=report.stopped,
            changed=workflow.now(),
        )
        self._record_status(report)
        if not report.open:
            self._closed(report.plan)
        return not report.open

    def _closed(self, name: str) -> None:
        self._outbox.discard(self.workflow_id(name))
        if self.records[name].dropped:
            del self.records[name]
        self._changed()

    def _record_status(self, report: PlanReport) -> None:
        if report.plan in self._standing:
            return
        self.runs.note(
            report.plan,
            self.records[report.plan].run,
            report.status,
            superseded=report.superseded,
            ended=None if report.open else workflow.now(),
            run_id=report.run_id,
        )

    def _record_run(self, record: PlanRecord, begin: PlanBegin, config: int) -> None:
        if record.name in self._standing:
            return
        self.runs.add(
            RunRecord(
                plan=record.name,
                run=record.run,
                started=workflow.now(),
                status=record.status,
                config=config,
                by=begin.by,
                reason=begin.reason,
                what=begin.what,
            )
        )

    # --- check for plans that ended without a report ---

    @property
    def check_interval(self) -> timedelta | None:
        """The time between checks of open plans; None when no plan is open."""
        open_plans = [plan for plan in self.records.values() if plan.open]
        if not open_plans:
            return None
        settings = engine_settings()
        if any(plan.dropped or plan.name in self.pending for plan in open_plans):
            return settings.ending_check_interval
        idle = (Status.COMPLETE, Status.WAITING)
        at_rest = all(plan.status in idle for plan in open_plans)
        return settings.idle_check_interval if at_rest else settings.check_interval

    async def find_closed(self) -> tuple[PlanRecord, ...]:
        """Close and return the plans that ended without a report, for example by termination.

        Plans that are being started are not checked: only their former run may exist yet.
        """
        checked = {
            plan.workflow_id: plan
            for plan in self.records.values()
            if plan.open and plan.name not in self._starting
        }
        answer = await workflow.execute_activity(
            "closed_plans",
            OpenPlans(workflow_ids=tuple(checked)),
            result_type=ClosedPlans,
            start_to_close_timeout=timedelta(minutes=1),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            summary="which plans have ended",
        )
        found = (self._close_lost(checked[workflow_id]) for workflow_id in answer.workflow_ids)
        return tuple(closed for closed in found if closed is not None)

    def _close_lost(self, checked: PlanRecord) -> PlanRecord | None:
        record = self.records.get(checked.name)
        if record is None or not record.open or record.run != checked.run:
            return None
        report = PlanReport(
            plan=record.name,
            run=record.run,
            workflow_id=record.workflow_id,
            status=record.status,
            open=False,
        )
        self.record_report(report)
        return record
