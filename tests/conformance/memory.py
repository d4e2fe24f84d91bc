"""A second backend, as small as one can be: machines are values, and tasks are lists of statuses.

It is here to show that the seam needs nothing of agents. Time is a field; nothing is concurrent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from temporal_plans.activities.pools.backend import Backend
from temporal_plans.domain.cluster import pool as ledgers
from temporal_plans.domain.cluster.agents import AgentInfo, AgentResources
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.spec import PodSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import instance_of, task_instance_name
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.pools import (
    OwnersReport,
    Reconciled,
    ReleaseInput,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
)
from temporal_plans.messages.tasks import KillInput, LaunchInput, TaskStatuses


@dataclass
class Disk:
    """What a machine has, whether or not its process runs."""

    info: AgentInfo
    latest: dict[str, TaskStatus] = field(default_factory=dict[str, TaskStatus])
    tasks_of: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    volumes: set[str] = field(default_factory=set[str])
    destroyed: set[str] = field(default_factory=set[str])
    started: list[str] = field(default_factory=list[str])


class Machine:
    """The process on a machine."""

    def __init__(self, disk: Disk, sent: list[TaskStatus], now: datetime) -> None:
        self._disk = disk
        self._sent = sent
        self._now = now
        sent += disk.latest.values()  # they may not have arrived before

    def launch(self, order: LaunchInput, launch: TaskLaunch) -> TaskStatus:
        disk, held, pod = self._disk, order.reservation, order.inline
        if launch.task_id in disk.latest:
            return disk.latest[launch.task_id]
        name = task_instance_name(order.pod, order.index, launch.task)
        if pod is None or pod.image or held.id in disk.destroyed:
            return self._report(launch.task_id, name, TaskState.ERROR)
        disk.tasks_of.setdefault(held.id, []).append(launch.task_id)
        disk.volumes |= {one.id for one in held.resources if one.kind == "volume"}
        disk.started.append(launch.task_id)
        first = self._report(launch.task_id, name, TaskState.RUNNING)
        if (code := _ends_with(pod, launch)) is not None:
            state = TaskState.FAILED if code else TaskState.FINISHED
            self._report(launch.task_id, name, state, exit_code=code)
        return first

    def kill(self, task_id: str) -> TaskStatus:
        known = self._disk.latest.get(task_id)
        if known is not None and known.state.terminal:
            return known
        return self._report(task_id, instance_of(task_id), TaskState.KILLED)

    def destroy(self, held: Reservation) -> None:
        self._disk.destroyed.add(held.id)
        for task_id in self._disk.tasks_of.pop(held.id, ()):
            self.kill(task_id)
        self._disk.volumes -= {one.id for one in held.resources}

    def _report(
        self, task_id: str, name: str, state: TaskState, exit_code: int | None = None
    ) -> TaskStatus:
        before = self._disk.latest.get(task_id)
        status = TaskStatus(
            task_id=task_id,
            name=before.name if before else name,
            state=state,
            sequence=before.sequence + 1 if before else 1,
            at=self._now,
            exit_code=exit_code,
            agent=self._disk.info.id,
            queue=self._disk.info.queue,
        )
        self._disk.latest[task_id] = status
        self._sent.append(status)
        return status


class MemoryCluster(Backend):
    """The backend, and the cluster around it (``cluster.Cluster``)."""

    def __init__(self, grace: timedelta) -> None:
        self.backend = self
        self.pool = "memory"
        self.listener = "listener"
        self._grace = grace
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._ledger = Ledger(pool=self.pool)
        self._asked: dict[str, datetime] = {}
        self._offered: list[str] = []
        self._sent: list[TaskStatus] = []
        self._disks: dict[str, Disk] = {}
        self._machines: dict[str, Machine] = {}

    # --- the backend ---

    async def reserve(self, request: ReserveInput) -> ReserveResult:
        self._asked[request.requirement.key] = self._now
        answer = ledgers.reserve(self._ledger, request.requirement, self._now)
        self._apply(answer.change)
        return ReserveResult(reservation=answer.reservation, refusals=answer.refusals, at=self._now)

    async def release(self, request: ReleaseInput) -> ReleaseResult:
        held = self._ledger.reservations.get(request.key)
        if held is not None and request.reservation not in ("", held.id):
            return ReleaseResult()
        self._apply(
            ledgers.release(
                self._ledger,
                request.key,
                self._now,
                destroy=request.destroy,
                reservation=request.reservation,
            )
        )
        return ReleaseResult(reservation=held)

    async def reconcile(self, pool: str, report: OwnersReport) -> Reconciled:
        before, grace = self._ledger.reservations, self._grace
        holdings = {owner: one.keys for owner, one in report.holdings.items()}
        asked = {key for key, at in self._asked.items() if self._now - at <= grace}
        change = ledgers.reconcile(
            self._ledger, report.gone, holdings, self._now, grace, asked=asked
        )
        self._apply(change)
        return Reconciled(keys=tuple(key for key in before if key not in self._ledger.reservations))

    async def launch(self, order: LaunchInput) -> TaskStatuses:
        machine = self._machines[order.reservation.queue]
        return TaskStatuses(statuses=tuple(machine.launch(order, one) for one in order.tasks))

    async def kill(self, queue: str, order: KillInput) -> TaskStatuses:
        machine = self._machines[queue]
        return TaskStatuses(statuses=tuple(map(machine.kill, order.task_ids)))

    def _apply(self, change: ledgers.Change) -> None:
        self._ledger = change.ledger
        for effect in change.effects:
            if isinstance(effect, ledgers.Offered):
                self._offered.append(effect.reservation.key)
        for one in tuple(self._ledger.to_destroy.values()):
            self._machines[one.reservation.queue].destroy(one.reservation)
            self._apply(ledgers.destroyed(self._ledger, one.reservation.id, self._now))

    # --- the cluster ---

    async def add(self, machine: str, *, cpus: float = 4) -> str:
        resources = AgentResources(cpus=cpus, memory=1000, disk=1000)
        info = AgentInfo(id=machine, queue=f"to-{machine}", hostname=machine, resources=resources)
        self._disks[machine] = Disk(info)
        await self.restart(machine)
        return machine

    async def restart(self, machine: str) -> None:
        disk = self._disks[machine]
        self._machines[disk.info.queue] = Machine(disk, self._sent, self._now)
        self._apply(ledgers.register(self._ledger, disk.info, self._now))

    async def reports(self) -> Sequence[TaskStatus]:
        return tuple(self._sent)

    async def offers(self) -> Sequence[str]:
        return tuple(self._offered)

    def starts(self, task_id: str) -> int:
        return sum(disk.started.count(task_id) for disk in self._disks.values())

    def has_volumes(self, held: Reservation) -> bool:
        return any(one.id in self._disks[held.agent].volumes for one in held.resources)

    async def outlive_grace(self) -> None:
        self._now += self._grace + timedelta(seconds=1)


def _ends_with(pod: PodSpec, launch: TaskLaunch) -> int | None:
    verb, _, code = pod.task(launch.task).cmd.partition(" ")
    return int(code) if verb == "exit" else None
