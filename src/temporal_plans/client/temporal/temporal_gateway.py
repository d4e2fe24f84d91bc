"""The gateway over the SDK."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from temporalio.client import (
    ActivityFailureError,
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
from temporalio.exceptions import TimeoutError as ActivityTimeoutError
from temporalio.exceptions import WorkflowAlreadyStartedError

from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.contents.errors import ContentError
from temporal_plans.activities.mechanics.failure_text import failure_text
from temporal_plans.activities.mechanics.open_runs import query_open
from temporal_plans.activities.mechanics.runs import beginning_of
from temporal_plans.activities.mechanics.update_failures import RUN_ENDED, failure_type, refusal_of
from temporal_plans.client.errors import (
    AgentUnreachable,
    ClusterUnreachable,
    Refused,
    Unreadable,
)
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.deadlines import Deadlines
from temporal_plans.client.temporal.executions import Execution, ended_as, execution_of
from temporal_plans.client.temporal.gateway import Model
from temporal_plans.client.temporal.pending_work import pending_work
from temporal_plans.client.temporal.schedules import Schedules, TemporalSchedules
from temporal_plans.client.temporal.sent_update import ArrivalUnknown, SentUpdate
from temporal_plans.client.temporal.server_calls import ServerCalls
from temporal_plans.client.temporal.stuck_workflows import stuck_workflows
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    WorkflowIsClosed,
    WorkflowIsEnding,
    WorkflowIsOpen,
)
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.values.complaints import complaints
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.addresses import cluster_queue

CLUSTER_ANSWER_TIMEOUT = timedelta(minutes=5)
"""How long the worker of a cluster may take to answer: it may look at thousands of objects."""


LOST_ANSWER_POLL_INTERVAL = timedelta(seconds=0.5)
"""How often the answer of an update is queried after the connection broke."""


class TemporalGateway:
    """The Gateway over a connected client. ``deadlines`` bound its calls."""

    def __init__(
        self, client: Client, *, task_queue: str = "plans", deadlines: Deadlines | None = None
    ) -> None:
        self._client = client
        self._task_queue = task_queue
        self._deadlines = deadlines or Deadlines()
        self._calls = ServerCalls(client)

    @property
    def schedules(self) -> Schedules:
        return TemporalSchedules(self._client, self._calls.translated, self._task_queue)

    async def describe(self, workflow_id: str) -> Execution:
        async with self._calls.translated():
            return execution_of(await self._client.get_workflow_handle(workflow_id).describe())

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        quoted = workflow_id.replace("'", "''")
        query = f"WorkflowId = '{quoted}' AND ExecutionStatus != 'ContinuedAsNew'"
        async with self._calls.translated():
            found = self._client.list_workflows(query, limit=limit)
            return [execution_of(run) async for run in found]

    async def list(self, query: str, limit: int) -> list[Execution]:
        found: dict[str, Execution] = {}
        async with self._calls.translated():
            runs = self._client.list_workflows(query, page_size=min(limit, 1000))
            async for run in runs:  # open first, then the newest: the server's own order
                found.setdefault(run.id, execution_of(run))
                if len(found) == limit:
                    break
        return list(found.values())

    async def query(
        self,
        workflow_id: str,
        name: str,
        result: type[Model],
        argument: BaseModel | None = None,
        *,
        open_only: bool = False,
    ) -> Model:
        handle = self._client.get_workflow_handle(workflow_id)
        try:
            async with self._calls.translated(worker_for=workflow_id):
                arguments = [] if argument is None else [argument]
                if open_only:
                    limit = self._deadlines.answer
                    return await query_open(handle, name, result, arguments, timeout=limit)
                answer: Model = await handle.query(
                    name, args=arguments, result_type=result, rpc_timeout=self._deadlines.answer
                )
                return answer
        except WorkflowQueryRejectedError as error:
            raise WorkflowIsClosed(ended_as(error.status)) from error
        except WorkflowQueryFailedError as error:
            # Only the message of a failed query arrives here: the worker sends no details.
            raise Refused.of(Code.FAILED, error.message) from error
        except ValidationError as error:
            raise _unreadable_answer(workflow_id, f"query {name}", error, result) from error

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        return await self._answer(
            SentUpdate(self._client, workflow_id, name, argument, result, self._deadlines)
        )

    async def start(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        *,
        summary: str = "",
        memo: Mapping[str, str] | None = None,
    ) -> None:
        try:
            async with self._calls.translated(sent="start"):
                await self._client.start_workflow(
                    workflow_type,
                    argument,
                    id=workflow_id,
                    task_queue=self._task_queue,
                    static_summary=summary or None,
                    memo=memo,
                )
        except WorkflowAlreadyStartedError as error:
            raise WorkflowIsOpen from error

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
        def start() -> WithStartWorkflowOperation[object, BaseModel]:
            return WithStartWorkflowOperation[object, BaseModel](
                workflow_type,
                argument,
                id=workflow_id,
                task_queue=self._task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )

        update = SentUpdate(
            self._client, workflow_id, name, request or argument, result, self._deadlines, start
        )
        return await self._answer(update)

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        async with self._calls.translated():
            began = await beginning_of(self._client, workflow_id, run_id)
        if began is None:
            raise Unreadable(f"the history of {workflow_id!r} is empty")
        try:
            [value] = await self._client.data_converter.decode(began.input.payloads, [model])
        except (ValueError, ValidationError) as error:
            why = _problems(error, model) if isinstance(error, ValidationError) else str(error)
            raise Unreadable(f"the input of {workflow_id!r} can't be read ({why})") from error
        answer: Model = value
        return answer

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        handle = self._client.get_workflow_handle(
            workflow_id, run_id=run_id or None, result_type=model
        )
        try:
            async with self._calls.translated():
                answer: Model = await handle.result()
                return answer
        except WorkflowFailureError as error:
            why = failure_text(error.cause)
            raise Unreadable(f"{workflow_id!r} failed: {why}", why=why) from error
        except ValidationError as error:
            raise _unreadable_answer(workflow_id, "result", error, model) from error

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
        try:
            id = f"{activity}/{agent}/{uuid4()}"
            return await self._execute(
                id, queue, activity, argument, result, (timeout, timeout * 2)
            )
        except ActivityFailureError as error:
            if isinstance(error.cause, ActivityTimeoutError):
                raise AgentUnreachable(agent, timeout.total_seconds()) from error
            refusal = refusal_of(error.cause).but(subject=f"agent {agent!r}")
            raise Refused(refusal) from error

    async def ask_cluster(
        self,
        cluster: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        try:
            id, queue = f"{activity}/{cluster}/{uuid4()}", cluster_queue(cluster)
            return await self._execute(
                id, queue, activity, argument, result, (timeout, CLUSTER_ANSWER_TIMEOUT)
            )
        except ActivityFailureError as error:
            if isinstance(error.cause, ActivityTimeoutError):
                raise ClusterUnreachable(cluster, timeout.total_seconds()) from error
            refusal = refusal_of(error.cause).but(subject=f"cluster {cluster!r}")
            raise Refused(refusal) from error

    async def _execute(
        self,
        id: str,
        queue: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        timeouts: tuple[timedelta, timedelta],
    ) -> Model:
        """Run an activity once. The timeouts are until a worker takes it, and from then on."""
        until_taken, until_answered = timeouts
        async with self._calls.translated():
            answer: Model = await self._client.execute_activity(
                activity,
                argument,
                id=id,
                task_queue=queue,
                result_type=result,
                schedule_to_start_timeout=until_taken,
                start_to_close_timeout=until_answered,
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
            return answer

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        async with self._calls.translated():
            return await pending_work(self._client, workflow_ids)

    async def stuck(self, workflow_ids: Sequence[str], limit: int) -> Sequence[StuckWorkflow]:
        async with self._calls.translated():
            return await stuck_workflows(self._client, workflow_ids, limit)

    async def put_content(self, data: bytes) -> str:
        store = content_store(self._client, task_queue=self._task_queue)
        async with self._calls.translated(sent="content"):
            try:
                return await store.put(data)
            except ContentError as error:
                raise Refused(error.refusal) from error

    async def get_content(self, digest: str) -> bytes:
        store = content_store(self._client, task_queue=self._task_queue)
        async with self._calls.translated():
            try:
                return await store.get(digest)
            except ContentError as error:
                raise Refused(error.refusal) from error

    async def _answer(self, update: SentUpdate[Model]) -> Model:
        """Return the update's answer, even if the connection breaks meanwhile."""
        try:
            async with self._update_call(update):
                return await update.answer()
        except ServerUnreachableError as error:
            lost = error
        deadline = time.monotonic() + self._deadlines.lost_answer.total_seconds()
        while time.monotonic() < deadline:
            await asyncio.sleep(LOST_ANSWER_POLL_INTERVAL.total_seconds())
            try:
                async with self._update_call(update):
                    return await update.recover_answer()
            except ServerUnreachableError:
                continue
            except ArrivalUnknown:
                break
        raise lost

    @asynccontextmanager
    async def _update_call(self, update: SentUpdate[Any]) -> AsyncGenerator[None]:
        workflow_id, name = update.workflow_id, update.name
        try:
            async with self._calls.translated(worker_for=workflow_id, sent=f"{name} command"):
                yield
        except WorkflowUpdateFailedError as error:
            if failure_type(error.cause) == RUN_ENDED:
                raise EndedBeforeAnswer from error
            refusal = refusal_of(error.cause)
            if refusal.code == Code.ENDING:
                raise WorkflowIsEnding from error
            raise Refused(refusal) from error
        except ValidationError as error:
            raise _unreadable_answer(workflow_id, f"update {name}", error, update.result) from error


def _unreadable_answer(
    workflow_id: str, request: str, error: ValidationError, model: type[BaseModel]
) -> Unreadable:
    return Unreadable(
        f"the answer of {workflow_id!r} to {request} can't be read; check that the worker has the "
        f"same version ({error.error_count()} faults, the first: {complaints(error, model)[0]})"
    )


def _problems(error: ValidationError, model: type[BaseModel]) -> str:
    return "; ".join(map(str, complaints(error, model)))
