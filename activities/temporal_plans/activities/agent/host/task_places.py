"""The place of a task: where one launch of it may run at a time, and nothing of an earlier one."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from temporal_plans.activities.agent.host.agent_task import AgentTask
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.host.status_reports import StatusReports
from temporal_plans.activities.agent.supervisor.strays import end_strays
from temporal_plans.activities.agent.supervisor.supervision import trace_of
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Reason

# In seconds.
_PLACE_TIMEOUT = 20.0
_POLL_INTERVAL = 0.01


class TaskPlaces:
    """The places of one agent's ``tasks``, by task id."""

    def __init__(
        self,
        tasks: Mapping[str, AgentTask],
        reports: StatusReports,
        kill_cgroup: Callable[[str], None],
    ) -> None:
        self._tasks = tasks
        self._reports = reports
        self._kill_cgroup = kill_cgroup

    async def take(self, task: AgentTask) -> None:
        """Make sure that no other launch of this task runs, and that none starts. Raises
        TaskRefused.

        The task's service kills a launch before it orders the next, unless it was misled about its
        end. A report that the other launch runs makes the service kill it.
        """
        deadline = asyncio.get_running_loop().time() + _PLACE_TIMEOUT
        while running := [other for other in self._others(task) if other.may_run]:
            late = asyncio.get_running_loop().time() > deadline
            for other in running:
                if other.holds_place or late or not other.is_ending:
                    if other.latest is not None:
                        self._reports.post(other, other.latest.but(told=False))
                    raise TaskRefused(
                        Reason(
                            problem=f"{other.record.name} runs already, launched as "
                            f"{other.record.task_id}",
                            fix="a task is never launched beside itself: that launch must end "
                            "first",
                        ),
                        state=TaskState.FAILED,
                    )
            await asyncio.sleep(_POLL_INTERVAL)
        task.holds_place = True
        await self._sweep(self._others(task))

    def _others(self, task: AgentTask) -> list[AgentTask]:
        """Return the other launches of a task; more may be ordered at any time."""
        return [other for other in self._tasks.values() if task.is_launch_of(other)]

    async def _sweep(self, tasks: Iterable[AgentTask]) -> None:
        """Kill what is left of tasks that ended without their supervisor. Raises TaskRefused."""
        tasks = [task for task in tasks if task.has_ended and task.may_have_strays]
        if not tasks:
            return
        if left := await self.end_strays(tasks):
            raise TaskRefused(
                Reason(problem=f"processes of an earlier launch can't be killed: {_numbers(left)}"),
                state=TaskState.FAILED,
            )

    async def end_strays(self, tasks: Sequence[AgentTask]) -> tuple[int, ...]:
        for task in tasks:
            self._kill_cgroup(task.record.task_id)
        left = await end_strays([trace_of(task.directory) for task in tasks])
        for task in tasks:
            task.swept = not left
        return left


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
