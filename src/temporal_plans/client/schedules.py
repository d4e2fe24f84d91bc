"""Temporal's Schedules of plans, with typed answers: what ``client.gateway`` is for workflows.

A plan of a service is run by the workflow ``ScheduledRun``, a plan of no service is started as it
is; so the workflow type of a schedule's action tells ours from other people's.
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

from temporal_plans.domain.model import Duration, Value
from temporal_plans.messages.plan import PlanInput
from temporal_plans.messages.scheduled import ScheduledPlan

OF_SERVICE, OF_NONE = "ScheduledRun", "Plan"

_MANY = 1000


class Overlap(StrEnum):
    """What happens when a run is due and the one before is not over: Temporal's own policies."""

    SKIP = "skip"
    BUFFER_ONE = "buffer-one"
    BUFFER_ALL = "buffer-all"
    CANCEL_OTHER = "cancel-other"
    TERMINATE_OTHER = "terminate-other"
    ALLOW_ALL = "allow-all"


class Timetable(Value):
    """When: cron expressions (five fields, as Temporal reads them), intervals, or both.
    ``time_zone`` is an IANA name for the former; UTC when empty."""

    cron: tuple[str, ...] = ()
    every: tuple[Duration, ...] = ()
    time_zone: str = ""


class ScheduleOrder(Value):
    """A schedule to be made. ``work`` is what its runs start."""

    id: str
    work: ScheduledPlan | PlanInput
    when: Timetable
    overlap: Overlap = Overlap.SKIP
    note: str = ""


class ScheduleRun(Value):
    """A run that a schedule began."""

    at: datetime
    workflow_id: str


class ScheduleLine(Value):
    """A schedule as it is listed."""

    id: str
    when: Timetable
    paused: bool = False
    note: str = ""
    next: tuple[datetime, ...] = ()
    recent: tuple[ScheduleRun, ...] = ()


class ScheduleView(ScheduleLine):
    """A schedule with all that there is to say. ``plan`` is a plan's id, or the name of a plan of
    no service; ``skipped`` runs were due while another was not over, ``missed`` ones while the
    server was down for longer than it makes up for."""

    plan: str
    service: str = ""
    parameters: dict[str, str] = {}
    overlap: Overlap = Overlap.SKIP
    runs: int = 0
    skipped: int = 0
    missed: int = 0
    running: tuple[str, ...] = ()


class ScheduleExists(Exception):
    """There is a schedule of this id already."""


class Schedules(Protocol):
    """All but ``create`` and ``list`` raise ``gateway.NoSuchWorkflow`` for an unknown id."""

    async def create(self, order: ScheduleOrder) -> None:
        """Raises ScheduleExists, and Refused with the server's reason."""
        ...

    async def list(self) -> list[ScheduleLine]: ...

    async def show(self, schedule_id: str) -> ScheduleView: ...

    async def pause(self, schedule_id: str, note: str) -> None: ...

    async def unpause(self, schedule_id: str, note: str) -> None: ...

    async def trigger(self, schedule_id: str) -> None: ...

    async def delete(self, schedule_id: str) -> None: ...


class Calling(Protocol):
    """Around a call to the server. ``sent``: what may have been carried out though it failed."""

    def __call__(self, *, sent: str = "") -> AbstractAsyncContextManager[None]: ...


