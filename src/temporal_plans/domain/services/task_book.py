"""A service's task records: the newest launch of every task, and its latest status."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.launch import LaunchIntent, LaunchOrder, LaunchTarget
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import PodSpec, ServiceSpec
from temporal_plans.domain.services.unreported import REPORT_TIMEOUT, UNREPORTED
from temporal_plans.domain.tasks.names import instance_of, task_instance_name
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus

FINAL_SEQUENCE = 2**31 - 1
"""The sequence of a final status: no later one is accepted."""

UNREPORTED_LIMIT = 20
"""Tasks of unreported launches in a row that a new launch still kills."""

LOST_AGENTS_LIMIT = 100
"""Lost agents that are remembered, the newest."""


REPLACED_LIMIT = 200
"""Replaced launches that are remembered although no agent has reported their end, the newest."""

STRANGERS_LIMIT = 100
"""Tasks that this service never launched, as far as it knows, and that are listed."""

_ENDED = {TaskState.FINISHED, TaskState.FAILED, TaskState.KILLED, TaskState.ERROR}
"""States that only agents report, of tasks that have ended."""


class StatusEffect(NamedTuple):
    """The effect of a status: it changed a record, or its task must be killed."""

    record: TaskRecord | None = None
    zombie: TaskRef | None = None


class TaskBook:
    """Task records and goal overrides by task instance name; reservations by key."""

    def __init__(
        self,
        records: Mapping[str, TaskRecord],
        reservations: Mapping[str, Reservation],
        overrides: Mapping[str, GoalOverride],
        lost_agents: Mapping[str, datetime],
        replaced: Iterable[str] = (),
        strangers: Mapping[str, TaskStatus] | None = None,
    ) -> None:
        """``lost_agents``: the time at which each was lost last, by the pool's clock.
        ``replaced``: the ids of launches that have no record any more and that may still run.
        ``strangers``: by task id, the last statuses of tasks that run under this service's name and
        that it has no memory of, because its server was restored from a backup."""
        self.records = dict(records)
        self.reservations = dict(reservations)
        self.overrides = dict(overrides)
        self.lost_agents = dict(lost_agents)
        self.replaced = dict.fromkeys(replaced)
        self.strangers = dict(strangers or {})

    # --- launches ---

    def record_launch(self, intent: LaunchIntent, pod: PodSpec, now: datetime) -> LaunchOrder:
        """Record a launch before it happens; return the tasks to kill for it and to launch paused.
        Idempotent by task ids. A launch that was prepared before its pod was marked for
        replacement does not count as the move."""
        self._keep(intent.reservation)
        ids = {task.task_id for task in intent.tasks}
        known = [record for record in self.records.values() if record.task_id in ids]
        if known:
            return LaunchOrder(
                kill=known[0].kills,
                paused=tuple(record.task for record in known if record.paused),
                config_id=known[0].config_id,
            )
        kills = self._blocking_tasks(intent, pod)
        marked = {name for name, record in self.records.items() if record.permanently_failed}
        paused: list[str] = []
        for launch in intent.tasks:
            task = pod.task(launch.task)
            name = task_instance_name(intent.pod, intent.index, launch.task)
            if self.overrides.get(name) is GoalOverride.PAUSED:
                paused.append(launch.task)
            launched = TaskRecord(
                task_id=launch.task_id,
                name=name,
                pod=intent.pod,
                index=intent.index,
                task=launch.task,
                goal=task.goal,
                resource_set=task.resource_set,
                agent=intent.reservation.agent,
                queue=intent.reservation.queue,
                hostname=intent.reservation.hostname,
                config_id=intent.config_id,
                owner=intent.owner,
                step=intent.step,
                launched=now,
                asked=intent.asked,
                kills=kills,
                check=task.readiness_check is not None,
                paused=launch.task in paused,
                permanently_failed=name in marked,
            )
            self._remember_replaced(self.records.get(name))
            self.records[name] = launched.after(self.records.get(name))
        return LaunchOrder(kill=kills, paused=tuple(paused), config_id=intent.config_id)

    def _keep(self, reservation: Reservation) -> None:
        """Keep a reservation. A pod that has moved is no longer marked for it (behaviour 6.4)."""
        held = self.reservations.get(reservation.key)
        self.reservations[reservation.key] = reservation
        if held is not None and held.id != reservation.id:
            for record in self.of_pod(reservation.pod, reservation.index):
                if record.permanently_failed:
                    self.records[record.name] = record.but(permanently_failed=False)

    def of_pod(self, pod: str, index: int) -> list[TaskRecord]:
        """Return the records of a pod instance."""
        return [r for r in self.records.values() if (r.pod, r.index) == (pod, index)]

    def reservation_of(self, pod: str, index: int) -> Reservation | None:
        """Return the reservation of a pod instance; None without one."""
        held = (r for r in self.reservations.values() if (r.pod, r.index) == (pod, index))
        return next(held, None)

    def to_be_replaced(self, pod: str, index: int) -> str:
        """Return the id of the reservation that a pod must replace by another; empty when it
        stays."""
        held = self.reservation_of(pod, index)
        moves = any(record.permanently_failed for record in self.of_pod(pod, index))
        return held.id if held is not None and moves else ""

    def sets_in_use(self, spec: ServiceSpec, target: LaunchTarget) -> tuple[str, ...]:
        """Return the resource sets of a pod's tasks that keep running beside a launch, without
        those that are killed: for their set (``_blocking_tasks``), or because they are retired."""
        held = self.reservation_of(target.pod, target.index)
        pods = [pod for pod in spec.pods if pod.type == target.pod]
        needed = [set_id for pod in pods for set_id in pod.sets_of(target.tasks)]
        return tuple(
            dict.fromkeys(
                record.resource_set
                for record in self.of_pod(target.pod, target.index)
                if record.live
                and not record.retired
                and record.task not in target.tasks
                and record.resource_set not in needed
                and held is not None
                and record.agent == held.agent
            )
        )

    def mark_for_replacement(self, pod: str, index: int) -> None:
        """Mark a pod to be brought back on other resources (behaviour 6.7)."""
        for record in self.of_pod(pod, index):
            self.records[record.name] = record.but(permanently_failed=True)

    def erase(self, name: str) -> None:
        """Delete a task's record; with the last of its pod, also the pod's reservation."""
        record = self.records.pop(name, None)
        self._remember_replaced(record)
        self.overrides.pop(name, None)
        if record is not None and not self.of_pod(record.pod, record.index):
            held = self.reservation_of(record.pod, record.index)
            if held is not None:
                del self.reservations[held.key]

    def newer_launch(self, intent: LaunchIntent) -> str:
        """Return the id of a task that the same step requested later; empty without one.

        An interrupted step cancels its request, and requests again when it is continued. If the
        server or a worker was down, the first request may arrive last.
        """
        for launch in intent.tasks:
            known = self.records.get(task_instance_name(intent.pod, intent.index, launch.task))
            if known is None or known.step != intent.step or not (known.asked and intent.asked):
                continue
            if known.asked > intent.asked:
                return known.task_id
        return ""

    def _blocking_tasks(self, intent: LaunchIntent, pod: PodSpec) -> tuple[TaskRef, ...]:
        """Return the tasks of the pod to kill before a launch: live tasks in its resource sets
        (behaviour 3.7), and retired ones: their resources, a port say, may now be another
        task's."""
        sets = pod.sets_of([launch.task for launch in intent.tasks])
        found: dict[str, TaskRef] = {}
        for record in self.of_pod(intent.pod, intent.index):
            if record.resource_set not in sets and not record.retired:
                continue
            if record.live or _may_still_run(record, intent.reservation.agent):
                found[record.task_id] = record.ref
            if _unreported(record):  # it may have been cancelled before its own kills
                found.update({task.task_id: task for task in record.kills[:UNREPORTED_LIMIT]})
        names = {
            task_instance_name(intent.pod, intent.index, task.name)
            for task in pod.tasks
            if task.resource_set in sets
        }
        found.update({task.task_id: task for task in self.strangers_of(names)})
        return tuple(found.values())

    def _remember_replaced(self, record: TaskRecord | None) -> None:
        """Remember the id of a launch that loses its record, unless its agent has reported its end:
        it may still run, and is killed when it reports."""
        if record is None or (record.status is not None and record.status.state in _ENDED):
            return
        self.replaced[record.task_id] = None
        for oldest in list(self.replaced)[:-REPLACED_LIMIT]:
            del self.replaced[oldest]

    def strangers_of(self, names: Collection[str] | None = None) -> tuple[TaskRef, ...]:
        """Return the strangers under these names of task instances; with None, all."""
        return tuple(
            _ref(status)
            for status in self.strangers.values()
            if names is None or status.name in names
        )

    def take(self, status: TaskStatus) -> StatusEffect:
        """Keep a status. Late statuses of the newest launch are dropped; tasks of replaced launches
        are zombies, to be killed. A live task that was never recorded is a stranger: this state is
        older than the task, and an operator decides what becomes of it."""
        record = self.records.get(status.name)
        if record is None or record.task_id != status.task_id:
            if record is not None and status.state.terminal:
                self.records[status.name] = record.with_end_of_earlier(status)
            if status.state.terminal:
                self.strangers.pop(status.task_id, None)
                self.replaced.pop(status.task_id, None)
                return StatusEffect()
            if not status.agent:
                return StatusEffect()
            if self._was_replaced(status.task_id, record):
                return StatusEffect(zombie=_ref(status))
            if status.task_id in self.strangers or len(self.strangers) < STRANGERS_LIMIT:
                self.strangers[status.task_id] = status
            return StatusEffect()
        if record.status is not None and _late(status, record.status):
            return StatusEffect()
        record = record.but(status=status)
        if status.state is TaskState.RUNNING and record.running_since is None:
            record = record.but(running_since=status.at)
        self.records[status.name] = record
        return StatusEffect(record=record)

    def _was_replaced(self, task_id: str, record: TaskRecord | None) -> bool:
        earlier = {launch.task_id for launch in record.earlier} if record else set[str]()
        return task_id in self.replaced or task_id in earlier

    def is_unreported(self, status: TaskStatus) -> bool:
        """Whether the status, an agent's answer to a kill, is about a recorded launch of which the
        agent reports nothing: it has no status yet, or the agent does not have it."""
        record = self.records.get(status.name)
        if record is None or record.task_id != status.task_id:
            return status.task_id in self.strangers
        return record.status is None or (status.unknown and record.live)

    def follow(self, owner: str, task_ids: Iterable[str], now: datetime) -> tuple[TaskStatus, ...]:
        """Make this workflow the owner of these tasks, and return their latest statuses.

        A task that is unknown, or not the newest of its name, will never be reported: it is GONE,
        so that its owner relaunches it instead of waiting.
        """
        names = {record.task_id: name for name, record in self.records.items()}
        found: list[TaskStatus] = []
        for task_id in task_ids:
            if task_id not in names:
                found.append(_gone(task_id, now))
                continue
            record = self.records[names[task_id]].but(owner=owner, followed=True)
            self.records[record.name] = record
            if record.status is not None:
                found.append(record.status)
        return tuple(found)

    def forget_owner(self, lease: Lease) -> list[TaskRecord]:
        """Drop a step as the owner of its tasks, and return those that it followed."""
        followed: list[TaskRecord] = []
        for task in lease.tasks:
            name = task_instance_name(lease.pod, lease.index, task)
            record = self.records.get(name)
            if record is not None and record.owner.startswith(lease.phase):
                self.records[name] = record.but(owner="")
                followed.append(self.records[name])
        return followed

    def forget_owners(self, plan: str) -> None:
        """Drop all steps of a plan (a workflow id) as owners: the plan is over."""
        for name, record in self.records.items():
            if record.owner.startswith(f"{plan}/"):
                self.records[name] = record.but(owner="")

    def lost_with(
        self, agent: str, now: datetime, *, by_operator: bool = False
    ) -> tuple[TaskStatus, ...]:
        """Return statuses for the live tasks of a lost agent. If it comes back, its reports count
        again, unless an operator removed it: then these statuses are final."""
        state = TaskState.GONE_BY_OPERATOR if by_operator else TaskState.LOST
        why = f"agent {agent} was {'removed' if by_operator else 'lost'}"
        return tuple(
            _lost_at(record, now, why, state)
            for record in self.records.values()
            if record.agent == agent and (record.live or (by_operator and _lost(record)))
        )

    def remember_lost(self, agent: str, at: datetime) -> None:
        """Remember that an agent was lost: a later launch may use an earlier reservation. Strangers
        on it are forgotten, since no launch could wait for their end; if it comes back, it reports
        them again."""
        for task_id, status in list(self.strangers.items()):
            if status.agent == agent:
                del self.strangers[task_id]
        before = self.lost_agents.pop(agent, at)
        self.lost_agents[agent] = max(at, before)
        for oldest in list(self.lost_agents)[:-LOST_AGENTS_LIMIT]:
            del self.lost_agents[oldest]

    def agent_lost_since(self, intent: LaunchIntent) -> bool:
        """Whether the agent was lost after the reservation: no agent might ever take the launch or
        report it."""
        lost = self.lost_agents.get(intent.reservation.agent)
        return lost is not None and intent.reserved is not None and intent.reserved <= lost

    def expired_launches(
        self, leases: LeaseState, now: datetime
    ) -> tuple[tuple[TaskStatus, ...], datetime | None]:
        """Return statuses for recorded launches that never started, because their step was forced,
        stopped or ended in between; and when the next launch expires."""
        unreported = [record for record in self.records.values() if record.status is None]
        if not unreported:
            return (), None
        at_work = {asset for lease in leases.held for asset in lease.assets}
        due = {
            record.name: record.launched + REPORT_TIMEOUT
            for record in unreported
            if (record.pod, record.index, record.task) not in at_work
        }
        lost = tuple(
            _lost_at(self.records[name], now, UNREPORTED)
            for name, time in due.items()
            if time <= now
        )
        return lost, min((time for time in due.values() if time > now), default=None)

    def mark_agent_for_replacement(self, agent: str) -> None:
        """Mark all pods with a reservation on a removed agent for replacement."""
        for held in list(self.reservations.values()):
            if held.agent == agent:
                self.mark_for_replacement(held.pod, held.index)

    # --- views ---

    def instances(self, spec: ServiceSpec) -> list[tuple[str, int, bool]]:
        """Return pod type, index and whether the spec has it, for all instances of the spec and for
        others that still have tasks."""
        wanted = [(pod.type, index) for pod in spec.pods for index in range(pod.count)]
        stored = sorted({(r.pod, r.index) for r in self.records.values()} - set(wanted))
        return [
            *((pod, index, True) for pod, index in wanted),
            *((pod, index, False) for pod, index in stored),
        ]

    def shown(self, record: TaskRecord) -> str:
        """Return the state of a task that users read (behaviour 6.8)."""
        override = self.overrides.get(record.name)
        state = record.status.state if record.status else TaskState.STAGING
        if override is GoalOverride.DECOMMISSIONED:
            return "DECOMMISSIONING" if record.live else "DECOMMISSIONED"
        if override is GoalOverride.PAUSED:
            runs = record.paused and state is TaskState.RUNNING
            return "PAUSED" if runs else "PAUSING"
        if record.paused and record.live:
            return TaskState.STARTING.value  # it is being resumed
        return state.value


