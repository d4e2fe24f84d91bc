"""Calls to the Temporal server, with the errors of server and SDK translated."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client, RPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.client.errors import Refused, StandsStill, WorkerUnreachable
from temporal_plans.client.temporal.connection import AnswerLostError, ServerUnreachableError
from temporal_plans.client.temporal.stuck_workflows import stuck_workflows
from temporal_plans.client.temporal.workflow_errors import NoSuchWorkflow, WorkflowIsClosed
from temporal_plans.domain.values.refusal import Code

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


class ServerCalls:
    """Calls over a client, which raise the errors of ours."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @asynccontextmanager
    async def translated(self, *, worker_for: str = "", sent: str = "") -> AsyncGenerator[None]:
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
