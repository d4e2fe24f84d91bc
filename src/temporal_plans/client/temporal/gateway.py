"""The interface to Temporal: a few calls with typed answers and few kinds of errors.

``Gateway`` has what the verbs in ``client.verbs`` need; ``TemporalGateway`` implements it with the
SDK, and translates the errors of server and SDK. Tests use another gateway.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from temporalio.client import (
    ActivityFailureError,
    Client,
    RPCTimeoutOrCancelledError,
    WithStartWorkflowOperation,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import QueryRejectCondition, RetryPolicy, WorkflowIDConflictPolicy
from temporalio.exceptions import (
    TimeoutError as ActivityTimeoutError,
)
from temporalio.exceptions import (
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.contents.errors import ContentError
from temporal_plans.activities.mechanics.failure_text import failure_text
from temporal_plans.activities.mechanics.runs import beginning_of
from temporal_plans.activities.mechanics.update_failures import RUN_ENDED, failure_type, refusal_of
from temporal_plans.client.errors import (
    AgentUnreachable,
    ClusterUnreachable,
    Refused,
    StandsStill,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.temporal.connection import AnswerLostError, ServerUnreachableError
from temporal_plans.client.temporal.deadlines import Deadlines
from temporal_plans.client.temporal.pending_work import pending_work
from temporal_plans.client.temporal.schedules import Schedules, TemporalSchedules
from temporal_plans.client.temporal.sent_update import ArrivalUnknown, SentUpdate
from temporal_plans.client.temporal.stuck_workflows import stuck_workflows
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.values.complaints import complaints
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.packages import cluster_queue

Model = TypeVar("Model", bound=BaseModel)

CLUSTER_ANSWER_TIMEOUT = timedelta(minutes=5)
"""How long the worker of a cluster may take to answer: it may look at thousands of objects."""

LOST_ANSWER_POLL_INTERVAL = timedelta(seconds=0.5)
"""How often the answer of an update is queried after the connection broke."""

_UNREACHABLE_CODES = frozenset(
    {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE}
)

_ANSWER_LOST_CODES = frozenset(
    {RPCStatusCode.UNKNOWN, RPCStatusCode.INTERNAL, RPCStatusCode.DATA_LOSS, RPCStatusCode.ABORTED}
)
"""The codes of a connection that breaks during a call, and of a server that fails during one: the
request may have been carried out."""

_SERVER_CODES = {
    RPCStatusCode.INVALID_ARGUMENT: Code.INVALID,
    RPCStatusCode.RESOURCE_EXHAUSTED: Code.UNAVAILABLE,
}
"""The codes of what the server refuses; any other one is FAILED."""


class Ended(Enum):
    """How a closed workflow ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "cancelled"
    TERMINATED = "terminated"
    CONTINUED_AS_NEW = "continued as new"
    TIMED_OUT = "timed out"

    @property
    def clause(self) -> str:
        """The end as a part of a sentence: "was terminated", "has failed"."""
        own = self in (Ended.COMPLETED, Ended.FAILED, Ended.TIMED_OUT)
        return f"has {self.value}" if own else f"was {self.value}"


@dataclass(frozen=True)
class Execution:
    """A run of a workflow. ``ended`` is None while it is open."""

    id: str
    started: datetime
    closed: datetime | None = None
    ended: Ended | None = None
    run_id: str = ""


class NoSuchWorkflow(Exception):
    """No workflow of this id is known to the server, open or closed."""


class WorkflowIsClosed(Exception):
    """The workflow has ended. ``ended`` is None when the server did not report how."""

    def __init__(self, ended: Ended | None = None) -> None:
        super().__init__(ended)
        self.ended = ended


class WorkflowIsOpen(Exception):
    """A workflow with this id is already running."""


class WorkflowIsEnding(Exception):
    """The workflow accepts no more updates, because it is about to end."""


class EndedBeforeAnswer(Exception):
    """The workflow accepted the update, and ended before it answered."""


