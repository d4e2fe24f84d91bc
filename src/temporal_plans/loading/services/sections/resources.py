"""Resources of tasks: amounts, ports, volumes and limits."""

from typing import Annotated, Literal

from pydantic import Field

from temporal_plans.loading.forms.fields import (
    Cores,
    CpuLimit,
    EnvKey,
    Megabytes,
    MemoryLimit,
    PathElement,
    PortNumber,
    Profile,
    Text,
)
from temporal_plans.loading.services.sections.value import FileValue


class VolumeFile(FileValue):
    """Disk space that a pod keeps: its data outlives tasks, and is deleted with the reservation."""

    path: PathElement = Field(
        description="The volume's name in the sandbox: one path element, shown to the task as a"
        " directory of that name.",
        examples=["data"],
    )
    type: Literal["ROOT", "MOUNT"] = Field(
        default="ROOT",
        description="`ROOT`: a part of the agent's disk. `MOUNT`: a whole disk of the agent, for"
        " this pod alone.",
    )
    size: Megabytes = Field(
        description="Size in MB. Of a `ROOT` volume this is counted, not enforced; a `MOUNT` volume"
        " takes the smallest free disk of at least this size. It can't change later.",
        examples=[1024],
    )
    profiles: tuple[Profile, ...] = Field(
        default=(),
        description="For `MOUNT` only: profiles, of which the disk must have one. Without profiles"
        " only disks without a profile are used.",
        examples=[["fast-ssd"]],
    )


class VipFile(FileValue):
    """A stable address for all instances. It is kept and compared; agents provide none."""

    port: Annotated[int, Field(ge=1, le=65535)] = Field(
        description="The port that clients use.", examples=[80]
    )
    prefix: Text | None = Field(
        default=None,
        description="The name that the address begins with. When absent: the port's name.",
        examples=["web"],
    )


class PortRangeFile(FileValue):
    """Port numbers from `begin` to `end`, both included."""

    begin: PortNumber | None = Field(
        default=None, description="The lowest port. When absent: 1.", examples=[8000]
    )
    end: PortNumber | None = Field(
        default=None, description="The highest port. When absent: 65535.", examples=[8999]
    )


class PortFile(FileValue):
    """A port of the agent's machine that is reserved for the pod."""

    port: PortNumber = Field(
        description="The port's number, which must be free on the agent. `0`: any free port of the"
        " agent, kept as long as the pod keeps its place.",
        examples=[8080],
    )
    env_key: EnvKey | None = Field(
        default=None,
        description="The environment variable that has the port's number. Without it the task does"
        " not get the number.",
        examples=["PORT_HTTP"],
    )
    advertise: bool = Field(
        default=False,
        description="List the port among the service's endpoints. Advertised ports of a service"
        " must have different names. Without effect on agents so far.",
    )
    vip: VipFile | None = Field(
        default=None, description="A stable address for all instances. Without effect on agents."
    )
    ranges: tuple[PortRangeFile, ...] = Field(
        default=(),
        description="For `port: 0` only: the ranges that the port is taken from. When empty: all"
        " ports that the agent offers.",
    )


class LimitsFile(FileValue):
    """How much a task may use beyond its reservation. Enforced on agents with cgroup v2."""

    cpus: CpuLimit | None = Field(
        default=None,
        description="Cores, not less than `cpus`, or `unlimited`. When absent: `cpus`.",
        examples=[2, "unlimited"],
    )
    memory: MemoryLimit | None = Field(
        default=None,
        description="MB, not less than `memory`, or `unlimited`. When absent: `memory`. The kernel"
        " kills a task that uses more.",
        examples=[512, "unlimited"],
    )


class ResourcesFile(FileValue):
    """Resources that several tasks of a pod use in turn; a task without a set has these fields
    itself. A set needs cpus, gpus, memory, a port or a volume.
    """

    cpus: Cores | None = Field(
        default=None,
        description="Cores, may be a fraction; counted to a thousandth.",
        examples=[0.5],
    )
    gpus: Cores | None = Field(
        default=None,
        description="GPUs. Only agents that are started with a number of GPUs offer any.",
        examples=[1],
    )
    memory: Megabytes | None = Field(default=None, description="Memory in MB.", examples=[256])
    ports: dict[str, PortFile] | None = Field(default=None, description="Ports by name.")
    volume: VolumeFile | None = Field(
        default=None, description="A single volume. Not together with `volumes`."
    )
    volumes: dict[str, VolumeFile] | None = Field(default=None, description="Volumes by name.")
    resource_limits: LimitsFile | None = Field(
        default=None, description="How much a task may use beyond its reservation."
    )

    def all_volumes(self) -> dict[str, VolumeFile]:
        """Return the volumes by name; the single ``volume`` has the empty name."""
        return {**({"": self.volume} if self.volume else {}), **(self.volumes or {})}
