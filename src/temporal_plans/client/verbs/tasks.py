"""Verbs for tasks: find one, read its output, end one that no service knows."""

from collections.abc import AsyncIterator

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import TaskNotFound
from temporal_plans.client.reading import task_logs
from temporal_plans.client.reading.audit import Audit
from temporal_plans.client.reading.task_logs import Stream, TaskAt
from temporal_plans.client.verbs.audits import AuditVerbs
from temporal_plans.client.verbs.plans import PlanVerbs
from temporal_plans.client.verbs.pools import PoolVerbs
from temporal_plans.domain.tasks.statuses import TaskStatus


class TaskVerbs(AuditVerbs, PlanVerbs, PoolVerbs):
    """Tasks, wherever they run."""

    async def audit(self) -> Audit:
        """Compare what all agents run with what all services know: they differ after a restore of
        Temporal from a backup."""
        return await self.audit_agents(await self._agents())

    async def end_task(self, task_id: str, *, reason: str = "") -> TaskStatus:
        """End a task that runs on an agent and that no service knows, and return its last status.
        Raises TaskNotFound; Refused when its service knows it or does not answer."""
        return await self.end_unknown(task_id, await self._agents(), reason=reason)

    async def find_task(self, text: str, *, service: str = "", agent: str = "") -> TaskAt:
        """Find a task by id or name, in one service or all, and the agent that has its files.

        A name finds the newest launch; older launches are found by id. ``agent`` skips the search:
        the task is expected there. Raises TaskNotFound, Ambiguous, AgentNotFound.
        """
        if agent:
            return task_logs.task_on_agent(text, agent, await self._agents())
        services = [service] if service else await self.services()
        records = [
            task for tasks in await gather_bounded(map(self.tasks, services)) for task in tasks
        ]
        if (found := task_logs.find_task(text, records)) is not None:
            return found
        if "__" in text:
            agents = await self._agents()
            if (found := await task_logs.find_on_agents(self._gateway, text, agents)) is not None:
                return found
        raise task_logs.task_not_found(text, records)

    async def find_task_of_step(self, plan_id: str, path: str) -> TaskAt:
        """Find the newest task of the step ``phase/step``, which must run a command.

        Raises TaskNotFound, PlanNotFound.
        """
        task = task_logs.task_of_step((await self.show(plan_id)).view, path)
        agents = await self._agents()
        if (found := await task_logs.find_on_agents(self._gateway, task, agents)) is None:
            raise TaskNotFound(task)
        return found

    def read_log(
        self, task: TaskAt, stream: Stream = "stdout", *, tail: int | None = None,
        follow: bool = False,
    ) -> AsyncIterator[str]:  # fmt: skip
        """Yield a task's output in chunks: all of it or the last ``tail`` lines; with ``follow``
        also new output, until the task has ended. Raises AgentUnreachable, Refused."""
        return task_logs.read_output(self._gateway, task, stream, tail=tail, follow=follow)
