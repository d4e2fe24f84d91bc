"""Fields of a service that the built-in backend, agents, does not support (design 6).

Such a service loads: another backend may run it. A deployment on agents is refused with these
reasons, and an agent refuses a launch with the same, so that no field is ignored silently. Gpus and
MOUNT volumes are not here: some agents have them, and placement decides. Nor are
``seccomp-unconfined`` and ``share-pid-namespace``: plain processes are so anyway.
"""

from collections.abc import Iterator

from temporal_plans.domain.services.comparison import set_path
from temporal_plans.domain.services.spec import PodSpec, ServiceSpec, TaskSpec
from temporal_plans.domain.values.refusal import Reason

_PROBLEM = "the built-in agents can't do this"


def unsupported(spec: ServiceSpec) -> tuple[Reason, ...]:
    """Return a reason for every field that agents would have to ignore; empty without any."""
    return tuple(
        reason
        for pod in spec.pods
        for reason in (
            *unsupported_in_pod(pod),
            *(reason for task in pod.tasks for reason in unsupported_in_task(pod, task)),
        )
    )


def without_effect(spec: ServiceSpec) -> tuple[Reason, ...]:
    """Return a reason for every field that agents accept and do nothing with: the names and stable
    addresses under which clients would find a service."""
    return tuple(reason for pod in spec.pods for reason in _without_effect(pod))


def _without_effect(pod: PodSpec) -> Iterator[Reason]:
    for resources in pod.resource_sets:
        for port in resources.ports:
            path = f"pods.{pod.type}.{set_path(pod, resources.id)}.ports.{port.name}"
            if port.vip is not None:
                yield _no_effect(f"{path}.vip", "no stable address is provided")
            if port.advertise:
                yield _no_effect(f"{path}.advertise", "endpoints are not listed")
    for task in pod.tasks:
        if task.discovery is not None:
            path = f"pods.{pod.type}.tasks.{task.name}.discovery"
            yield _no_effect(path, "no DNS names are provided")


def _no_effect(path: str, why: str) -> Reason:
    return Reason(field=path, problem=f"without effect on agents: {why}")


def unsupported_in_pod(pod: PodSpec) -> Iterator[Reason]:
    """Yield the same for the fields of a pod itself."""
    path = f"pods.{pod.type}"
    if pod.image is not None:
        yield _problem(f"{path}.image", pod.image, "tasks run as plain processes; remove it")
    for network in pod.networks:
        if network.name != "host":
            yield _problem(
                f"{path}.networks.{network.name}",
                network.name,
                "tasks use the network of their machine; remove it",
            )
    if pod.pre_reserved_role is not None:
        yield _problem(f"{path}.pre-reserved-role", pod.pre_reserved_role, "use a pool of agents")
    for volume in pod.external_volumes:
        yield _problem(
            f"{path}.external-volumes.{volume.name}", volume.name, "use a volume or a host volume"
        )
    if pod.seccomp_profile_name is not None:
        yield _problem(f"{path}.seccomp-profile-name", pod.seccomp_profile_name, "remove it")
    yield from _memory_problems(pod, path)


def unsupported_in_task(pod: PodSpec, task: TaskSpec) -> Iterator[Reason]:
    """Yield the same for the fields of a task."""
    path = f"pods.{pod.type}.tasks.{task.name}"
    if task.transport_encryption:
        yield _problem(
            f"{path}.transport-encryption",
            [entry.name for entry in task.transport_encryption],
            "supply certificates as secrets",
        )
    yield from _memory_problems(task, path)


def _memory_problems(owner: PodSpec | TaskSpec, path: str) -> Iterator[Reason]:
    if owner.ipc_mode is not None:
        yield _problem(f"{path}.ipc-mode", owner.ipc_mode, "tasks share the machine's; remove it")
    if owner.shm_size is not None:
        yield _problem(f"{path}.shm-size", owner.shm_size, "tasks share the machine's; remove it")


def _problem(path: str, value: object, fix: str) -> Reason:
    return Reason(field=path, problem=_PROBLEM, value=value, fix=fix)