class TemporalSchedules:
    """``calling`` turns the SDK's errors into the gateway's."""

    def __init__(
        self,
        client: Client,
        calling: Calling,
        task_queue: str,
    ) -> None:
        self._client = client
        self._calling = calling
        self._task_queue = task_queue

    async def create(self, order: ScheduleOrder) -> None:
        try:
            async with self._calling(sent="create command"):
                await self._client.create_schedule(order.id, self._schedule(order))
        except ScheduleAlreadyRunningError as error:
            raise ScheduleExists from error

    def _schedule(self, order: ScheduleOrder) -> Schedule:
        work = order.work
        if isinstance(work, ScheduledPlan):
            type_, workflow_id = OF_SERVICE, f"scheduled/{order.id}"
            summary = f"scheduled: {work.plan} of {work.service}"
        else:
            type_, workflow_id, summary = OF_NONE, order.id, work.description or work.name
        return Schedule(
            action=ScheduleActionStartWorkflow(
                type_,
                work,
                id=workflow_id,
                task_queue=self._task_queue,
                static_summary=summary[:190],
            ),
            spec=ScheduleSpec(
                cron_expressions=[_with_comment(cron) for cron in order.when.cron],
                intervals=[ScheduleIntervalSpec(every=every) for every in order.when.every],
                time_zone_name=order.when.time_zone or None,
            ),
            policy=SchedulePolicy(overlap=_POLICY[order.overlap]),
            state=ScheduleState(note=order.note or None),
        )

    async def list(self) -> list[ScheduleLine]:
        async with self._calling():
            found = await self._client.list_schedules(page_size=_MANY)
            lines = [_line(one) async for one in found if _is_ours(one)]
        return sorted(lines, key=lambda line: line.id)

    async def show(self, schedule_id: str) -> ScheduleView:
        async with self._calling():
            described = await self._client.get_schedule_handle(schedule_id).describe()
            return await self._view(described)

    async def _view(self, described: ScheduleDescription) -> ScheduleView:
        schedule, info = described.schedule, described.info
        line = ScheduleLine(
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
            **{name: getattr(line, name) for name in ScheduleLine.model_fields},
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
        """None for a schedule that somebody made by hand, with another input than ours."""
        if not isinstance(action, ScheduleActionStartWorkflow):
            return None
        kind = {OF_SERVICE: ScheduledPlan, OF_NONE: PlanInput}.get(action.workflow)
        if kind is None or not action.args:
            return None
        try:
            [work] = await self._client.data_converter.decode(action.args, [kind])
        except (ValueError, ValidationError):
            return None
        return work if isinstance(work, ScheduledPlan | PlanInput) else None

    async def pause(self, schedule_id: str, note: str) -> None:
        async with self._calling(sent="pause command"):
            await self._client.get_schedule_handle(schedule_id).pause(note=note)

    async def unpause(self, schedule_id: str, note: str) -> None:
        async with self._calling(sent="unpause command"):
            await self._client.get_schedule_handle(schedule_id).unpause(note=note)

    async def trigger(self, schedule_id: str) -> None:
        async with self._calling(sent="trigger command"):
            await self._client.get_schedule_handle(schedule_id).trigger()

    async def delete(self, schedule_id: str) -> None:
        schedule = self._client.get_schedule_handle(schedule_id)
        async with self._calling():
            await schedule.describe()
        async with self._calling(sent="delete command"):
            try:
                await schedule.delete()
            except RPCError as error:  # sent again by the SDK, it finds nothing any more
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
        OF_SERVICE,
        OF_NONE,
    )


def _line(listed: ScheduleListDescription) -> ScheduleLine:
    schedule, info = listed.schedule, listed.info
    return ScheduleLine(
        id=listed.id,
        when=_timetable(schedule.spec) if schedule else Timetable(),
        paused=bool(schedule and schedule.state.paused),
        note=(schedule.state.note if schedule else "") or "",
        next=tuple(info.next_action_times) if info else (),
        recent=_recent(info.recent_actions) if info else (),
    )


def _recent(actions: Sequence[ScheduleActionResult]) -> tuple[ScheduleRun, ...]:
    return tuple(
        ScheduleRun(at=one.started_at, workflow_id=one.action.workflow_id)
        for one in actions
        if isinstance(one.action, ScheduleActionExecutionStartWorkflow)
    )


def _with_comment(cron: str) -> str:
    """The server makes a calendar of it and forgets the text, but keeps a comment."""
    return cron if "#" in cron else f"{cron} # {cron}"


def _timetable(spec: ScheduleSpec) -> Timetable:
    comments = [calendar.comment or "a calendar" for calendar in spec.calendars]
    return Timetable(
        cron=tuple(dict.fromkeys([*spec.cron_expressions, *(c.strip() for c in comments)])),
        every=tuple(interval.every for interval in spec.intervals),
        time_zone=spec.time_zone_name or "",
    )
