"""Temporal Schedules of plans, with typed answers, as ``gateway`` has them for workflows.

A service's plan is run by the workflow ``ScheduledRun``; a plan without a service is started
itself. Schedules whose action has another workflow type are not ours.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pydantic import ValidationError
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleListActionStartWorkflow,
    ScheduleListDescription,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.domain.values.model import Duration, Value
from temporal_plans.messages.plans import PlanInput
from temporal_plans.messages.schedules import ScheduledPlan

SCHEDULED_RUN_TYPE, PLAN_TYPE = "ScheduledRun", "Plan"

_PAGE_SIZE = 1000


class Overlap(StrEnum):
    """The policy for a run that is due while the previous one is not over: Temporal's policies."""

    SKIP = "skip"
    BUFFER_ONE = "buffer-one"
    BUFFER_ALL = "buffer-all"
    CANCEL_OTHER = "cancel-other"
    TERMINATE_OTHER = "terminate-other"
    ALLOW_ALL = "allow-all"


class Timetable(Value):
    """When a schedule runs: by cron expressions (five fields, as Temporal reads them), at intervals
    (``every``), or both. ``time_zone`` is an IANA name for ``cron``; UTC when empty."""

    cron: tuple[str, ...] = ()
    every: tuple[Duration, ...] = ()
    time_zone: str = ""


class ScheduleRequest(Value):
    """A schedule to create. ``work`` is the input of the workflow that its runs start."""

    id: str
    work: ScheduledPlan | PlanInput
    when: Timetable
    overlap: Overlap = Overlap.SKIP
    note: str = ""


class ScheduleRun(Value):
    """A run that a schedule started."""

    at: datetime
    workflow_id: str


class ScheduleSummary(Value):
    """A schedule in a list, with its next and most recent runs."""

    id: str
    when: Timetable
    paused: bool = False
    note: str = ""
    next: tuple[datetime, ...] = ()
    recent: tuple[ScheduleRun, ...] = ()


class ScheduleView(ScheduleSummary):
    """A schedule with all details.

    ``plan`` is the plan's name. ``runs``, ``skipped`` and ``missed`` are numbers: runs are skipped
    while another is not over, and missed while the server is down for longer than its catch-up
    window.
    """

    plan: str
    service: str = ""
    parameters: dict[str, str] = {}
    overlap: Overlap = Overlap.SKIP
    runs: int = 0
    skipped: int = 0
    missed: int = 0
    running: tuple[str, ...] = ()


class ScheduleExists(Exception):
    """A schedule with this id already exists."""


class Schedules(Protocol):
    """The calls for schedules. All but ``create`` and ``list`` raise ``gateway.NoSuchWorkflow`` for
    an unknown id."""

    async def create(self, request: ScheduleRequest) -> None:
        """Raises ScheduleExists, and Refused with the server's reason."""
        ...

    async def list(self) -> list[ScheduleSummary]: ...

    async def show(self, schedule_id: str) -> ScheduleView: ...

    async def pause(self, schedule_id: str, note: str) -> None: ...

    async def unpause(self, schedule_id: str, note: str) -> None: ...

    async def trigger(self, schedule_id: str) -> None: ...

    async def delete(self, schedule_id: str) -> None: ...


class ServerCall(Protocol):
    """The context of a call to the server. ``sent`` is the request that may be carried out even if
    the call fails."""

    def __call__(self, *, sent: str = "") -> AbstractAsyncContextManager[None]: ...


