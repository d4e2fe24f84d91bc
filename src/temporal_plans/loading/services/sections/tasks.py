"""Tasks of a pod, with their checks and config templates."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.loading.forms.fields import (
    Environment,
    Labels,
    Megabytes,
    RelativePath,
    Seconds,
    Text,
    Upper,
    field_error,
)
from temporal_plans.loading.services.sections.resources import ResourcesFile
from temporal_plans.loading.services.sections.value import FileValue

KILL_GRACE_PERIOD_LIMIT = 3600


class HealthCheckFile(FileValue):
    """A command that is run repeatedly next to the task; the agent kills the task after too many
    consecutive failures. Exit code 0 is success.
    """

    cmd: Text = Field(
        description="The command, run by the service's shell in the task's sandbox, as its user and"
        " with its environment.",
        examples=["curl -fs localhost:$PORT_HTTP/health"],
    )
    interval: Seconds = Field(
        description="Seconds between the end of one run and the next; 0.1 at least.", examples=[5]
    )
    grace_period: Seconds = Field(
        description="Seconds after the task's start during which failures don't count.",
        examples=[30],
    )
    max_consecutive_failures: Annotated[int, Field(ge=1)] = Field(
        description="Consecutive failures after which the task is killed.", examples=[3]
    )
    delay: Seconds = Field(
        description="Seconds between the task's start and the first run.", examples=[0]
    )
    timeout: Seconds = Field(
        description="Seconds after which a run is ended and has failed; `0` is no limit.",
        examples=[20],
    )


class ReadinessCheckFile(FileValue):
    """A command that must succeed once before the task is ready: only then is its step COMPLETE. It
    is run until it succeeds, and never kills the task.
    """

    cmd: Text = Field(
        description="The command, run like that of a health check.",
        examples=["curl -fs localhost:$PORT_HTTP/ready"],
    )
    interval: Seconds = Field(
        description="Seconds between the end of one run and the next; 0.1 at least.", examples=[5]
    )
    delay: Seconds = Field(
        default=0, description="Seconds between the task's start and the first run."
    )
    timeout: Seconds = Field(
        description="Seconds after which a run is ended and has failed; `0` is no limit.",
        examples=[10],
    )


class ConfigFile(FileValue):
    """A file rendered from a template and the task's environment: by the agent at launch or, when
    the command calls `./bootstrap`, at that time. A missing value is an empty text.
    """

    template: RelativePath = Field(
        description="The template: a file in the service file's directory, or below it. It is read"
        " when the service is deployed.",
        examples=["server.conf.mustache"],
    )
    dest: RelativePath = Field(
        description="The path of the rendered file, relative to the sandbox and inside it: the"
        " agent writes as its own user, often root.",
        examples=["conf/server.conf"],
    )


class DiscoveryFile(FileValue):
    """Names under which a task can be found. They are kept and compared; agents provide no DNS."""

    prefix: Text | None = Field(
        default=None,
        description="The instances are called `<prefix>-<index>`. Tasks of different pods, and"
        " tasks that one step launches, can't share a prefix.",
        examples=["database"],
    )
    visibility: Literal["CLUSTER", "FRAMEWORK", "EXTERNAL"] = Field(
        default="CLUSTER", description="Where the task can be found."
    )


class TransportEncryptionFile(FileValue):
    """A certificate for a task. Agents refuse it: supply certificates as secrets."""

    name: Text = Field(
        description="The certificate's name, unique in the task.", examples=["server"]
    )
    type: Literal["TLS", "KEYSTORE"] = Field(description="The form of the certificate's files.")


def _goal(value: str) -> str:
    if value == "FINISHED":
        raise field_error(
            "Unsupported GoalState FINISHED, expected one of: RUNNING, FINISH, ONCE", "write ONCE"
        )
    return value


class TaskFile(ResourcesFile):
    """One command of a pod, with its resources or the set that it shares."""

    goal: Annotated[
        Goal, BeforeValidator(lambda v: _goal(v) if isinstance(v, str) else v), Upper
    ] = Field(
        description="The task's goal, in upper or lower case. `RUNNING`: run without end; the task"
        " is recovered when it ends. `FINISH`: end with exit code 0, again after each change of its"
        " pod. `ONCE`: end with exit code 0 a single time, whatever changes later.",
    )
    cmd: Text = Field(
        description="The command, run by the service's shell in the sandbox.",
        examples=["./server --port $PORT"],
    )
    essential: bool = Field(
        default=True,
        description="Whether the pod's other tasks are relaunched with this task when it fails."
        " `false`: this task is relaunched alone.",
    )
    env: Environment = Field(
        default={},
        description="Environment variables by name; null is an empty text.",
        examples=[{"GREETING": "hello"}],
    )
    labels: Labels = Field(
        default={},
        description="Labels by name, or as one text `key:value,key:value`. Kept with the"
        " configuration.",
        examples=["team:web,tier:front"],
    )
    configs: dict[str, ConfigFile] = Field(
        default={}, description="Files that are rendered from templates, by name."
    )
    resource_set: Text | None = Field(
        default=None,
        description="The pod's resource set that the task runs in. Resources in the task itself are"
        " then ignored.",
        examples=["main"],
    )
    health_check: HealthCheckFile | None = Field(
        default=None, description="A command that checks whether the task still works."
    )
    readiness_check: ReadinessCheckFile | None = Field(
        default=None, description="A command that checks whether the task is ready."
    )
    kill_grace_period: Annotated[int, Field(ge=0, le=KILL_GRACE_PERIOD_LIMIT)] = Field(
        default=0,
        description="Seconds between SIGTERM and SIGKILL when the task is killed.",
        examples=[30],
    )
    discovery: DiscoveryFile | None = Field(
        default=None,
        description="Names under which the task can be found. Without effect on agents.",
    )
    transport_encryption: tuple[TransportEncryptionFile, ...] = Field(
        default=(), description="Certificates for the task. Refused by agents."
    )
    ipc_mode: Literal["PRIVATE", "SHARE_PARENT"] | None = Field(
        default=None, description="Inter-process communication of a container. Refused by agents."
    )
    shm_size: Megabytes | None = Field(
        default=None,
        description="Shared memory of a container in MB. Refused by agents.",
    )
