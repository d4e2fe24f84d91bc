"""The specification of a service: pods of tasks, as in a ``svc.yml`` (behaviour 12).

These are the values *after* loading: mustache rendered, short forms expanded, every rule of
behaviour 12 checked by ``temporal_plans.loading``. Amounts: cpus and gpus in cores, memory and
volume sizes in MB, times in seconds.
"""

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field

from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.ports import PortRange


class VolumeSpec(Value):
    """A persistent volume, kept as long as the pod's reservation."""

    path: str
    type: Literal["ROOT", "MOUNT"] = "ROOT"
    size: int
    profiles: tuple[str, ...] = ()


class VipSpec(Value):
    """A virtual address of a port: its port and name prefix."""

    port: int
    prefix: str


class PortSpec(Value):
    """A port of a resource set. ``port`` 0 means: any free one."""

    name: str
    port: int = 0
    env_key: str | None = None
    advertise: bool = False
    vip: VipSpec | None = None
    ranges: tuple[PortRange, ...] = ()


class ResourceLimits(Value):
    """Upper limits of a resource set; None: no limit is set."""

    cpus: float | Literal["unlimited"] | None = None
    memory: int | Literal["unlimited"] | None = None


class ResourceSet(Value):
    """Resources that one task, or several in turn, run in."""

    id: str
    cpus: float = 0.0
    gpus: float = 0.0
    memory: int = 0
    ports: tuple[PortSpec, ...] = ()
    volumes: tuple[VolumeSpec, ...] = ()
    limits: ResourceLimits | None = None


class HealthCheck(Value):
    """A command whose repeated failure has the task killed; times in seconds."""

    cmd: str
    interval: float
    grace_period: float
    max_consecutive_failures: int
    delay: float
    timeout: float


class ReadinessCheck(Value):
    """A command that must succeed once before the task is ready; times in seconds."""

    cmd: str
    interval: float
    delay: float = 0.0
    timeout: float


class ConfigTemplate(Value):
    """A configuration file rendered on the agent from the task's environment (mustache)."""

    name: str
    template: str = Field(description="the template's text, not its file name")
    dest: str


class Discovery(Value):
    prefix: str | None = None
    visibility: Literal["CLUSTER", "FRAMEWORK", "EXTERNAL"] = "CLUSTER"


class TransportEncryption(Value):
    name: str
    type: Literal["TLS", "KEYSTORE"]


class TaskSpec(Value):
    """One command of a pod. ``resource_set`` names one of the pod's sets."""

    name: str
    goal: Goal
    cmd: str
    resource_set: str
    essential: bool = True
    env: dict[str, str] = {}
    labels: dict[str, str] = {}
    configs: tuple[ConfigTemplate, ...] = ()
    health_check: HealthCheck | None = None
    readiness_check: ReadinessCheck | None = None
    kill_grace_period: int = 0
    discovery: Discovery | None = None
    transport_encryption: tuple[TransportEncryption, ...] = ()
    ipc_mode: Literal["PRIVATE", "SHARE_PARENT"] | None = None
    shm_size: int | None = None


class NetworkSpec(Value):
    name: str
    host_ports: tuple[int, ...] = ()
    container_ports: tuple[int, ...] = ()
    labels: dict[str, str] = {}


class RLimit(Value):
    """A POSIX resource limit; None for both means unlimited."""

    name: str
    soft: int | None = None
    hard: int | None = None


class SecretRef(Value):
    """A reference to a secret; the value is resolved on the agent and never leaves it."""

    name: str
    secret: str
    env_key: str | None = None
    file: str | None = None


class HostVolume(Value):
    name: str
    host_path: str
    container_path: str
    mode: Literal["RW", "RO"] = "RW"


class ExternalVolume(Value):
    name: str
    type: Literal["DOCKER"]
    volume_name: str | None = None
    volume_mode: str | None = None
    driver_name: str | None = None
    driver_options: dict[str, str] = {}
    container_path: str


class PodSpec(Value):
    """A pod type: ``count`` instances of the same tasks. Tasks and sets keep the file's order."""

    type: str
    count: int
    tasks: tuple[TaskSpec, ...]
    resource_sets: tuple[ResourceSet, ...] = ()
    volumes: tuple[VolumeSpec, ...] = ()
    placement: str = Field(default="", description="as written; parsed by domain.placement")
    user: str | None = None
    image: str | None = None
    networks: tuple[NetworkSpec, ...] = ()
    rlimits: tuple[RLimit, ...] = ()
    uris: tuple[str, ...] = ()
    pre_reserved_role: str | None = None
    secrets: tuple[SecretRef, ...] = ()
    share_pid_namespace: bool = False
    allow_decommission: bool = False
    host_volumes: tuple[HostVolume, ...] = ()
    external_volumes: tuple[ExternalVolume, ...] = ()
    seccomp_unconfined: bool = False
    seccomp_profile_name: str | None = None
    ipc_mode: Literal["PRIVATE"] | None = None
    shm_size: int | None = None
    shell: str | None = Field(
        default=None, description="the shell of commands and checks; None: the agent's"
    )

    def task(self, name: str) -> TaskSpec:
        """Return the task of that name; KeyError when the pod has none."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    def sets_of(self, tasks: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the resource sets of these tasks, as far as the pod has them, each
        once."""
        return tuple(dict.fromkeys(t.resource_set for t in self.tasks if t.name in tasks))

    def resource_set(self, set_id: str) -> ResourceSet:
        """Return the resource set of that id; KeyError when the pod has none."""
        for resources in self.resource_sets:
            if resources.id == set_id:
                return resources
        raise KeyError(set_id)

    def instance(self, index: int) -> str:
        """Return the name of one instance: ``hello-0``."""
        return f"{self.type}-{index}"


class PlanYaml(Value):
    """One entry of a service file's ``plans``, already checked in form; see
    ``services.generation``."""

    strategy: Any = "serial"
    phases: dict[str, "PhaseYaml"]
    parameters: list[dict[str, Any]] = []


class PhaseYaml(Value):
    """A phase of a service plan. ``steps``: [{"0" | "default": [[task, ...], ...]}, ...]."""

    pod: str
    strategy: Any = "serial"
    steps: tuple[dict[str, tuple[tuple[str, ...], ...]], ...] = ()


class ServiceSpec(Value):
    """A whole service, as Service workflows deploy it. ``plans`` is None without that section."""

    name: str
    web_url: str | None = None
    principal: str = ""
    zookeeper: str = ""
    user: str = "root"
    goal: Goal = Goal.RUNNING
    pods: tuple[PodSpec, ...]
    plans: dict[str, PlanYaml] | None = None

    def pod(self, pod_type: str) -> PodSpec:
        """Return the pod of that type; KeyError when there is none."""
        for pod in self.pods:
            if pod.type == pod_type:
                return pod
        raise KeyError(pod_type)


def own_set(task: str) -> str:
    """Return the id of the resource set that loading makes of a task's own resources."""
    return f"{task}-resource-set"
