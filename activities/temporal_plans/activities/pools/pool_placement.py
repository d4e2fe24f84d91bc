"""The placement of the built-in backend: updates of the workflow ``Pool``.

The server lets ten updates of one workflow be in flight and refuses more with RESOURCE_EXHAUSTED:
callers here wait for one of fewer slots, and back off when other processes took them. The updates
``reserve`` have ids, so that a retry after a lost answer gets the same answer.
"""

import asyncio
import random
from typing import TypeVar

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.failure_text import message_of
from temporal_plans.activities.mechanics.update_failures import (
    non_retryable,
    refusal_in,
    was_not_processed,
)
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.addresses import PLANS_QUEUE, pool_id
from temporal_plans.messages.pools import (
    OwnersReport,
    PoolInput,
    Reconciled,
    ReleaseInput,
    ReleaseRequest,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
)

RESERVES_LIMIT = 6
"""Updates ``reserve`` in flight from one process; with RELEASES_LIMIT below the server's ten."""

RELEASES_LIMIT = 3
"""Updates ``release`` and ``reconcile`` in flight from one process; they may wait for an agent."""

FIRST_RETRY_INTERVAL, RETRY_INTERVAL_LIMIT = 0.05, 2.0
"""Back-off in seconds while the Pool is busy, doubled with each retry."""

_R = TypeVar("_R")

_BUSY = {
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.ABORTED,
    RPCStatusCode.DEADLINE_EXCEEDED,
}
"""The Pool or the server is busy; the call is retried."""


class PoolPlacement(Placement):
    """Placement by Pools, which are started when they do not run. Use one instance per client: it
    limits the updates in flight."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Separate slots: reserve never waits for release.
        self._reserves = asyncio.Semaphore(RESERVES_LIMIT)
        self._releases = asyncio.Semaphore(RELEASES_LIMIT)

    async def reserve(self, request: ReserveInput) -> ReserveResult:
        """See Placement. In an activity the update's id contains the attempt: the next attempt may
        come after hours, when the reservation of an earlier answer may have been released."""
        attempt = _attempt_id()
        update_id = f"reserve/{request.requirement.key}/{attempt}" if attempt else None
        async with self._reserves:
            return await self._update(
                request.pool, "reserve", request.requirement, ReserveResult, update_id
            )

    async def release(self, request: ReleaseInput) -> ReleaseResult:
        message = ReleaseRequest(
            key=request.key, reservation=request.reservation, destroy=request.destroy
        )
        async with self._releases:
            return await self._update(request.pool, "release", message, ReleaseResult)

    async def reconcile(self, pool: str, report: OwnersReport) -> Reconciled:
        async with self._releases:
            return await self._update(pool, "reconcile", report, Reconciled)

    async def _update(
        self,
        pool: str,
        name: str,
        argument: object,
        result_type: type[_R],
        update_id: str | None = None,
    ) -> _R:
        handle = self._client.get_workflow_handle(pool_id(pool))
        backoff = Backoff()
        while True:
            try:
                result: _R = await handle.execute_update(
                    name, argument, id=update_id, result_type=result_type
                )
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    await self._start(pool)
                elif error.status not in _BUSY:
                    raise
            except WorkflowUpdateRPCTimeoutOrCancelledError as error:
                if isinstance(error.__cause__, asyncio.CancelledError):
                    raise error.__cause__ from None  # this coroutine was cancelled
            except WorkflowUpdateFailedError as error:
                if not was_not_processed(error.cause):
                    raise _failure_of(error.cause) from error
            else:
                return result
            await backoff.wait()

    async def _start(self, pool: str) -> None:
        """Start a Pool with default settings; a Pool with others is started by its operator."""
        await self._client.start_workflow(
            "Pool",
            PoolInput(name=pool),
            id=pool_id(pool),
            task_queue=PLANS_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"agents and reservations of pool {pool}",
        )


class Backoff:
    """Exponential back-off, with jitter so that callers don't retry all at once."""

    def __init__(self) -> None:
        self._interval = FIRST_RETRY_INTERVAL

    async def wait(self) -> None:
        await asyncio.sleep(self._interval * random.uniform(0.5, 1.0))
        self._interval = min(self._interval * 2, RETRY_INTERVAL_LIMIT)


def _attempt_id() -> str:
    if not activity.in_activity():
        return ""
    info = activity.info()
    return f"{info.workflow_run_id}/{info.activity_id}/{info.attempt}"


def _failure_of(cause: BaseException) -> Exception:
    """Return the Pool's refusal, or else its failure as a non-retryable one of the activity."""
    refusal = refusal_in(cause)
    return non_retryable(cause, message_of(cause)) if refusal is None else RefusedError(refusal)
