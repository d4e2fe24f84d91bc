"""The rules of a service file that concern several fields (behaviour 12.5 to 12.8)."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from temporal_plans.domain.cluster.placement import PlacementError, parse_placement
from temporal_plans.domain.services.spec import own_set
from temporal_plans.domain.values.names import name_fault, suggestion
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.services.file import ServiceFile
from temporal_plans.loading.services.sections.pods import (
    RLIMITS,
    NetworkFile,
    PodFile,
    RLimitFile,
    SecretFileEntry,
)
from temporal_plans.loading.services.sections.resources import (
    LimitsFile,
    PortFile,
    ResourcesFile,
    VolumeFile,
)
from temporal_plans.loading.services.sections.tasks import TaskFile

_T = TypeVar("_T", bound=Hashable)

UNMAPPED_NETWORKS = frozenset({"dcos", "host"})
"""Networks that map no ports: their containers have their own addresses, or the host's."""


def rule_problems(file: ServiceFile) -> Iterator[Reason]:
    """Yield a problem for every rule that the file breaks."""
    yield from _shared_prefix_problems(file)
    yield from _advertised_problems(file)
    for name, pod in file.pods.items():
        path = f"pods.{name}"
        yield from _name_problems(name, path)
        yield from _pod_problems(pod, path)


def _name_problems(name: str, path: str) -> Iterator[Reason]:
    fault = name_fault(name)
    if fault:
        yield Reason(field=path, problem=fault, value=name)


def _shared_prefix_problems(file: ServiceFile) -> Iterator[Reason]:
    """Yield the discovery prefixes that tasks of different pods share."""
    owners: dict[str, str] = {}
    for name, pod in file.pods.items():
        for task_name, task in pod.tasks.items():
            prefix = task.discovery.prefix if task.discovery else None
            if prefix is None or owners.setdefault(prefix, name) == name:
                continue
            yield Reason(
                field=f"pods.{name}.tasks.{task_name}.discovery.prefix",
                problem=f"tasks in different pods cannot share DNS names, and pod"
                f" {owners[prefix]} has this one",
                value=prefix,
                fix="choose another prefix",
            )


def _advertised_problems(file: ServiceFile) -> Iterator[Reason]:
    places: dict[str, list[str]] = defaultdict(list)
    for name, pod in file.pods.items():
        for owner, resources in _all_resources(pod):
            for port, written in (resources.ports or {}).items():
                if written.advertise:
                    places[port].append(f"pods.{name}.{owner}.ports.{port}")
    for port, paths in places.items():
        for path in paths[1:]:
            yield Reason(
                field=path,
                problem=f"another advertised port of the service has this name ({paths[0]}), and"
                " clients find ports by name",
                value=port,
                fix="rename one, or advertise one only",
            )


def _all_resources(pod: PodFile) -> Iterator[tuple[str, ResourcesFile]]:
    """Yield every resource set with its path inside the pod."""
    for name, resources in pod.resource_sets.items():
        yield f"resource-sets.{name}", resources
    for name, task in pod.tasks.items():
        if task.resource_set is None:
            yield f"tasks.{name}", task


# --- a pod -------------------------------------------------------------------------------------


def _pod_problems(pod: PodFile, path: str) -> Iterator[Reason]:
    yield from _placement_problems(pod.placement, f"{path}.placement")
    yield from _volume_problems(pod.volume, pod.volumes, path)
    for name, task in pod.tasks.items():
        yield from _name_problems(name, f"{path}.tasks.{name}")
        yield from _task_problems(task, pod, f"{path}.tasks.{name}")
    yield from _set_id_problems(pod, path)
    for name, resources in pod.resource_sets.items():
        yield from _resources_problems(resources, f"{path}.resource-sets.{name}")
    yield from _path_clash_problems(pod, path)
    for name, limit in pod.rlimits.items():
        yield from _rlimit_problems(name, limit, f"{path}.rlimits.{name}")
    for name, network in pod.networks.items():
        yield from _network_problems(name, network, f"{path}.networks.{name}")
    yield from _secret_problems(pod.secrets, f"{path}.secrets")
    if pod.seccomp_unconfined and pod.seccomp_profile_name is not None:
        yield Reason(
            field=f"{path}.seccomp-profile-name",
            problem="a pod is either unconfined or has a profile",
            value=pod.seccomp_profile_name,
            fix="remove it, or seccomp-unconfined",
        )


