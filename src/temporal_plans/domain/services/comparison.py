"""The differences between two configurations, and the running tasks that they affect.

Behaviour 5.8 and 5.9. A difference restarts the tasks of all instances of the pod, except in fields
that no running task depends on: ``count``, ``placement``, ``allow-decommission``, ``advertise``.
Ports' env-keys, names, ranges and VIPs, ``essential``, ``transport-encryption`` and resource limits
do count (design 8). Named entries are compared by name: moving a task, a port or a volume within
the file changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from temporal_plans.domain.services.change import FieldChange, InstanceChange, PodChange, PodEffect
from temporal_plans.domain.services.change_texts import field_change, json_of, text_of
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    ExternalVolume,
    HostVolume,
    NetworkSpec,
    PodSpec,
    PortSpec,
    ResourceSet,
    RLimit,
    SecretRef,
    ServiceSpec,
    TaskSpec,
    TransportEncryption,
    VolumeSpec,
    own_set,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import Value, kebab

_NAMED: Mapping[type[Value], str] = {
    TaskSpec: "name",
    ResourceSet: "id",
    PortSpec: "name",
    VolumeSpec: "path",
    ConfigTemplate: "name",
    TransportEncryption: "name",
    NetworkSpec: "name",
    RLimit: "name",
    SecretRef: "name",
    HostVolume: "name",
    ExternalVolume: "name",
}
"""Types whose lists are compared entry by entry, with the naming field. Other lists are one
value."""

_UNORDERED = frozenset({(PortSpec, "ranges"), (VolumeSpec, "profiles")})
"""Lists whose order has no meaning."""

_WITHOUT_RESTART = frozenset(
    {
        (PodSpec, "count"),
        (PodSpec, "placement"),
        (PodSpec, "allow_decommission"),
        (PortSpec, "advertise"),
    }
)
"""Fields that no running task depends on."""

_WRITTEN = {"limits": "resource-limits"}
"""Fields that have another name in the file."""


def pod_fields(old: PodSpec, new: PodSpec) -> tuple[FieldChange, ...]:
    """Return every field of a pod that differs, with its path inside the pod as in the file.

    An entry that only one side has is one change (``tasks.sidecar``). Long values are cut to where
    they differ. Secrets are references, so no secret value is ever shown. A missing user means
    ``root``.
    """
    return tuple(_pod_changes(old, new))


def value_fields(old: Value, new: Value, path: str) -> tuple[FieldChange, ...]:
    """Return every field of a value that no task is made from and that differs, below ``path``."""
    return tuple(change.but(restarts=False) for change in _value_changes(old, new, path))


def differs(old: PodSpec, new: PodSpec) -> bool:
    """Whether tasks launched as ``old`` must be relaunched to match ``new``."""
    return old != new and any(change.restarts for change in pod_fields(old, new))


def set_path(pod: PodSpec, set_id: str) -> str:
    """Return the path of a resource set in the file: in its task, or under ``resource-sets``."""
    for task in pod.tasks:
        if task.resource_set == set_id == own_set(task.name):
            return f"tasks.{task.name}"
    return f"resource-sets.{set_id}"


def pod_of(spec: ServiceSpec, pod_type: str) -> PodSpec | None:
    """Return the pod with the user that its tasks run as; None when the service has no such pod."""
    for pod in spec.pods:
        if pod.type == pod_type:
            return pod.but(user=pod.user or spec.user or "root")
    return None


# --- effects on running tasks ---------------------------------------------------------------------


class Comparison:
    """Compares recorded launches with one configuration. Each pair of pods is compared once."""

    def __init__(self, configs: Mapping[str, ServiceSpec], target: ServiceSpec) -> None:
        self._configs = configs
        self._target = target
        self._fits: dict[tuple[str, str], bool] = {}

    def fits(self, pod_type: str, config_id: str) -> bool:
        """Whether tasks launched with that configuration match the target, too. False when the
        target has no such pod, or when the configuration is no longer kept."""
        key = (pod_type, config_id)
        if key not in self._fits:
            self._fits[key] = self._compare(pod_type, config_id)
        return self._fits[key]

    def _compare(self, pod_type: str, config_id: str) -> bool:
        spec = self._configs.get(config_id)
        old = pod_of(spec, pod_type) if spec else None
        new = pod_of(self._target, pod_type)
        return old is not None and new is not None and not differs(old, new)

    def relaunched(self, record: TaskRecord) -> bool:
        """Whether the target's deploy plan relaunches the task by itself.

        Not a task that is to be replaced anyway: its replacement has the target's configuration.
        And not a task with the goal ONCE that has finished.
        """
        if record.permanently_failed or self.fits(record.pod, record.config_id):
            return False
        goal = goal_in(self._target, record)
        return goal is not None and not finished_once(record, goal)


def goal_in(spec: ServiceSpec, record: TaskRecord) -> Goal | None:
    """Return a recorded task's goal in a configuration; None when that has no such task."""
    try:
        return spec.pod(record.pod).task(record.task).goal
    except KeyError:
        return None


