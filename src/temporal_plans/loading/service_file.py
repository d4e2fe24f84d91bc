"""The schema of ``svc.yml`` (reference 12.4 to 12.7, plans 5.2): forms and single values.

What concerns several fields is in ``loading.rules``. Null stands for "not given", so a template may
leave a value empty. Amounts: cpus and gpus in cores, memory and sizes in MB, times in seconds.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from temporal_plans.domain.model import Value
from temporal_plans.domain.plan import ParameterSpec, StrategySpec
from temporal_plans.domain.plan_file import normalise
from temporal_plans.domain.service import Goal
from temporal_plans.loading.fields import (
    AbsolutePath,
    Cores,
    CpuLimit,
    Environment,
    EnvKey,
    Labels,
    Megabytes,
    MemoryLimit,
    Options,
    PathElement,
    PortNumber,
    Profile,
    RelativePath,
    Seconds,
    SecretFile,
    Shape,
    Text,
    Upper,
    wrong,
)

MAX_COUNT = 10_000
"""Instances of one pod: a bound against slips, well above what one plan should have."""

MAX_KILL_GRACE_PERIOD = 3600

RLIMITS = (
    "RLIMIT_AS",
    "RLIMIT_CORE",
    "RLIMIT_CPU",
    "RLIMIT_DATA",
    "RLIMIT_FSIZE",
    "RLIMIT_LOCKS",
    "RLIMIT_MEMLOCK",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NICE",
    "RLIMIT_NOFILE",
    "RLIMIT_NPROC",
    "RLIMIT_RSS",
    "RLIMIT_RTPRIO",
    "RLIMIT_RTTIME",
    "RLIMIT_SIGPENDING",
    "RLIMIT_STACK",
)


class FileValue(Value):
    """A mapping of the file. Null stands for no entries, and in an entry for its default."""

    model_config = ConfigDict(allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return value
        entries = cast(Mapping[str, object], value)
        return {k: v for k, v in entries.items() if v is not None or k not in cls._keys()}

    @classmethod
    def _keys(cls) -> frozenset[str]:
        return frozenset({*cls.model_fields, *(f.alias or "" for f in cls.model_fields.values())})


class VolumeFile(FileValue):
    path: PathElement = Field(description="the directory's name in the sandbox")
    type: Literal["ROOT", "MOUNT"] = Field(
        default="ROOT", description="ROOT: part of the agent's disk; MOUNT: a whole disk of its own"
    )
    size: Megabytes = Field(description="MB")
    profiles: tuple[Profile, ...] = Field(
        default=(), description="profiles of which the mount disk must have one (MOUNT only)"
    )


class VipFile(FileValue):
    port: Annotated[int, Field(ge=1, le=65535)] = Field(description="the port that clients use")
    prefix: Text | None = Field(default=None, description="default: the port's name")


class PortRangeFile(FileValue):
    begin: PortNumber | None = None
    end: PortNumber | None = None


class PortFile(FileValue):
    port: PortNumber = Field(description="0: any free port of the agent")
    env_key: EnvKey | None = Field(
        default=None, description="the environment variable that tells the task its port"
    )
    advertise: bool = Field(default=False, description="list it among the service's endpoints")
    vip: VipFile | None = Field(default=None, description="a stable address for all instances")
    ranges: tuple[PortRangeFile, ...] = Field(
        default=(), description="where a dynamic port may be taken from, both ends included"
    )


class LimitsFile(FileValue):
    cpus: CpuLimit | None = None
    memory: MemoryLimit | None = None


class ResourcesFile(FileValue):
    """What a resource set has, and a task without one."""

    cpus: Cores | None = Field(default=None, description="cores, may be a fraction")
    gpus: Cores | None = None
    memory: Megabytes | None = Field(default=None, description="MB")
    ports: dict[str, PortFile] | None = None
    volume: VolumeFile | None = Field(default=None, description="kept while the pod is reserved")
    volumes: dict[str, VolumeFile] | None = None
    resource_limits: LimitsFile | None = Field(
        default=None, description="how much may be used beyond what is reserved"
    )

    def all_volumes(self) -> dict[str, VolumeFile]:
        """By name; the single ``volume`` has the empty one."""
        return {**({"": self.volume} if self.volume else {}), **(self.volumes or {})}


class HealthCheckFile(FileValue):
    """A command that kills the task after too many failures in a row."""

    cmd: Text
    interval: Seconds
    grace_period: Seconds = Field(description="failures this soon after the start don't count")
    max_consecutive_failures: Annotated[int, Field(ge=1)]
    delay: Seconds
    timeout: Seconds


class ReadinessCheckFile(FileValue):
    """A command that must succeed once before the task counts as ready."""

    cmd: Text
    interval: Seconds
    delay: Seconds = 0
    timeout: Seconds


class ConfigFile(FileValue):
    """A file that the agent makes of a template and the task's environment."""

    template: RelativePath = Field(description="a file beside the service file")
    dest: RelativePath = Field(description="where the result goes in the sandbox")


