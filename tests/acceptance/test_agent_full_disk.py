"""An agent on a disk without room: it starts, takes its tasks over, and can make room."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from acceptance.agent_bench import (
    Bench,
    eventually,
    order,
    pod_spec,
    reservation,
    task_spec,
    volume,
    within,
)
from acceptance.agent_processes import alive, supervisor_of
from temporal_plans.activities.agent.supervisor.supervision import compile_supervisor
from temporal_plans.domain.services.spec import ReadinessCheck, ResourceSet, VolumeSpec
from temporal_plans.domain.tasks.statuses import TaskState


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(directory: Path) -> None:
    with (directory / "fills the disk").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 1024)
    assert shutil.disk_usage(directory).free == 0


@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "orphaned"])
@pytest.mark.parametrize("program", ["the same", "another version's", "missing"])
async def test_an_agent_starts_on_the_disk_that_its_tasks_filled(
    disk: Path, supervised: bool, program: str
) -> None:
    agent = Bench(disk / "work")
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    held = reservation(volume("v1", "data"))
    asked = order(pod_spec(task_spec("sleep 1000"), main=main), held=held)
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    started = agent.directory(task_id).started
    assert started is not None
    supervisor = supervisor_of(agent, task_id)
    await agent.stop()
    if not supervised:
        os.kill(supervisor, 9)
    if program == "another version's":
        agent.work_dir.supervisor.write_bytes(b"of another version")
    if program == "missing":
        agent.work_dir.supervisor.unlink()
    fill(agent.work_dir.volume("v1"))
    agent.begin()
    await eventually(lambda: agent.states(task_id)[-1:] == [TaskState.RUNNING], "it is adopted")
    await within(agent.runner.destroy("r1"))
    assert not alive(started.pid)
    await eventually(lambda: agent.states(task_id)[-1] is TaskState.KILLED, "it is reported")
    assert not agent.work_dir.volume("v1").exists()
    assert agent.work_dir.reservation("r1").destroyed is not None
    again = order(pod_spec(task_spec("true")))
    assert (await agent.run(again)).state is TaskState.FINISHED
    await agent.stop()


async def test_how_a_task_ended_is_known_though_the_disk_is_full(
    disk: Path, tmp_path: Path
) -> None:
    """Else a task that has finished would be LOST, and launched again."""
    agent = Bench(disk / "work")
    go = tmp_path / "go"
    asked = order(pod_spec(task_spec(f"until test -e {go}; do sleep 0.02; done; exit 3")))
    await agent.launch(asked)
    fill(disk)
    go.touch()
    last = await agent.last(asked.tasks[0].task_id)
    assert (last.state, last.exit_code) == (TaskState.FAILED, 3)
    await agent.restart()
    await eventually(lambda: agent.sent[-1][1].exit_code == 3, "it is reported again")
    await agent.stop()


async def test_a_status_that_was_not_saved_hides_no_later_one(disk: Path, tmp_path: Path) -> None:
    """A receiver ignores a status whose sequence it has."""
    agent = Bench(disk / "work")
    ready = tmp_path / "ready"
    check = ReadinessCheck(cmd=f"test -e {ready}", interval=0.1, delay=0, timeout=5)
    asked = order(pod_spec(task_spec("sleep 1000").but(readiness_check=check)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    fill(disk)
    ready.touch()
    await eventually(lambda: any(status.ready for _, status in agent.sent), "it is ready")
    highest = max(status.sequence for _, status in agent.sent)
    ready.unlink()
    await agent.restart()
    assert (await agent.kill(task_id, 0)).sequence > highest
    await agent.stop()


def test_the_supervisor_is_compiled_only_when_it_differs(tmp_path: Path) -> None:
    program = tmp_path / "supervisor.pyc"
    compile_supervisor(program)
    first = program.stat()
    compile_supervisor(program)
    assert program.stat().st_mtime_ns == first.st_mtime_ns
    assert program.stat().st_ino == first.st_ino
    whole = program.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"x" + whole[1:]):
        program.write_bytes(damaged)
        compile_supervisor(program)
        assert program.read_bytes() == whole
