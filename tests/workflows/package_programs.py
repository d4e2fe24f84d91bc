"""A cluster that does what a test says: the activities of packages without an API server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.worker import Worker

from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.messages.packages import (
    LookAtObjects,
    ObjectsReport,
    Preparation,
    PrepareInstallation,
    Recorded,
    RecordObjects,
    RemovalInput,
    TasksInput,
    TasksOutcome,
    TasksResult,
)


@dataclass
class ScriptedCluster:
    """``answers`` are the results of coming executions of a task, by its name, and ``always`` is
    that of all others; without one it is done. ``report`` is what a look sees. ``held`` tasks are
    not answered before their event is set. ``begun`` and ``removed`` are what was asked for."""

    client: Client
    name: str
    answers: dict[str, list[TasksResult]] = field(default_factory=dict[str, list[TasksResult]])
    always: dict[str, TasksResult] = field(default_factory=dict[str, TasksResult])
    held: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    begun: list[TasksInput] = field(default_factory=list[TasksInput])
    removed: list[RemovalInput] = field(default_factory=list[RemovalInput])
    report: ObjectsReport = field(default_factory=ObjectsReport)
    looks: int = 0
    preparations: list[Preparation] = field(default_factory=list[Preparation])

    @activity.defn(name="run_package_tasks")
    async def run_package_tasks(self, input: TasksInput) -> TasksResult:
        self.begun.append(input)
        async with heartbeats():
            for task in input.tasks:
                if task in self.held:
                    await self.held[task].wait()
            objects = tuple(object_of(input.run.package.namespace, task) for task in input.tasks)
            record = RecordObjects(plan=input.plan, uid=input.run.uid, objects=objects)
            try:
                await self.record(input.owner, record)
            except WorkflowUpdateFailedError as refused:
                return TasksResult(outcome=TasksOutcome.FAILED, reason=str(refused.cause))
            answer = self._answer(input)
            if answer.outcome is TasksOutcome.WAITING and answer.reason == input.shown:
                await asyncio.Event().wait()  # there is no news, until the step is left
        return answer

    def _answer(self, input: TasksInput) -> TasksResult:
        for task in input.tasks:
            if self.answers.get(task):
                return self.answers[task].pop(0)
            if task in self.always:
                return self.always[task]
        return TasksResult(outcome=TasksOutcome.DONE, done=input.tasks)

    async def record(self, owner: str, record: RecordObjects) -> Recorded:
        instance = self.client.get_workflow_handle(owner)
        answer: Recorded = await instance.execute_update(
            "record_objects", record, result_type=Recorded, rpc_timeout=timedelta(seconds=20)
        )
        return answer

    @activity.defn(name="prepare_installation")
    async def prepare_installation(self, order: PrepareInstallation) -> Preparation:
        return self.preparations.pop(0) if self.preparations else Preparation()

    @activity.defn(name="look_at_objects")
    async def look_at_objects(self, order: LookAtObjects) -> ObjectsReport:
        self.looks += 1
        return self.report

    @activity.defn(name="remove_services")
    async def remove_services(self, input: RemovalInput) -> TasksResult:
        return TasksResult(outcome=TasksOutcome.DONE)

    @activity.defn(name="remove_instance")
    async def remove_instance(self, input: RemovalInput) -> TasksResult:
        self.removed.append(input)
        return TasksResult(outcome=TasksOutcome.DONE)


def object_of(namespace: str, task: str) -> ObjectRef:
    """The one object that a task applies."""
    return ObjectRef(api_version="v1", kind="ConfigMap", namespace=namespace, name=task)


@asynccontextmanager
async def scripted_cluster(client: Client) -> AsyncGenerator[ScriptedCluster]:
    """A cluster of its own name, with a worker; the client has no plugin, which would add the
    activities of a real one."""
    cluster = ScriptedCluster(client, f"cluster-{uuid4()}")
    async with Worker(
        client,
        task_queue=cluster_queue(cluster.name),
        activities=[
            cluster.run_package_tasks,
            cluster.prepare_installation,
            cluster.look_at_objects,
            cluster.remove_services,
            cluster.remove_instance,
        ],
    ):
        yield cluster