class DiscoveryFile(FileValue):
    prefix: Text | None = Field(default=None, description="the instances' names: <prefix>-<index>")
    visibility: Literal["CLUSTER", "FRAMEWORK", "EXTERNAL"] = "CLUSTER"


class TransportEncryptionFile(FileValue):
    name: Text
    type: Literal["TLS", "KEYSTORE"]


def _goal(value: str) -> str:
    if value == "FINISHED":
        raise wrong(
            "Unsupported GoalState FINISHED, expected one of: RUNNING, FINISH, ONCE", "write FINISH"
        )
    return value


class TaskFile(ResourcesFile):
    """One command of a pod, with its resources or the set that it shares."""

    goal: Annotated[Goal, BeforeValidator(lambda v: _goal(v) if isinstance(v, str) else v), Upper]
    cmd: Text = Field(description="run by /bin/sh -c")
    essential: bool = Field(
        default=True, description="false: its failure doesn't restart the pod's other tasks"
    )
    env: Environment = {}
    labels: Labels = {}
    configs: dict[str, ConfigFile] = {}
    resource_set: Text | None = Field(
        default=None, description="a set of the pod; resources written here then don't count"
    )
    health_check: HealthCheckFile | None = None
    readiness_check: ReadinessCheckFile | None = None
    kill_grace_period: Annotated[int, Field(ge=0, le=MAX_KILL_GRACE_PERIOD)] = Field(
        default=0, description="seconds between SIGTERM and SIGKILL"
    )
    discovery: DiscoveryFile | None = None
    transport_encryption: tuple[TransportEncryptionFile, ...] = ()
    ipc_mode: Literal["PRIVATE", "SHARE_PARENT"] | None = None
    shm_size: Megabytes | None = None


class NetworkFile(FileValue):
    host_ports: tuple[PortNumber, ...] = ()
    container_ports: tuple[PortNumber, ...] = ()
    labels: Labels = {}


class RLimitFile(FileValue):
    """Both or neither; -1 for both, or neither, is unlimited."""

    soft: int | None = None
    hard: int | None = None


class SecretFileEntry(FileValue):
    """A reference. With neither ``env-key`` nor ``file`` it becomes a file of the secret's path."""

    secret: Text = Field(description="the secret's path at the agent's provider")
    env_key: EnvKey | None = None
    file: SecretFile | None = None


class HostVolumeFile(FileValue):
    host_path: AbsolutePath
    container_path: RelativePath
    mode: Literal["RW", "RO"] = "RW"


class ExternalVolumeFile(FileValue):
    type: Literal["DOCKER"]
    volume_name: Text | None = None
    volume_mode: Text | None = None
    driver_name: Text | None = None
    driver_options: Options = {}
    container_path: RelativePath


Placement = Annotated[
    str,
    BeforeValidator(lambda v: json.dumps(v) if isinstance(v, list) else v),
    WithJsonSchema({"type": ["string", "array"]}),
]
"""Placement rules as text, or the same as a list."""


