"""The handlers of a service for steps that remove tasks and reservations (behaviour 7.2)."""

from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.keeper import RecoveryKeeper
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.services import EraseTask, Released, Retired, RetireTask
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.services.changes import ServiceChanges
from temporal_plans.workflows.services.kills import Kills

RETIRE_TIMEOUT = timedelta(seconds=20)
"""How long ``retire_task`` waits until the task is dead; then the caller asks again."""


class Removal(Owner):
    """A base class of the Service workflow."""

    _changes: ServiceChanges
    _kills: Kills
    _recovery: RecoveryKeeper
    _tasks: TaskBook

    @workflow.update(name="retire_task", description="From a step: kill a task permanently.")
    async def retire_task(self, request: RetireTask) -> Retired:
        self._refuse_if_in_target(request.task)
        record = self._tasks.records.get(request.task)
        if record is None or (request.task_id and record.task_id != request.task_id):
            return Retired(dead=True)
        self._tasks.overrides[record.name] = GoalOverride.DECOMMISSIONED
        if record.live:
            self._kills.kill(record.ref, "removed from the service")
            await wait_or_timeout(lambda: self._dead(record), RETIRE_TIMEOUT)
        state = self._tasks.records.get(request.task, record).status
        text = f"task {record.task_id} on agent {record.agent} is {state.state if state else 'new'}"
        return Retired(dead=self._dead(record), agent=record.agent, reason=text)

    def _refuse_if_in_target(self, task: str) -> None:
        """Refuse to remove a task of the target: a superseded decommission may still ask for it."""
        record = self._tasks.records.get(task)
        if record is None or self.uninstalling:
            return
        if not self._changes.is_removed(record.pod, record.index):
            raise refused(
                Code.NOT_WANTED,
                f"task {task} must not be removed: the configuration in force has its pod",
            )

    def _dead(self, record: TaskRecord) -> bool:
        current = self._tasks.records.get(record.name)
        return current is None or current.task_id != record.task_id or not current.live

    @workflow.update(name="erase_task", description="From a step: remove a task's record.")
    def erase_task(self, request: EraseTask) -> None:
        self._refuse_if_in_target(request.task)
        self._tasks.erase(request.task)
        self._recovery.forget_task(request.task)
        self.changed()

    @workflow.signal(
        name="released", description="From a step: the pool has released this reservation."
    )
    def on_released(self, message: Released) -> None:
        held = self._tasks.reservations.get(message.key)
        if held is not None and message.reservation in ("", held.id):
            del self._tasks.reservations[message.key]
