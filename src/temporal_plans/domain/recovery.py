"""Which pods failed, and how each is brought back (reference 6.2 to 6.6).

Nothing here remembers anything: the same records give the same answer. What is under way already,
and what is to be changed about it, is ``domain.recovery_book``'s.

Differences from the reference, all meant:
- UNREACHABLE alone is no failure: an agent that comes back adopts its tasks. LOST is one.
- A pod with some tasks failed for good and others not is replaced as a whole (DESIGN 8), and a
  replaced pod takes all its running tasks along: its old place is given up.
- Siblings that no plan launches any more are not brought back along with a failed task.
- A pod that backs off is a failed pod with ``delayed_until``, so that its recovery can be seen.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from pydantic import AwareDatetime

from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.model import CompactValue, Duration
from temporal_plans.domain.plan import PlanSpec, PodWork
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.restart_delay import RestartDelay
from temporal_plans.domain.service import (
    Goal,
    PodSpec,
    ServiceSpec,
    TaskSpec,
)
from temporal_plans.domain.task import TaskState
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.domain.transitions import shortened

_CAUSE = 200
"""Characters of a task's last message that are kept in ``why``."""

_CAUSES = 3
"""Failed tasks that ``why`` names; the others are counted."""


class FailedPod(CompactValue):
    """A pod instance that is to be brought back.

    ``tasks`` are to be launched together, in the pod's order; ``failed`` those of them that failed.
    ``permanent``: on other resources, because somebody ``ordered`` it (a command, or the removal of
    its agent) or because it was down for too long. ``config_id`` is the configuration that they are
    launched with, empty: the target. Nothing is launched before ``delayed_until``; ``delays`` are
    the back-off so far by task instance name. ``why`` is for people.
    """

    pod: str
    index: int
    tasks: tuple[str, ...]
    failed: tuple[str, ...]
    permanent: bool = False
    ordered: bool = False
    config_id: str = ""
    delayed_until: AwareDatetime | None = None
    delays: dict[str, Duration] = {}
    why: str = ""

    @property
    def instance(self) -> tuple[str, int]:
        return self.pod, self.index

    @property
    def name(self) -> str:
        """The pod instance: ``hello-0``."""
        return f"{self.pod}-{self.index}"

    @property
    def recovery(self) -> Literal["transient", "permanent"]:
        return "permanent" if self.permanent else "transient"

    def work(self, *tasks: str) -> PodWork:
        """The work of a step that brings these tasks back (all, when none is named)."""
        return PodWork(
            pod=self.pod,
            index=self.index,
            tasks=tasks or self.tasks,
            recovery=self.recovery,
            config_id=self.config_id,
        )


def failed_pods(
    records: Mapping[str, TaskRecord],
    specs: Mapping[str, ServiceSpec],
    *,
    launchable: AbstractSet[str] | None,
    overrides: Mapping[str, GoalOverride],
    delays: Mapping[str, RestartDelay],
    policy: RecoveryPolicy,
    down_since: Mapping[str, datetime],
    promised: Mapping[tuple[str, int], str],
    now: datetime,
) -> tuple[FailedPod, ...]:
    """Every pod instance that needs recovery, at most one value each, by pod and index.

    ``records``, ``overrides`` and ``delays`` are by task instance name; ``specs`` by configuration
    id, the oldest first; ``launchable`` are the task instances that some plan launches (None: all);
    ``down_since`` is by task id, and what it lacks counts from its last status; ``promised`` is the
    configuration that a recovery under way brings a pod instance to.
    """
    ward = _Ward(specs, launchable, overrides, delays, policy, down_since, promised, now)
    found = (ward.failed_pod(pod) for pod in _instances(records.values()))
    return tuple(pod for pod in found if pod is not None)


def next_change(
    records: Mapping[str, TaskRecord],
    specs: Mapping[str, ServiceSpec],
    *,
    launchable: AbstractSet[str] | None,
    overrides: Mapping[str, GoalOverride],
    delays: Mapping[str, RestartDelay],
    policy: RecoveryPolicy,
    down_since: Mapping[str, datetime],
    now: datetime,
) -> datetime | None:
    """When ``failed_pods`` would next answer differently by the mere passing of time: a failure
    becomes permanent, or a back-off is over. None: never."""
    ward = _Ward(specs, launchable, overrides, delays, policy, down_since, {}, now)
    times = (time for pod in _instances(records.values()) for time in ward.changes(pod))
    return min(times, default=None)


def down_times(
    records: Mapping[str, TaskRecord], before: Mapping[str, datetime], now: datetime
) -> dict[str, datetime]:
    """Since when the tasks that are down are so, by task id; ``before`` is the last answer.

    By the clock of who asks, for agents' clocks may differ. UNREACHABLE counts as down, though it
    is no failure: once the task is LOST, that time counts too.
    """
    return {
        record.task_id: before.get(record.task_id, now)
        for record in records.values()
        if record.status is not None
        and (record.status.state.terminal or record.status.state is TaskState.UNREACHABLE)
    }


