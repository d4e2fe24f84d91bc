"""The rules of a service file that concern several fields (reference 12.5 to 12.8)."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.names import name_fault, suggestion
from temporal_plans.domain.placement import PlacementError, parse_placement
from temporal_plans.loading.service_file import (
    RLIMITS,
    LimitsFile,
    NetworkFile,
    PodFile,
    PortFile,
    ResourcesFile,
    RLimitFile,
    SecretFileEntry,
    ServiceFile,
    TaskFile,
    VolumeFile,
)

_T = TypeVar("_T", bound=Hashable)

UNMAPPED_NETWORKS = frozenset({"dcos", "host"})
"""Networks whose containers have addresses of their own, or the host's: no ports to map."""


def own_set(task: str) -> str:
    """The id of the resource set of a task that writes its resources itself."""
    return f"{task}-resource-set"


def rule_problems(file: ServiceFile) -> Iterator[Problem]:
    """Every rule that the file breaks."""
    yield from _shared_prefix_problems(file)
    yield from _advertised_problems(file)
    for name, pod in file.pods.items():
        path = f"pods.{name}"
        yield from _name_problems(name, path)
        yield from _pod_problems(pod, path)


def _name_problems(name: str, path: str) -> Iterator[Problem]:
    fault = name_fault(name)
    if fault:
        yield Problem(path=path, message=fault, value=name)


def _shared_prefix_problems(file: ServiceFile) -> Iterator[Problem]:
    """Tasks in different pods can't share DNS names."""
    owners: dict[str, str] = {}
    for name, pod in file.pods.items():
        for task_name, task in pod.tasks.items():
            prefix = task.discovery.prefix if task.discovery else None
            if prefix is None or owners.setdefault(prefix, name) == name:
                continue
            yield Problem(
                path=f"pods.{name}.tasks.{task_name}.discovery.prefix",
                message=f"tasks in different pods cannot share DNS names, and pod"
                f" {owners[prefix]} has this one",
                value=prefix,
                fix="choose another prefix",
            )


def _advertised_problems(file: ServiceFile) -> Iterator[Problem]:
    places: dict[str, list[str]] = defaultdict(list)
    for name, pod in file.pods.items():
        for owner, resources in _all_resources(pod):
            for port, written in (resources.ports or {}).items():
                if written.advertise:
                    places[port].append(f"pods.{name}.{owner}.ports.{port}")
    for port, paths in places.items():
        for path in paths[1:]:
            yield Problem(
                path=path,
                message="the service has another advertised port of this name"
                f" ({paths[0]}), and clients find ports by name",
                value=port,
                fix="rename one, or advertise one only",
            )


def _all_resources(pod: PodFile) -> Iterator[tuple[str, ResourcesFile]]:
    """Every resource set with its path inside the pod."""
    for name, resources in pod.resource_sets.items():
        yield f"resource-sets.{name}", resources
    for name, task in pod.tasks.items():
        if task.resource_set is None:
            yield f"tasks.{name}", task


# --- a pod -------------------------------------------------------------------------------------


def _pod_problems(pod: PodFile, path: str) -> Iterator[Problem]:
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
        yield Problem(
            path=f"{path}.seccomp-profile-name",
            message="a pod is either unconfined or has a profile",
            value=pod.seccomp_profile_name,
            fix="remove it, or seccomp-unconfined",
        )


def _placement_problems(placement: str, path: str) -> Iterator[Problem]:
    try:
        parse_placement(placement)
    except PlacementError as error:
        yield Problem(path=path, message=error.problem, value=placement, fix=error.fix)


def _set_id_problems(pod: PodFile, path: str) -> Iterator[Problem]:
    for name, task in pod.tasks.items():
        if task.resource_set is None and own_set(name) in pod.resource_sets:
            yield Problem(
                path=f"{path}.resource-sets.{own_set(name)}",
                message=f"task {name} has a set of this name already, for its own resources",
                value=own_set(name),
                fix=f"rename it, or write resource-set: {own_set(name)} in the task",
            )


