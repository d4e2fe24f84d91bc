"""A service's task records: the newest launch of every task, and what became of it."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from temporal_plans.domain.leases import Lease
from temporal_plans.domain.service import PodSpec, ServiceSpec, task_instance_name
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import LaunchIntent, LaunchOrder, TaskRef
from temporal_plans.messages.service import PodView, ServiceState, TaskRecord

LAST = 2**31 - 1
"""The sequence of a word after which nothing about the task is heard any more."""


class News(NamedTuple):
    """What a status means: who is to hear of it, or that its task must be killed."""

    owner: str = ""
    zombie: TaskRef | None = None


class ServiceTasks:
    """Records by task instance name, reservations by key."""

    def __init__(self, state: ServiceState) -> None:
        self.records = dict(state.tasks)
        self.reservations = dict(state.reservations)

    def intend(self, intent: LaunchIntent, pod: PodSpec, now: datetime) -> LaunchOrder:
        """Record a launch before it happens; what must be killed for it. Idempotent by task ids."""
        self.reservations[intent.reservation.key] = intent.reservation
        known = [r for r in self.records.values() if r.task_id in {t.task_id for t in intent.tasks}]
        if known:
            return LaunchOrder(kill=known[0].kills)
        kills = self._in_the_way(intent, pod)
        for launch in intent.tasks:
            task = pod.task(launch.task)
            name = task_instance_name(intent.pod, intent.index, launch.task)
            self.records[name] = TaskRecord(
                task_id=launch.task_id,
                name=name,
                pod=intent.pod,
                index=intent.index,
                task=launch.task,
                goal=task.goal,
                resource_set=task.resource_set,
                agent=intent.reservation.agent,
                hostname=intent.reservation.hostname,
                config_id=intent.config_id,
                owner=intent.owner,
                step=intent.step,
                launched=now,
                kills=kills,
            )
        return LaunchOrder(kill=kills)

    def _in_the_way(self, intent: LaunchIntent, pod: PodSpec) -> tuple[TaskRef, ...]:
        """Live tasks of the pod in a resource set that is about to be used (reference 3.7)."""
        sets = {pod.task(launch.task).resource_set for launch in intent.tasks}
        return tuple(
            record.ref
            for record in self.records.values()
            if (record.pod, record.index) == (intent.pod, intent.index)
            and record.resource_set in sets
            and (record.live or _may_still_run(record, intent.reservation.agent))
        )

    def take(self, status: TaskStatus) -> News:
        """Keep a status. Late ones of the newest launch are dropped; others' tasks are zombies."""
        record = self.records.get(status.name)
        if record is None or record.task_id != status.task_id:
            live = not status.state.terminal and status.agent
            return News(
                zombie=TaskRef(task_id=status.task_id, agent=status.agent) if live else None
            )
        if record.status is not None and _late(status, record.status):
            return News()
        self.records[status.name] = record.but(status=status)
        return News(owner=record.owner)

    def follow(self, owner: str, task_ids: Iterable[str], now: datetime) -> tuple[TaskStatus, ...]:
        """From now on this owner hears of these tasks; their latest statuses.

        Nobody will ever report a task that is not the newest of its name, or that is not known:
        it is GONE, so that its owner launches anew instead of waiting.
        """
        names = {record.task_id: name for name, record in self.records.items()}
        found: list[TaskStatus] = []
        for task_id in task_ids:
            if task_id not in names:
                found.append(_gone(task_id, now))
                continue
            record = self.records[names[task_id]].but(owner=owner)
            self.records[record.name] = record
            if record.status is not None:
                found.append(record.status)
        return tuple(found)

    def forget_owner(self, lease: Lease) -> None:
        """The step is done with its tasks: nobody is to be told about them any more."""
        for task in lease.tasks:
            name = task_instance_name(lease.pod, lease.index, task)
            record = self.records.get(name)
            if record is not None and record.owner.startswith(lease.phase):
                self.records[name] = record.but(owner="")

    def lost_with(self, agent: str, now: datetime) -> tuple[TaskStatus, ...]:
        """Statuses for the live tasks of an agent that was given up. Should it come back, what it
        says of them counts again: theirs is the last word."""
        return tuple(
            TaskStatus(
                task_id=record.task_id,
                name=record.name,
                state=TaskState.LOST,
                sequence=record.status.sequence + 1 if record.status else 0,
                at=now,
                message=f"agent {agent} was given up",
                agent=agent,
            )
            for record in self.records.values()
            if record.agent == agent and record.live
        )

    def pods(self, spec: ServiceSpec) -> tuple[PodView, ...]:
        """All pod instances of the spec, and others that still have tasks."""
        wanted = [(pod.type, index) for pod in spec.pods for index in range(pod.count)]
        stored = sorted({(r.pod, r.index) for r in self.records.values()} - set(wanted))
        return tuple(self._pod(pod, index) for pod, index in (*wanted, *stored))

    def _pod(self, pod: str, index: int) -> PodView:
        tasks = [r for r in self.records.values() if (r.pod, r.index) == (pod, index)]
        held = [r for r in self.reservations.values() if (r.pod, r.index) == (pod, index)]
        reservation = held[0] if held else None
        return PodView(
            name=f"{pod}-{index}",
            type=pod,
            index=index,
            agent=reservation.agent if reservation else "",
            hostname=reservation.hostname if reservation else "",
            reservation=reservation,
            tasks=tuple(sorted(tasks, key=lambda record: record.name)),
        )


def _gone(task_id: str, now: datetime) -> TaskStatus:
    """The word about a task that the service does not follow; see ``domain.service.task_id``."""
    return TaskStatus(
        task_id=task_id,
        name="__".join(task_id.split("__")[1:-1]) or task_id,
        state=TaskState.GONE,
        sequence=LAST,
        at=now,
        message="the service does not know this launch, or a newer one has taken its place",
    )


def _late(status: TaskStatus, known: TaskStatus) -> bool:
    """Whether a later report is known already. LOST by give-up is our word, not the agent's."""
    if known.state is TaskState.LOST and status.state is not TaskState.LOST:
        return status.sequence < known.sequence - 1
    return status.sequence <= known.sequence


def _may_still_run(record: TaskRecord, agent: str) -> bool:
    """A task given up with its agent runs on if the agent comes back: it is killed there."""
    state = record.status.state if record.status else None
    return record.agent == agent and state in (TaskState.LOST, TaskState.UNREACHABLE)
