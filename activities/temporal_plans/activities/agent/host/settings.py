"""The settings of an agent."""

import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from temporal_plans.activities.agent.host.queue import agent_queue
from temporal_plans.domain.cluster.agents import AgentResources
from temporal_plans.domain.values.model import Duration, Value

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class AgentSettings(Value):
    """The settings of an agent. Everything but the id has a sensible default.

    ``id`` names the agent and its task queue; it must stay the same over restarts and be unique
    in the namespace. Several agents on one machine need ids and work directories of their own, and
    hostnames of their own if placement by hostname must distinguish them.
    """

    id: str
    hostname: str = Field(default_factory=socket.gethostname)
    pool: str = "default"
    resources: AgentResources | None = Field(
        default=None,
        description="the resources that are offered; measured from the machine when absent",
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
        description="limit cpu and memory by cgroup v2 (auto: if the agent may), or only account",
    )
    cgroup: Path | None = Field(
        default=None,
        description="a cgroup v2 directory delegated to the agent; detected when absent",
    )
    rlimits: Literal["require", "lower"] = Field(
        default="require",
        description=(
            "when a pod's rlimit is above the agent's own: refuse the task, or lower the limit "
            "and note that in the task's status"
        ),
    )
    allow_root_tasks: bool = Field(
        default=True, description="run tasks as root if they ask for it and the agent is root"
    )
    kill_tasks_on_exit: bool = Field(
        default=False, description="for demonstrations: kill all tasks when the agent stops"
    )
    address: str | None = Field(
        default=None,
        description=(
            "MESOS_CONTAINER_IP of tasks: the machine's address; that of its default route when"
            " absent"
        ),
    )
    dns_domain: str | None = Field(
        default=None,
        description=(
            "the domain of FRAMEWORK_HOST and FRAMEWORK_VIP_HOST, which are not set without it:"
            " agents provide no DNS names"
        ),
    )
    api_hostname: str | None = Field(
        default=None, description="SCHEDULER_API_HOSTNAME of tasks; not set when absent"
    )
    api_port: int = Field(
        default=8080, description="SCHEDULER_API_PORT of tasks, set with the host name only"
    )
    task_path: str = Field(
        default="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        description="PATH of tasks, unless they set their own",
    )
    shell: str = Field(
        default="auto",
        description=(
            "the shell of commands and checks: bash, sh or an absolute path; auto is bash where the"
            " machine has it, else sh. A service may choose its own"
        ),
    )
    keep_sandboxes: int = Field(
        default=5, ge=1, description="sandboxes of ended tasks kept for each task name"
    )
    sandbox_max_age: Duration = timedelta(days=14)
    fetch_timeout: Duration = Field(
        default=timedelta(seconds=60),
        description="the time limit for a download of a uri without progress",
    )
    fetch_size_limit: int = Field(
        default=20 * 1024, ge=1, description="MB that one uri may have, also when it is extracted"
    )
    archive_members_limit: int = Field(
        default=1_000_000, ge=1, description="files and directories that one archive may have"
    )
    max_concurrent_activities: int = Field(default=200, ge=10)

    @field_validator("id")
    @classmethod
    def _is_an_id(cls, id: str) -> str:
        if not _ID.fullmatch(id):
            raise ValueError(
                "not an agent's id; write 1 to 128 letters, digits, '_', '.' and '-', the first a "
                "letter or a digit"
            )
        return id

    @property
    def queue(self) -> str:
        """The task queue of the agent's activities."""
        return agent_queue(self.id)
