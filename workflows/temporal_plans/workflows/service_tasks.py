"""A service's task records: the newest launch of every task, and what became of it."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.service import PodSpec, ServiceSpec, instance_of, task_instance_name
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import LaunchIntent, LaunchOrder, TaskRef
from temporal_plans.messages.service import LaunchTarget, PodView, ServiceState, TaskRecord
from temporal_plans.workflows.unheard import HEARD_WITHIN, NEVER_HEARD

LAST = 2**31 - 1
"""The sequence of a word after which nothing about the task is heard any more."""

UNHEARD = 20
"""Launches in a row that nothing was heard of whose tasks are still looked for."""

LOST_AGENTS = 100
"""So many agents that were given up are remembered, the newest."""


class News(NamedTuple):
    """What a status means: a record has changed by it, or its task must be killed."""

    record: TaskRecord | None = None
    zombie: TaskRef | None = None


class ServiceTasks:
    """Records and what operators want instead of goals, by task instance name; reservations by
    key."""

    def __init__(self, state: ServiceState) -> None:
        self.records = dict(state.tasks)
        self.reservations = dict(state.reservations)
        self.overrides = dict(state.overrides)
        self.lost_agents = dict(state.lost_agents)

    # --- launches ---

    def intend(self, intent: LaunchIntent, pod: PodSpec, now: datetime) -> LaunchOrder:
        """Record a launch before it happens; what must be killed for it, and what runs paused.
        Idempotent by task ids. A launch that was under way when its pod was given up does not
        count as the move."""
        self._keep(intent.reservation)
        ids = {task.task_id for task in intent.tasks}
        known = [record for record in self.records.values() if record.task_id in ids]
        if known:
            return LaunchOrder(
                kill=known[0].kills,
                paused=tuple(record.task for record in known if record.paused),
                config_id=known[0].config_id,
            )
        kills = self._in_the_way(intent, pod)
        stays = {name for name, record in self.records.items() if record.permanently_failed}
        paused: list[str] = []
        for launch in intent.tasks:
            task = pod.task(launch.task)
            name = task_instance_name(intent.pod, intent.index, launch.task)
            if self.overrides.get(name) is GoalOverride.PAUSED:
                paused.append(launch.task)
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
                asked=intent.asked,
                kills=kills,
                check=task.readiness_check is not None,
                paused=launch.task in paused,
                permanently_failed=name in stays,
            )
        return LaunchOrder(kill=kills, paused=tuple(paused), config_id=intent.config_id)

    def _keep(self, reservation: Reservation) -> None:
        """A pod that has moved is no longer one that must (reference 6.4)."""
        held = self.reservations.get(reservation.key)
        self.reservations[reservation.key] = reservation
        if held is not None and held.id != reservation.id:
            for record in self.of_pod(reservation.pod, reservation.index):
                if record.permanently_failed:
                    self.records[record.name] = record.but(permanently_failed=False)

    def of_pod(self, pod: str, index: int) -> list[TaskRecord]:
        return [r for r in self.records.values() if (r.pod, r.index) == (pod, index)]

    def reservation_of(self, pod: str, index: int) -> Reservation | None:
        held = (r for r in self.reservations.values() if (r.pod, r.index) == (pod, index))
        return next(held, None)

    def leaves(self, pod: str, index: int) -> str:
        """The id of the reservation that a pod must give up for another; empty when it stays."""
        held = self.reservation_of(pod, index)
        moves = any(record.permanently_failed for record in self.of_pod(pod, index))
        return held.id if held is not None and moves else ""

    def sets_in_use(self, spec: ServiceSpec, target: LaunchTarget) -> tuple[str, ...]:
        """The resource sets of a pod's tasks that run on beside a launch. Not of those that are
        killed: to make room in a set (``_in_the_way``), or because no plan has them any more."""
        held = self.reservation_of(target.pod, target.index)
        pods = [pod for pod in spec.pods if pod.type == target.pod]
        needed = [set_id for pod in pods for set_id in pod.sets_of(target.tasks)]
        return tuple(
            dict.fromkeys(
                record.resource_set
                for record in self.of_pod(target.pod, target.index)
                if record.live
                and not record.off
                and record.task not in target.tasks
                and record.resource_set not in needed
                and held is not None
                and record.agent == held.agent
            )
        )

    def give_up(self, pod: str, index: int) -> None:
        """The pod is to be brought back on other resources (reference 6.7)."""
        for record in self.of_pod(pod, index):
            self.records[record.name] = record.but(permanently_failed=True)

    def erase(self, name: str) -> None:
        """Forget a task; with the last of its pod, also what the pod held."""
        record = self.records.pop(name, None)
        self.overrides.pop(name, None)
        if record is not None and not self.of_pod(record.pod, record.index):
            held = self.reservation_of(record.pod, record.index)
            if held is not None:
                del self.reservations[held.key]

    def overtaken(self, intent: LaunchIntent) -> str:
        """The id of a task that the same step wanted later; empty without one.

        An interrupted step gives up what it asked for, and asks anew when it goes on. If the server
        or a worker was away, the first request may come last.
        """
        for launch in intent.tasks:
            known = self.records.get(task_instance_name(intent.pod, intent.index, launch.task))
            if known is None or known.step != intent.step or not (known.asked and intent.asked):
                continue
            if known.asked > intent.asked:
                return known.task_id
        return ""

    def _in_the_way(self, intent: LaunchIntent, pod: PodSpec) -> tuple[TaskRef, ...]:
        """Live tasks of the pod in a resource set that is about to be used (reference 3.7), and
        those that no plan has any more: what they use, a port say, may now be another task's."""
        sets = pod.sets_of([launch.task for launch in intent.tasks])
        found: dict[str, TaskRef] = {}
        for record in self.of_pod(intent.pod, intent.index):
            if record.resource_set not in sets and not record.off:
                continue
            if record.live or _may_still_run(record, intent.reservation.agent):
                found[record.task_id] = record.ref
            if _unheard(record):  # it may have been given up before it made room for itself
                found.update({task.task_id: task for task in record.kills[:UNHEARD]})
        return tuple(found.values())

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
        record = record.but(status=status)
        if status.state is TaskState.RUNNING and record.running_since is None:
            record = record.but(running_since=status.at)
        self.records[status.name] = record
        return News(record=record)

    def unheard_of(self, status: TaskStatus) -> bool:
        """Whether it is about a launch on record that nobody has said a word about."""
        record = self.records.get(status.name)
        return record is not None and record.task_id == status.task_id and record.status is None

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

    def forget_owner(self, lease: Lease) -> list[TaskRecord]:
        """The step is done with its tasks: nobody is to be told about them any more. Those that it
        followed."""
        followed: list[TaskRecord] = []
        for task in lease.tasks:
            name = task_instance_name(lease.pod, lease.index, task)
            record = self.records.get(name)
            if record is not None and record.owner.startswith(lease.phase):
                self.records[name] = record.but(owner="")
                followed.append(self.records[name])
        return followed

    def forget_owners(self, plan: str) -> None:
        """The plan (a workflow id) is over, and none of its steps follows anything any more."""
        for name, record in self.records.items():
            if record.owner.startswith(f"{plan}/"):
                self.records[name] = record.but(owner="")

    def lost_with(
        self, agent: str, now: datetime, *, by_operator: bool = False
    ) -> tuple[TaskStatus, ...]:
        """Statuses for the live tasks of an agent that was given up. Should it come back, what it
        says of them counts again, unless an operator took it away: theirs is the last word."""
        state = TaskState.GONE_BY_OPERATOR if by_operator else TaskState.LOST
        why = f"agent {agent} was given up"
        return tuple(
            _lost_at(record, now, why, state)
            for record in self.records.values()
            if record.agent == agent and (record.live or (by_operator and _lost(record)))
        )

    def remember_lost(self, agent: str, at: datetime) -> None:
        """For launches that come later, on what was reserved before."""
        before = self.lost_agents.pop(agent, at)
        self.lost_agents[agent] = max(at, before)
        for oldest in list(self.lost_agents)[:-LOST_AGENTS]:
            del self.lost_agents[oldest]

    def lost_since(self, intent: LaunchIntent) -> bool:
        """Whether the agent was given up after its place was reserved: nobody might ever take the
        launch, and nobody would tell."""
        lost = self.lost_agents.get(intent.reservation.agent)
        return lost is not None and intent.reserved is not None and intent.reserved <= lost

    def never_heard_of(
        self, leases: LeaseState, now: datetime
    ) -> tuple[tuple[TaskStatus, ...], datetime | None]:
        """Statuses for launches on record that nobody carries out: their step was forced, stopped
        or ended in between. And when the next ones are due."""
        silent = [record for record in self.records.values() if record.status is None]
        if not silent:
            return (), None
        at_work = {asset for lease in leases.held for asset in lease.assets}
        due = {
            record.name: record.launched + HEARD_WITHIN
            for record in silent
            if (record.pod, record.index, record.task) not in at_work
        }
        lost = tuple(
            _lost_at(self.records[name], now, NEVER_HEARD)
            for name, time in due.items()
            if time <= now
        )
        return lost, min((time for time in due.values() if time > now), default=None)

    def give_up_on(self, agent: str) -> None:
        """All pods with a place on an agent that is gone for good are to be replaced."""
        for held in list(self.reservations.values()):
            if held.agent == agent:
                self.give_up(held.pod, held.index)

    # --- what is shown ---

    def pods(self, spec: ServiceSpec) -> tuple[PodView, ...]:
        """All pod instances of the spec, and others that still have tasks."""
        wanted = [(pod.type, index) for pod in spec.pods for index in range(pod.count)]
        stored = sorted({(r.pod, r.index) for r in self.records.values()} - set(wanted))
        return (
            *(self._pod(pod, index, wanted=True) for pod, index in wanted),
            *(self._pod(pod, index, wanted=False) for pod, index in stored),
        )

    def _pod(self, pod: str, index: int, *, wanted: bool) -> PodView:
        tasks = self.of_pod(pod, index)
        reservation = self.reservation_of(pod, index)
        return PodView(
            name=f"{pod}-{index}",
            type=pod,
            index=index,
            agent=reservation.agent if reservation else "",
            hostname=reservation.hostname if reservation else "",
            reservation=reservation,
            tasks=tuple(sorted(tasks, key=lambda record: record.name)),
            shown={record.name: self.shown(record) for record in tasks},
            wanted=wanted,
        )

    def shown(self, record: TaskRecord) -> str:
        """What a task reads (reference 6.8)."""
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


def _gone(task_id: str, now: datetime) -> TaskStatus:
    """The word about a task that the service does not follow."""
    return TaskStatus(
        task_id=task_id,
        name=instance_of(task_id),
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


def _lost_at(
    record: TaskRecord, now: datetime, why: str, state: TaskState = TaskState.LOST
) -> TaskStatus:
    """Our own word that it is lost; its agent's, should it come, counts all the same."""
    return TaskStatus(
        task_id=record.task_id,
        name=record.name,
        state=state,
        sequence=record.status.sequence + 1 if record.status else 0,
        at=now,
        message=why,
        agent=record.agent,
    )


def _unheard(record: TaskRecord) -> bool:
    """Whether its agent has never said a word about it."""
    status = record.status
    return status is None or (status.state is TaskState.LOST and status.sequence == 0)


def _lost(record: TaskRecord) -> bool:
    return record.status is not None and record.status.state is TaskState.LOST


def _may_still_run(record: TaskRecord, agent: str) -> bool:
    """A task given up with its agent runs on if the agent comes back: it is killed there."""
    state = record.status.state if record.status else None
    return record.agent == agent and state in (TaskState.LOST, TaskState.UNREACHABLE)
