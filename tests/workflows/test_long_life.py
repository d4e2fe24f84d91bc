"""A service that lives through ten thousand failures keeps its history, its state and its answers
small. Its plans are doubles that launch at once; what is tested is the service's own memory."""

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from builders.clock import NOW
from pauses import PATIENCE, Pauses
from process_memory import resident_memory
from temporal_plans.activities.owners.plans import PlanActivities
from temporal_plans.activities.services.configurations import ConfigurationActivities
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.launch import LaunchIntent, LaunchOrder
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_id, task_instance_name
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.plans import (
    EngineInput,
    OwnerContext,
    PlanFaults,
    PlanInput,
    PlanReport,
    PlanRevision,
    Supersede,
)
from temporal_plans.messages.services import ServiceInput, ServiceStatus, Tasks
from temporal_plans.messages.tasks import TaskStatuses
from temporal_plans.workflows.mechanics.guard import PlansInterceptor
from temporal_plans.workflows.plans.registry import EXTERN, Registry
from temporal_plans.workflows.services.service import Service

PODS, TASKS, ROUNDS = 5, 40, 50
assert PODS * TASKS * ROUNDS == 10_000
NAMES = [f"task-{i}" for i in range(TASKS)]
SPEC_TASKS = tuple(
    TaskSpec(name=name, goal=Goal.RUNNING, cmd="true", resource_set=name) for name in NAMES
)
POD = PodSpec(
    type="web",
    count=PODS,
    tasks=SPEC_TASKS,
    resource_sets=tuple(ResourceSet(id=name, cpus=0.1) for name in NAMES),
)
LONG = timedelta(minutes=1)


def _context(input: PlanInput) -> OwnerContext:
    assert input.engine is not None
    assert input.engine.context is not None
    return input.engine.context


def _config_id(input: PlanInput) -> str:
    pods = _context(input).pods
    return pods.config_id if pods else ""


@workflow.defn(name="Plan", sandboxed=False)
class PlanDouble:
    """Deploy launches every pod and ends; recovery launches whatever it is told to."""

    def __init__(self) -> None:
        self._revisions: list[PlanRevision] = []

    @workflow.run
    async def run(self, input: PlanInput) -> None:
        await self._launch(input, input.phases)
        engine = input.engine or EngineInput()
        taken = engine.revision
        await self._report(input, open=engine.standing, revision=taken)
        while engine.standing:
            await workflow.wait_condition(lambda: bool(self._revisions))
            revision = self._revisions.pop(0)
            await self._launch(input, [put.spec for put in revision.put])
            taken = max(taken, revision.number)
            await self._report(input, open=True, revision=taken)
            if workflow.info().get_current_history_length() > 2000 and not self._revisions:
                workflow.continue_as_new(input.but(phases=(), engine=engine.but(revision=taken)))

    async def _launch(self, input: PlanInput, phases: Sequence[PhaseSpec]) -> None:
        launches = (
            self._launch_pod(input, phase.name, step.work)
            for phase in phases
            for step in phase.steps
            if isinstance(step.work, PodWork)
        )
        await asyncio.gather(*launches)

    @staticmethod
    async def _launch_pod(input: PlanInput, phase: str, work: PodWork) -> None:
        intent = LaunchIntent(
            owner="",
            step=f"{_context(input).owner}/{input.name}/{phase}/{work.pod}-{work.index}",
            pod=work.pod,
            index=work.index,
            config_id=work.config_id or _config_id(input),
            reservation=Reservation(
                id=f"r-{work.index}",
                owner=_context(input).workflow_id,
                pod=work.pod,
                index=work.index,
                agent="a1",
                queue="queue-a1",
                hostname="host",
                created=NOW,
            ),
            tasks=tuple(
                TaskLaunch(
                    task_id=task_id(
                        _context(input).owner,
                        task_instance_name(work.pod, work.index, task),
                        str(workflow.uuid4()),
                    ),
                    task=task,
                )
                for task in work.tasks
            ),
        )
        await workflow.execute_activity(
            "launch_double",
            args=[_context(input).workflow_id, intent],
            start_to_close_timeout=LONG,
        )

    @staticmethod
    async def _report(input: PlanInput, *, open: bool, revision: int) -> None:
        service = workflow.get_external_workflow_handle(_context(input).workflow_id)
        report = PlanReport(
            plan=input.name,
            workflow_id=workflow.info().workflow_id,
            status=Status.COMPLETE,
            open=open,
            revision=revision,
        )
        await service.signal("plan_changed", report)

    @workflow.signal
    def revise(self, revision: PlanRevision) -> None:
        self._revisions.append(revision)

    @workflow.signal
    def supersede(self, _: Supersede) -> None: ...

    @workflow.signal
    def faults(self, _: PlanFaults) -> None: ...


