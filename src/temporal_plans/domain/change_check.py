"""What a service may not be changed to, and what it may not be deployed as (reference 5.10).

Not here, because they ask for what agents don't have, or another place answers:

=============================================  =====================================================
PodSpecsCannotUseUnsupportedFeatures,          ``backend_support``, which whoever deploys asks
TaskSpecsCannotUseUnsupportedFeatures,
TLSRequiresServiceAccount
DomainCapabilityValidator                      agents say their zone and region if they have one;
                                               where none does, placement tells why nothing fits
RegionCannotChange                             a service has no region of its own: a pod's is in its
                                               placement, and placement may change
ServiceRoleCannotChangeOnIncompleteDeployment  there are no roles; a pool is chosen once
=============================================  =====================================================

A problem is never fatal: the configuration before stays in force. The forms of files are checked
when they are loaded, but a Service is given specs by any client, so what would make a plan
impossible is refused here too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from temporal_plans.domain import generation, plan_check
from temporal_plans.domain.comparison import pod_of, set_path
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.generation import WRITABLE_STRATEGIES
from temporal_plans.domain.names import suggestion
from temporal_plans.domain.placement import PlacementError, parse_placement
from temporal_plans.domain.service import (
    PodSpec,
    ResourceSet,
    ServiceSpec,
    TaskSpec,
    VolumeSpec,
)

MAX_DNS_NAME = 63
"""Characters of a service's name without slashes: it is a label of DNS names."""

HOST_NETWORKS = frozenset({"host", "mesos-bridge"})
"""Networks whose tasks use ports of their machine; on all others they have their own addresses."""

ConfigValidator = Callable[[ServiceSpec | None, ServiceSpec], Iterable[Problem]]
"""The problems of going from a configuration, or from nothing, to another."""


def refusals(
    old: ServiceSpec | None,
    new: ServiceSpec,
    *,
    deployed_once: bool,
    extra: Sequence[ConfigValidator] = (),
    strategies: Collection[str] = WRITABLE_STRATEGIES,
) -> tuple[Problem, ...]:
    """Everything that keeps ``new`` from taking the place of ``old`` (None: of nothing), at once.

    ``deployed_once``: a deployment has been complete, so a plan ``update`` would be used.
    ``extra`` are the developer's own checks; one that raises refuses the change, and says so.
    ``strategies`` are the names that plans of the file may use.
    """
    found = [problem for check in _CHECKS for problem in check(old, new)]
    found += _plan_problems(new, deployed_once, strategies)
    for check in extra:
        found += _asked(check, old, new)
    return tuple(found)


def _asked(check: ConfigValidator, old: ServiceSpec | None, new: ServiceSpec) -> list[Problem]:
    try:
        return list(check(old, new))
    except Exception as error:  # the developer's own code
        name = getattr(check, "__name__", type(check).__name__)
        return [
            Problem(
                path="",
                message=f"the check {name} failed: {type(error).__name__}: {error}",
                fix="mend it, or take it out of the worker's plugin",
            )
        ]


def _plan_problems(
    new: ServiceSpec, deployed_once: bool, strategies: Collection[str]
) -> Iterator[Problem]:
    """Why the plans can't be made of the service, or could not run."""
    found = generation.problems(new, strategies)
    yield from found
    if found or _repeated(pod.type for pod in new.pods):
        return
    for plan in generation.generate(new, completed_before=deployed_once, strategies=strategies):
        for problem in plan_check.problems(plan):
            yield problem.but(path=f"plans.{plan.name}.{problem.path}")


# --- the service as a whole -----------------------------------------------------------------------


