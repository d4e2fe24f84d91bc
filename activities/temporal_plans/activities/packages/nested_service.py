"""The service of a nested package: deployed by its parent's task, and waited for."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.open_runs import query_open
from temporal_plans.activities.mechanics.update_failures import refusal_of, was_not_processed
from temporal_plans.activities.packages.run_record import record
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import DONE, TaskState
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import CommonStatus
from temporal_plans.messages.packages import (
    InstanceInput,
    PackageDeployResult,
    PackagePreview,
    TasksInput,
)

_RPC_TIMEOUT = timedelta(seconds=20)
_LOOK_INTERVAL = 2.0
"""Seconds between two questions to a service: each costs it a workflow task."""

_BUSY = frozenset(
    {Code.IN_USE, Code.UNAVAILABLE, Code.ENDING, Code.UNINSTALLING, Code.NOT_REENTRANT}
)
"""Why a service refuses a change that it may take later."""

_Answer = TypeVar("_Answer", bound=BaseModel)


@dataclass
class NestedService:
    """``order`` is that of the parent's step; ``change`` is what the child is to be, without
    the values that it has and is not to have any more. ``by`` and ``reason`` are kept with the
    configuration. All methods raise TaskProblem and RPCError."""

    client: Client
    order: TasksInput
    name: str
    change: ChangeRequest
    by: str
    reason: str
    _plan: str = ""
    _state: TaskState = field(default_factory=lambda: TaskState(done=False))
    _next_look: float = 0.0

    async def deploy(self) -> None:
        """Install the child, or change it; nothing where it is as it is to be."""
        change = await self._missing_change()
        if change is None:
            return
        await record(self.client, self.order, services=(self.name,))
        try:
            answer = await self._update(change)
        except WorkflowUpdateFailedError as error:
            if was_not_processed(error.cause):
                raise self._problem("has not answered", passing=True) from error
            raise self._refused(refusal_of(error.cause)) from error
        if answer.outcome.refusal is not None:
            raise self._refused(answer.outcome.refusal)
        self._plan = answer.plan.rpartition("/")[2]

    async def look(self) -> TaskState:
        """Return how far the plan is that made the child what it is to be."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_look:
            self._state = await self._looked()
            self._next_look = loop.time() + _LOOK_INTERVAL
        return self._state

    async def _looked(self) -> TaskState:
        status = await self._ask("status", CommonStatus)
        if status is None or status.uninstalling:
            raise self._problem("was uninstalled meanwhile", passing=True)
        history = await self._ask("runs", RunHistory)
        runs = [run for run in history.runs if run.config == status.number] if history else []
        # another plan may run with the same configuration, but the one of the change was the first
        plan = self._plan or (runs[0].plan if runs else "")
        run = next((one for one in reversed(runs) if one.plan == plan), None)
        return self._judged(run) if run else self._waiting("its plan has not begun")

    def _judged(self, run: RunRecord) -> TaskState:
        if run.status is Status.COMPLETE:
            return DONE
        if run.status is Status.ERROR:
            fix = f"see `temporal plan explain {run.plan} -s {self.name}`, and start it again"
            raise self._problem(f"its plan {run.plan} failed; {fix}")
        if run.ended is not None:
            raise self._problem(f"its plan {run.plan} ended as {run.status}", passing=True)
        return self._waiting(f"its plan {run.plan} is {run.status}")

    # --- what is to be changed ---

    async def _missing_change(self) -> ChangeRequest | None:
        """Return the change to ask for; None when the child is as it is to be."""
        status = await self._ask("status", CommonStatus)
        if status is None:
            return self.change
        if status.content != "package":
            raise self._problem("is no package; give the task another instanceName")
        preview = await self._preview(self.change)
        change = self.change.but(parameters=self._with_unset(preview))
        if change != self.change:
            preview = await self._preview(change)
        if preview.problems:
            raise self._refused(Refusal(code=Code.CONFIGURATION, reasons=preview.problems))
        return change if preview.change is None or preview.change.plan else None

    def _with_unset(self, preview: PackagePreview) -> Mapping[str, str | None]:
        """Return the values of the change, and None for those that the child was given and the
        parent no longer gives. An immutable one keeps the default of its installation."""
        package = self.change.package
        known = package.by_name if package else {}
        before = preview.before
        had = {*before.given, *before.secrets} if before else set[str]()
        named = {*self.change.parameters, *self.change.secrets}
        unset = sorted(name for name in had - named if name in known and not known[name].immutable)
        return {**self.change.parameters, **dict.fromkeys(unset)}

    async def _preview(self, change: ChangeRequest) -> PackagePreview:
        preview = await self._ask("preview", PackagePreview, self._input(change))
        if preview is None:
            raise self._problem("was uninstalled meanwhile", passing=True)
        return preview

    # --- messages ---

    def _input(self, change: ChangeRequest) -> InstanceInput:
        return InstanceInput(
            name=self.name,
            change=change,
            parent=self.order.run.package.service,
            by=self.by,
            reason=self.reason,
        )

    async def _update(self, change: ChangeRequest) -> PackageDeployResult:
        """The child's workflow is on the queue of the parent's."""
        async with self._timed():
            parent = await self.client.get_workflow_handle(self.order.owner).describe(
                rpc_timeout=_RPC_TIMEOUT
            )
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                "Instance",
                self._input(change),
                id=service_id(self.name),
                task_queue=parent.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            answer: PackageDeployResult = await self.client.execute_update_with_start_workflow(
                "deploy",
                self._input(change),
                start_workflow_operation=start,
                result_type=PackageDeployResult,
                rpc_timeout=_RPC_TIMEOUT,
            )
            return answer

    async def _ask(self, query: str, result: type[_Answer], *arguments: Any) -> _Answer | None:
        """Return the child's answer; None when there is no such service, or it has ended."""
        handle = self.client.get_workflow_handle(service_id(self.name))
        try:
            return await query_open(handle, query, result, arguments, timeout=_RPC_TIMEOUT)
        except WorkflowQueryRejectedError:
            return None
        except WorkflowQueryFailedError as error:
            raise self._problem(f"does not answer: {error}", passing=True) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    @asynccontextmanager
    async def _timed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        except (WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowAlreadyStartedError) as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None  # the activity's own cancellation
            raise self._problem("did not answer in time", passing=True) from error

    # --- texts ---

    def _refused(self, refusal: Refusal) -> TaskProblem:
        return self._problem(f"refuses: {refusal}", passing=refusal.code in _BUSY)

    def _waiting(self, reason: str) -> TaskState:
        return TaskState(done=False, reason=f"service {self.name}: {reason}")

    def _problem(self, reason: str, *, passing: bool = False) -> TaskProblem:
        return TaskProblem(f"service {self.name}: {reason}", passing=passing)