class Launches:
    """Records launches with the service, and says that they run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="launch_double")
    async def launch(self, service: str, intent: LaunchIntent) -> None:
        handle = self._client.get_workflow_handle(service)
        ids = [task.task_id for task in intent.tasks]
        try:
            await handle.execute_update("record_launch", intent, id=ids[0], result_type=LaunchOrder)
        except WorkflowUpdateFailedError as error:
            if "was cancelled" in str(error.cause):
                return  # a later revision has the rest of the pod, too
            raise
        await handle.signal("task_statuses", _said(ids, TaskState.RUNNING, 0))


def _said(ids: list[str], state: TaskState, sequence: int) -> TaskStatuses:
    return TaskStatuses(
        statuses=tuple(
            TaskStatus(
                task_id=one,
                name=one.split("__")[1],
                state=state,
                sequence=sequence,
                at=datetime.now(UTC),
                message="exit code 1" if state is TaskState.FAILED else "",
                agent="a1",
                queue="queue-a1",
            )
            for one in ids
        )
    )


@dataclass
class LongLife:
    """The service, and what is asked of it."""

    handle: WorkflowHandle[Any, None]

    async def records(self) -> tuple[TaskRecord, ...]:
        answer: Tasks = await self.handle.query("tasks", result_type=Tasks)
        return answer.tasks

    async def until_all_run(self, but: frozenset[str] = frozenset()) -> list[str]:
        """Until all tasks run, none under one of these ids; their ids."""
        pauses = Pauses()
        async with asyncio.timeout(PATIENCE):
            while True:
                status: ServiceStatus = await self.handle.query("status", result_type=ServiceStatus)
                if status.running == PODS * TASKS:
                    ids = [record.task_id for record in await self.records()]
                    if but.isdisjoint(ids):
                        return ids
                await pauses.pause()

    async def fail_all(self, ids: list[str]) -> list[str]:
        """All tasks fail; the ids of those that then run in their place."""
        for start in range(0, len(ids), TASKS):
            said = _said(ids[start : start + TASKS], TaskState.FAILED, 1)
            await self.handle.signal("task_statuses", said)
        return await self.until_all_run(but=frozenset(ids))

    async def slowest_answer(self) -> float:
        """Seconds of the slowest query, each at its best of some."""
        slowest = 0.0
        for name in ("status", "pods", "tasks", "runs", "configurations"):
            times: list[float] = []
            for _ in range(25):  # other processes want the processor too
                began = time.perf_counter()
                await self.handle.query(name)
                times.append(time.perf_counter() - began)
            slowest = max(slowest, min(times))
        return slowest

    async def carried(self) -> int:
        """Characters of the state that its newest run began with."""
        history = await self.handle.fetch_history()
        started = history.events[0].workflow_execution_started_event_attributes
        return len(started.input.payloads[0].data)


def _memory() -> int:
    """KiB that this process, which is the worker, holds."""
    gc.collect()
    return resident_memory() // 1024


EXTERNS = {EXTERN: Registry(runners={})}


@pytest.mark.long
@pytest.mark.cached("thousands of updates would each replay all before")
async def test_ten_thousand_failures(env: WorkflowEnvironment) -> None:
    client = await Client.connect(
        env.client.service_client.config.target_host, data_converter=pydantic_data_converter
    )
    name, queue = f"svc-{uuid4()}", f"queue-{uuid4()}"
    plans = PlanActivities(client)
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Service, PlanDouble],
        activities=[
            plans.start_plan,
            plans.closed_plans,
            ConfigurationActivities().check_change,
            Launches(client).launch,
        ],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[PlansInterceptor(EXTERNS)],
    ):
        handle = await client.start_workflow(
            "Service",
            ServiceInput(spec=ServiceSpec(name=name, pods=(POD,))),
            id=f"service/{name}",
            task_queue=queue,
        )
        life = LongLife(handle)
        first = (await handle.describe()).run_id
        ids = await life.until_all_run()
        young = await life.slowest_answer()
        memory, carried = 0, 0
        for round in range(ROUNDS):
            ids = await life.fail_all(ids)
            if round == ROUNDS // 2:
                assert (await handle.describe()).run_id != first
                memory, carried = _memory(), await life.carried()
        described = await handle.describe()
        assert described.run_id != first
        assert described.history_length < 5000
        # 50 ms; on a machine that is busy all along, what it takes at the beginning says how busy.
        assert await life.slowest_answer() < max(0.05, 5 * young)
        assert await life.carried() < 1.5 * carried
        assert _memory() < memory + 40_000
        for workflow_id in (handle.id, f"{name}/recovery"):
            await client.get_workflow_handle(workflow_id).terminate()
