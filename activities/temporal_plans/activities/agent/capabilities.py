"""What a pod may ask for that plain processes can't give: said, never silently left out."""

from temporal_plans.domain.service import PodSpec, TaskSpec


def unsupported(pod: PodSpec, task: TaskSpec) -> tuple[str, ...]:
    """The fields that this kind of agent can't honour, each with its path and the reason.

    ``seccomp-unconfined`` and ``share-pid-namespace`` describe what plain processes have anyway.
    """
    at = f"pods.{pod.type}"
    task_at = f"{at}.tasks.{task.name}"
    found = (
        (pod.image, f"{at}.image: tasks are plain processes; containers are not supported"),
        (pod.networks, f"{at}.networks: tasks use the host's network; others are not supported"),
        (pod.external_volumes, f"{at}.external-volumes: volume drivers are not supported"),
        (pod.seccomp_profile_name, f"{at}.seccomp-profile-name: seccomp is not supported"),
        (pod.ipc_mode or task.ipc_mode, f"{at}.ipc-mode: tasks share the host's IPC namespace"),
        (pod.shm_size or task.shm_size, f"{at}.shm-size: tasks share the host's /dev/shm"),
        (task.transport_encryption, f"{task_at}.transport-encryption: no certificates are issued"),
    )
    return tuple(problem for asked, problem in found if asked)
