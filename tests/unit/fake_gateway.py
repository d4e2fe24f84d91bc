"""Workflows that answer from memory, in the place of Temporal: for tests of what asks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import BaseModel

from builders.contents import MemoryContents
from temporal_plans.client.errors import AgentUnreachable, ClusterUnreachable, Unreadable
from temporal_plans.client.temporal.executions import Ended, Execution
from temporal_plans.client.temporal.schedules import (
    ScheduleExists,
    ScheduleRequest,
    ScheduleSummary,
    ScheduleView,
)
from temporal_plans.client.temporal.workflow_errors import (
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsOpen,
)
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.owners import CommonStatus, OwnerStatus
from temporal_plans.messages.schedules import ScheduledPlan

Model = TypeVar("Model", bound=BaseModel)
Answer = BaseModel | Exception

THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class FakeWorkflow:
    """``answers`` by the name of the query or update; an exception is raised instead."""

    type: str
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    ended: Ended | None = None
    scheduled: bool = False
    input: BaseModel | None = None
    result: BaseModel | None = None
    results: dict[str, BaseModel] = field(default_factory=dict[str, BaseModel])
    """those of earlier runs, by run id, oldest first"""


@dataclass(frozen=True)
class Call:
    """What was asked or told: workflow or task queue, name, argument."""

    to: str
    name: str
    argument: BaseModel | None = None


@dataclass
class FakeSchedules:
    """Schedules that never run."""

    requests: dict[str, ScheduleRequest] = field(default_factory=dict[str, ScheduleRequest])
    told: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    async def create(self, request: ScheduleRequest) -> None:
        if request.id in self.requests:
            raise ScheduleExists
        self.requests[request.id] = request

    async def show(self, schedule_id: str) -> ScheduleView:
        request = self._known(schedule_id)
        work = request.work
        if isinstance(work, ScheduledPlan):
            service, name, parameters = work.service, work.plan, work.parameters
        else:
            service, name, parameters = "", work.name, work.arguments
        return ScheduleView(
            id=request.id,
            when=request.when,
            note=request.note,
            plan=name,
            service=service,
            parameters=parameters,
            overlap=request.overlap,
        )

    async def pause(self, schedule_id: str, note: str) -> None:
        self._tell(schedule_id, "pause", note)

    async def unpause(self, schedule_id: str, note: str) -> None:
        self._tell(schedule_id, "unpause", note)

    async def trigger(self, schedule_id: str) -> None:
        self._tell(schedule_id, "trigger")

    async def delete(self, schedule_id: str) -> None:
        self._tell(schedule_id, "delete")
        del self.requests[schedule_id]

    async def list(self) -> list[ScheduleSummary]:
        return [
            ScheduleSummary(id=request.id, when=request.when, note=request.note)
            for request in self.requests.values()
        ]

    def _tell(self, schedule_id: str, what: str, note: str = "") -> None:
        self._known(schedule_id)
        self.told.append((what, schedule_id, note))

    def _known(self, schedule_id: str) -> ScheduleRequest:
        if schedule_id not in self.requests:
            raise NoSuchWorkflow(schedule_id)
        return self.requests[schedule_id]


@dataclass
class FakeGateway:
    """A ``Gateway``; everything that changes something is kept in ``told``."""

    workflows: dict[str, FakeWorkflow] = field(default_factory=dict[str, FakeWorkflow])
    queues: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    told: list[Call] = field(default_factory=list[Call])
    begins: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """what a workflow that an update starts answers to it"""
    ends_with: dict[str, str] = field(default_factory=dict[str, str])
    """which workflow ends once another was looked at"""
    work: dict[str, Sequence[PendingWork]] = field(default_factory=dict[str, Sequence[PendingWork]])
    """by workflow id"""
    stands_still: Sequence[StuckWorkflow] = ()
    schedules: FakeSchedules = field(default_factory=FakeSchedules)
    contents: MemoryContents = field(default_factory=MemoryContents)

    async def describe(self, workflow_id: str) -> Execution:
        known = self._known(workflow_id)
        return Execution(workflow_id, THEN, ended=known.ended, type=known.type)

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        if workflow_id not in self.workflows:
            return []
        workflow = self.workflows[workflow_id]
        newest = Execution(workflow_id, THEN, ended=workflow.ended)
        earlier = [
            Execution(workflow_id, THEN, THEN + timedelta(minutes=1), Ended.COMPLETED, run_id)
            for run_id in reversed(workflow.results)
        ]
        return [newest, *earlier][:limit]

    async def list(self, query: str, limit: int) -> list[Execution]:
        running = "AND ExecutionStatus = 'Running'" in query
        unscheduled = "TemporalScheduledById IS NULL OR ExecutionStatus = 'Running'" in query
        return [
            Execution(id, THEN, ended=workflow.ended)
            for id, workflow in self.workflows.items()
            if f"'{workflow.type}'" in query
            and (workflow.ended is None or not running)
            and (workflow.ended is None or not (unscheduled and workflow.scheduled))
        ][:limit]

    async def query(
        self,
        workflow_id: str,
        name: str,
        result: type[Model],
        argument: BaseModel | None = None,
        *,
        open_only: bool = False,
    ) -> Model:
        workflow = self._known(workflow_id)
        if open_only and workflow.ended is not None:
            raise WorkflowIsClosed(workflow.ended)
        if workflow_id in self.ends_with:
            self.workflows[self.ends_with[workflow_id]].ended = Ended.COMPLETED
        return _given(workflow.answers[name], result)

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        workflow = self._known(workflow_id)
        if workflow.ended is not None:
            raise WorkflowIsClosed
        self.told.append(Call(workflow_id, name, argument))
        return _given(workflow.answers[name], result)

    async def start(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        *,
        summary: str = "",
        memo: Mapping[str, str] | None = None,
    ) -> None:
        if workflow_id in self.workflows and self.workflows[workflow_id].ended is None:
            raise WorkflowIsOpen
        self.told.append(Call(workflow_id, "start", argument))
        self.workflows[workflow_id] = FakeWorkflow(workflow_type, input=argument)

    async def start_and_update(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        name: str,
        result: type[Model],
        *,
        request: BaseModel | None = None,
    ) -> Model:
        if workflow_id not in self.workflows and name in self.begins:
            self.workflows[workflow_id] = FakeWorkflow(workflow_type, {name: self.begins[name]})
        return await self.update(workflow_id, name, request or argument, result)

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        return _given(self._known(workflow_id).input, model)

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        workflow = self._known(workflow_id)
        return _given(workflow.results.get(run_id, workflow.result), model)

    async def ask_agent(
        self,
        agent: str,
        queue: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        if not self.queues.get(queue):
            raise AgentUnreachable(agent, timeout.total_seconds())
        self.told.append(Call(queue, activity, argument))
        return _given(self.queues[queue].pop(0), result)

    async def ask_cluster(
        self,
        cluster: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        queue = f"kubernetes/{cluster}"
        if not self.queues.get(queue):
            raise ClusterUnreachable(cluster, timeout.total_seconds())
        self.told.append(Call(queue, activity, argument))
        return _given(self.queues[queue].pop(0), result)

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        return {id: self.work[id] for id in workflow_ids if id in self.work}

    async def stuck(self, workflow_ids: Sequence[str], limit: int) -> Sequence[StuckWorkflow]:
        return [
            one
            for one in self.stands_still
            if any(f"{one.workflow_id}/".startswith(f"{id}/") for id in workflow_ids)
        ]

    async def put_content(self, data: bytes) -> str:
        return await self.contents.put(data)

    async def get_content(self, digest: str) -> bytes:
        return await self.contents.get(digest)

    def _known(self, workflow_id: str) -> FakeWorkflow:
        if workflow_id not in self.workflows:
            raise NoSuchWorkflow(workflow_id)
        return self.workflows[workflow_id]


def _given(answer: Answer | None, kind: type[Model]) -> Model:
    if isinstance(answer, Exception):
        raise answer
    if answer is None:
        raise Unreadable("the fake has no answer")
    read: BaseModel = answer
    if isinstance(answer, OwnerStatus) and issubclass(kind, CommonStatus):
        read = kind.model_validate(answer.model_dump(mode="json"))  # as it is read from its JSON
    assert isinstance(read, kind)
    return read  # pyright: ignore[reportReturnType]
