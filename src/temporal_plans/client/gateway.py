"""The seam to Temporal: a few calls with typed answers and few ways to fail.

``Gateway`` is what the verbs in ``client.plans_client`` need; ``TemporalGateway`` does it with the
SDK, and knows how server and SDK say that something is missing, closed or silent. Tests put
another gateway in its place.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol, TypeVar
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

from temporal_plans.activities.runs import beginning_of
from temporal_plans.client.connection import AnswerLostError, ServerUnreachableError
from temporal_plans.client.errors import AgentUnreachable, Refused, Unreadable, WorkerUnreachable
from temporal_plans.client.failure_text import failure_text
from temporal_plans.client.pending_work import pending_work
from temporal_plans.client.schedules import Schedules, TemporalSchedules
from temporal_plans.client.sent_update import MayHaveArrived, SentUpdate
from temporal_plans.domain.explain import PendingWork
from temporal_plans.messages.plan import PLAN_ENDING

Model = TypeVar("Model", bound=BaseModel)

ANSWER_WITHIN = timedelta(seconds=10)
"""How long a worker may take to answer a query."""

ASKED_AFTER_EVERY, ASKED_AFTER_FOR = 0.5, 15.0
"""Seconds: an update whose answer was lost."""

_SILENCE = frozenset(
    {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE}
)

_ANSWER_LOST = frozenset(
    {RPCStatusCode.UNKNOWN, RPCStatusCode.INTERNAL, RPCStatusCode.DATA_LOSS, RPCStatusCode.ABORTED}
)
"""What was asked may have been done: so says the SDK when a connection breaks under a call, and a
server that fails within one."""


class Ended(Enum):
    """How a closed workflow ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "cancelled"
    TERMINATED = "terminated"
    CONTINUED_AS_NEW = "continued as new"
    TIMED_OUT = "timed out"


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
    """The workflow has ended. ``ended`` is None when the server did not say how."""

    def __init__(self, ended: Ended | None = None) -> None:
        super().__init__(ended)
        self.ended = ended


class WorkflowIsOpen(Exception):
    """A workflow of this id runs already."""


class WorkflowIsEnding(Exception):
    """The workflow takes no more updates: it has nothing left to do but to end."""


class EndedMeanwhile(Exception):
    """The workflow took the update and ended before it answered."""


class Gateway(Protocol):
    """What the verbs need of Temporal. All may raise ``ServerUnreachableError``."""

    async def describe(self, workflow_id: str) -> Execution:
        """The newest run; raises NoSuchWorkflow."""
        ...

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        """The runs of a workflow that are still known, the newest first; those that continued as
        new are one with their successor."""
        ...

    async def list(self, query: str, limit: int) -> list[Execution]:
        """The newest run of each workflow that matches, open ones first."""
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
        """Ask a workflow; raises NoSuchWorkflow, WorkerUnreachable, Refused, Unreadable and, with
        ``open_only``, WorkflowIsClosed."""
        ...

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        """Tell a workflow and hear what it did; raises NoSuchWorkflow, WorkflowIsClosed,
        WorkflowIsEnding, EndedMeanwhile, WorkerUnreachable, Refused. Also when the server goes
        away for some seconds meanwhile."""
        ...

    async def start(
        self, workflow_type: str, workflow_id: str, argument: BaseModel, *, summary: str = ""
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
    ) -> Model:
        """Start a workflow unless it is open, and tell it ``argument``; raises as ``update``."""
        ...

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """What the newest run was started with; raises NoSuchWorkflow, Unreadable."""
        ...

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """What a closed workflow returned; raises NoSuchWorkflow, Unreadable."""
        ...

    async def ask_agent(
        self,
        agent: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        within: timedelta,
    ) -> Model:
        """Run one of an agent's activities; raises AgentUnreachable, Refused."""
        ...

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        """What workflows wait for workers to do; without those of which none is open. Raises
        Refused."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Temporal's Schedules of plans."""
        ...