class Gateway(Protocol):
    """The calls to Temporal that verbs need. All may raise ``ServerUnreachableError``."""

    async def describe(self, workflow_id: str) -> Execution:
        """Return the newest run; raises NoSuchWorkflow."""
        ...

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        """Return the runs of a workflow that the server still has, newest first; a run that
        continued as new counts as one with its successor."""
        ...

    async def list(self, query: str, limit: int) -> list[Execution]:
        """Return the newest run of each workflow that matches the query, open ones first."""
        ...

    async def query(
        self,
        workflow_id: str,
        name: str,
        result: type[Model],
        argument: BaseModel | None = None,
        *,
        open_only: bool = False,
    ) -> Model:
        """Query a workflow; raises NoSuchWorkflow, WorkerUnreachable, Refused, Unreadable and, with
        ``open_only``, WorkflowIsClosed."""
        ...

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        """Update a workflow, and return the answer, even if the server is unreachable for some
        seconds meanwhile.

        Raises NoSuchWorkflow, WorkflowIsClosed, WorkflowIsEnding, EndedBeforeAnswer,
        WorkerUnreachable, Refused.
        """
        ...

    async def start(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        *,
        summary: str = "",
        memo: Mapping[str, str] | None = None,
    ) -> None:
        """Start a workflow on the plans queue; raises WorkflowIsOpen."""
        ...

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
        """Start a workflow unless it is open, and update it; raises as ``update``. The update's
        argument is ``request``, by default that of the start."""
        ...

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """Return the input of a run, by default the newest; raises NoSuchWorkflow, Unreadable."""
        ...

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """Return the result of a closed workflow; raises NoSuchWorkflow, Unreadable."""
        ...

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
        """Run an activity of an agent, on its task queue; raises AgentUnreachable, Refused."""
        ...

    async def ask_cluster(
        self,
        cluster: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        """Run an activity of a cluster's worker, on its task queue; raises ClusterUnreachable,
        Refused."""
        ...

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        """Return the work that each open workflow has given to workers; raises Refused."""
        ...

    async def stuck(self, workflow_ids: Sequence[str], limit: int) -> Sequence[StuckWorkflow]:
        """Return those of the workflows, and of the child workflows below them, whose workflow task
        fails; at most ``limit`` workflows are examined. Raises Refused."""
        ...

    async def put_content(self, data: bytes) -> str:
        """Put bytes into the content store, and return their digest; raises Refused."""
        ...

    async def get_content(self, digest: str) -> bytes:
        """Return the bytes of a digest from the content store; raises Refused."""
        ...

    @property
    def schedules(self) -> Schedules:
        """The Temporal Schedules of plans."""
        ...


class TemporalGateway:
    """The Gateway over a connected client. ``deadlines`` bound its calls."""

    def __init__(
        self, client: Client, *, task_queue: str = "plans", deadlines: Deadlines | None = None
    ) -> None:
        self._client = client
        self._task_queue = task_queue
        self._deadlines = deadlines or Deadlines()

    @property
    def schedules(self) -> Schedules:
        return TemporalSchedules(self._client, self._server_call, self._task_queue)

    async def describe(self, workflow_id: str) -> Execution:
        async with self._server_call():
            return _execution(await self._client.get_workflow_handle(workflow_id).describe())

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        quoted = workflow_id.replace("'", "''")
        query = f"WorkflowId = '{quoted}' AND ExecutionStatus != 'ContinuedAsNew'"
        async with self._server_call():
            found = self._client.list_workflows(query, limit=limit)
            return [_execution(run) async for run in found]

    async def list(self, query: str, limit: int) -> list[Execution]:
        found: dict[str, Execution] = {}
        async with self._server_call():
            runs = self._client.list_workflows(query, page_size=min(limit, 1000))
            async for run in runs:  # open first, then the newest: the server's own order
                found.setdefault(run.id, _execution(run))
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
            async with self._server_call(worker_for=workflow_id):
                answer: Model = await handle.query(
                    name,
                    args=[] if argument is None else [argument],
                    result_type=result,
                    reject_condition=QueryRejectCondition.NOT_OPEN if open_only else None,
                    rpc_timeout=self._deadlines.answer,
                )
                return answer
        except WorkflowQueryRejectedError as error:
            raise WorkflowIsClosed(_ended(error.status)) from error
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
            async with self._server_call(sent="start"):
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
        async with self._server_call():
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
            async with self._server_call():
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
        async with self._server_call():
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
        async with self._server_call():
            return await pending_work(self._client, workflow_ids)

    async def stuck(self, workflow_ids: Sequence[str], limit: int) -> Sequence[StuckWorkflow]:
        async with self._server_call():
            return await stuck_workflows(self._client, workflow_ids, limit)

    async def put_content(self, data: bytes) -> str:
        store = content_store(self._client, task_queue=self._task_queue)
        async with self._server_call(sent="content"):
            try:
                return await store.put(data)
            except ContentError as error:
                raise Refused(error.refusal) from error

    async def get_content(self, digest: str) -> bytes:
        store = content_store(self._client, task_queue=self._task_queue)
        async with self._server_call():
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
            async with self._server_call(worker_for=workflow_id, sent=f"{name} command"):
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

    @asynccontextmanager
    async def _server_call(self, *, worker_for: str = "", sent: str = "") -> AsyncGenerator[None]:
        """Translate the SDK's errors during a call. ``worker_for`` is the workflow that a worker
        must answer for, ``sent`` the request that may be carried out despite an error."""
        try:
            yield
        except RPCTimeoutOrCancelledError as error:
            _reraise_cancellation(error)
            if await self._server_answers():
                raise await self._no_answer(worker_for, sent) from error
            raise AnswerLostError(self._address, "the call timed out", sent=sent) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                if "already completed" in error.message:
                    raise WorkflowIsClosed from error
                raise NoSuchWorkflow(error.message) from error
            if worker_for and error.status is RPCStatusCode.FAILED_PRECONDITION:
                raise await self._no_answer(worker_for, sent) from error
            if error.status in _ANSWER_LOST_CODES:
                raise AnswerLostError(self._address, error.message, sent=sent) from error
            if error.status not in _UNREACHABLE_CODES:
                code = _SERVER_CODES.get(error.status, Code.FAILED)
                raise Refused.of(code, f"the Temporal server refused: {error.message}") from error
            timed_out = error.status is not RPCStatusCode.UNAVAILABLE
            if worker_for and timed_out and await self._server_answers():
                raise await self._no_answer(worker_for, sent) from error
            raise ServerUnreachableError(self._address, error.message, sent=sent) from error

    async def _no_answer(self, workflow_id: str, sent: str) -> WorkerUnreachable:
        """Return why a workflow does not answer: no worker takes its workflow task, or each that
        takes it fails."""
        try:
            found = await stuck_workflows(self._client, [workflow_id] if workflow_id else [], 1)
        except RPCError:
            found = []
        if found:
            return StandsStill(found[0], sent=sent)
        return WorkerUnreachable(workflow_id, sent=sent)

    async def _server_answers(self) -> bool:
        """Return whether the server is up: after a timeout it may be the server or the worker that
        does not answer."""
        try:
            return await self._client.service_client.check_health(timeout=timedelta(seconds=2))
        except RPCError as error:
            _reraise_cancellation(error)
            return False

    @property
    def _address(self) -> str:
        return self._client.service_client.config.target_host


def _reraise_cancellation(error: Exception) -> None:
    """Raise CancelledError if the caller was cancelled, which the SDK reports as a failed call."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _execution(run: WorkflowExecution) -> Execution:
    return Execution(run.id, run.start_time, run.close_time, _ended(run.status), run.run_id)


def _ended(status: WorkflowExecutionStatus | None) -> Ended | None:
    """Return None for RUNNING, and for an open status of a newer server, such as PAUSED."""
    return None if status is None else Ended.__members__.get(status.name)


def _unreadable_answer(
    workflow_id: str, request: str, error: ValidationError, model: type[BaseModel]
) -> Unreadable:
    return Unreadable(
        f"the answer of {workflow_id!r} to {request} can't be read; check that the worker has the "
        f"same version ({error.error_count()} faults, the first: {complaints(error, model)[0]})"
    )


def _problems(error: ValidationError, model: type[BaseModel]) -> str:
    return "; ".join(map(str, complaints(error, model)))
