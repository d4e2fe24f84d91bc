"""The registration of an agent with its pool."""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.domain.cluster.agents import PORTS_IN_USE_LIMIT, AgentInfo
from temporal_plans.domain.cluster.offer import ports_of, within
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.addresses import PLANS_QUEUE, pool_id

_log = logging.getLogger(__name__)

# Floats are seconds.
_RETRY_INTERVAL = 1.0
_TIMEOUT = timedelta(seconds=20)
_PORTS_INTERVAL = 30.0


class AgentCannotRun(RefusedError):
    """This process can't run as an agent; the reason says what is missing."""


class AgentRefused(AgentCannotRun):
    """The Pool refused this agent: another one is alive under its id. Tasks that this agent started
    before keep running without an agent."""


class Registration:
    """Registers one agent, with the ports that are in use at that time."""

    def __init__(
        self, client: Client, info: AgentInfo, ports_in_use: Callable[[], Collection[int]]
    ) -> None:
        self._client = client
        self._info = info
        self._ports_in_use = ports_in_use
        self._offered = ports_of(info.resources.ports)
        self._reported: tuple[int, ...] | None = None
        self._registering = asyncio.Lock()

    async def register_with_retries(self) -> None:
        """Register with the pool, with retries until it accepts. Raises AgentRefused."""
        agent, pool = self._info.id, pool_id(self._info.pool)
        while True:
            try:
                await self._register()
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as problem:
                if isinstance(problem.__cause__, asyncio.CancelledError):
                    raise problem.__cause__ from None  # this coroutine was cancelled
                _log.warning(
                    "agent %s can't register with %s yet, retrying: %s", agent, pool, problem
                )
            except WorkflowUpdateFailedError as problem:
                if (refusal := refusal_in(problem.cause)) is not None:
                    raise AgentRefused(refusal.but(subject=pool)) from None
                _log.warning(
                    "agent %s was not registered by %s, retrying: %s", agent, pool, problem.cause
                )
            else:
                _log.info("agent %s is registered with %s", agent, pool)
                return
            await asyncio.sleep(_RETRY_INTERVAL)

    async def report_changed_ports(self) -> None:
        """Register again, not too often, when other ports are in use than were reported."""
        while True:
            await asyncio.sleep(_PORTS_INTERVAL)
            await self.report_ports()

    async def report_ports(self) -> None:
        """Register again if other ports are in use than were reported."""
        if self._current_ports() == self._reported:
            return
        try:
            await self._register()
        except (
            RPCError,
            WorkflowUpdateRPCTimeoutOrCancelledError,
            WorkflowUpdateFailedError,
        ) as problem:
            if isinstance(problem.__cause__, asyncio.CancelledError):
                raise problem.__cause__ from None
            _log.warning("agent %s can't report its ports in use: %s", self._info.id, problem)

    async def _register(self) -> None:
        async with self._registering:
            ports = self._current_ports()
            await register(self._client, self._info.but(ports_in_use=ports))
            self._reported = ports

    def _current_ports(self) -> tuple[int, ...]:
        offered = (port for port in self._ports_in_use() if within(port, self._offered))
        return tuple(sorted(offered)[:PORTS_IN_USE_LIMIT])


async def register(client: Client, info: AgentInfo) -> None:
    """Register an agent with its pool, and start the pool's workflow if it does not run.

    Raises RPCError or WorkflowUpdateRPCTimeoutOrCancelledError while the pool can't be reached, and
    WorkflowUpdateFailedError when it refuses, as for an id that is taken.
    """
    start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
        "Pool",
        {"name": info.pool},
        id=pool_id(info.pool),
        task_queue=PLANS_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    await client.execute_update_with_start_workflow(
        "register", info, start_workflow_operation=start, rpc_timeout=_TIMEOUT
    )
