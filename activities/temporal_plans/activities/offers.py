"""Activities that talk to the Pool: ``reserve``, ``release``, and the Pool's own ``check_owners``.

The Pool is asked by update. The server lets ten updates of one workflow be in flight and refuses
more with RESOURCE_EXHAUSTED: callers here queue up for fewer than that, and back off when others
took the slots. Updates have readable ids, so that one that has to be sent again, because its answer
was lost, finds that.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from weakref import WeakKeyDictionary

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.heartbeat import heartbeats
from temporal_plans.messages.cluster import (
    PLANS_QUEUE,
    Holdings,
    OwnersInput,
    OwnersReport,
    PoolInput,
    ReleaseInput,
    ReleaseRequest,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
    pool_id,
)

RESERVES = 6
"""Updates ``reserve`` in flight from one process; with RELEASES below the server's ten."""

RELEASES = 3
"""Updates ``release`` in flight from one process; they may wait for an agent."""

CHECKS = 10
"""Workflows that ``check_owners`` asks at a time."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Back-off in seconds while the Pool is busy, doubled from one to the other."""

QUERY_LIMIT = timedelta(seconds=5)

_R = TypeVar("_R")

_BUSY = {
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.ABORTED,
    RPCStatusCode.DEADLINE_EXCEEDED,
}
"""The Pool, or the way to it, has no room just now; it is worth another try."""

_CUT_OFF = "AcceptedUpdateCompletedWorkflow"
"""The type of failure when a run ended under an update; the next run takes it again."""


async def ensure_pool(client: Client, pool: str) -> None:
    """Start the Pool when it does not run. Its settings are the defaults; a Pool with others is
    started by its operator."""
    await client.start_workflow(
        "Pool",
        PoolInput(name=pool),
        id=pool_id(pool),
        task_queue=PLANS_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=f"agents and reservations of pool {pool}",
    )


async def reserve_in_pool(
    client: Client, request: ReserveInput, *, request_id: str = ""
) -> ReserveResult:
    """Reserve, or start to wait; the pool is started when there is none.

    ``request_id`` names this asking, and the same id has the same answer. In an activity the
    default is that of its attempt: the next one may come after hours, in which what was answered
    was given up with its agent, or to another. Raises ApplicationError
    (RequirementError, not retryable) for an impossible requirement. Tries as long as the Pool is
    busy: bound it with a timeout.
    """
    asked = request_id or _asking()
    update_id = f"reserve/{request.requirement.key}/{asked}" if asked else None
    async with _lanes(client).reserves:
        return await _update(
            client, request.pool, "reserve", request.requirement, ReserveResult, update_id
        )


async def release_in_pool(client: Client, request: ReleaseInput) -> ReleaseResult:
    """Give a reservation up, and wait until its agent has destroyed it, or is not alive (it then
    does when it is back; ``agent`` and ``agent_state`` say so). Releasing what is not held is fine.
    """
    first: ReleaseResult | None = None
    pauses = _Pauses()
    while True:
        result = await release_once(client, request)
        if first is None:
            first = result
            if result.reservation is not None:  # others may hold the key when it is asked again
                request = request.but(reservation=result.reservation.id)
        if result.destroyed:
            return result.but(reservation=first.reservation)
        await pauses.pause()


async def release_once(client: Client, request: ReleaseInput) -> ReleaseResult:
    """Give a reservation up, and say how far its agent is with destroying it."""
    question = ReleaseRequest(
        key=request.key, reservation=request.reservation, destroy=request.destroy
    )
    async with _lanes(client).releases:
        return await _update(client, request.pool, "release", question, ReleaseResult, None)


