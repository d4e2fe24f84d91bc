"""The ports of an agent's tasks, and other processes that listen on them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from temporal_plans.activities.agent.host.agent_task import AgentTask
from temporal_plans.activities.agent.host.listening import listening_ports
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Reason

_log = logging.getLogger(__name__)

# In seconds.
_FREE_TIMEOUT = 3.0
_POLL_INTERVAL = 0.1
_REPORT_TIMEOUT = 5.0


async def _report_nothing() -> None:
    """Report no ports: the agent is not registered."""


class TaskPorts:
    """The ports of one agent's ``tasks``, by task id."""

    def __init__(self, tasks: Mapping[str, AgentTask]) -> None:
        self._tasks = tasks
        self.report: Callable[[], Awaitable[None]] = _report_nothing
        """reports the ports ``in_use`` to the pool; set by who registers the agent"""

    async def wait_until_free(self, task: AgentTask) -> None:
        """Wait until no other process listens on the task's ports. Raises TaskRefused.

        A process that was just killed keeps its ports for a moment. Other tasks of the pod may
        share ports with this one.
        """
        if not task.record.ports:
            return
        deadline = asyncio.get_running_loop().time() + _FREE_TIMEOUT
        while taken := await self._taken(task):
            if asyncio.get_running_loop().time() > deadline:
                await self._report()
                raise TaskRefused(
                    Reason(
                        field="ports",
                        problem="another process of this machine listens on "
                        f"{', '.join(map(str, taken))}, which the pool had reserved for this task",
                    ),
                    state=TaskState.FAILED,
                )
            await asyncio.sleep(_POLL_INTERVAL)

    async def _taken(self, task: AgentTask) -> list[int]:
        listening = await asyncio.to_thread(listening_ports)
        shared = {
            port
            for other in self._tasks.values()
            if other is not task
            and other.record.reservation == task.record.reservation
            and other.has_process
            for port in other.record.ports
        }
        return sorted((listening & set(task.record.ports)) - shared)

    def in_use(self) -> frozenset[int]:
        """Return the ports on which processes listen, except those that were reserved for them."""
        own = {
            port for task in self._tasks.values() if task.has_process for port in task.record.ports
        }
        return listening_ports() - own

    async def _report(self) -> None:
        """Report the ports in use to the pool, which then reserves other ones."""
        try:
            async with asyncio.timeout(_REPORT_TIMEOUT):
                await self.report()
        except TimeoutError:
            _log.warning("the pool was not notified of ports in use: it does not answer")