def _placement_problems(placement: str, path: str) -> Iterator[Reason]:
    try:
        parse_placement(placement)
    except PlacementError as error:
        yield error.at(path)


def _set_id_problems(pod: PodFile, path: str) -> Iterator[Reason]:
    for name, task in pod.tasks.items():
        if task.resource_set is None and own_set(name) in pod.resource_sets:
            yield Reason(
                field=f"{path}.resource-sets.{own_set(name)}",
                problem=f"the resources of task {name} already are a set of this name",
                value=own_set(name),
                fix=f"rename it, or write resource-set: {own_set(name)} in the task",
            )


def _path_clash_problems(pod: PodFile, path: str) -> Iterator[Reason]:
    """Yield repeated paths of volumes: a sandbox has the pod's volumes and those of its task's
    set."""
    taken = [
        *{volume.path for volume in pod.all_volumes().values()},
        *(volume.container_path for volume in pod.host_volumes.values()),
        *(volume.container_path for volume in pod.external_volumes.values()),
    ]
    for repeated in _repeated(taken):
        yield Reason(
            field=path, problem="two volumes of the pod have the same path", value=repeated
        )
    for owner, resources in _all_resources(pod):
        for name, volume in resources.all_volumes().items():
            if volume.path in taken:
                yield Reason(
                    field=f"{path}.{owner}.{_volume_key(name)}.path",
                    problem="the pod has a volume at this path",
                    value=volume.path,
                    fix="choose another path",
                )


def _rlimit_problems(name: str, limit: RLimitFile, path: str) -> Iterator[Reason]:
    if name not in RLIMITS:
        yield Reason(
            field=path, problem="unknown rlimit", value=name, fix=suggestion(name, RLIMITS)
        )
    soft, hard = limit.soft, limit.hard
    written = {"soft": soft, "hard": hard}
    if (soft is None) != (hard is None):
        fault = "give both soft and hard, or neither for unlimited"
    elif soft is None or hard is None or soft == hard == -1:
        return
    elif min(soft, hard) < -1:
        fault = "limits are 0 or more, or -1 for unlimited"
    elif -1 in (soft, hard):
        fault = "unlimited (-1) must be both soft and hard"
    elif soft > hard:
        fault = "soft must not exceed hard"
    else:
        return
    yield Reason(field=path, problem=fault, value=written)


def _network_problems(name: str, network: NetworkFile, path: str) -> Iterator[Reason]:
    host, container = network.host_ports, network.container_ports
    if name in UNMAPPED_NETWORKS and (host or container):
        yield Reason(
            field=path,
            problem=f"the network {name} does not map ports",
            value={"host-ports": host, "container-ports": container},
            fix="remove host-ports and container-ports",
        )
    if len(host) != len(container):
        yield Reason(
            field=f"{path}.container-ports",
            problem=f"needs as many ports as host-ports, which has {len(host)}",
            value=container,
        )
    for key in ("host-ports", "container-ports"):
        ports = host if key == "host-ports" else container
        for port in _repeated(ports):
            yield Reason(field=f"{path}.{key}", problem="maps a port twice", value=port)


def _secret_problems(secrets: Mapping[str, SecretFileEntry], path: str) -> Iterator[Reason]:
    """Yield secrets that would become the same file or the same environment variable."""
    files = [secret_file(secret) for secret in secrets.values()]
    keys = [secret.env_key for secret in secrets.values()]
    for file in _repeated(file for file in files if file):
        yield Reason(field=path, problem="two secrets have the same file", value=file)
    for key in _repeated(key for key in keys if key):
        yield Reason(field=path, problem="two secrets have the same env-key", value=key)
    for name, secret in secrets.items():
        if secret.file is None and secret.env_key is None and _outside(secret.secret):
            yield Reason(
                field=f"{path}.{name}",
                problem="the secret's path can't be a file's name in the sandbox",
                value=secret.secret,
                fix="add file or env-key",
            )


def secret_file(secret: SecretFileEntry) -> str | None:
    """Return the path of the secret's file: ``file``, else the secret's path unless it has an
    env-key."""
    if secret.file is None and secret.env_key is None:
        return secret.secret.lstrip("/")
    return secret.file


def _outside(path: str) -> bool:
    return ".." in path.split("/") or not path.strip("/")


# --- a task ------------------------------------------------------------------------------------