class TemporalSchedules:
    """The Schedules over a connected client. ``server_call`` translates the SDK's errors."""

    def __init__(
        self,
        client: Client,
        server_call: ServerCall,
        task_queue: str,
    ) -> None:
        self._client = client
        self._server_call = server_call
        self._task_queue = task_queue

    async def create(self, request: ScheduleRequest) -> None:
        try:
            async with self._server_call(sent="create command"):
                await self._client.create_schedule(request.id, self._schedule(request))
        except ScheduleAlreadyRunningError as error:
            raise ScheduleExists from error

    def _schedule(self, request: ScheduleRequest) -> Schedule:
        work = request.work
        if isinstance(work, ScheduledPlan):
            type_, workflow_id = SCHEDULED_RUN_TYPE, f"scheduled/{request.id}"
            summary = f"scheduled: {work.plan} of {work.service}"
        else:
            type_, workflow_id, summary = PLAN_TYPE, request.id, work.description or work.name
        return Schedule(
            action=ScheduleActionStartWorkflow(
                type_,
                work,
                id=workflow_id,
                task_queue=self._task_queue,
                static_summary=summary[:190],
            ),
            spec=ScheduleSpec(
                cron_expressions=[_with_comment(cron) for cron in request.when.cron],
                intervals=[ScheduleIntervalSpec(every=every) for every in request.when.every],
                time_zone_name=request.when.time_zone or None,
            ),
            policy=SchedulePolicy(overlap=_POLICY[request.overlap]),
            state=ScheduleState(note=request.note or None),
        )

    async def list(self) -> list[ScheduleSummary]:
        async with self._server_call():
            found = await self._client.list_schedules(page_size=_PAGE_SIZE)
            summaries = [_summary(listed) async for listed in found if _is_ours(listed)]
        return sorted(summaries, key=lambda summary: summary.id)

    async def show(self, schedule_id: str) -> ScheduleView:
        async with self._server_call():
            described = await self._client.get_schedule_handle(schedule_id).describe()
            return await self._view(described)

    async def _view(self, described: ScheduleDescription) -> ScheduleView:
        schedule, info = described.schedule, described.info
        summary = ScheduleSummary(
            id=described.id,
            when=_timetable(schedule.spec),
            paused=schedule.state.paused,
            note=schedule.state.note or "",
            next=tuple(info.next_action_times),
            recent=_recent(info.recent_actions),
        )
        running = [
            run.workflow_id
            for run in info.running_actions
            if isinstance(run, ScheduleActionExecutionStartWorkflow)
        ]
        view = ScheduleView(
            **{name: getattr(summary, name) for name in ScheduleSummary.model_fields},
            plan="?",
            overlap=_OVERLAP[schedule.policy.overlap],
            runs=info.num_actions,
            skipped=info.num_actions_skipped_overlap,
            missed=info.num_actions_missed_catchup_window,
            running=tuple(running),
        )
        match await self._work(schedule.action):
            case ScheduledPlan(service=service, plan=plan, parameters=parameters):
                return view.but(plan=plan, service=service, parameters=parameters)
            case PlanInput(name=name, arguments=arguments):
                return view.but(plan=name, parameters=arguments)
            case None:
                return view

    async def _work(self, action: object) -> ScheduledPlan | PlanInput | None:
        """Return the input of the schedule's runs; None for one that is not ours, as of a schedule
        that was created by hand."""
        if not isinstance(action, ScheduleActionStartWorkflow):
            return None
        kind = {SCHEDULED_RUN_TYPE: ScheduledPlan, PLAN_TYPE: PlanInput}.get(action.workflow)
        if kind is None or not action.args:
            return None
        try:
            [work] = await self._client.data_converter.decode(action.args, [kind])
        except (ValueError, ValidationError):
            return None
        return work if isinstance(work, ScheduledPlan | PlanInput) else None

    async def pause(self, schedule_id: str, note: str) -> None:
        async with self._server_call(sent="pause command"):
            await self._client.get_schedule_handle(schedule_id).pause(note=note)

    async def unpause(self, schedule_id: str, note: str) -> None:
        async with self._server_call(sent="unpause command"):
            await self._client.get_schedule_handle(schedule_id).unpause(note=note)

    async def trigger(self, schedule_id: str) -> None:
        async with self._server_call(sent="trigger command"):
            await self._client.get_schedule_handle(schedule_id).trigger()

    async def delete(self, schedule_id: str) -> None:
        schedule = self._client.get_schedule_handle(schedule_id)
        async with self._server_call():
            await schedule.describe()
        async with self._server_call(sent="delete command"):
            try:
                await schedule.delete()
            except RPCError as error:  # a retry of the SDK does not find the deleted schedule
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise


_POLICY = {
    Overlap.SKIP: ScheduleOverlapPolicy.SKIP,
    Overlap.BUFFER_ONE: ScheduleOverlapPolicy.BUFFER_ONE,
    Overlap.BUFFER_ALL: ScheduleOverlapPolicy.BUFFER_ALL,
    Overlap.CANCEL_OTHER: ScheduleOverlapPolicy.CANCEL_OTHER,
    Overlap.TERMINATE_OTHER: ScheduleOverlapPolicy.TERMINATE_OTHER,
    Overlap.ALLOW_ALL: ScheduleOverlapPolicy.ALLOW_ALL,
}
_OVERLAP = {policy: overlap for overlap, policy in _POLICY.items()}


def _is_ours(listed: ScheduleListDescription) -> bool:
    action = listed.schedule.action if listed.schedule else None
    return isinstance(action, ScheduleListActionStartWorkflow) and action.workflow in (
        SCHEDULED_RUN_TYPE,
        PLAN_TYPE,
    )


def _summary(listed: ScheduleListDescription) -> ScheduleSummary:
    schedule, info = listed.schedule, listed.info
    return ScheduleSummary(
        id=listed.id,
        when=_timetable(schedule.spec) if schedule else Timetable(),
        paused=bool(schedule and schedule.state.paused),
        note=(schedule.state.note if schedule else "") or "",
        next=tuple(info.next_action_times) if info else (),
        recent=_recent(info.recent_actions) if info else (),
    )


def _recent(actions: Sequence[ScheduleActionResult]) -> tuple[ScheduleRun, ...]:
    return tuple(
        ScheduleRun(at=result.started_at, workflow_id=result.action.workflow_id)
        for result in actions
        if isinstance(result.action, ScheduleActionExecutionStartWorkflow)
    )


def _with_comment(cron: str) -> str:
    """Return the expression with itself as comment: the server keeps a calendar and the comment
    only."""
    return cron if "#" in cron else f"{cron} # {cron}"


def _timetable(spec: ScheduleSpec) -> Timetable:
    comments = [calendar.comment or "a calendar" for calendar in spec.calendars]
    return Timetable(
        cron=tuple(dict.fromkeys([*spec.cron_expressions, *(c.strip() for c in comments)])),
        every=tuple(interval.every for interval in spec.intervals),
        time_zone=spec.time_zone_name or "",
    )
