"""What a service asks for that the built-in backend, agents, can't give (DESIGN: the cluster seam).

Such a service loads: another backend may run it. Whoever deploys on agents refuses it with these
problems, so that nothing that was asked for is dropped in silence. Gpus and MOUNT volumes are not
here: some agents have them, and placement finds out.
"""

from collections.abc import Iterator

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.service import PodSpec, ServiceSpec, TaskSpec

_REASON = "the built-in agents can't do this"


def unsupported(spec: ServiceSpec) -> tuple[Problem, ...]:
    """A problem for every field that agents would have to ignore; empty when there is none."""
    return tuple(problem for pod in spec.pods for problem in _pod_problems(pod))


def _pod_problems(pod: PodSpec) -> Iterator[Problem]:
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
    if pod.share_pid_namespace:
        yield _problem(f"{path}.share-pid-namespace", True, "tasks have no namespaces; remove it")
    for volume in pod.external_volumes:
        yield _problem(
            f"{path}.external-volumes.{volume.name}", volume.name, "use a volume or a host volume"
        )
    if pod.seccomp_unconfined:
        yield _problem(f"{path}.seccomp-unconfined", True, "tasks have no filter; remove it")
    if pod.seccomp_profile_name is not None:
        yield _problem(f"{path}.seccomp-profile-name", pod.seccomp_profile_name, "remove it")
    yield from _memory_problems(pod, path)
    for task in pod.tasks:
        yield from _task_problems(task, f"{path}.tasks.{task.name}")


def _task_problems(task: TaskSpec, path: str) -> Iterator[Problem]:
    if task.transport_encryption:
        yield _problem(
            f"{path}.transport-encryption",
            [entry.name for entry in task.transport_encryption],
            "supply certificates as secrets",
        )
    yield from _memory_problems(task, path)


def _memory_problems(owner: PodSpec | TaskSpec, path: str) -> Iterator[Problem]:
    if owner.ipc_mode is not None:
        yield _problem(f"{path}.ipc-mode", owner.ipc_mode, "tasks share the machine's; remove it")
    if owner.shm_size is not None:
        yield _problem(f"{path}.shm-size", owner.shm_size, "tasks share the machine's; remove it")


def _problem(path: str, value: object, fix: str) -> Problem:
    return Problem(path=path, message=_REASON, value=value, fix=fix)
