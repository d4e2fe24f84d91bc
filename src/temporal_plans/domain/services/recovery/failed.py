"""Which pods failed, and how each is brought back (behaviour 6.2 to 6.6).

The functions have no state: the same records give the same answer. ``services.recovery.book`` knows
the recoveries under way and their changes.

Differences from the followed system (docs/compatibility.md), all intended:
- UNREACHABLE alone is no failure: an agent that comes back adopts its tasks. LOST is one.
- A pod with some tasks failed permanently and others not is replaced as a whole (design 8), and a
  replaced pod moves with all its running tasks: its old reservation is released.
- Siblings that no plan launches any more are not brought back along with a failed task.
- A pod in back-off is a failed pod with ``delayed_until``, so that its recovery is visible.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from pydantic import AwareDatetime

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.launchable import instances
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.delay import RestartDelay
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import PodSpec, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import CompactValue, Duration
from temporal_plans.domain.values.text import shortened

_MESSAGE_LIMIT = 200
"""Characters of a task's last message that are kept in ``why``."""

_CAUSES_LIMIT = 3
"""Failed tasks that ``why`` names; the others are counted."""


class FailedPod(CompactValue):
    """A pod instance that is to be brought back.

    ``tasks`` are to be launched together, in the pod's order; ``failed`` those of them that failed.
    ``permanent``: on other resources, because an operator ``ordered`` it (a command, or the removal
    of its agent) or because it was down for too long. ``config_id`` is the configuration to launch,
    empty: the target. Nothing is launched before ``delayed_until``; ``delays`` are the back-off so
    far by task instance name. ``why`` is the reason as text.
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
        """The name of the pod instance: ``hello-0``."""
        return f"{self.pod}-{self.index}"

    @property
    def recovery(self) -> Literal["transient", "permanent"]:
        return "permanent" if self.permanent else "transient"

    def work(self, *tasks: str) -> PodWork:
        """Return the work of a step that brings these tasks back (all, when none is named)."""
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
    pending_configs: Mapping[tuple[str, int], str],
    now: datetime,
) -> tuple[FailedPod, ...]:
    """Return every pod instance that needs recovery, at most one value each, by pod and index.

    ``records``, ``overrides`` and ``delays`` are by task instance name; ``specs`` by configuration
    id, the oldest first; ``launchable`` are the task instances that some plan launches (None: all);
    ``down_since`` is by task id; a missing task counts from its last status; ``pending_configs``
    are the configurations that recoveries under way launch, by pod instance.
    """
    failures = _PodFailures(
        specs, launchable, overrides, delays, policy, down_since, pending_configs, now
    )
    found = (failures.failed_pod(pod) for pod in instances(records.values()))
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
    """Return when the answer of ``failed_pods`` changes next without an event: a failure becomes
    permanent, or a back-off ends. None: never."""
    failures = _PodFailures(specs, launchable, overrides, delays, policy, down_since, {}, now)
    times = (time for pod in instances(records.values()) for time in failures.changes(pod))
    return min(times, default=None)


def down_times(
    records: Mapping[str, TaskRecord], before: Mapping[str, datetime], now: datetime
) -> dict[str, datetime]:
    """Return since when tasks are down, by task id; ``before`` is the last answer.

    The times are the caller's, for agents' clocks may differ. UNREACHABLE counts as down, though it
    is no failure: once the task is LOST, that time counts too.
    """
    return {
        record.task_id: before.get(record.task_id, now)
        for record in records.values()
        if record.status is not None
        and (record.status.state.terminal or record.status.state is TaskState.UNREACHABLE)
    }


@dataclass(frozen=True, slots=True)
class _PodFailures:
    """The inputs of one evaluation of the records. A *pod* here is the records of one instance."""

    specs: Mapping[str, ServiceSpec]
    launchable: AbstractSet[str] | None
    overrides: Mapping[str, GoalOverride]
    delays: Mapping[str, RestartDelay]
    policy: RecoveryPolicy
    down_since: Mapping[str, datetime]
    pending_configs: Mapping[tuple[str, int], str]
    now: datetime
    known: dict[tuple[str, str], dict[str, TaskSpec] | None] = field(
        default_factory=dict[tuple[str, str], dict[str, TaskSpec] | None]
    )
    """A cache of tasks by configuration and pod type."""

    def failed_pod(self, pod: Sequence[TaskRecord]) -> FailedPod | None:
        failed = self._failed(pod)
        if not failed:
            return None
        names = {record.name for record in failed}
        expired = any(self._expired(record) for record in failed)
        ordered = self._to_be_replaced(pod)
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
        """Return the future times at which this pod's answer may change."""
        failed = self._failed(pod)
        if not failed:
            return []
        times = [delay.until for record in pod if (delay := self._delay(record))]
        if self._timeout is not None and not self._to_be_replaced(pod):
            times += [self._down(record) + self._timeout for record in failed]
        return [time for time in times if time > self.now]

    # --- tasks ---

    def _failed(self, pod: Sequence[TaskRecord]) -> list[TaskRecord]:
        """Return the tasks that need recovery (behaviour 6.2). A pod that is marked for replacement
        must move, whatever the states of its tasks."""
        ours = [record for record in pod if self._recoverable(record)]
        if any(map(_marked_for_replacement, ours)):
            return ours
        return [record for record in ours if _reported(record) and not record.live]

    def _to_be_replaced(self, pod: Sequence[TaskRecord]) -> bool:
        """Whether the pod is to be replaced, by a command or with its agent (behaviour 6.2). Only
        tasks that recovery relaunches count: the others keep the mark, and the pod would be
        replaced forever."""
        return any(_marked_for_replacement(record) and self._recoverable(record) for record in pod)

    def _recoverable(self, record: TaskRecord) -> bool:
        task = self._task(record)
        goal = task.goal if task is not None else record.goal
        return (
            goal == Goal.RUNNING
            and not record.retired
            and self.overrides.get(record.name) is not GoalOverride.DECOMMISSIONED
            and (self.launchable is None or record.name in self.launchable)
        )

    def _with_siblings(
        self, pod: Sequence[TaskRecord], failed: Collection[str]
    ) -> list[TaskRecord]:
        """Return the failed tasks and all other launched tasks with the goal RUNNING (6.3)."""
        return [
            record
            for record in pod
            if record.name in failed or (self._recoverable(record) and _reported(record))
        ]

    def _essential(self, record: TaskRecord) -> bool:
        task = self._task(record)
        return task is None or task.essential

    def _task(self, record: TaskRecord) -> TaskSpec | None:
        """Return a task of its own configuration; None when that is no longer kept."""
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
        """Return the configuration to launch (6.6): the newest recorded or pending one that has all
        the tasks; with an older one, tasks that a deployment has already updated, or has left to
        recovery, would fall back permanently. Without any, the target."""
        ids = {record.config_id for record in chosen}
        ids.add(self.pending_configs.get((chosen[0].pod, chosen[0].index), ""))
        names = {record.task for record in chosen}
        for config_id in reversed([one for one in self.specs if one in ids]):
            pod = self._pod(config_id, chosen[0].pod)
            if pod is not None and names <= {task.name for task in pod.tasks}:
                return config_id, pod
        return "", None

    # --- times ---

    @property
    def _timeout(self) -> timedelta | None:
        return self.policy.permanent_failure_timeout

    def _down(self, record: TaskRecord) -> datetime:
        reported = record.status.at if record.status is not None else record.launched
        return self.down_since.get(record.task_id, reported)

    def _expired(self, record: TaskRecord) -> bool:
        return self._timeout is not None and self.now - self._down(record) >= self._timeout

    def _delay(self, record: TaskRecord) -> RestartDelay | None:
        delay = self.delays.get(record.name)
        return delay if delay is not None and delay.pending(self.now) else None

    def _longest_delay(self, pod: Sequence[TaskRecord]) -> datetime | None:
        """Return the end of the pod's longest back-off: any task delays the whole launch (6.3)."""
        return max((d.until for record in pod if (d := self._delay(record))), default=None)

    def _first_due(self, failed: Sequence[TaskRecord]) -> tuple[list[TaskRecord], datetime | None]:
        """Return, of tasks that are brought back alone, those that need not wait, else the first
        due, with its time."""
        untils = {r.name: d.until if (d := self._delay(r)) else None for r in failed}
        ready = [record for record in failed if untils[record.name] is None]
        if ready:
            return ready, None
        first = min(until for until in untils.values() if until is not None)
        return [record for record in failed if untils[record.name] == first], first


