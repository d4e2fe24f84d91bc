"""Activities that remove a service: kill its tasks, release their reservations, erase their records
(behaviour 7.2, 8.2).

They wait in rounds. A round ends when the work is done, or when its wait reason differs from the
one that the step knows: first after a short delay, so that the step shows a reason, then only on a
change. So an agent that is down for days costs few rounds, and the step can be forced, interrupted
or left at any time, since a cancelled round loses nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.failure_text import message_of
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.open_runs import query_open
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import (
    non_retryable,
    was_not_processed,
)
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.activities.pools.offers import QUERY_TIMEOUT
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.addresses import pool_id
from temporal_plans.messages.pools import Holdings, PoolStatus, ReleaseInput
from temporal_plans.messages.services import EraseTask, Released, Retired, RetireTask
from temporal_plans.messages.upkeep import (
    DeregisterInput,
    EraseInput,
    ReleaseReservationInput,
    RetireInput,
    UpkeepResult,
)


@dataclass(frozen=True)
class UpkeepIntervals:
    """The times of a round, in seconds. ``round_timeout`` ends a round; it is below the activity's
    timeout. ``first_report_delay`` passes before the first wait reason is reported, unless the wait
    may be long, and ``report_interval`` before each later change of it. The state is checked with
    ``first_check_interval``, doubled up to ``check_interval_limit``."""

    round_timeout: float = 3600.0
    first_report_delay: float = 3.0
    report_interval: float = 15.0
    first_check_interval: float = 0.2
    check_interval_limit: float = 10.0


_R = TypeVar("_R")

_FIXES = "start the agent, remove it from the pool, or skip the step with `force-complete`"


class _Check(UpkeepResult):
    """``long``: the wait may be long, so its reason is reported at once."""

    long: bool = False


class UpkeepActivities:
    """``client`` reaches the service and the pool; ``placement`` releases reservations."""

    def __init__(
        self, client: Client, placement: Placement, intervals: UpkeepIntervals = UpkeepIntervals()
    ) -> None:
        self._client = client
        self._placement = placement
        self._intervals = intervals

    @activity.defn(name="retire_task")
    async def retire_task(self, request: RetireInput) -> UpkeepResult:
        """Have the Service kill a task and never launch it again; wait until it has ended.

        Raises a non-retryable ApplicationError when the service does not run or refuses.
        """

        async def check() -> _Check:
            answer: Retired = await self._update_service(
                request.service,
                "retire_task",
                RetireTask(task=request.task, task_id=request.task_id),
                Retired,
            )
            if answer.dead:
                return _Check()
            unreachable = await self._agent_problem(request.pool, answer.agent)
            reason = answer.reason or f"{request.task} is being killed on agent {answer.agent}"
            return _Check(done=False, waits=unreachable or reason, long=bool(unreachable))

        return await self._round(request.known, check)

    @activity.defn(name="release_reservation")
    async def release_reservation(self, request: ReleaseReservationInput) -> UpkeepResult:
        """Release a reservation and wait until its agent has destroyed it; then notify the Service.
        Return at once if the reservation does not exist or was destroyed before.

        Raises a non-retryable ApplicationError when the Service needs the pod: this decommission
        may have been cancelled already.
        """

        async def check() -> _Check:
            if request.key in await self._wanted(request.service):
                text = f"{request.key} is needed again by {request.service}; it is not released"
                raise refusal_error(Refusal.of(Code.IN_USE, text))
            answer = await self._placement.release(
                ReleaseInput(pool=request.pool, key=request.key, reservation=request.reservation)
            )
            if not answer.agent:
                return _Check()
            if answer.agent_state is AgentState.ALIVE:
                text = f"agent {answer.agent} is destroying the reservation"
                return _Check(done=False, waits=text)
            unreachable = await self._agent_problem(request.pool, answer.agent)
            text = unreachable or _agent_problem_text(answer.agent, "", answer.agent_state)
            return _Check(done=False, waits=text, long=True)

        result = await self._round(request.known, check)
        if result.done:
            await self._signal_released(request.service, request.key, request.reservation)
        return result

    @activity.defn(name="erase_task")
    async def erase_task(self, request: EraseInput) -> UpkeepResult:
        """Have the Service erase the record of a task. Raises as ``retire_task`` does."""
        async with heartbeats():
            await self._update_service(
                request.service, "erase_task", EraseTask(task=request.task), type(None)
            )
        return UpkeepResult()

    @activity.defn(name="deregister")
    async def deregister(self, request: DeregisterInput) -> UpkeepResult:
        """Release all that the Pool still keeps for a service, as after a forced step: no later
        step would. Agents that are down destroy it when they are back, without a wait here.

        Raises a non-retryable ApplicationError when a service of that name needs pods, because it
        was deployed again.
        """
        async with heartbeats():
            if await self._wanted(request.service):
                text = f"{request.service} was deployed again and is not being uninstalled"
                raise refusal_error(Refusal.of(Code.IN_USE, text))
            for key in await self._kept(request):
                released = await self._placement.release(ReleaseInput(pool=request.pool, key=key))
                activity.logger.info("released %s of %s: %s", key, request.service, released)
        return UpkeepResult()

    async def _round(self, known: str, check: Callable[[], Awaitable[_Check]]) -> UpkeepResult:
        """Check until the work is done, or the wait reason must be reported, or the round ends."""
        intervals = self._intervals
        started, interval = time.monotonic(), intervals.first_check_interval
        async with heartbeats():
            while True:
                found = await check()
                elapsed = time.monotonic() - started
                first = found.long or elapsed >= intervals.first_report_delay
                changed = found.waits != known and elapsed >= intervals.report_interval
                report = changed if known else first
                if found.done or report or elapsed >= intervals.round_timeout:
                    return UpkeepResult(done=found.done, waits=found.waits)
                await asyncio.sleep(interval)
                interval = min(interval * 2, intervals.check_interval_limit)

    # --- calls to the service and the pool ---

    async def _update_service(
        self, service: str, update: str, argument: object, result_type: type[_R]
    ) -> _R:
        """Return the Service's answer to an update. Raises a non-retryable ApplicationError when a
        retry is of no use; other errors may be retried."""
        handle = self._client.get_workflow_handle(service)
        try:
            answer: _R = await handle.execute_update(update, argument, result_type=result_type)
        except WorkflowUpdateFailedError as error:
            if was_not_processed(error.cause):
                raise
            text = f"{service} refuses {update}: {message_of(error.cause)}"
            raise non_retryable(error.cause, text) from error
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            text = f"{update}: {service} does not run any more"
            raise refusal_error(Refusal.of(Code.NOT_FOUND, text)) from error
        return answer

    async def _wanted(self, service: str) -> tuple[str, ...]:
        """Return the keys that the Service needs; none if it does not run. Raises RPCError and
        WorkflowQueryFailedError while it does not answer."""
        handle = self._client.get_workflow_handle(service)
        try:
            wanted = await query_open(handle, "wanted", Holdings, timeout=QUERY_TIMEOUT)
        except WorkflowQueryRejectedError:
            return ()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return ()
        return wanted.keys

    async def _signal_released(self, service: str, key: str, reservation: str) -> None:
        message = Released(key=key, reservation=reservation)
        try:
            await self._client.get_workflow_handle(service).signal("released", message)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # a service that is gone holds nothing
                raise

    async def _agent_problem(self, pool: str, agent: str) -> str:
        """Return what is wrong with an agent and how to fix it; empty when it is alive."""
        status = await self._pool(pool) if agent else None
        if status is None:
            return ""
        view = next((view for view in status.agents if view.info.id == agent), None)
        if view is None:
            return f"agent {agent} is not in pool {pool}: {_FIXES}"
        if view.state is AgentState.ALIVE:
            return ""
        return _agent_problem_text(agent, view.info.hostname, view.state)

    async def _pool(self, pool: str) -> PoolStatus | None:
        """Return the Pool's status; None when it does not answer."""
        handle = self._client.get_workflow_handle(pool_id(pool))
        try:
            status: PoolStatus = await handle.query(
                "status", result_type=PoolStatus, rpc_timeout=QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("pool %s did not report its status: %s", pool, error)
            return None
        return status

    async def _kept(self, request: DeregisterInput) -> list[str]:
        """Return the keys of all reservations and waiting requirements of the service."""
        status = await self._pool(request.pool) or PoolStatus(name=request.pool)
        service = self._client.get_workflow_handle(request.service)
        try:
            holdings: Holdings = await service.query(
                "holdings", result_type=Holdings, rpc_timeout=QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("%s did not report its holdings: %s", request.service, error)
            holdings = Holdings()
        held = [
            reservation.key
            for reservation in status.reservations
            if reservation.owner == request.service
        ]
        waiting = [
            entry.requirement.key
            for entry in status.waiting
            if entry.requirement.owner == request.service
        ]
        return list(dict.fromkeys([*held, *waiting, *holdings.keys]))


def _agent_problem_text(agent: str, hostname: str, state: AgentState | None) -> str:
    where = f" ({hostname})" if hostname else ""
    return f"agent {agent}{where} is {state or 'unknown'}: {_FIXES}"