def finished_once(record: TaskRecord, goal: Goal) -> bool:
    """Whether a task with the goal ONCE has finished, with any configuration (behaviour 3.6). Not a
    task that was launched with the goal RUNNING and happened to end."""
    finished = record.status is not None and record.status.state is TaskState.FINISHED
    return goal is Goal.ONCE and finished and record.goal != Goal.RUNNING


def relabelled(
    records: Mapping[str, TaskRecord], configs: Mapping[str, ServiceSpec], target_id: str
) -> dict[str, TaskRecord]:
    """Return the records after a change of the target: tasks whose pod does not differ from the
    target's, and tasks that are to be replaced, get the target's configuration id (behaviour 5.8).
    ``configs`` by id, the target included. A pod that the target lacks is left unchanged."""
    target = configs[target_id]
    comparison = Comparison(configs, target)
    types = {pod.type for pod in target.pods}

    def as_of_target(record: TaskRecord) -> TaskRecord:
        if record.config_id == target_id or record.pod not in types:
            return record
        if record.permanently_failed or comparison.fits(record.pod, record.config_id):
            return record.but(config_id=target_id)
        return record

    return {name: as_of_target(record) for name, record in records.items()}


def pod_changes(
    old: ServiceSpec | None,
    new: ServiceSpec,
    records: Mapping[str, TaskRecord],
    configs: Mapping[str, ServiceSpec],
) -> tuple[PodChange, ...]:
    """Return the changes of every pod type of both, in the order of ``new``, when ``new`` replaces
    ``old``.

    An instance is restarted when one of its launched tasks has to be, compared with the
    configuration that *it* runs (one of ``configs``). An instance of ``old`` that was never
    launched has the effect NONE: its launch is still to come. Instances that neither has but that
    still have tasks are being removed.
    """
    launched: dict[str, dict[int, list[TaskRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records.values():
        launched[record.pod][record.index].append(record)
    comparison = Comparison(configs, new)
    types = dict.fromkeys(
        [*(p.type for p in new.pods), *(p.type for p in (old.pods if old else ())), *launched]
    )
    return tuple(
        PodChange(
            pod=pod_type,
            fields=_fields(old, new, pod_type),
            instances=tuple(_instances(old, new, pod_type, launched[pod_type], comparison)),
        )
        for pod_type in types
    )


def _fields(old: ServiceSpec | None, new: ServiceSpec, pod_type: str) -> tuple[FieldChange, ...]:
    before = pod_of(old, pod_type) if old else None
    after = pod_of(new, pod_type)
    return pod_fields(before, after) if before and after else ()


def _instances(
    old: ServiceSpec | None,
    new: ServiceSpec,
    pod_type: str,
    launched: Mapping[int, Sequence[TaskRecord]],
    comparison: Comparison,
) -> Iterator[InstanceChange]:
    before, after = _count(old, pod_type), _count(new, pod_type)
    indexes = {*range(before), *range(after), *launched}
    for index in sorted(indexes):
        records = launched.get(index, ())
        if index >= after:
            effect = PodEffect.REMOVE
        elif any(comparison.relaunched(record) for record in records):
            effect = PodEffect.RESTART
        elif index >= before and not records:
            effect = PodEffect.ADD
        else:
            effect = PodEffect.NONE
        yield InstanceChange(name=f"{pod_type}-{index}", effect=effect)


def _count(spec: ServiceSpec | None, pod_type: str) -> int:
    pod = pod_of(spec, pod_type) if spec else None
    return pod.count if pod else 0


# --- fields ---------------------------------------------------------------------------------------


def _pod_changes(old: PodSpec, new: PodSpec) -> Iterator[FieldChange]:
    if old == new:
        return
    yield from _value_changes(
        old.but(user=old.user or "root", tasks=_without_own_sets(old), resource_sets=()),
        new.but(user=new.user or "root", tasks=_without_own_sets(new), resource_sets=()),
        "",
    )
    yield from _set_changes(old, new)


def _without_own_sets(pod: PodSpec) -> tuple[TaskSpec, ...]:
    """Return the tasks; those with resources of their own name no set in the file."""
    return tuple(
        task.but(resource_set="") if task.resource_set == own_set(task.name) else task
        for task in pod.tasks
    )


def _set_changes(old: PodSpec, new: PodSpec) -> Iterator[FieldChange]:
    """Yield the changes of resource sets, by id. A set inside a task is compared field by field,
    even with none; it is left out when the task itself is new or removed."""
    before, after = _by_name(old.resource_sets), _by_name(new.resource_sets)
    if before is None or after is None:  # duplicate ids: only in hand-made specs
        yield _change("resource-sets", old.resource_sets, new.resource_sets)
        return
    one_sided = {task.name for task in old.tasks} ^ {task.name for task in new.tasks}
    for set_id in dict.fromkeys((*before, *after)):
        path = set_path(old if set_id in before else new, set_id)
        task = path.removeprefix("tasks.")
        if task == path:
            yield from _changes(before.get(set_id), after.get(set_id), path)
        elif task not in one_sided:
            none = ResourceSet(id=set_id)
            yield from _changes(before.get(set_id, none), after.get(set_id, none), path)


def _changes(old: object, new: object, path: str) -> Iterator[FieldChange]:
    if old == new:
        return
    if isinstance(old, Value) and isinstance(new, Value):
        yield from _value_changes(old, new, path)
        return
    before, after = _entries(old), _entries(new)
    if before is not None and after is not None:
        yield from _entry_changes(before, after, path)
    else:
        yield _change(path, old, new)


def _value_changes(old: Value, new: Value, path: str) -> Iterator[FieldChange]:
    for name in type(old).model_fields:
        field = (type(old), name)
        before, after = getattr(old, name), getattr(new, name)
        if before == after or (field in _UNORDERED and _sorted(before) == _sorted(after)):
            continue
        for change in _changes(before, after, _joined(path, _WRITTEN.get(name) or kebab(name))):
            yield change.but(restarts=False) if field in _WITHOUT_RESTART else change


def _entry_changes(
    old: Mapping[str, object], new: Mapping[str, object], path: str
) -> Iterator[FieldChange]:
    for name in dict.fromkeys((*old, *new)):
        where = _joined(path, name)
        if name in old and name in new:
            yield from _changes(old[name], new[name], where)
        else:
            yield _change(where, old.get(name), new.get(name))


def _change(path: str, old: object, new: object) -> FieldChange:
    return field_change(path, text_of(old), text_of(new))


def _entries(value: object) -> Mapping[str, object] | None:
    """Return the entries of a mapping, or of a list of named values, by name; else None."""
    if isinstance(value, dict):
        return cast(dict[str, object], value)
    return _by_name(cast(tuple[object, ...], value)) if isinstance(value, tuple) else None


def _by_name(values: tuple[object, ...]) -> dict[str, Any] | None:
    """Return the values of a list by name; None without names, or with a duplicate."""
    if not all(type(value) in _NAMED for value in values):
        return None
    named = {str(getattr(v, _NAMED[cast(type[Value], type(v))])): v for v in values}
    return named if len(named) == len(values) else None


def _sorted(value: tuple[object, ...]) -> list[str]:
    return sorted(json_of(entry) for entry in value)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


__all__ = [
    "Comparison",
    "differs",
    "finished_once",
    "goal_in",
    "pod_changes",
    "pod_fields",
    "pod_of",
    "relabelled",
    "set_path",
    "value_fields",
]
