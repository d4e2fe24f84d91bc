"""Which changes of a service, and which first configurations, are refused (behaviour 5.10).

Not here, because agents don't have the feature, or because another module checks it:

=============================================  =====================================================
PodSpecsCannotUseUnsupportedFeatures,          ``backend_support``, checked by deployments
TaskSpecsCannotUseUnsupportedFeatures,
TLSRequiresServiceAccount
DomainCapabilityValidator                      agents report their zone and region if they have one;
                                               where none does, placement says why nothing fits
RegionCannotChange                             a service has no region of its own: a pod's is in its
                                               placement, and placement may change
ServiceRoleCannotChangeOnIncompleteDeployment  there are no roles; a pool is chosen once
=============================================  =====================================================

A problem is never fatal: the configuration before stays in force. The forms of files are checked
when they are loaded, but any client may send specs to a Service, so faults that would make a
plan impossible are refused here too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import cast

from temporal_plans.domain.cluster.placement import PlacementError, parse_placement
from temporal_plans.domain.plans import plan_check
from temporal_plans.domain.plans.strategies import IN_SERVICES
from temporal_plans.domain.services import generation
from temporal_plans.domain.services.comparison import pod_of, set_path
from temporal_plans.domain.services.service_name import length_problem, separator_problem
from temporal_plans.domain.services.spec import (
    PodSpec,
    ResourceSet,
    ServiceSpec,
    TaskSpec,
    VolumeSpec,
)
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import trace_of

HOST_NETWORKS = frozenset({"host", "mesos-bridge"})
"""Networks whose tasks use ports of their machine; on all others they have their own addresses."""

ConfigValidator = Callable[[ServiceSpec | None, ServiceSpec], Iterable[Reason]]
"""Yield the problems of a change from a configuration (None: the first deployment) to another."""


def refusals(
    old: ServiceSpec | None,
    new: ServiceSpec,
    *,
    deployed_once: bool,
    extra: Sequence[ConfigValidator] = (),
    strategies: Collection[str] = IN_SERVICES,
) -> tuple[Reason, ...]:
    """Return all problems of replacing ``old`` (None: the first deployment) by ``new``.

    ``deployed_once``: a deployment has been complete, so a plan ``update`` would be used.
    ``extra`` are the developer's own checks; a check that raises refuses the change.
    ``strategies`` are the names that plans of the file may use.
    """
    found = [problem for check in _CHECKS for problem in check(old, new)]
    found += _plan_problems(new, deployed_once, strategies)
    for check in extra:
        found += _run_check(check, old, new)
    return tuple(found)


def _run_check(check: ConfigValidator, old: ServiceSpec | None, new: ServiceSpec) -> list[Reason]:
    name = getattr(check, "__name__", type(check).__name__)
    try:
        answer = cast(object, check(old, new))
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            return [_wrong_answer(name, f"returned {_kind(answer)} instead of reasons")]
        return [_checked(name, reason) for reason in cast(Iterable[object], answer)]
    except Exception as error:  # the developer's own code
        return [
            Reason(
                problem=f"the check {name} failed: {type(error).__name__}: {error}",
                fix="fix it, or remove it from the worker's plugin",
                trace=trace_of(error),
            )
        ]


def _checked(name: str, reason: object) -> Reason:
    """Return a developer's reason, if it is one that can be sent."""
    if not isinstance(reason, Reason):
        return _wrong_answer(name, f"yielded {_kind(reason)} instead of a Reason")
    try:
        checked = Reason.model_validate_json(reason.model_dump_json())
    except ValueError as error:  # a wrong type of a field, or a value that is no JSON
        return _wrong_answer(name, f"yielded a Reason that can't be sent: {error}")
    return checked


def _kind(answer: object) -> str:
    return "None" if answer is None else f"a value of type {type(answer).__name__}"


def _wrong_answer(name: str, problem: str) -> Reason:
    return Reason(
        problem=shortened(f"the check {name} {problem}"),
        fix="yield a temporal_plans.sdk.Reason for each problem, none when there is none",
    )


def _plan_problems(
    new: ServiceSpec, deployed_once: bool, strategies: Collection[str]
) -> Iterator[Reason]:
    """Yield the reasons why the service's plans can't be generated, or could not run."""
    found = generation.problems(new, strategies)
    yield from found
    if found or _repeated(pod.type for pod in new.pods):
        return
    for plan in generation.generate(new, completed_before=deployed_once, strategies=strategies):
        for problem in plan_check.problems(plan):
            yield problem.but(field=f"plans.{plan.name}.{problem.field}")


# --- the service as a whole -----------------------------------------------------------------------