def _path_clash_problems(pod: PodFile, path: str) -> Iterator[Problem]:
    """A task's sandbox shows the pod's volumes and its own set's: their paths must differ."""
    taken = [
        *{volume.path for volume in pod.all_volumes().values()},
        *(volume.container_path for volume in pod.host_volumes.values()),
        *(volume.container_path for volume in pod.external_volumes.values()),
    ]
    for repeated in _repeated(taken):
        yield Problem(
            path=path, message="two volumes of the pod have the same path", value=repeated
        )
    for owner, resources in _all_resources(pod):
        for name, volume in resources.all_volumes().items():
            if volume.path in taken:
                yield Problem(
                    path=f"{path}.{owner}.{_volume_key(name)}.path",
                    message="the pod itself has a volume at this path",
                    value=volume.path,
                    fix="choose another path",
                )


def _rlimit_problems(name: str, limit: RLimitFile, path: str) -> Iterator[Problem]:
    if name not in RLIMITS:
        yield Problem(
            path=path, message="unknown rlimit", value=name, fix=suggestion(name, RLIMITS)
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
    yield Problem(path=path, message=fault, value=written)


def _network_problems(name: str, network: NetworkFile, path: str) -> Iterator[Problem]:
    host, container = network.host_ports, network.container_ports
    if name in UNMAPPED_NETWORKS and (host or container):
        yield Problem(
            path=path,
            message=f"the network {name} does not map ports",
            value={"host-ports": host, "container-ports": container},
            fix="remove host-ports and container-ports",
        )
    if len(host) != len(container):
        yield Problem(
            path=f"{path}.container-ports",
            message=f"needs as many ports as host-ports, which has {len(host)}",
            value=container,
        )
    for key in ("host-ports", "container-ports"):
        ports = host if key == "host-ports" else container
        for port in _repeated(ports):
            yield Problem(path=f"{path}.{key}", message="maps a port twice", value=port)


def _secret_problems(secrets: Mapping[str, SecretFileEntry], path: str) -> Iterator[Problem]:
    """Two secrets can't become the same file or the same variable."""
    files = [secret_file(secret) for secret in secrets.values()]
    keys = [secret.env_key for secret in secrets.values()]
    for file in _repeated(file for file in files if file):
        yield Problem(path=path, message="two secrets have the same file", value=file)
    for key in _repeated(key for key in keys if key):
        yield Problem(path=path, message="two secrets have the same env-key", value=key)
    for name, secret in secrets.items():
        if secret.file is None and secret.env_key is None and _outside(secret.secret):
            yield Problem(
                path=f"{path}.{name}",
                message="the secret's path can't be a file's name in the sandbox",
                value=secret.secret,
                fix="add file or env-key",
            )


def secret_file(secret: SecretFileEntry) -> str | None:
    """Where the secret becomes a file: as written, else its own path unless it has an env-key."""
    if secret.file is None and secret.env_key is None:
        return secret.secret.lstrip("/")
    return secret.file


def _outside(path: str) -> bool:
    return ".." in path.split("/") or not path.strip("/")


# --- a task ------------------------------------------------------------------------------------


def _task_problems(task: TaskFile, pod: PodFile, path: str) -> Iterator[Problem]:
    if task.resource_set is None:
        yield from _resources_problems(task, path)
    elif task.resource_set not in pod.resource_sets:
        yield Problem(
            path=f"{path}.resource-set",
            message="the pod has no such resource set",
            value=task.resource_set,
            fix=suggestion(task.resource_set, pod.resource_sets)
            or "define it under resource-sets, or write cpus and memory here",
        )
    if task.ipc_mode == "SHARE_PARENT" and task.shm_size is not None:
        yield Problem(
            path=f"{path}.shm-size",
            message="can't be set with ipc-mode SHARE_PARENT",
            value=task.shm_size,
            fix="remove it, or use ipc-mode PRIVATE",
        )
    for dest in _repeated(config.dest for config in task.configs.values()):
        yield Problem(path=f"{path}.configs", message="two configs have the same dest", value=dest)
    for name in _repeated(entry.name for entry in task.transport_encryption):
        yield Problem(
            path=f"{path}.transport-encryption", message="has two entries of a name", value=name
        )


# --- resources ---------------------------------------------------------------------------------


def _resources_problems(resources: ResourcesFile, path: str) -> Iterator[Problem]:
    amounts = (resources.cpus, resources.gpus, resources.memory)
    if not any(amounts) and not resources.ports and not resources.all_volumes():
        yield Problem(
            path=path,
            message="has no resources",
            fix="give it cpus and memory"
            + (", or name a resource-set" if isinstance(resources, TaskFile) else ""),
        )
    yield from _volume_problems(resources.volume, resources.volumes, path)
    yield from _port_problems(resources.ports or {}, f"{path}.ports")
    if resources.resource_limits:
        yield from _limit_problems(resources.resource_limits, resources, path)


def _limit_problems(limits: LimitsFile, resources: ResourcesFile, path: str) -> Iterator[Problem]:
    for key, limit, amount in (
        ("cpus", limits.cpus, resources.cpus),
        ("memory", limits.memory, resources.memory),
    ):
        if isinstance(limit, int | float) and amount is not None and limit < amount:
            yield Problem(
                path=f"{path}.resource-limits.{key}",
                message=f"the limit is less than the requested amount, {amount:g}",
                value=limit,
                fix=f"use {amount:g} or more",
            )


def _volume_key(name: str) -> str:
    return f"volumes.{name}" if name else "volume"


def _volume_problems(
    single: VolumeFile | None, several: Mapping[str, VolumeFile] | None, path: str
) -> Iterator[Problem]:
    if single is not None and several is not None:
        yield Problem(
            path=f"{path}.volumes",
            message="both volume and volumes are given",
            fix="move the volume into volumes",
        )
    named = {**({"": single} if single else {}), **(several or {})}
    for name, volume in named.items():
        where = f"{path}.{_volume_key(name)}.profiles"
        if volume.profiles and volume.type != "MOUNT":
            yield Problem(
                path=where,
                message="only MOUNT volumes have profiles",
                value=volume.profiles,
                fix="remove profiles, or use type MOUNT",
            )
        for profile in _repeated(volume.profiles):
            yield Problem(path=where, message="names a profile twice", value=profile)
    for repeated in _repeated(volume.path for volume in (several or {}).values()):
        yield Problem(
            path=f"{path}.volumes", message="two volumes have the same path", value=repeated
        )


def _port_problems(ports: Mapping[str, PortFile], path: str) -> Iterator[Problem]:
    for number in _repeated(port.port for port in ports.values() if port.port):
        yield Problem(
            path=path, message="two ports have the same number", value=number, fix="0 takes any"
        )
    for name, port in ports.items():
        prefix = port.vip.prefix if port.vip else None
        if prefix is not None and prefix != name and prefix in ports:
            yield Problem(
                path=f"{path}.{name}.vip.prefix",
                message="is the name of another port, whose VIP it would take",
                value=prefix,
                fix="choose another prefix",
            )
        if port.port and port.ranges:
            yield Problem(
                path=f"{path}.{name}.ranges",
                message="only a dynamic port has ranges",
                fix="remove them, or use port: 0",
            )
        for index, span in enumerate(port.ranges):
            if span.begin is not None and span.end is not None and span.begin > span.end:
                yield Problem(
                    path=f"{path}.{name}.ranges.{index}",
                    message="begins behind its end",
                    value={"begin": span.begin, "end": span.end},
                )


def _repeated(values: Iterable[_T]) -> list[_T]:
    return [value for value, count in Counter(values).items() if count > 1]
