"""An update from sending it to its answer, over a server that goes away in between."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import uuid4

from pydantic import BaseModel
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.runs import beginning_of, described

Model = TypeVar("Model", bound=BaseModel)
Start = Callable[[], WithStartWorkflowOperation[Any, Any]]

TAKEN_WITHIN = timedelta(seconds=15)
"""How long it may take to take an update. A worker that is just being stopped may take a workflow
task along into its end, and the server gives that to another one after ten seconds."""

DONE_WITHIN = timedelta(seconds=120)
"""How long an update that was taken may be under way: a configuration is checked first, and a plan
that gives way to another leaves its work in order."""

CLOCKS_DIFFER = timedelta(minutes=1)
"""The server's clock from ours, at most."""


class MayHaveArrived(Exception):
    """Nobody knows whether an update arrived: a run may have taken it that is not known."""


@dataclass
class SentUpdate(Generic[Model]):
    """``start`` makes the workflow's start, for an update that starts it unless it is open.

    A run carries out an update of one id once, and tells its answer as long as it is kept; other
    runs don't know it.
    """

    client: Client
    workflow_id: str
    name: str
    argument: BaseModel
    result: type[Model]
    start: Start | None = None
    id: str = field(default_factory=lambda: str(uuid4()))
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def answer(self) -> Model:
        """Send it, and wait for the answer. Raises what it failed with, and RPCError."""
        sent = await (self._send_with(self.start) if self.start else self._send())
        return await self._answer_to(sent)

    async def answer_after_all(self) -> Model:
        """The answer to one that was sent; sent again if it never arrived. Raises as ``answer``,
        and MayHaveArrived."""
        newest = run = await described(self.client, self.workflow_id)
        if newest is None:
            return await self.answer()
        while run is not None:
            if (answer := await self._answer_of(run.run_id)) is not None:
                return answer
            run = await self._before(run, is_newest=run is newest)
        try:
            sent = await self._send(newest.run_id)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and newest.close_time is None:
                raise MayHaveArrived from error  # late, and in the moment before the run closed
            raise
        return await self._answer_to(sent)

    async def _answer_of(self, run_id: str) -> Model | None:
        """None from a run that does not know the update."""
        handle = self.client.get_workflow_handle(self.workflow_id, run_id=run_id)
        try:
            return await self._answer_to(handle.get_update_handle(self.id, result_type=self.result))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def _before(
        self, run: WorkflowExecutionDescription, *, is_newest: bool
    ) -> WorkflowExecutionDescription | None:
        """The run that may have got it, if this one did not: the one that this continues. None when
        none may."""
        is_old = run.start_time < self.at - CLOCKS_DIFFER
        if is_old and not is_newest:
            return None
        began = await beginning_of(self.client, self.workflow_id, run.run_id)
        if began is not None and began.continued_execution_run_id:
            return await described(self.client, self.workflow_id, began.continued_execution_run_id)
        if is_old:
            return None
        raise MayHaveArrived

    async def _send(self, run_id: str = "") -> WorkflowUpdateHandle[Any]:
        handle = self.client.get_workflow_handle(self.workflow_id, run_id=run_id or None)
        return await handle.start_update(
            self.name,
            self.argument,
            id=self.id,
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
            result_type=self.result,
            rpc_timeout=TAKEN_WITHIN,
        )

    async def _send_with(self, start: Start) -> WorkflowUpdateHandle[Any]:
        return await self.client.start_update_with_start_workflow(
            self.name,
            self.argument,
            id=self.id,
            start_workflow_operation=start(),
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
            result_type=self.result,
            rpc_timeout=TAKEN_WITHIN,
        )

    async def _answer_to(self, sent: WorkflowUpdateHandle[Any]) -> Model:
        async with asyncio.timeout(DONE_WITHIN.total_seconds()):  # the SDK limits each poll
            answer: Model = await sent.result()
            return answer
