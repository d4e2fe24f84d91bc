"""The registration of a spoke: with its own record first, then with its environment at the hub."""

import asyncio
import logging

from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.domain.values.refusal import Code, RefusedError
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.messages.spokes import (
    RegisterSpoke,
    SpokeAccepted,
    SpokeBind,
    SpokeIdentity,
    SpokeInput,
    spoke_id,
)

_log = logging.getLogger(__name__)

_RETRY_INTERVAL = 2.0  # seconds


class SpokeRefused(RefusedError):
    """The environment refused this spoke."""


async def identity_of_record(client: Client, environment: str, task_queue: str) -> str:
    """Return the id of the record of a spoke, which begins with the first spoke on its server.
    Waits for the server and its worker."""
    waiting = False
    while True:
        try:
            handle = await client.start_workflow(
                "Spoke",
                SpokeInput(environment=environment),
                id=spoke_id(environment),
                task_queue=task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            answer: SpokeIdentity = await handle.query("identity", result_type=SpokeIdentity)
            return answer.record
        except (RPCError, WorkflowQueryFailedError) as problem:
            if not waiting:
                _log.warning(
                    "waiting for a worker on the spoke's own server (temporal-plan worker): %s",
                    problem,
                )
            waiting = True
        await asyncio.sleep(_RETRY_INTERVAL)


class SpokeRegistration:
    """Registers one process."""

    def __init__(self, spoke: Spoke, hub: Client, client: Client) -> None:
        self._spoke = spoke
        self._hub = hub
        self._client = client
        self._told = ""

    @property
    def info(self) -> SpokeInfo:
        return self._spoke.info

    async def register(self) -> None:
        """Register, with retries until both sides know of it. Raises SpokeRefused."""
        while True:
            try:
                starter = await self._registered_at_hub()
                await self._bind(starter)
                self._told = ""
                return
            except WorkflowUpdateFailedError as problem:
                refusal = refusal_in(problem.cause)
                if refusal is not None and refusal.code != Code.UNAVAILABLE:
                    name = environment_id(self._spoke.environment)
                    raise SpokeRefused(refusal.but(subject=name)) from None
                self._tell(str(refusal or problem.cause))
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as problem:
                if isinstance(problem.__cause__, asyncio.CancelledError):
                    raise problem.__cause__ from None  # this coroutine was cancelled
                self._tell(self._meaning(problem))
            await asyncio.sleep(_RETRY_INTERVAL)

    def _meaning(self, problem: Exception) -> str:
        if isinstance(problem, RPCError) and problem.status is RPCStatusCode.NOT_FOUND:
            return (
                f"the hub has no environment {self._spoke.environment}; apply a document of it"
                " there with `spoke: true` in its settings"
            )
        return str(problem)

    def _tell(self, problem: str) -> None:
        """Log a problem once, however often it is met."""
        if problem != self._told:
            _log.warning("can't register yet, retrying: %s", problem)
            self._told = problem

    async def _registered_at_hub(self) -> str:
        handle = self._hub.get_workflow_handle(environment_id(self._spoke.environment))
        answer: SpokeAccepted = await handle.execute_update(
            "register_spoke", RegisterSpoke(info=self.info), result_type=SpokeAccepted
        )
        return answer.starter

    async def _bind(self, starter: str) -> None:
        handle = self._client.get_workflow_handle(spoke_id(self._spoke.environment))
        await handle.execute_update("bind", SpokeBind(starter=starter))
