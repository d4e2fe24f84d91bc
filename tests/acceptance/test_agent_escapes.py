"""Processes of a task that try to outlive it, and checks that try to escape its limits."""

import os
import pwd
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from acceptance.agent_bench import (
    Bench,
    bench,
    eventually,
    order,
    pod_spec,
    reservation,
    task_spec,
    within,
)
from acceptance.agent_processes import alive, as_root, supervisor_of
from temporal_plans.activities.agent.sandbox.identity import Identity
from temporal_plans.activities.agent.sandbox.marks import marked, marks_of
from temporal_plans.domain.services.spec import ReadinessCheck, RLimit
from temporal_plans.domain.tasks.statuses import TaskState


def ready(cmd: str) -> ReadinessCheck:
    return ReadinessCheck(cmd=cmd, interval=0.1, delay=0, timeout=5)


class Escape:
    """A daemon without any sign of its task: no environment, output, session, directory or parent
    of it."""

    def __init__(self) -> None:
        self._mark = uuid4().hex
        program = f"cd /; : {self._mark}; while sleep 0.05; do :; done"
        self.cmd = f"env -i setsid sh -c '{program}' </dev/null >/dev/null 2>&1 &"

    def processes(self) -> list[int]:
        mark = os.fsencode(self._mark)
        return [pid for pid in _pids() if mark in _arguments(pid) and alive(pid) and _sh(pid)]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _arguments(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _sh(pid: int) -> bool:
    return _arguments(pid).startswith(b"sh\0-c\0cd /;")


@as_root
@pytest.mark.parametrize("restart", [False, True], ids=["same agent", "new agent"])
async def test_a_daemon_that_a_check_has_left_ends_with_the_task(
    agent: Bench, restart: bool
) -> None:
    """It is no descendant of the supervisor, and has nothing of the task but its groups."""
    escape = Escape()
    check = ready(f"test -e once || {{ touch once; {escape.cmd} }}; exit 1")
    asked = order(pod_spec(task_spec("sleep 1000").but(readiness_check=check), user="nobody"))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: bool(escape.processes()), "the check has left a daemon")
    if restart:
        await agent.restart()
    assert (await agent.kill(task_id, 0)).state is TaskState.KILLED
    assert escape.processes() == []


@as_root
async def test_a_daemon_without_any_sign_ends_after_its_supervisor_was_killed(
    agent: Bench,
) -> None:
    escape = Escape()
    asked = order(
        pod_spec(task_spec(f"{escape.cmd} exec sleep 1000"), user="nobody"),
        held=reservation(id="r1"),
    )
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    started = agent.directory(task_id).started
    assert started is not None
    await eventually(lambda: bool(escape.processes()), "the daemon runs")
    await agent.stop()
    os.kill(supervisor_of(agent, task_id), signal.SIGKILL)
    os.kill(started.pid, signal.SIGKILL)
    agent.begin()
    assert (await agent.last(task_id)).state is TaskState.LOST
    await within(agent.runner.destroy("r1"))
    assert escape.processes() == []


@as_root
async def test_a_daemon_of_one_task_does_not_end_with_another(agent: Bench) -> None:
    escape = Escape()
    pod = pod_spec(task_spec(f"{escape.cmd} exec sleep 1000"), user="nobody")
    mine, other = order(pod), order(pod_spec(task_spec("sleep 1000"), user="nobody"))
    await agent.launch(mine)
    await eventually(lambda: bool(escape.processes()), "the daemon runs")
    await agent.launch(other)
    os.kill(supervisor_of(agent, other.tasks[0].task_id), signal.SIGKILL)
    await agent.kill(other.tasks[0].task_id, 0)
    assert escape.processes() != []
    await agent.kill(mine.tasks[0].task_id, 0)
    assert escape.processes() == []


def test_marks_are_added_once_and_differ_by_sandbox(tmp_path: Path) -> None:
    entry = pwd.getpwnam("nobody")
    nobody = Identity(name="nobody", uid=entry.pw_uid, gid=entry.pw_gid, groups=(1,))
    once = marked(nobody, tmp_path)
    assert marked(once, tmp_path) == once
    assert {*once.groups} - marks_of(tmp_path) == {1}
    assert not marks_of(tmp_path) & marks_of(tmp_path / "other")


async def test_a_check_has_the_limits_of_its_task(tmp_path: Path) -> None:
    check = ready("ulimit -n > files; true")
    async with bench() as agent:
        asked = order(
            pod_spec(
                task_spec("ulimit -n; exec sleep 1000").but(readiness_check=check),
                rlimits=(RLimit(name="RLIMIT_NOFILE", soft=77, hard=77),),
            )
        )
        task_id = asked.tasks[0].task_id
        await agent.launch(asked)
        ready_now = (agent.directory(task_id).sandbox / "files").exists
        await eventually(ready_now, "the check has run")
        await eventually(lambda: agent.read(task_id, "files") != "", "the check has written")
        assert agent.read(task_id, "files") == "77\n"