def _marked_for_replacement(record: TaskRecord) -> bool:
    """Whether an operator ordered its replacement, or removed its agent."""
    gone = record.status is not None and record.status.state is TaskState.GONE_BY_OPERATOR
    return record.permanently_failed or gone


def _reported(record: TaskRecord) -> bool:
    """Whether it was reported. Before that, the step that launches it handles failures."""
    return record.status is not None


def _in_order(chosen: Sequence[TaskRecord], spec: PodSpec | None) -> list[TaskRecord]:
    """Return the records in the pod's order, where that is known."""
    if spec is None:
        return list(chosen)
    places = {task.name: place for place, task in enumerate(spec.tasks)}
    return sorted(chosen, key=lambda record: places[record.task])


def _why(failed: Sequence[TaskRecord], *, replaced_after: timedelta | None) -> str:
    causes = [_cause(record) for record in failed[:_CAUSES_LIMIT]]
    if len(failed) > _CAUSES_LIMIT:
        causes.append(f"and {len(failed) - _CAUSES_LIMIT} more")
    if replaced_after is not None:
        causes.append(f"replaced after {_seconds(replaced_after)} s down")
    return "; ".join(causes)


def _cause(record: TaskRecord) -> str:
    """Return the cause as text: ``hello-0-server FAILED: exit code 1``."""
    status = record.status
    if record.permanently_failed and record.live:
        return f"{record.name} is to be replaced"
    if status is None:
        return f"{record.name} was never reported"
    code = f"exit code {status.exit_code}" if status.exit_code is not None else ""
    text = shortened(status.message or code, _MESSAGE_LIMIT)
    return f"{record.name} {status.state}: {text}" if text else f"{record.name} {status.state}"


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():g}"
