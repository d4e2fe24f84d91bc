"""The handlers of a service for messages of steps, agents and the pool about tasks."""

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.plans.leases import LeaseState
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.launch import LaunchIntent, LaunchOrder
from temporal_plans.domain.services.launch_check import LaunchSituation, launch_refusal
from temporal_plans.domain.services.launchable import Launchable
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.keeper import RecoveryKeeper
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.messages.pools import AgentLostMessage
from temporal_plans.messages.services import SubscribeMessage
from temporal_plans.messages.tasks import TaskStatuses
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.services.deployments import ServiceDeployments
from temporal_plans.workflows.services.kills import Kills


class TaskMessages(Owner):
    """A base class of the Service workflow; its handlers keep the task records."""

    _configs: ConfigurationBook[Configuration]
    _deployments: ServiceDeployments
    _kills: Kills
    _leases: LeaseState
    _recovery: RecoveryKeeper
    _tasks: TaskBook

    @workflow.update(name="record_launch", description="Before a launch: record its tasks.")
    async def record_launch(self, intent: LaunchIntent) -> LaunchOrder:
        pod = self._configs.get(intent.config_id).spec.pod(intent.pod)
        return self._tasks.record_launch(intent, pod, workflow.now())

    @record_launch.validator
    def _check_record_launch(self, intent: LaunchIntent) -> None:
        situation = LaunchSituation(
            configuration=self._configs.get(intent.config_id),
            target=self._configs.target,
            book=self._tasks,
            leases=self._leases,
            launchable=Launchable(self._deployments.specs.values()),
            cancelled=self._recovery.is_cancelled(intent.step),
        )
        if (refusal := launch_refusal(intent, situation)) is not None:
            held = self._tasks.reservation_of(intent.pod, intent.index)
            kept = held is not None and held.id == intent.reservation.id
            raise refusal_error(refusal, kept)

    @workflow.signal(name="task_statuses", description="From agents: statuses of tasks.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        self._record_statuses(statuses.statuses)

    def _record_statuses(self, statuses: tuple[TaskStatus, ...]) -> None:
        """Record statuses, and forward those that a step follows."""
        forward: dict[str, list[TaskStatus]] = {}
        for status in statuses:
            update = self._tasks.take(status)
            if update.zombie is not None:
                self._kills.kill_unknown(update.zombie, "superseded by a newer launch")
            elif update.record is not None:
                if not update.record.live:
                    backoff = self._deployments.input.backoff
                    self._recovery.ended(update.record, backoff, workflow.now())
                if update.record.owner and (not status.told or _is_news(update.record)):
                    forward.setdefault(update.record.owner, []).append(status)
        for owner, group in forward.items():
            self.outbox.put(owner, "task_statuses", TaskStatuses(statuses=tuple(group)))
        self.changed()

    def _record_kill(self, statuses: tuple[TaskStatus, ...]) -> None:
        """Record the answer to a kill for tasks without a report: their launch never reached an
        agent. Agents report all other tasks themselves."""
        self._record_statuses(tuple(filter(self._tasks.is_unreported, statuses)))

    @workflow.signal(name="subscribe", description="From a step: send it the statuses of tasks.")
    def on_subscribe(self, message: SubscribeMessage) -> None:
        known = self._tasks.follow(message.owner, message.task_ids, workflow.now())
        if known:
            self.outbox.put(message.owner, "task_statuses", TaskStatuses(statuses=known))

    @workflow.signal(name="agent_lost", description="From the pool: an agent is lost.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        now = workflow.now()
        self._record_statuses(
            self._tasks.lost_with(message.agent, now, by_operator=message.by_operator)
        )
        self._tasks.remember_lost(message.agent, message.at)
        if message.by_operator:
            self._kills.discard_agent(message.agent)
            self._tasks.mark_agent_for_replacement(message.agent)

    @workflow.signal(name="offered", description="From the pool; a service ignores offers.")
    def on_offered(self, _: object = None) -> None: ...


def _is_news(record: TaskRecord) -> bool:
    """Whether the owner of a task may not have what was reported to the step that launched it."""
    return record.followed and workflow.patched("told to another step")
