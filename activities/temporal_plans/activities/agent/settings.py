"""How one agent is set up."""

import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from temporal_plans.domain.cluster import AgentResources
from temporal_plans.domain.model import Duration, Value

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class AgentSettings(Value):
    """The settings of an agent. Everything but the id has a sensible default.

    ``id`` names the agent and its task queue; it must stay the same over restarts and be unique
    in the namespace. Several agents on one machine need ids and work directories of their own, and
    hostnames of their own if placement by hostname is to tell them apart.
    """

    id: str
    hostname: str = Field(default_factory=socket.gethostname)
    pool: str = "default"
    resources: AgentResources | None = Field(
        default=None, description="what is offered; measured from the machine when absent"
    )
    attributes: dict[str, str] = {}
    region: str | None = None
    zone: str | None = None
    work_dir: Path = Path("/var/lib/temporal-plans")
    secrets: tuple[str, ...] = Field(
        default=(),
        description=(
            "where secrets are looked up, in this order: file:<directory>, env:<prefix>, "
            "python:<module>:<function>"
        ),
    )
    isolation: Literal["auto", "cgroup-v2", "accounted"] = Field(
        default="auto",
        description="limit cpu and memory by cgroup v2 (auto: where the agent may), or only count",
    )
    cgroup: Path | None = Field(
        default=None,
        description="a cgroup v2 directory delegated to the agent; found by itself when absent",
    )
    rlimits: Literal["require", "lower"] = Field(
        default="require",
        description=(
            "what happens when a pod's rlimit is above what the agent may set: the task fails, or "
            "gets the highest possible one and its status says so"
        ),
    )
    allow_root_tasks: bool = Field(
        default=True, description="run tasks as root, when the agent is root and they ask for it"
    )
    kill_tasks_on_exit: bool = Field(
        default=False, description="for demonstrations: end all tasks when the agent stops"
    )
    dns_domain: str = Field(
        default="plans.internal", description="the end of FRAMEWORK_HOST and FRAMEWORK_VIP_HOST"
    )
    api_hostname: str = Field(default="localhost", description="SCHEDULER_API_HOSTNAME of tasks")
    api_port: int = Field(default=8080, description="SCHEDULER_API_PORT of tasks")
    keep_sandboxes: int = Field(
        default=5, ge=1, description="sandboxes of ended tasks kept for each task name"
    )
    sandbox_max_age: Duration = timedelta(days=14)
    fetch_timeout: Duration = Field(
        default=timedelta(seconds=60),
        description="how long a download of a uri may stand still",
    )
    max_concurrent_activities: int = Field(default=200, ge=10)

    @field_validator("id")
    @classmethod
    def _is_an_id(cls, id: str) -> str:
        if not _ID.fullmatch(id):
            raise ValueError(
                "an agent's id is 1 to 128 letters, digits, '_', '.' and '-', the first of them a "
                "letter or a digit"
            )
        return id
