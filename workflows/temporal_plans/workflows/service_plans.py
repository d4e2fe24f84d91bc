"""A service's plans: which there are, which run, and which are to begin once they may."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow

from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import PlanInput, Supersede
from temporal_plans.messages.service import (
    ClosedPlans,
    OpenPlans,
    PlanBegin,
    PlanRecord,
    PlanReport,
    PlanStart,
    RunHistory,
    RunRecord,
    ServiceState,
)
from temporal_plans.workflows.heartbeat import HEARTBEAT
from temporal_plans.workflows.outbox import Outbox

DEPLOY, RECOVERY, DECOMMISSION = "deploy", "recovery", "decommission"

PRIORITY = {DEPLOY: 0, RECOVERY: 1, DECOMMISSION: 2}
"""Who gets an asset first (reference 4.1); all other plans follow, as the file has them."""

_OTHERS = 10

RUNS_KEPT = 50
"""Runs of one plan that are remembered."""

LOOK_AFTER = timedelta(seconds=60)
"""How often plans that are thought to run are looked for: one that was terminated says nothing."""

LOOK_AFTER_STANDING = timedelta(minutes=10)
"""The same when all that runs is what always runs."""

LOOK_AFTER_LEAVING = timedelta(seconds=5)
"""The same while one is waited for that was asked to end."""


class ServicePlans:
    """Plans by name. ``make`` gives the input of a plan that begins now, and ``changed`` is called
    when something may be done that could not before."""

    def __init__(
        self,
        state: ServiceState,
        *,
        service: str,
        outbox: Outbox,
        make: Callable[[PlanBegin, PlanRecord], PlanInput],
        changed: Callable[[], None],
    ) -> None:
        self.records = dict(state.plans)
        self.pending = dict(state.pending)
        self._runs = list(state.runs.runs)
        self._dropped = state.runs.dropped
        self._service = service.strip("/")
        self._outbox = outbox
        self._make = make
        self._changed = changed
        self._starting = {start.input.name: start for start in state.starting}
        for start in state.starting:
            outbox.hold(start.workflow_id)

    @property
    def history(self) -> RunHistory:
        return RunHistory(runs=tuple(self._runs), dropped=self._dropped)

    @property
    def starting(self) -> tuple[PlanStart, ...]:
        """Plans that are being started."""
        return tuple(self._starting.values())

    def is_open(self, name: str) -> bool:
        return name in self.records and self.records[name].open

    def settled(self, name: str) -> bool:
        """Whether what was asked of a plan has happened: nothing of it is still to begin."""
        return name not in self.pending and name not in self._starting

    def workflow_id(self, name: str) -> str:
        return f"{self._service}/{name}"

    # --- beginning and ending ---

    def begin(self, name: str, begin: PlanBegin) -> None:
        """Have a plan begin; one that runs is first asked to end."""
        self.pending[name] = begin
        if self.is_open(name):
            self.supersede(name, begin.what)
        self._changed()

    def supersede(self, name: str, why: str) -> None:
        """Ask a plan that runs to leave its work and end."""
        self._outbox.put(self.workflow_id(name), "supersede", Supersede(why=why))

    def drop(self, name: str) -> None:
        """There is no such plan any more; one that runs is asked to end, and forgotten then."""
        self.pending.pop(name, None)
        if self.is_open(name):
            self.supersede(name, "the service no longer has it")
            self.records[name] = self.records[name].but(dropped=True)
        else:
            self.records.pop(name, None)

    def start_ready(self, may_begin: Callable[[str], bool], *, config: int) -> None:
        """Start the pending plans whose former run is over."""
        for name in list(self.pending):
            free = name not in self._starting and not self._outbox.sending(self.workflow_id(name))
            if free and not self.is_open(name) and may_begin(name):
                self._start(name, self.pending.pop(name), config)

    def _start(self, name: str, begin: PlanBegin, config: int) -> None:
        old = self.records.get(name)
        record = PlanRecord(
            name=name,
            workflow_id=self.workflow_id(name),
            priority=PRIORITY.get(name, _OTHERS + len(self.records)),
            run=self._last_number(name) + 1,
            open=True,
            changed=workflow.now(),
        )
        if old is not None and name not in PRIORITY:
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
                input=self._make(begin, record),
            )
        )

    def _last_number(self, name: str) -> int:
        """The number of a plan's last run. A plan that was dropped, and is back, counts on: a
        number that was given before would be taken for started already."""
        if name in self.records:
            return self.records[name].run
        runs = (one.run for one in self._runs if one.plan == name and name != RECOVERY)
        return max(runs, default=0)

    def resume(self) -> None:
        """Start what the run before was about to start; ``start_plan`` does nothing twice."""
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
            heartbeat_timeout=HEARTBEAT,
            summary=f"start {name}",
        )
        del self._starting[name]
        self._outbox.let(start.workflow_id)
        self._changed()

    # --- what plans say ---

    def is_newest(self, report: PlanReport) -> bool:
        """Whether the plan's newest run says so, and not a former one that somebody has reset, or
        one of a service of the same name that was terminated."""
        record = self.records.get(report.plan)
        if record is None or record.workflow_id != report.workflow_id:
            return False
        ours = report.starter in ("", workflow.info().first_execution_run_id)
        return ours and report.run in (0, record.run)

    def take(self, report: PlanReport) -> bool:
        """Keep what a plan says of itself; whether it is over by that."""
        record = self.records.get(report.plan)
        if record is None or not record.open or not self.is_newest(report):
            return False
        self.records[report.plan] = record.but(
            status=report.status,
            open=report.open,
            superseded=report.superseded,
            changed=workflow.now(),
        )
        self._note(report)
        if not report.open:
            self._closed(report.plan)
        return not report.open

    def _closed(self, name: str) -> None:
        self._outbox.forget(self.workflow_id(name))
        if self.records[name].dropped:
            del self.records[name]
        self._changed()

    # --- looking after those that say nothing ---

    @property
    def look_every(self) -> timedelta | None:
        """How often open plans are looked for; None when there are none."""
        open_plans = [one for one in self.records.values() if one.open]
        if not open_plans:
            return None
        if any(one.dropped or one.name in self.pending for one in open_plans):
            return LOOK_AFTER_LEAVING
        idle = (Status.COMPLETE, Status.WAITING)
        return LOOK_AFTER_STANDING if all(p.status in idle for p in open_plans) else LOOK_AFTER

    async def look_after(self) -> tuple[PlanRecord, ...]:
        """Find plans that ended without a word, because somebody terminated them. Not among those
        that are being started: of such a one only the former run may be there yet."""
        asked = {
            plan.workflow_id: plan
            for plan in self.records.values()
            if plan.open and plan.name not in self._starting
        }
        answer = await workflow.execute_activity(
            "closed_plans",
            OpenPlans(workflow_ids=tuple(asked)),
            result_type=ClosedPlans,
            start_to_close_timeout=timedelta(minutes=1),
            summary="which plans are over",
        )
        return tuple(
            closed
            for workflow_id in answer.workflow_ids
            if (closed := self._found_closed(asked[workflow_id])) is not None
        )

    def _found_closed(self, asked: PlanRecord) -> PlanRecord | None:
        record = self.records.get(asked.name)
        if record is None or not record.open or record.run != asked.run:
            return None
        report = PlanReport(
            plan=record.name,
            run=record.run,
            workflow_id=record.workflow_id,
            status=record.status,
            open=False,
        )
        self.take(report)
        return record

    # --- what is remembered of runs ---

    def _record_run(self, record: PlanRecord, begin: PlanBegin, config: int) -> None:
        if record.name == RECOVERY:  # it always runs; every recovery is remembered as a run of it
            return
        self.remember(
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

    def remember(self, run: RunRecord) -> None:
        """Keep a run, and forget the oldest of its plan when there are many."""
        self._runs.append(run)
        same = [one for one in self._runs if one.plan == run.plan]
        if len(same) > RUNS_KEPT:
            self._runs.remove(same[0])
            self._dropped += 1

    def end_run(
        self, plan: str, run: int, what: str, now: datetime, *, superseded: bool = False
    ) -> None:
        """What was remembered as a run is complete, or something else took its place."""
        for index, one in enumerate(self._runs):
            if (one.plan, one.run, one.what, one.ended) == (plan, run, what, None):
                status = one.status if superseded else Status.COMPLETE
                self._runs[index] = one.but(status=status, superseded=superseded, ended=now)

    def last_run(self, plan: str) -> RunRecord:
        """The newest run of a plan that was begun."""
        return next(one for one in reversed(self._runs) if one.plan == plan)

    def _note(self, report: PlanReport) -> None:
        if report.plan == RECOVERY:
            return
        run = self.records[report.plan].run
        for index, one in enumerate(self._runs):
            if (one.plan, one.run) == (report.plan, run):
                self._runs[index] = one.but(
                    status=report.status,
                    superseded=report.superseded,
                    ended=None if report.open else workflow.now(),
                    run_id=report.run_id or one.run_id,
                )