def _task_problems(task: TaskFile, pod: PodFile, path: str) -> Iterator[Reason]:
    if task.resource_set is None:
        yield from _resources_problems(task, path)
    elif task.resource_set not in pod.resource_sets:
        yield Reason(
            field=f"{path}.resource-set",
            problem="the pod has no such resource set",
            value=task.resource_set,
            fix=suggestion(task.resource_set, pod.resource_sets)
            or "define it under resource-sets, or write cpus and memory here",
        )
    if task.ipc_mode == "SHARE_PARENT" and task.shm_size is not None:
        yield Reason(
            field=f"{path}.shm-size",
            problem="can't be set with ipc-mode SHARE_PARENT",
            value=task.shm_size,
            fix="remove it, or use ipc-mode PRIVATE",
        )
    for dest in _repeated(config.dest for config in task.configs.values()):
        yield Reason(field=f"{path}.configs", problem="two configs have the same dest", value=dest)
    for name in _repeated(entry.name for entry in task.transport_encryption):
        yield Reason(
            field=f"{path}.transport-encryption",
            problem="two entries have the same name",
            value=name,
        )


# --- resources ---------------------------------------------------------------------------------


def _resources_problems(resources: ResourcesFile, path: str) -> Iterator[Reason]:
    amounts = (resources.cpus, resources.gpus, resources.memory)
    if not any(amounts) and not resources.ports and not resources.all_volumes():
        yield Reason(
            field=path,
            problem="has no resources",
            fix="give it cpus and memory"
            + (", or name a resource-set" if isinstance(resources, TaskFile) else ""),
        )
    yield from _volume_problems(resources.volume, resources.volumes, path)
    yield from _port_problems(resources.ports or {}, f"{path}.ports")
    if resources.resource_limits:
        yield from _limit_problems(resources.resource_limits, resources, path)


def _limit_problems(limits: LimitsFile, resources: ResourcesFile, path: str) -> Iterator[Reason]:
    for key, limit, amount in (
        ("cpus", limits.cpus, resources.cpus),
        ("memory", limits.memory, resources.memory),
    ):
        if isinstance(limit, int | float) and amount is not None and limit < amount:
            yield Reason(
                field=f"{path}.resource-limits.{key}",
                problem=f"the limit is less than the requested amount, {amount:g}",
                value=limit,
                fix=f"use {amount:g} or more",
            )


def _volume_key(name: str) -> str:
    return f"volumes.{name}" if name else "volume"


def _volume_problems(
    single: VolumeFile | None, several: Mapping[str, VolumeFile] | None, path: str
) -> Iterator[Reason]:
    if single is not None and several is not None:
        yield Reason(
            field=f"{path}.volumes",
            problem="both volume and volumes are given",
            fix="move the volume into volumes",
        )
    named = {**({"": single} if single else {}), **(several or {})}
    for name, volume in named.items():
        where = f"{path}.{_volume_key(name)}.profiles"
        if volume.profiles and volume.type != "MOUNT":
            yield Reason(
                field=where,
                problem="only MOUNT volumes have profiles",
                value=volume.profiles,
                fix="remove profiles, or use type MOUNT",
            )
        for profile in _repeated(volume.profiles):
            yield Reason(field=where, problem="names a profile twice", value=profile)
    for repeated in _repeated(volume.path for volume in (several or {}).values()):
        yield Reason(
            field=f"{path}.volumes", problem="two volumes have the same path", value=repeated
        )


def _port_problems(ports: Mapping[str, PortFile], path: str) -> Iterator[Reason]:
    for number in _repeated(port.port for port in ports.values() if port.port):
        yield Reason(
            field=path, problem="two ports have the same number", value=number, fix="0 takes any"
        )
    for name, port in ports.items():
        prefix = port.vip.prefix if port.vip else None
        if prefix is not None and prefix != name and prefix in ports:
            yield Reason(
                field=f"{path}.{name}.vip.prefix",
                problem="is the name of another port, whose VIP it would take",
                value=prefix,
                fix="choose another prefix",
            )
        if port.port and port.ranges:
            yield Reason(
                field=f"{path}.{name}.ranges",
                problem="only a dynamic port has ranges",
                fix="remove them, or use port: 0",
            )
        for index, span in enumerate(port.ranges):
            if span.begin is not None and span.end is not None and span.begin > span.end:
                yield Reason(
                    field=f"{path}.{name}.ranges.{index}",
                    problem="begin is greater than end",
                    value={"begin": span.begin, "end": span.end},
                )


def _repeated(values: Iterable[_T]) -> list[_T]:
    return [value for value, count in Counter(values).items() if count > 1]