def _name(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """The rules of names; and a service can't change its name: the ids of its workflows, tasks and
    reservations contain it."""
    yield from separator_problem(new.name)
    if old is None:
        yield from length_problem(new.name)
    if old is not None and old.name != new.name:
        yield Reason(
            field="name",
            problem=f"the service is {old.name}, and its name can't change",
            value=new.name,
            fix=f"write {old.name}, or deploy this as another service",
        )


def _user(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """UserCannotChange: files and volumes belong to it. No user is root."""
    if old is None:
        return
    before, after = old.user or "root", new.user or "root"
    if before != after:
        yield _fixed("scheduler.user", before, after)
    for pod, other in _pairs(old, new):
        same_pod = (pod.user or "") == (other.user or "")
        was, will = pod.user or before, other.user or after
        if was != will and not same_pod:  # else it is the service's user, reported already
            yield _fixed(f"pods.{pod.type}.user", was, will)


# --- pods -----------------------------------------------------------------------------------------


def _shrink(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """PodSpecsCannotShrink: the old ``allow-decommission`` permits removing a pod, the new one
    permits fewer instances."""
    for pod_type in _repeated(pod.type for pod in new.pods):
        yield Reason(field=f"pods.{pod_type}", problem="is defined twice", fix="rename one of them")
    for pod in new.pods:
        if pod.count < 0:
            yield Reason(
                field=f"pods.{pod.type}.count",
                problem="must not be negative",
                value=pod.count,
                fix="0 has no instances",
            )
    for pod in old.pods if old else ():
        other = pod_of(new, pod.type)
        if other is None and pod.count > 0 and not pod.allow_decommission:
            yield Reason(
                field=f"pods.{pod.type}",
                problem=_shrinks(pod, 0),
                fix=f"keep the pod, or first deploy it with pods.{pod.type}.allow-decommission set "
                "to true; to remove the whole service: temporal plan uninstall",
            )
        if other is not None and other.count < pod.count and not other.allow_decommission:
            yield Reason(
                field=f"pods.{pod.type}.count",
                problem=_shrinks(pod, other.count),
                value=other.count,
                fix=f"set pods.{pod.type}.count to {pod.count} or more, or "
                f"pods.{pod.type}.allow-decommission to true, and deploy again",
            )


def _shrinks(pod: PodSpec, count: int) -> str:
    """Return the text that clients know; it says tasks for instances."""
    return (
        f"New config's PodSpec named '{pod.type}' has {count} tasks, expected >={pod.count} tasks"
    )


def _networks(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """PodSpecsCannotChangeNetworkRegime: ports of the machine, or addresses of their own."""
    for pod, other in _pairs(old, new):
        if _on_host(pod) != _on_host(other):
            yield Reason(
                field=f"pods.{pod.type}.networks",
                problem="a pod can't move between the ports of its machine and a network with"
                " addresses of its own",
                value=[network.name for network in other.networks],
                fix="keep the networks, or add a pod of another name",
            )


def _on_host(pod: PodSpec) -> bool:
    return all(network.name in HOST_NETWORKS for network in pod.networks)


def _pre_reservation(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """PreReservationCannotChange."""
    for pod, other in _pairs(old, new):
        if pod.pre_reserved_role != other.pre_reserved_role:
            path = f"pods.{pod.type}.pre-reserved-role"
            yield _fixed(path, pod.pre_reserved_role, other.pre_reserved_role)


def _placement(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """PlacementRuleIsValid."""
    for pod in new.pods:
        try:
            parse_placement(pod.placement)
        except PlacementError as error:
            yield error.at(f"pods.{pod.type}.placement")


# --- tasks ----------------------------------------------------------------------------------------


def _tasks(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """Task names once in a pod (part of TaskVolumesCannotChange), and a resource set for each."""
    for pod in new.pods:
        for name in _repeated(task.name for task in pod.tasks):
            yield Reason(
                field=f"pods.{pod.type}.tasks.{name}",
                problem="is defined twice",
                fix="rename one of them",
            )
        sets = [resources.id for resources in pod.resource_sets]
        for task in pod.tasks:
            if task.resource_set not in sets:
                yield Reason(
                    field=f"pods.{pod.type}.tasks.{task.name}.resource-set",
                    problem="the pod has no such resource set",
                    value=task.resource_set,
                    fix=suggestion(task.resource_set, sets),
                )


def _volumes(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """TaskVolumesCannotChange: their data would be lost. This covers volumes of the whole pod, too,
    and a task that moves to another resource set: its volumes would be new ones."""
    for pod, other in _pairs(old, new):
        if _sorted_volumes(pod.volumes) != _sorted_volumes(other.volumes):
            yield _volume_problem(f"pods.{pod.type}.volumes", pod, other)
        for task in pod.tasks:
            later = next((one for one in other.tasks if one.name == task.name), None)
            if later is not None:
                yield from _task_volumes(pod, task, other, later)


def _task_volumes(
    pod: PodSpec, task: TaskSpec, other: PodSpec, later: TaskSpec
) -> Iterator[Reason]:
    before, after = _set_of(pod, task), _set_of(other, later)
    if before is None or after is None:
        return  # reported as a missing resource set
    path = f"pods.{pod.type}.{set_path(other, after.id)}"
    if _sorted_volumes(before.volumes) != _sorted_volumes(after.volumes):
        yield _volume_problem(f"{path}.volumes", before, after)
    elif before.volumes and before.id != after.id:
        yield Reason(
            field=f"pods.{pod.type}.tasks.{task.name}.resource-set",
            problem=f"the task has its volumes in the resource set {before.id}, and volumes can't"
            " move",
            value=after.id,
            fix=f"keep {before.id}, or add a task of another name",
        )


def _volume_problem(path: str, old: PodSpec | ResourceSet, new: PodSpec | ResourceSet) -> Reason:
    return Reason(
        field=path,
        problem=f"volumes can't change: their data would be lost; deployed:"
        f" {_volumes_text(old) or 'none'}",
        value=_volumes_text(new) or None,
        fix="keep them, or add a pod of another name",
    )


def _volumes_text(owner: PodSpec | ResourceSet) -> str:
    return ", ".join(f"{one.path} ({one.type}, {one.size} MB)" for one in owner.volumes)


def _sorted_volumes(volumes: Iterable[VolumeSpec]) -> list[str]:
    return sorted(repr(one.but(profiles=tuple(sorted(one.profiles)))) for one in volumes)


def _set_of(pod: PodSpec, task: TaskSpec) -> ResourceSet | None:
    return next((one for one in pod.resource_sets if one.id == task.resource_set), None)


def _limits(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
    """ResourceLimitsMustExceedRequestedResources."""
    for pod in new.pods:
        for resources in pod.resource_sets:
            limits = resources.limits
            if limits is None:
                continue
            path = f"pods.{pod.type}.{set_path(pod, resources.id)}.resource-limits"
            pairs = (
                ("cpus", limits.cpus, resources.cpus),
                ("memory", limits.memory, resources.memory),
            )
            for kind, limit, amount in pairs:
                if isinstance(limit, int | float) and limit < amount:
                    yield Reason(
                        field=f"{path}.{kind}",
                        problem=f"the limit is less than the requested amount, {amount:g}",
                        value=limit,
                        fix=f"use {amount:g} or more",
                    )


_CHECKS: tuple[ConfigValidator, ...] = (
    _name,
    _shrink,
    _networks,
    _pre_reservation,
    _user,
    _placement,
    _tasks,
    _limits,
    _volumes,
)
"""All checks, in the order of behaviour 5.10."""


# --- for developers -------------------------------------------------------------------------------


def task_env_cannot_change(
    pod: str,
    task: str,
    var: str,
    *,
    allow_unset_to_set: bool = False,
    allow_set_to_unset: bool = False,
) -> ConfigValidator:
    """Return a check that this variable of a task keeps its value (TaskEnvCannotChange). A task
    that only one of the configurations has is not checked."""

    def check(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
        before, after = _task(old, pod, task), _task(new, pod, task)
        if before is None or after is None:
            return
        was, will = before.env.get(var), after.env.get(var)
        if was == will or (was is None and allow_unset_to_set):
            return
        if will is None and allow_set_to_unset:
            return
        yield _fixed(f"pods.{pod}.tasks.{task}.env.{var}", was, will)

    return check


def zone_cannot_flip(*pods: str) -> ConfigValidator:
    """Return a check that the placement of these pods keeps naming zones, or keeps not naming them
    (ZoneValidator). A pod that the new configuration lacks is a problem too."""

    def check(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
        for name in pods:
            after = pod_of(new, name)
            if after is None:
                yield Reason(
                    field=f"pods.{name}",
                    problem="there is no such pod, and its zones must not change",
                    fix=suggestion(name, (pod.type for pod in new.pods)),
                )
                continue
            before = pod_of(old, name) if old else None
            was = _names_zones(before) if before else None
            will = _names_zones(after)
            if was is None or will is None or was == will:
                continue
            yield Reason(
                field=f"pods.{name}.placement",
                problem=f"the placement {'named' if was else 'did not name'} zones, and that can't"
                " change",
                value=after.placement,
                fix=f"{'keep' if was else 'remove'} the rules for @zone",
            )

    return check


def _names_zones(pod: PodSpec) -> bool | None:
    """Whether the placement names zones; None when it can't be read, a problem of its own."""
    try:
        rule = parse_placement(pod.placement)
    except PlacementError:
        return None
    return rule is not None and "@zone" in rule.fields()


def _task(spec: ServiceSpec | None, pod_type: str, name: str) -> TaskSpec | None:
    pod = pod_of(spec, pod_type) if spec else None
    return next((one for one in pod.tasks if one.name == name), None) if pod else None


# --- shared ---------------------------------------------------------------------------------------


def _fixed(path: str, old: str | None, new: str | None) -> Reason:
    was = "it was not set" if old is None else f"it was {old}"
    return Reason(
        field=path,
        problem=f"can't change: {was}",
        value="not set" if new is None else new,
        fix="remove it" if old is None else f"write {old}",
    )


def _pairs(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[tuple[PodSpec, PodSpec]]:
    """Yield the pods that both have, as (old, new)."""
    later = {pod.type: pod for pod in new.pods}
    for pod in old.pods if old else ():
        if pod.type in later:
            yield pod, later[pod.type]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