class TemporalGateway:
    """The Gateway over a connected client."""

    def __init__(self, client: Client, *, task_queue: str = "plans") -> None:
        self._client = client
        self._task_queue = task_queue

    @property
    def schedules(self) -> Schedules:
        return TemporalSchedules(self._client, self._calling, self._task_queue)

    async def describe(self, workflow_id: str) -> Execution:
        async with self._calling():
            return _execution(await self._client.get_workflow_handle(workflow_id).describe())

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        quoted = workflow_id.replace("'", "''")
        query = f"WorkflowId = '{quoted}' AND ExecutionStatus != 'ContinuedAsNew'"
        async with self._calling():
            found = self._client.list_workflows(query, limit=limit)
            return [_execution(run) async for run in found]

    async def list(self, query: str, limit: int) -> list[Execution]:
        found: dict[str, Execution] = {}
        async with self._calling():
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
            async with self._calling(worker_for=workflow_id):
                answer: Model = await handle.query(
                    name,
                    args=[] if argument is None else [argument],
                    result_type=result,
                    reject_condition=QueryRejectCondition.NOT_OPEN if open_only else None,
                    rpc_timeout=ANSWER_WITHIN,
                )
                return answer
        except WorkflowQueryRejectedError as error:
            raise WorkflowIsClosed(_ended(error.status)) from error
        except WorkflowQueryFailedError as error:
            raise Refused(error.message) from error
        except ValidationError as error:
            raise _other_version(workflow_id, f"query {name}", error) from error

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        return await self._answered(SentUpdate(self._client, workflow_id, name, argument, result))

    async def start(
        self, workflow_type: str, workflow_id: str, argument: BaseModel, *, summary: str = ""
    ) -> None:
        try:
            async with self._calling(sent="start"):
                await self._client.start_workflow(
                    workflow_type,
                    argument,
                    id=workflow_id,
                    task_queue=self._task_queue,
                    static_summary=summary or None,
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
    ) -> Model:
        def start() -> WithStartWorkflowOperation[object, BaseModel]:
            return WithStartWorkflowOperation[object, BaseModel](
                workflow_type,
                argument,
                id=workflow_id,
                task_queue=self._task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )

        update = SentUpdate(self._client, workflow_id, name, argument, result, start)
        return await self._answered(update)

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        async with self._calling():
            began = await beginning_of(self._client, workflow_id, run_id)
        if began is None:
            raise Unreadable(f"the history of {workflow_id!r} is empty")
        try:
            [value] = await self._client.data_converter.decode(began.input.payloads, [model])
        except (ValueError, ValidationError) as error:
            raise Unreadable(f"the input of {workflow_id!r} can't be read: {error}") from error
        answer: Model = value
        return answer

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        handle = self._client.get_workflow_handle(
            workflow_id, run_id=run_id or None, result_type=model
        )
        try:
            async with self._calling():
                answer: Model = await handle.result()
                return answer
        except WorkflowFailureError as error:
            raise Unreadable(f"{workflow_id!r} {failure_text(error.cause)}") from error
        except ValidationError as error:
            raise _other_version(workflow_id, "result", error) from error

    async def ask_agent(
        self,
        agent: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        within: timedelta,
    ) -> Model:
        try:
            async with self._calling():
                answer: Model = await self._client.execute_activity(
                    activity,
                    argument,
                    id=f"{activity}/{agent}/{uuid4()}",
                    task_queue=f"agent/{agent}",
                    result_type=result,
                    schedule_to_start_timeout=within,
                    start_to_close_timeout=within * 2,
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )
                return answer
        except ActivityFailureError as error:
            if isinstance(error.cause, ActivityTimeoutError):
                raise AgentUnreachable(agent, within.total_seconds()) from error
            raise Refused(f"agent {agent!r}: {failure_text(error.cause)}") from error

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        async with self._calling():
            return await pending_work(self._client, workflow_ids)

    async def _answered(self, update: SentUpdate[Model]) -> Model:
        """Its answer, also when the server goes away in between."""
        try:
            async with self._updating(update.workflow_id, update.name):
                return await update.answer()
        except ServerUnreachableError as error:
            lost = error
        until = time.monotonic() + ASKED_AFTER_FOR
        while time.monotonic() < until:
            await asyncio.sleep(ASKED_AFTER_EVERY)
            try:
                async with self._updating(update.workflow_id, update.name):
                    return await update.answer_after_all()
            except ServerUnreachableError:
                continue
            except MayHaveArrived:
                break
        raise lost

    @asynccontextmanager
    async def _updating(self, workflow_id: str, name: str) -> AsyncGenerator[None]:
        try:
            async with self._calling(worker_for=workflow_id, sent=f"{name} command"):
                yield
        except WorkflowUpdateFailedError as error:
            kind = getattr(error.cause, "type", "")
            if kind == "AcceptedUpdateCompletedWorkflow":
                raise EndedMeanwhile from error
            if kind == PLAN_ENDING:
                raise WorkflowIsEnding from error
            raise Refused(failure_text(error.cause)) from error
        except ValidationError as error:
            raise _other_version(workflow_id, f"update {name}", error) from error

    @asynccontextmanager
    async def _calling(self, *, worker_for: str = "", sent: str = "") -> AsyncGenerator[None]:
        """The SDK's ways to say missing, closed and silent, in ours."""
        try:
            yield
        except RPCTimeoutOrCancelledError as error:
            _go_on_with_a_cancellation(error)
            if await self._server_answers():
                raise WorkerUnreachable(worker_for, sent=sent) from error
            raise AnswerLostError(self._address, "it went silent", sent=sent) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                if "already completed" in error.message:
                    raise WorkflowIsClosed from error
                raise NoSuchWorkflow(error.message) from error
            if worker_for and error.status is RPCStatusCode.FAILED_PRECONDITION:
                raise WorkerUnreachable(worker_for, sent=sent) from error
            if error.status in _ANSWER_LOST:
                raise AnswerLostError(self._address, error.message, sent=sent) from error
            if error.status not in _SILENCE:
                raise Refused(f"the Temporal server refuses: {error.message}") from error
            silent = error.status is not RPCStatusCode.UNAVAILABLE
            if worker_for and silent and await self._server_answers():
                raise WorkerUnreachable(worker_for, sent=sent) from error
            raise ServerUnreachableError(self._address, error.message, sent=sent) from error

    async def _server_answers(self) -> bool:
        """Whether it is up: a call that timed out does not say who was silent."""
        try:
            return await self._client.service_client.check_health(timeout=timedelta(seconds=2))
        except RPCError as error:
            _go_on_with_a_cancellation(error)
            return False

    @property
    def _address(self) -> str:
        return self._client.service_client.config.target_host


def _go_on_with_a_cancellation(error: Exception) -> None:
    """The SDK takes the caller's cancellation for a failed call of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _execution(run: WorkflowExecution) -> Execution:
    return Execution(run.id, run.start_time, run.close_time, _ended(run.status), run.run_id)


def _ended(status: WorkflowExecutionStatus | None) -> Ended | None:
    """None for RUNNING, and for what a newer server may add beside it, such as a paused one."""
    return None if status is None else Ended.__members__.get(status.name)


def _other_version(workflow_id: str, what: str, error: ValidationError) -> Unreadable:
    return Unreadable(
        f"the answer of {workflow_id!r} to {what} can't be read; is the worker of another version? "
        f"({error.error_count()} faults, the first: {error.errors()[0]['msg']})"
    )