def launchable_tasks(
    plans: Iterable[PlanSpec], records: Mapping[str, TaskRecord]
) -> frozenset[str]:
    """The task instances on record that some of these plans launch (reference 6.2).

    A step that could not be built launches nothing; the tasks of its pod count all the same, or a
    mistake in a plan would leave running tasks to themselves.
    """
    launched = Launchable(plans)
    return frozenset(
        name
        for name, record in records.items()
        if launched.has(record.pod, record.index, record.task)
    )


class Launchable:
    """What some of these plans launch; see ``launchable_tasks``."""

    def __init__(self, plans: Iterable[PlanSpec]) -> None:
        works = [
            step.work
            for plan in plans
            for phase in plan.phases
            for step in phase.steps
            if isinstance(step.work, PodWork)
        ]
        self._tasks = {(work.pod, work.index, task) for work in works for task in work.tasks}
        self._faulty = {(work.pod, work.index) for work in works if not work.tasks}

    def has(self, pod: str, index: int, task: str) -> bool:
        return (pod, index, task) in self._tasks or (pod, index) in self._faulty


def _instances(records: Iterable[TaskRecord]) -> list[list[TaskRecord]]:
    """The records of each pod instance that may need recovery, both in order of name. Of a large
    service most pods are well, and are passed over quickly: this is asked after every event."""
    everything = list(records)
    ill = {(one.pod, one.index) for one in everything if one.permanently_failed or not one.live}
    groups: dict[tuple[str, int], list[TaskRecord]] = {instance: [] for instance in sorted(ill)}
    for record in everything:
        if (record.pod, record.index) in groups:
            groups[record.pod, record.index].append(record)
    return [sorted(group, key=lambda record: record.name) for group in groups.values()]