@dataclass(frozen=True)
class OfferActivities:
    """The activities, for a worker on the queue ``plans``: ``reserve``, ``release`` and
    ``check_owners``. ``client`` is the worker's."""

    client: Client

    @activity.defn
    async def reserve(self, request: ReserveInput) -> ReserveResult:
        """Reserve for one pod. Without a reservation in the result, the requirement waits."""
        async with heartbeats():
            return await reserve_in_pool(self.client, request)

    @activity.defn
    async def release(self, request: ReleaseInput) -> None:
        """Give a reservation up, and a waiting requirement of the same key."""
        async with heartbeats():
            await release_in_pool(self.client, request)

    @activity.defn
    async def check_owners(self, request: OwnersInput) -> OwnersReport:
        """Find out which workflows are no more, and what running Services hold."""
        slots = asyncio.Semaphore(CHECKS)

        async def at_once(look: Callable[[str], Awaitable[_R]], ids: Iterable[str]) -> list[_R]:
            async def one_of_few(workflow_id: str) -> _R:
                async with slots:
                    return await look(workflow_id)

            return await asyncio.gather(*map(one_of_few, ids))

        asked = request.workflows
        running = dict(zip(asked, await at_once(self._runs, asked), strict=True))
        # Only now: what a step has told its Service before it was over, is in the answer.
        services = [one for one in asked if running[one] and one.startswith("service/")]
        holdings = zip(services, await at_once(self._holdings, services), strict=True)
        return OwnersReport(
            gone=tuple(one for one in asked if running[one] is False),
            holdings={one: held for one, held in holdings if held is not None},
        )

    async def _runs(self, workflow_id: str) -> bool | None:
        """None: it could not be found out."""
        try:
            described = await self.client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            return False if error.status is RPCStatusCode.NOT_FOUND else None
        return described.status in (
            WorkflowExecutionStatus.RUNNING,
            WorkflowExecutionStatus.CONTINUED_AS_NEW,
        )

    async def _holdings(self, service: str) -> Holdings | None:
        """None: the Service did not answer, so nothing is to be taken from it."""
        try:
            held: Holdings = await self.client.get_workflow_handle(service).query(
                "holdings", result_type=Holdings, rpc_timeout=QUERY_LIMIT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("%s does not say what it holds: %s", service, error)
            return None
        return held


# --- asking the Pool -----------------------------------------------------------------------------


class _Lanes:
    """How many updates one client has in flight; reserving never queues behind releasing."""

    def __init__(self) -> None:
        self.reserves = asyncio.Semaphore(RESERVES)
        self.releases = asyncio.Semaphore(RELEASES)


_LANES: WeakKeyDictionary[Client, _Lanes] = WeakKeyDictionary()


def _lanes(client: Client) -> _Lanes:
    return _LANES.setdefault(client, _Lanes())


class _Pauses:
    """Exponential back-off, with chance so that those who were refused together part."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE

    async def pause(self) -> None:
        await asyncio.sleep(self._next * random.uniform(0.5, 1.0))
        self._next = min(self._next * 2, LONGEST_PAUSE)


def _asking() -> str:
    if not activity.in_activity():
        return ""
    info = activity.info()
    return f"{info.workflow_run_id}/{info.activity_id}/{info.attempt}"


async def _update(
    client: Client,
    pool: str,
    name: str,
    argument: object,
    result_type: type[_R],
    update_id: str | None,
) -> _R:
    handle = client.get_workflow_handle(pool_id(pool))
    pauses = _Pauses()
    while True:
        try:
            result: _R = await handle.execute_update(
                name, argument, id=update_id, result_type=result_type
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                await ensure_pool(client, pool)
            elif error.status not in _BUSY:
                raise
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None  # it is us who are cancelled
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type != _CUT_OFF:
                raise _told(cause) from error
        else:
            return result
        await pauses.pause()


def _told(cause: BaseException) -> ApplicationError:
    """The Pool's refusal as the activity's own: another attempt would be refused as well."""
    kind = cause.type if isinstance(cause, ApplicationError) else None
    return ApplicationError(str(cause), type=kind or type(cause).__name__, non_retryable=True)