class PodFile(FileValue):
    """A pod type: ``count`` instances of the same tasks, each instance on one agent."""

    count: Annotated[int, Field(ge=0, le=MAX_COUNT)] = Field(description="instances")
    tasks: Annotated[dict[str, TaskFile], Field(min_length=1)]
    resource_sets: dict[str, ResourcesFile] = Field(
        default={}, description="resources that several tasks use in turn"
    )
    placement: Placement = Field(default="", description='for example [["hostname", "UNIQUE"]]')
    image: Text | None = None
    networks: dict[str, NetworkFile] = {}
    rlimits: dict[str, RLimitFile] = {}
    uris: tuple[Text, ...] = Field(default=(), description="fetched into every task's sandbox")
    volume: VolumeFile | None = Field(default=None, description="shared by the pod's tasks")
    volumes: dict[str, VolumeFile] | None = None
    pre_reserved_role: Text | None = None
    secrets: dict[str, SecretFileEntry] = {}
    share_pid_namespace: bool = False
    allow_decommission: bool = Field(default=False, description="allow to lower count")
    host_volumes: dict[str, HostVolumeFile] = {}
    external_volumes: dict[str, ExternalVolumeFile] = {}
    seccomp_unconfined: bool = False
    seccomp_profile_name: Text | None = None
    ipc_mode: Literal["PRIVATE"] | None = None
    shm_size: Megabytes | None = None

    def all_volumes(self) -> dict[str, VolumeFile]:
        """By name; the single ``volume`` has the empty one."""
        return {**({"": self.volume} if self.volume else {}), **(self.volumes or {})}


def _strategy(value: object) -> object:
    """``serial`` or ``{name: waves, waves: [1, "25%"]}``; counts arrive as text."""
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping):
        return value
    settings = dict(cast(Mapping[str, object], value))
    waves = settings.get("waves")
    if isinstance(waves, list):
        settings["waves"] = [_count(wave) for wave in cast(list[object], waves)]
    return settings


def _count(wave: object) -> object:
    return int(wave) if isinstance(wave, str) and wave.isdecimal() and len(wave) < 10 else wave


WrittenStrategy = Annotated[StrategySpec, BeforeValidator(_strategy)]


class PhasePlanFile(FileValue):
    """The instances of one pod. ``steps``: per instance, a list of steps, each a list of tasks."""

    pod: Text
    strategy: WrittenStrategy = StrategySpec()
    steps: tuple[dict[str, tuple[tuple[str, ...], ...]], ...] = Field(
        default=(),
        description='- 0: [[a, b], [c]] for instance 0, "- default: [[a]]" for the others;'
        " without steps every instance launches all its tasks at once",
    )


def _parameters(value: object) -> object:
    """By name or as a list, as in a plan file."""
    document = normalise({"parameters": value})
    return cast(dict[str, Any], document)["parameters"]


class PlanSectionFile(FileValue):
    strategy: WrittenStrategy = StrategySpec()
    phases: Annotated[dict[str, PhasePlanFile], Field(min_length=1)]
    parameters: Annotated[tuple[ParameterSpec, ...], BeforeValidator(_parameters)] = Field(
        default=(), description="what a start of this plan may set; undeclared ones are refused"
    )


class SchedulerFile(FileValue):
    principal: Text | None = Field(default=None, description="default: <name>-principal")
    zookeeper: Text = "master.mesos:2181"
    user: Text = Field(default="root", description="the user that all tasks run as")


MAX_SERVICE_NAME = 63
"""Without slashes: the name is part of the tasks' DNS names."""


def _service_name(name: str) -> str:
    if len(name.replace("/", "")) > MAX_SERVICE_NAME:
        raise wrong("must have at most 63 characters, slashes aside", "it is part of a DNS name")
    if "__" in name:
        raise wrong("must not contain __", "it separates the parts of task ids")
    return name


_FOLDER = "[A-Za-z0-9_][A-Za-z0-9._-]*"

ServiceName = Annotated[
    Text,
    Shape(
        f"/?{_FOLDER}(?:/{_FOLDER})*",
        "must be letters, digits and . _ -, in folders with / between them; none is empty or"
        " begins with . or -",
        "for example database or /team/database",
    ),
    AfterValidator(_service_name),
]
"""It becomes workflow ids, DNS names and words on command lines, hence no spaces and no -x."""


class ServiceFile(FileValue):
    """A service: pods of tasks on agents, and the plans that deploy and operate them."""

    name: ServiceName = Field(description="may have folders: /team/database")
    web_url: Text | None = None
    scheduler: SchedulerFile = SchedulerFile()
    pods: Annotated[dict[str, PodFile], Field(min_length=1)]
    plans: dict[str, PlanSectionFile] | None = Field(
        default=None, description="when given, only these plans exist, and deploy must be there"
    )