@dataclass(frozen=True, slots=True)
class _Ward:
    """All that one look at the records goes by. A *pod* here is the records of one instance."""

    specs: Mapping[str, ServiceSpec]
    launchable: AbstractSet[str] | None
    overrides: Mapping[str, GoalOverride]
    delays: Mapping[str, RestartDelay]
    policy: RecoveryPolicy
    down_since: Mapping[str, datetime]
    promised: Mapping[tuple[str, int], str]
    now: datetime
    known: dict[tuple[str, str], dict[str, TaskSpec] | None] = field(
        default_factory=dict[tuple[str, str], dict[str, TaskSpec] | None]
    )
    """Tasks by configuration and pod type, as they were looked up."""

    def failed_pod(self, pod: Sequence[TaskRecord]) -> FailedPod | None:
        failed = self._failed(pod)
        if not failed:
            return None
        names = {record.name for record in failed}
        expired = any(self._expired(record) for record in failed)
        ordered = self._given_up(pod)
        permanent = ordered or expired
        essential = any(self._essential(record) for record in failed)
        if permanent or essential:
            chosen, until = self._with_siblings(pod, names), self._longest_delay(pod)
        else:
            chosen, until = self._first_due(failed)
        config_id, spec = self._config(chosen)
        chosen = _in_order(chosen, spec)
        return FailedPod(
            pod=chosen[0].pod,
            index=chosen[0].index,
            tasks=tuple(record.task for record in chosen),
            failed=tuple(record.task for record in chosen if record.name in names),
            permanent=permanent,
            ordered=ordered,
            config_id=config_id,
            delayed_until=until,
            delays={
                record.name: self.delays[record.name].delay
                for record in chosen
                if record.name in self.delays and self.delays[record.name].delay
            },
            why=_why(failed, replaced_after=self._timeout if expired else None),
        )

    def changes(self, pod: Sequence[TaskRecord]) -> list[datetime]:
        """The times to come at which this pod's answer may change."""
        failed = self._failed(pod)
        if not failed:
            return []
        times = [delay.until for record in pod if (delay := self._delay(record))]
        if self._timeout is not None and not self._given_up(pod):
            times += [self._down(record) + self._timeout for record in failed]
        return [time for time in times if time > self.now]

    # --- which ---

    def _failed(self, pod: Sequence[TaskRecord]) -> list[TaskRecord]:
        """The tasks that need recovery (reference 6.2). A pod that somebody gave up has to leave
        its place, whatever its tasks read."""
        ours = [record for record in pod if self._cared_for(record)]
        if any(map(_marked, ours)):
            return ours
        return [record for record in ours if _launched(record) and not record.live]

    def _given_up(self, pod: Sequence[TaskRecord]) -> bool:
        """By command, or together with its agent (reference 6.2). Only tasks that recovery launches
        anew count: the others keep the mark, and the pod would be replaced for ever."""
        return any(_marked(record) and self._cared_for(record) for record in pod)

    def _cared_for(self, record: TaskRecord) -> bool:
        task = self._task(record)
        goal = task.goal if task is not None else record.goal
        return (
            goal == Goal.RUNNING
            and not record.off
            and self.overrides.get(record.name) is not GoalOverride.DECOMMISSIONED
            and (self.launchable is None or record.name in self.launchable)
        )

    def _with_siblings(
        self, pod: Sequence[TaskRecord], failed: Collection[str]
    ) -> list[TaskRecord]:
        """Those that failed and all others that are meant to run and were launched (6.3)."""
        return [
            record
            for record in pod
            if record.name in failed or (self._cared_for(record) and _launched(record))
        ]

    def _essential(self, record: TaskRecord) -> bool:
        task = self._task(record)
        return task is None or task.essential

    def _task(self, record: TaskRecord) -> TaskSpec | None:
        """What its own configuration says of a task; None where that is not known any more."""
        key = record.config_id, record.pod
        if key not in self.known:
            pod = self._pod(*key)
            self.known[key] = {task.name: task for task in pod.tasks} if pod else None
        tasks = self.known[key]
        return tasks.get(record.task) if tasks else None

    def _pod(self, config_id: str, name: str) -> PodSpec | None:
        spec = self.specs.get(config_id)
        return next((pod for pod in spec.pods if pod.type == name), None) if spec else None

    def _config(self, chosen: Sequence[TaskRecord]) -> tuple[str, PodSpec | None]:
        """The configuration to launch (6.6): of those on record, or promised, the newest that has
        all the tasks, or what a deployment has brought up to date already, or left to recovery,
        would fall back, and nobody would mend it. Without any, the target."""
        ids = {record.config_id for record in chosen}
        ids.add(self.promised.get((chosen[0].pod, chosen[0].index), ""))
        names = {record.task for record in chosen}
        for config_id in reversed([one for one in self.specs if one in ids]):
            pod = self._pod(config_id, chosen[0].pod)
            if pod is not None and names <= {task.name for task in pod.tasks}:
                return config_id, pod
        return "", None

    # --- when ---

    @property
    def _timeout(self) -> timedelta | None:
        return self.policy.permanent_failure_timeout

    def _down(self, record: TaskRecord) -> datetime:
        said = record.status.at if record.status is not None else record.launched
        return self.down_since.get(record.task_id, said)

    def _expired(self, record: TaskRecord) -> bool:
        return self._timeout is not None and self.now - self._down(record) >= self._timeout

    def _delay(self, record: TaskRecord) -> RestartDelay | None:
        delay = self.delays.get(record.name)
        return delay if delay is not None and delay.pending(self.now) else None

    def _longest_delay(self, pod: Sequence[TaskRecord]) -> datetime | None:
        """Any task of the pod that backs off delays the whole launch (6.3)."""
        return max((d.until for record in pod if (d := self._delay(record))), default=None)

    def _first_due(self, failed: Sequence[TaskRecord]) -> tuple[list[TaskRecord], datetime | None]:
        """Of tasks that are brought back alone: those that need not wait, else the first due."""
        untils = {r.name: d.until if (d := self._delay(r)) else None for r in failed}
        ready = [record for record in failed if untils[record.name] is None]
        if ready:
            return ready, None
        first = min(until for until in untils.values() if until is not None)
        return [record for record in failed if untils[record.name] == first], first


def _marked(record: TaskRecord) -> bool:
    """Somebody gave it up, or took its agent away."""
    gone = record.status is not None and record.status.state is TaskState.GONE_BY_OPERATOR
    return record.permanently_failed or gone


def _launched(record: TaskRecord) -> bool:
    """Something was heard of it. Before that its launch is the business of who launches it."""
    return record.status is not None


def _in_order(chosen: Sequence[TaskRecord], spec: PodSpec | None) -> list[TaskRecord]:
    """In the pod's order, where that is known."""
    if spec is None:
        return list(chosen)
    places = {task.name: place for place, task in enumerate(spec.tasks)}
    return sorted(chosen, key=lambda record: places[record.task])


def _why(failed: Sequence[TaskRecord], *, replaced_after: timedelta | None) -> str:
    causes = [_cause(record) for record in failed[:_CAUSES]]
    if len(failed) > _CAUSES:
        causes.append(f"and {len(failed) - _CAUSES} more")
    if replaced_after is not None:
        causes.append(f"replaced after {_seconds(replaced_after)} s without it")
    return "; ".join(causes)


def _cause(record: TaskRecord) -> str:
    """``hello-0-server FAILED: exit code 1``."""
    status = record.status
    if record.permanently_failed and record.live:
        return f"{record.name} is to be replaced"
    if status is None:
        return f"{record.name} was never heard of"
    code = f"exit code {status.exit_code}" if status.exit_code is not None else ""
    text = shortened(status.message or code, _CAUSE)
    return f"{record.name} {status.state}: {text}" if text else f"{record.name} {status.state}"


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():g}"