def _ref(status: TaskStatus) -> TaskRef:
    return TaskRef(task_id=status.task_id, agent=status.agent, queue=status.queue)


def _gone(task_id: str, now: datetime) -> TaskStatus:
    """Return the final status of a task that the service does not know."""
    return TaskStatus(
        task_id=task_id,
        name=instance_of(task_id),
        state=TaskState.GONE,
        sequence=FINAL_SEQUENCE,
        at=now,
        message="the service does not know this launch, or a newer launch has replaced it",
    )


def _late(status: TaskStatus, known: TaskStatus) -> bool:
    """Whether a later report is known already. The service's own LOST does not count as one."""
    if known.state is TaskState.LOST and status.state is not TaskState.LOST:
        return status.sequence < known.sequence - 1
    return status.sequence <= known.sequence


def _lost_at(
    record: TaskRecord, now: datetime, why: str, state: TaskState = TaskState.LOST
) -> TaskStatus:
    """Return the service's own status of a lost task; a report of its agent still replaces it."""
    return TaskStatus(
        task_id=record.task_id,
        name=record.name,
        state=state,
        sequence=record.status.sequence + 1 if record.status else 0,
        at=now,
        message=why,
        agent=record.agent,
        queue=record.queue,
    )


def _unreported(record: TaskRecord) -> bool:
    """Whether its agent has never reported it."""
    status = record.status
    return status is None or (status.state is TaskState.LOST and status.sequence == 0)


def _lost(record: TaskRecord) -> bool:
    return record.status is not None and record.status.state is TaskState.LOST


def _may_still_run(record: TaskRecord, agent: str) -> bool:
    """Whether a task of a lost agent may still run: if the agent comes back, it is killed there."""
    state = record.status.state if record.status else None
    return record.agent == agent and state in (TaskState.LOST, TaskState.UNREACHABLE)
