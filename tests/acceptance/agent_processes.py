"""The processes of an agent's tasks."""

import os

import pytest

from acceptance.agent_bench import (
    Bench,
)
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.domain.services.spec import (
    HealthCheck,
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")


def alive(pid: int) -> bool:
    stat = shim.process_stat(pid)
    return stat is not None and stat.state not in "ZX"


def supervisor_of(agent: Bench, task_id: str) -> int:
    pid = agent.directory(task_id).supervisor()
    assert pid
    return pid


def health(cmd: str, **more: float) -> HealthCheck:
    fields = {"interval": 0.1, "grace_period": 0, "delay": 0, "timeout": 5} | more
    return HealthCheck.model_validate({"cmd": cmd, "max_consecutive_failures": 2} | fields)
