"""Pods, with their networks, limits, secrets and volumes."""

import json
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from temporal_plans.loading.forms.fields import (
    AbsolutePath,
    EnvKey,
    Labels,
    Megabytes,
    Options,
    PortNumber,
    RelativePath,
    SecretFile,
    Text,
)
from temporal_plans.loading.services.sections.resources import ResourcesFile, VolumeFile
from temporal_plans.loading.services.sections.tasks import TaskFile
from temporal_plans.loading.services.sections.value import FileValue

COUNT_LIMIT = 10_000
"""Instances of one pod. The limit is to find typing errors; it is far above a sensible plan."""

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


class NetworkFile(FileValue):
    """A network of the pod. Agents take `host` only, which maps no ports."""

    host_ports: tuple[PortNumber, ...] = Field(
        default=(), description="Ports of the machine that are mapped, each once."
    )
    container_ports: tuple[PortNumber, ...] = Field(
        default=(), description="The ports that they are mapped to, as many as `host-ports`."
    )
    labels: Labels = Field(
        default={}, description="Labels by name, or as one text `key:value,key:value`."
    )


class RLimitFile(FileValue):
    """A POSIX resource limit. Both values or neither; -1 for both, or neither, is unlimited."""

    soft: int | None = Field(
        default=None, description="The limit in force, in the limit's own unit.", examples=[65536]
    )
    hard: int | None = Field(
        default=None,
        description="The limit up to which the task may raise `soft`; not less than `soft`.",
        examples=[65536],
    )


class SecretFileEntry(FileValue):
    """A reference to a secret, which the agent looks up when it launches a task. Without `env-key`
    and `file` the value becomes a file with the secret's path.
    """

    secret: Text = Field(
        description="The secret's path at the agent's secret providers.",
        examples=["database/password"],
    )
    env_key: EnvKey | None = Field(
        default=None,
        description="The environment variable that has the value.",
        examples=["DATABASE_PASSWORD"],
    )
    file: SecretFile | None = Field(
        default=None,
        description="The file that has the value, relative to the sandbox; only the task's user may"
        " read it.",
        examples=["secrets/password"],
    )


class HostVolumeFile(FileValue):
    """A directory of the agent's machine that tasks see in their sandbox."""

    host_path: AbsolutePath = Field(
        description="The directory on the machine; a launch fails where it does not exist.",
        examples=["/srv/models"],
    )
    container_path: RelativePath = Field(
        description="Its path in the sandbox.", examples=["models"]
    )
    mode: Literal["RW", "RO"] = Field(
        default="RW",
        description="`RO`: tasks only read. Agents can't enforce it, and the task's status says"
        " so.",
    )


class ExternalVolumeFile(FileValue):
    """A volume of an external volume driver. Refused by agents."""

    type: Literal["DOCKER"] = Field(description="The type of the driver.")
    volume_name: Text | None = Field(default=None, description="The volume's name at the driver.")
    volume_mode: Text | None = Field(default=None, description="The mode of the mount.")
    driver_name: Text | None = Field(default=None, description="The driver's name.")
    driver_options: Options = Field(
        default={},
        description="Options for the driver by name, or as one text `key=value;key=value`.",
        examples=["size=50;shared=true"],
    )
    container_path: RelativePath = Field(description="Its path in the sandbox.")


Placement = Annotated[
    str,
    BeforeValidator(lambda v: json.dumps(v) if isinstance(v, list) else v),
    WithJsonSchema({"type": ["string", "array"]}),
]
"""Placement rules as text, or the same as a list."""


class PodFile(FileValue):
    """A pod type: ``count`` instances of the same tasks, each instance on one agent."""

    UNKNOWN_KEYS: ClassVar[Mapping[str, str]] = {
        "container": "write its content into the pod itself: image, networks, rlimits and so on"
    }

    count: Annotated[int, Field(ge=0, le=COUNT_LIMIT)] = Field(
        description="The number of instances: `<pod>-0`, `<pod>-1` and so on.", examples=[3]
    )
    tasks: Annotated[dict[str, TaskFile], Field(min_length=1)] = Field(
        description="The pod's tasks by name."
    )
    resource_sets: dict[str, ResourcesFile] = Field(
        default={}, description="Resources that several tasks use in turn, by name."
    )
    placement: Placement = Field(
        default="",
        description="The agents on which an instance may be placed, as rows of field, operator and"
        " parameter (behaviour 9.8). When empty: any.",
        examples=[[["hostname", "UNIQUE"]], "rack:MAX_PER:2"],
    )
    user: Text | None = Field(
        default=None,
        description="The user that the pod's tasks run as. When absent: `scheduler.user`. It can't"
        " change later.",
        examples=["nobody"],
    )
    image: Text | None = Field(default=None, description="A container image. Refused by agents.")
    networks: dict[str, NetworkFile] = Field(
        default={}, description="Networks by name. Agents refuse all but `host`."
    )
    rlimits: dict[str, RLimitFile] = Field(
        default={},
        description="POSIX resource limits of the tasks by name (`RLIMIT_NOFILE` and so on).",
        examples=[{"RLIMIT_NOFILE": {"soft": 65536, "hard": 65536}}],
    )
    uris: tuple[Text, ...] = Field(
        default=(),
        description="Files that are fetched into the sandbox of every task: `http:`, `https:` and"
        " `file:` URIs, or absolute paths on the agent, which are read as the task's user. Archives"
        " (`.tar`, `.tar.gz`, `.zip` and so on) are unpacked.",
        examples=[["https://example.org/server-1.2.tar.gz"]],
    )
    volume: VolumeFile | None = Field(
        default=None,
        description="A single volume that the pod's tasks share. Not together with `volumes`.",
    )
    volumes: dict[str, VolumeFile] | None = Field(
        default=None, description="Volumes that the pod's tasks share, by name."
    )
    pre_reserved_role: Text | None = Field(
        default=None, description="The role of pre-reserved resources. Refused by agents."
    )
    secrets: dict[str, SecretFileEntry] = Field(
        default={}, description="Secrets that every task of the pod gets, by name."
    )
    share_pid_namespace: bool = Field(
        default=False,
        description="Let tasks see each other's processes. Without effect: on agents they always"
        " do.",
    )
    allow_decommission: bool = Field(
        default=False,
        description="Allow `count` to be lowered and the pod to be removed, which removes instances"
        " with their volumes.",
    )
    host_volumes: dict[str, HostVolumeFile] = Field(
        default={}, description="Directories of the agent's machine, by name."
    )
    external_volumes: dict[str, ExternalVolumeFile] = Field(
        default={}, description="Volumes of external drivers, by name. Refused by agents."
    )
    seccomp_unconfined: bool = Field(
        default=False,
        description="Run without system call filter. Without effect: agents set none.",
    )
    seccomp_profile_name: Text | None = Field(
        default=None, description="A system call filter by name. Refused by agents."
    )
    ipc_mode: Literal["PRIVATE"] | None = Field(
        default=None, description="Inter-process communication of a container. Refused by agents."
    )
    shm_size: Megabytes | None = Field(
        default=None, description="Shared memory of a container in MB. Refused by agents."
    )

    def all_volumes(self) -> dict[str, VolumeFile]:
        """Return the volumes by name; the single ``volume`` has the empty name."""
        return {**({"": self.volume} if self.volume else {}), **(self.volumes or {})}