def _name(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """ServiceNameCannotContainDoubleUnderscores, ServiceNameCannotBreakDNS; and a service can't
    change its name: its workflows, tasks and reservations are known by it."""
    if "__" in new.name:
        yield Problem(
            path="name",
            message="must not contain __: it separates the parts of task ids",
            value=new.name,
            fix="use another character",
        )
    if old is None and len(new.name.replace("/", "")) > MAX_DNS_NAME:
        yield Problem(
            path="name",
            message=f"must have at most {MAX_DNS_NAME} characters, slashes aside: it is part of DNS"
            " names",
            value=new.name,
            fix="shorten it",
        )
    if old is not None and old.name != new.name:
        yield Problem(
            path="name",
            message=f"the service is {old.name}, and its name can't change",
            value=new.name,
            fix=f"write {old.name}, or deploy this as a service of its own",
        )


def _user(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """UserCannotChange: files and volumes belong to it. No user is root."""
    if old is None:
        return
    before, after = old.user or "root", new.user or "root"
    if before != after:
        yield _fixed("scheduler.user", before, after)
    for pod, other in _pairs(old, new):
        same_pod = (pod.user or "") == (other.user or "")
        was, will = pod.user or before, other.user or after
        if was != will and not same_pod:  # else it is the service's user, told already
            yield _fixed(f"pods.{pod.type}.user", was, will)


# --- pods -----------------------------------------------------------------------------------------


def _shrink(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """PodSpecsCannotShrink: a pod goes if it was allowed to, and gets fewer if it is."""
    for pod_type in _repeated(pod.type for pod in new.pods):
        yield Problem(path=f"pods.{pod_type}", message="is there twice", fix="rename one")
    for pod in new.pods:
        if pod.count < 0:
            yield Problem(
                path=f"pods.{pod.type}.count",
                message="must not be negative",
                value=pod.count,
                fix="0 has no instances",
            )
    for pod in old.pods if old else ():
        other = pod_of(new, pod.type)
        if other is None and pod.count > 0 and not pod.allow_decommission:
            yield Problem(
                path=f"pods.{pod.type}",
                message=_shrinks(pod, 0),
                fix="keep it, or deploy it with allow-decommission: true before you remove it",
            )
        if other is not None and other.count < pod.count and not other.allow_decommission:
            yield Problem(
                path=f"pods.{pod.type}.count",
                message=_shrinks(pod, other.count),
                value=other.count,
                fix=f"write {pod.count} or more, or allow-decommission: true beside it",
            )


def _shrinks(pod: PodSpec, count: int) -> str:
    """As the reference says it; what it counts are instances."""
    return (
        f"New config's PodSpec named '{pod.type}' has {count} tasks, expected >={pod.count} tasks"
    )


def _networks(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """PodSpecsCannotChangeNetworkRegime: ports of the machine, or addresses of their own."""
    for pod, other in _pairs(old, new):
        if _on_host(pod) != _on_host(other):
            yield Problem(
                path=f"pods.{pod.type}.networks",
                message="a pod can't move between the ports of its machine and a network with"
                " addresses of its own",
                value=[network.name for network in other.networks],
                fix="keep the networks, or add a pod of another name",
            )


def _on_host(pod: PodSpec) -> bool:
    return all(network.name in HOST_NETWORKS for network in pod.networks)


def _pre_reservation(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """PreReservationCannotChange."""
    for pod, other in _pairs(old, new):
        if pod.pre_reserved_role != other.pre_reserved_role:
            path = f"pods.{pod.type}.pre-reserved-role"
            yield _fixed(path, pod.pre_reserved_role, other.pre_reserved_role)


def _placement(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """PlacementRuleIsValid."""
    for pod in new.pods:
        try:
            parse_placement(pod.placement)
        except PlacementError as error:
            yield Problem(
                path=f"pods.{pod.type}.placement",
                message=error.problem,
                value=pod.placement,
                fix=error.fix,
            )


# --- tasks ----------------------------------------------------------------------------------------


def _tasks(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """Task names once in a pod (part of TaskVolumesCannotChange), and a resource set for each."""
    for pod in new.pods:
        for name in _repeated(task.name for task in pod.tasks):
            yield Problem(
                path=f"pods.{pod.type}.tasks.{name}", message="is there twice", fix="rename one"
            )
        sets = [resources.id for resources in pod.resource_sets]
        for task in pod.tasks:
            if task.resource_set not in sets:
                yield Problem(
                    path=f"pods.{pod.type}.tasks.{task.name}.resource-set",
                    message="the pod has no such resource set",
                    value=task.resource_set,
                    fix=suggestion(task.resource_set, sets),
                )


def _volumes(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
    """TaskVolumesCannotChange: what is on them would be lost. That goes for volumes of the whole
    pod, too, and for a task that is to have them in another resource set: they are others then."""
    for pod, other in _pairs(old, new):
        if _sorted_volumes(pod.volumes) != _sorted_volumes(other.volumes):
            yield _volume_problem(f"pods.{pod.type}.volumes", pod, other)
        for task in pod.tasks:
            later = next((one for one in other.tasks if one.name == task.name), None)
            if later is not None:
                yield from _task_volumes(pod, task, other, later)


def _task_volumes(
    pod: PodSpec, task: TaskSpec, other: PodSpec, later: TaskSpec
) -> Iterator[Problem]:
    before, after = _set_of(pod, task), _set_of(other, later)
    if before is None or after is None:
        return  # told as a resource set that is missing
    path = f"pods.{pod.type}.{set_path(other, after.id)}"
    if _sorted_volumes(before.volumes) != _sorted_volumes(after.volumes):
        yield _volume_problem(f"{path}.volumes", before, after)
    elif before.volumes and before.id != after.id:
        yield Problem(
            path=f"pods.{pod.type}.tasks.{task.name}.resource-set",
            message=f"the task has its volumes in the resource set {before.id}, and volumes can't"
            " move",
            value=after.id,
            fix=f"keep {before.id}, or add a task of another name",
        )


def _volume_problem(path: str, old: PodSpec | ResourceSet, new: PodSpec | ResourceSet) -> Problem:
    return Problem(
        path=path,
        message=f"volumes can't change: what is on them would be lost; there is"
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


def _limits(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
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
                    yield Problem(
                        path=f"{path}.{kind}",
                        message=f"the limit is less than the requested amount, {amount:g}",
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
"""In the order of reference 5.10."""


# --- for developers -------------------------------------------------------------------------------


def task_env_cannot_change(
    pod: str,
    task: str,
    var: str,
    *,
    allow_unset_to_set: bool = False,
    allow_set_to_unset: bool = False,
) -> ConfigValidator:
    """A check that this variable of a task keeps its value (TaskEnvCannotChange). A task that only
    one of the configurations has may do as it likes."""

    def check(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
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
    """A check that the placement of these pods goes on to name zones, or not to (ZoneValidator).
    It says so when the new configuration lacks one of them."""

    def check(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Problem]:
        for name in pods:
            after = pod_of(new, name)
            if after is None:
                yield Problem(
                    path=f"pods.{name}",
                    message="there is no such pod, and its zones must not change",
                    fix=suggestion(name, (pod.type for pod in new.pods)),
                )
                continue
            before = pod_of(old, name) if old else None
            was = _names_zones(before) if before else None
            will = _names_zones(after)
            if was is None or will is None or was == will:
                continue
            yield Problem(
                path=f"pods.{name}.placement",
                message=f"the placement {'named' if was else 'did not name'} zones, and that can't"
                " change",
                value=after.placement,
                fix=f"{'keep' if was else 'remove'} the rules for @zone",
            )

    return check


def _names_zones(pod: PodSpec) -> bool | None:
    """None when the placement can't be read, which is a problem of its own."""
    try:
        rule = parse_placement(pod.placement)
    except PlacementError:
        return None
    return rule is not None and "@zone" in rule.fields()


def _task(spec: ServiceSpec | None, pod_type: str, name: str) -> TaskSpec | None:
    pod = pod_of(spec, pod_type) if spec else None
    return next((one for one in pod.tasks if one.name == name), None) if pod else None


# --- shared ---------------------------------------------------------------------------------------


def _fixed(path: str, old: str | None, new: str | None) -> Problem:
    was = "it was not set" if old is None else f"it was {old}"
    return Problem(
        path=path,
        message=f"can't change: {was}",
        value="not set" if new is None else new,
        fix="remove it" if old is None else f"write {old}",
    )


def _pairs(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[tuple[PodSpec, PodSpec]]:
    """The pods that both have, as they were and as they are to be."""
    later = {pod.type: pod for pod in new.pods}
    for pod in old.pods if old else ():
        if pod.type in later:
            yield pod, later[pod.type]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
