"""An update, from sending it to its answer, even if the server is unreachable in between."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import uuid4

from pydantic import BaseModel
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.runs import beginning_of, described
from temporal_plans.activities.mechanics.update_failures import UNPROCESSED, failure_type
from temporal_plans.client.temporal.deadlines import Deadlines

Model = TypeVar("Model", bound=BaseModel)
Start = Callable[[], WithStartWorkflowOperation[Any, Any]]


_UNPROCESSED_DELAYS = (0.1, 0.5, 2.0)
"""Seconds before an update that no worker processed is sent again."""


class ArrivalUnknown(Exception):
    """It is not known whether an update arrived: an unknown run may have accepted it."""


@dataclass
class SentUpdate(Generic[Model]):
    """An update with its id. ``start``, if given, makes the operation that starts the workflow
    unless it is open.

    A run executes an update with one id once, and repeats its answer as long as its history is
    kept; other runs don't know the update.
    """

    client: Client
    workflow_id: str
    name: str
    argument: BaseModel
    result: type[Model]
    deadlines: Deadlines
    start: Start | None = None
    id: str = field(default_factory=lambda: str(uuid4()))
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def answer(self) -> Model:
        """Send the update, and wait for its answer; send it again when no worker processed it.
        Raises the update's failure, and RPCError."""
        for delay in _UNPROCESSED_DELAYS:
            try:
                return await self._first_answer()
            except WorkflowUpdateFailedError as error:
                if failure_type(error.cause) != UNPROCESSED:
                    raise
            except RPCError as error:
                # A workflow task failed: so does one that continues as new when a message arrives
                # at the same moment, and the update with it.
                if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                    raise
            await asyncio.sleep(delay)
        return await self._first_answer()

    async def _first_answer(self) -> Model:
        sent = await (self._send_with(self.start) if self.start else self._send())
        return await self._answer_to(sent)

    async def recover_answer(self) -> Model:
        """Return the answer of an update that was sent before; send it again if it never arrived.
        Raises as ``answer``, and ArrivalUnknown."""
        newest = run = await described(self.client, self.workflow_id)
        if newest is None:
            return await self.answer()
        while run is not None:
            if (answer := await self._answer_of(run.run_id)) is not None:
                return answer
            run = await self._previous(run, is_newest=run is newest)
        try:
            sent = await self._send(newest.run_id)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and newest.close_time is None:
                raise ArrivalUnknown from error  # it may have arrived just before the run closed
            raise
        return await self._answer_to(sent)

    async def _answer_of(self, run_id: str) -> Model | None:
        """Return a run's answer; None if the run does not know the update."""
        handle = self.client.get_workflow_handle(self.workflow_id, run_id=run_id)
        try:
            return await self._answer_to(handle.get_update_handle(self.id, result_type=self.result))
        except WorkflowUpdateFailedError as error:
            if failure_type(error.cause) == UNPROCESSED:
                return None
            raise
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def _previous(
        self, run: WorkflowExecutionDescription, *, is_newest: bool
    ) -> WorkflowExecutionDescription | None:
        """Return the run that this one continues, if it may have received the update; else None."""
        is_old = run.start_time < self.at - self.deadlines.clock_skew
        if is_old and not is_newest:
            return None
        began = await beginning_of(self.client, self.workflow_id, run.run_id)
        if began is not None and began.continued_execution_run_id:
            return await described(self.client, self.workflow_id, began.continued_execution_run_id)
        if is_old:
            return None
        raise ArrivalUnknown

    async def _send(self, run_id: str = "") -> WorkflowUpdateHandle[Any]:
        handle = self.client.get_workflow_handle(self.workflow_id, run_id=run_id or None)
        return await handle.start_update(
            self.name,
            self.argument,
            id=self.id,
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
            result_type=self.result,
            rpc_timeout=self.deadlines.accept,
        )

    async def _send_with(self, start: Start) -> WorkflowUpdateHandle[Any]:
        return await self.client.start_update_with_start_workflow(
            self.name,
            self.argument,
            id=self.id,
            start_workflow_operation=start(),
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
            result_type=self.result,
            rpc_timeout=self.deadlines.accept,
        )

    async def _answer_to(self, sent: WorkflowUpdateHandle[Any]) -> Model:
        """Wait for the answer. The SDK limits each poll, not the whole."""
        async with asyncio.timeout(self.deadlines.completion.total_seconds()):
            answer: Model = await sent.result()
            return answer
