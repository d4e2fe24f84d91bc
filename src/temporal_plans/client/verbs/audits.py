"""The comparison of agents with services, and the end of tasks that no service knows."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import PlansError, Refused, ServiceNotFound, TaskNotFound
from temporal_plans.client.reading.audit import Audit, Records, differences
from temporal_plans.client.reading.task_logs import AGENT_ANSWER_TIMEOUT
from temporal_plans.client.verbs.services import ServiceVerbs
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.pools import AgentView
from temporal_plans.messages.tasks import KillInput, ListedTasks, ListTasksInput, TaskStatuses

_KILL_TIMEOUT = timedelta(seconds=30)
"""How long a task may take to end before the command stops waiting; it ends nevertheless."""


class AuditVerbs(ServiceVerbs):
    """The verbs; the caller, who knows the pools, names the agents."""

    async def audit_agents(self, agents: Sequence[AgentView]) -> Audit:
        """Compare what these agents run with what all services know."""
        before, _ = await self._records()
        running, silent_agents = await self._running(agents)
        after, silent_services = await self._records()
        return Audit(
            differences=differences(
                {agent: listed.tasks for agent, listed in running.items()},
                before,
                after,
                silent_services,
            ),
            silent={
                **{f"agent {agent}": why for agent, why in silent_agents.items()},
                **{f"service {service}": why for service, why in silent_services.items()},
            },
            tasks=sum(listed.number for listed in running.values()),
        )

    async def end_unknown(
        self, task_id: str, agents: Sequence[AgentView], *, reason: str = ""
    ) -> TaskStatus:
        """End a task that no service knows, and return its last status. Raises TaskNotFound when no
        agent that answers runs it; Refused when its service knows it or does not answer."""
        running, _ = await self._running(agents)
        tasks = {task.task_id: task for listed in running.values() for task in listed.tasks}
        if task_id not in tasks:
            raise TaskNotFound(task_id, tasks)
        services, silent = await self._records()
        known = [(name, record) for name, records in services.items() for record in records]
        for service, record in known:
            if record.task_id == task_id:
                restart = f"temporal plan pod restart {record.pod}-{record.index} -s {service}"
                text = f"task {task_id!r} is the newest launch of service {service}"
                raise Refused.of(Code.IN_USE, text, fix=f"use `{restart}`")
        for service, why in silent.items():
            if tasks[task_id].report_to == service_id(service):
                text = f"service {service!r} may know task {task_id!r}, and does not answer: {why}"
                raise Refused.of(Code.UNAVAILABLE, text)
        info = next(
            view.info
            for view in agents
            if view.info.id in running and tasks[task_id] in running[view.info.id].tasks
        )
        order = KillInput(task_ids=(task_id,), reason=reason or "ended by `audit --end`")
        answer = await self._gateway.ask_agent(
            info.id, info.queue, "kill", order, TaskStatuses, timeout=_KILL_TIMEOUT
        )
        return answer.statuses[0]

    async def _running(
        self, agents: Sequence[AgentView]
    ) -> tuple[Mapping[str, ListedTasks], Mapping[str, str]]:
        """Return the tasks that run, by agent, and why other agents gave no answer."""
        silent: dict[str, str] = {}

        async def ask(view: AgentView) -> ListedTasks | None:
            info = view.info
            if view.state is not AgentState.ALIVE:
                silent[info.id] = f"it is {view.state}"
                return None
            try:
                return await self._gateway.ask_agent(
                    *(info.id, info.queue, "list_tasks", ListTasksInput(), ListedTasks),
                    timeout=AGENT_ANSWER_TIMEOUT,
                )
            except PlansError as error:
                silent[info.id] = str(error)
                return None

        answers = await gather_bounded(map(ask, agents))
        named = zip((view.info.id for view in agents), answers, strict=True)
        return {agent: answer for agent, answer in named if answer is not None}, silent

    async def _records(self) -> tuple[Records, Mapping[str, str]]:
        """Return the task records by service, and why other services gave no answer."""
        silent: dict[str, str] = {}

        async def ask(service: str) -> Sequence[TaskRecord] | None:
            try:
                return await self.tasks(service)
            except ServiceNotFound:  # it has just ended
                return None
            except PlansError as error:
                if isinstance(error, Refused) and error.refusal.code == Code.NOT_APPLICABLE:
                    return None  # a package has no tasks
                silent[service] = str(error)
                return None

        services = await self.services()
        answers = zip(services, await gather_bounded(map(ask, services)), strict=True)
        return {service: answer for service, answer in answers if answer is not None}, silent
