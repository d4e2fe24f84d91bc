"""Activities that take a service away: end its tasks, give back what they held, forget them
(reference 7.2, 8.2).

They wait in rounds. A round ends when the work is done, or when there is something else to say than
what the step knows: first after a moment, so that whoever looks is told what it waits for, then
only when that changes. An agent that is gone for days so costs a round now and then, and the step
can be forced, interrupted or left at any moment, since a round that is cancelled loses nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.heartbeat import heartbeats
from temporal_plans.activities.offers import QUERY_LIMIT, release_once
from temporal_plans.activities.pods import CUT_OFF
from temporal_plans.domain.cluster import AgentState
from temporal_plans.messages.cluster import (
    Holdings,
    PoolStatus,
    ReleaseInput,
    pool_id,
)
from temporal_plans.messages.service import EraseTask, Released, Retired, RetireTask
from temporal_plans.messages.upkeep import (
    DeregisterInput,
    EraseInput,
    ReleaseReservationInput,
    RetireInput,
    UpkeepResult,
)

ROUND = 3600.0
"""Seconds that a round lasts at most; within the activity's time limit."""

PATIENCE = 3.0
"""Seconds before a wait is told for the first time, unless it may be long."""

NEWS_EVERY = 15.0
"""Seconds at least between two rounds that end with something else to say."""

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two looks, doubled from one to the other."""

_R = TypeVar("_R")

_WAYS_OUT = "bring it back, remove it for good, or pass over the step with `force-complete`"


class _Look(UpkeepResult):
    """``long``: nobody knows when it is over, so it is told at once."""

    long: bool = False


class UpkeepActivities:
    """``client`` is where the service and the pool run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="retire_task")
    async def retire_task(self, request: RetireInput) -> UpkeepResult:
        """Have the Service end a task and never launch it again, until it is dead.

        Raises ApplicationError, not retryable, when the service does not run or refuses.
        """

        async def look() -> _Look:
            answer: Retired = await self._ask_service(
                request.service,
                "retire_task",
                RetireTask(task=request.task, task_id=request.task_id),
                Retired,
            )
            if answer.dead:
                return _Look()
            dead = await self._dead_agent(request.pool, answer.agent)
            why = answer.reason or f"{request.task} is being killed on agent {answer.agent}"
            return _Look(done=False, waits=dead or why, long=bool(dead))

        return await _round(request.known, look)

    @activity.defn(name="release_reservation")
    async def release_reservation(self, request: ReleaseReservationInput) -> UpkeepResult:
        """Give a reservation back, until its agent has destroyed what was on it; then the Service
        is told. One that is not held, or was destroyed before, is done at once.

        Raises ApplicationError, not retryable, when the Service wants the pod: a decommission that
        was called off may not have heard of it yet.
        """

        async def look() -> _Look:
            if request.key in await self._wanted(request.service):
                text = f"{request.key} is not to be given back any more"
                raise ApplicationError(text, type="Wanted", non_retryable=True)
            answer = await release_once(
                self._client,
                ReleaseInput(pool=request.pool, key=request.key, reservation=request.reservation),
            )
            if not answer.agent:
                return _Look()
            if answer.agent_state is AgentState.ALIVE:
                text = f"agent {answer.agent} is destroying what is on it"
                return _Look(done=False, waits=text)
            dead = await self._dead_agent(request.pool, answer.agent)
            text = dead or _gone(answer.agent, "", answer.agent_state)
            return _Look(done=False, waits=text, long=True)

        result = await _round(request.known, look)
        if result.done:
            await self._tell_released(request.service, request.key, request.reservation)
        return result

    @activity.defn(name="erase_task")
    async def erase_task(self, request: EraseInput) -> UpkeepResult:
        """Have the Service forget a task. Raises as ``retire_task`` does."""
        async with heartbeats():
            await self._ask_service(
                request.service, "erase_task", EraseTask(task=request.task), type(None)
            )
        return UpkeepResult()

    @activity.defn(name="deregister")
    async def deregister(self, request: DeregisterInput) -> UpkeepResult:
        """Give up what the Pool still keeps for a service, forced over or forgotten: from here on
        nobody would. Agents that are gone destroy it when they are back; nothing waits for them.

        Raises ApplicationError, not retryable, when there is a service of the name that wants pods:
        it was deployed anew.
        """
        async with heartbeats():
            if await self._wanted(request.service):
                text = f"{request.service} is not being uninstalled"
                raise ApplicationError(text, type="Wanted", non_retryable=True)
            for key in await self._kept(request):
                released = await release_once(
                    self._client, ReleaseInput(pool=request.pool, key=key)
                )
                activity.logger.info("%s gave up %s: %s", request.service, key, released)
        return UpkeepResult()

    # --- whom it asks ---

    async def _ask_service(
        self, service: str, update: str, argument: object, result_type: type[_R]
    ) -> _R:
        """What the Service answers. Raises ApplicationError, not retryable, when asking again is no
        use; everything else is worth another attempt of the activity."""
        handle = self._client.get_workflow_handle(service)
        try:
            answer: _R = await handle.execute_update(update, argument, result_type=result_type)
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == CUT_OFF:
                raise
            kind = cause.type if isinstance(cause, ApplicationError) else type(cause).__name__
            text = f"{service} refuses {update}: {cause}"
            raise ApplicationError(text, type=kind, non_retryable=True) from error
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            text = f"{service} does not run any more, so nobody knows the task"
            raise ApplicationError(text, type="NoService", non_retryable=True) from error
        return answer

    async def _wanted(self, service: str) -> tuple[str, ...]:
        """What the Service wants to keep; nothing, if it does not run. Raises RPCError and
        WorkflowQueryFailedError while it does not answer."""
        handle = self._client.get_workflow_handle(service)
        try:
            wanted: Holdings = await handle.query(
                "wanted",
                result_type=Holdings,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=QUERY_LIMIT,
            )
        except WorkflowQueryRejectedError:
            return ()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return ()
        return wanted.keys

    async def _tell_released(self, service: str, key: str, reservation: str) -> None:
        message = Released(key=key, reservation=reservation)
        try:
            await self._client.get_workflow_handle(service).signal("released", message)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # a service that is gone holds nothing
                raise

    async def _dead_agent(self, pool: str, agent: str) -> str:
        """What is wrong with an agent and what would help; empty when it is alive."""
        status = await self._pool(pool) if agent else None
        if status is None:
            return ""
        view = next((one for one in status.agents if one.info.id == agent), None)
        if view is None:
            return f"agent {agent} is not in pool {pool}: {_WAYS_OUT}"
        if view.state is AgentState.ALIVE:
            return ""
        return _gone(agent, view.info.hostname, view.state)

    async def _pool(self, pool: str) -> PoolStatus | None:
        """What the Pool knows; None when it does not answer."""
        handle = self._client.get_workflow_handle(pool_id(pool))
        try:
            status: PoolStatus = await handle.query(
                "status", result_type=PoolStatus, rpc_timeout=QUERY_LIMIT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("pool %s does not say how its agents are: %s", pool, error)
            return None
        return status

    async def _kept(self, request: DeregisterInput) -> list[str]:
        """Keys of all that the service has in the Pool: what it holds, and what still waits."""
        status = await self._pool(request.pool) or PoolStatus(name=request.pool)
        service = self._client.get_workflow_handle(request.service)
        try:
            holdings: Holdings = await service.query(
                "holdings", result_type=Holdings, rpc_timeout=QUERY_LIMIT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("%s does not say what it holds: %s", request.service, error)
            holdings = Holdings()
        held = [one.key for one in status.reservations if one.owner == request.service]
        waiting = [
            one.requirement.key
            for one in status.waiting
            if one.requirement.owner == request.service
        ]
        return list(dict.fromkeys([*held, *waiting, *holdings.keys]))


def _gone(agent: str, hostname: str, state: AgentState | None) -> str:
    where = f" ({hostname})" if hostname else ""
    return f"agent {agent}{where} is {state or 'unknown'}: {_WAYS_OUT}"


async def _round(known: str, look: Callable[[], Awaitable[_Look]]) -> UpkeepResult:
    """Look again and again, until it is done or there is something else to say than ``known``."""
    began, pause = time.monotonic(), FIRST_PAUSE
    async with heartbeats():
        while True:
            seen = await look()
            lasted = time.monotonic() - began
            first = seen.long or lasted >= PATIENCE
            later = seen.waits != known and lasted >= NEWS_EVERY
            if seen.done or (later if known else first) or lasted >= ROUND:
                return UpkeepResult(done=seen.done, waits=seen.waits)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
