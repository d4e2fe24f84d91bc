"""Records that can't be read: a running task is kept, killed and uninstalled all the same."""

import asyncio
import os
import signal
from collections.abc import Callable
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
from acceptance.agent_processes import alive, health, supervisor_of
from temporal_plans.activities.agent.host.layout import WorkDirUnreadable
from temporal_plans.domain.services.spec import ResourceSet, VolumeSpec
from temporal_plans.domain.tasks.statuses import TaskState

RECORDS = ["task.json", "started.json", "lock", "status.json"]


def emptied(text: bytes) -> bytes:
    return b""


def cut(text: bytes) -> bytes:
    return text[:-2]


def garbled(text: bytes) -> bytes:
    return b"\xff{]"


DAMAGES = [emptied, cut, garbled]


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


async def running(agent: Bench, held: str = "r1") -> tuple[str, int]:
    """A task with a volume and a health check, and its first process."""
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    task = task_spec("sleep 1000").but(health_check=health("! test -e sick"))
    asked = order(
        pod_spec(task, main=main), held=reservation(volume(f"v{held[1:]}", "data"), id=held)
    )
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    record = agent.directory(task_id).started
    assert record is not None
    return task_id, record.pid


@pytest.mark.parametrize("damaged", DAMAGES)
@pytest.mark.parametrize("name", RECORDS)
async def test_a_damaged_record_hides_no_running_task(
    agent: Bench,
    name: str,
    damaged: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The agent says so, and the task keeps its sandbox, its checks and its volume until it is
    destroyed."""
    task_id, pid = await running(agent)
    await agent.stop()
    path = agent.directory(task_id).path / name
    path.write_bytes(damaged(path.read_bytes()))
    named = not (name == "lock" and not path.read_bytes())  # a supervisor's lock begins empty
    agent.sent.clear()
    agent.begin()
    await eventually(lambda: agent.states(task_id)[-1:] == [TaskState.RUNNING], "it is adopted")
    if named:
        text = f"{name} can't be read"
        await eventually(
            lambda: any(text in status.message for _, status in agent.sent), "its status says so"
        )
        assert text in caplog.text
    assert caplog.text.count("can't be read") < 5
    assert alive(pid)
    assert agent.directory(task_id).sandbox.exists()
    (agent.directory(task_id).sandbox / "sick").touch()
    last = await agent.last(task_id)
    assert "unhealthy" in last.message
    assert not alive(pid)
    await within(agent.runner.destroy("r1"))
    assert not agent.directory(task_id).path.exists()
    assert not agent.work_dir.volume("v1").exists()


@pytest.mark.parametrize("name", RECORDS)
async def test_a_damaged_record_of_a_task_without_supervisor(agent: Bench, name: str) -> None:
    task_id, pid = await running(agent)
    supervisor = supervisor_of(agent, task_id)
    await agent.stop()
    os.kill(supervisor, signal.SIGKILL)
    damage(agent.directory(task_id).path / name)
    agent.begin()
    await eventually(lambda: agent.states(task_id)[-1:] == [TaskState.RUNNING], "it is adopted")
    assert alive(pid)
    await within(agent.runner.destroy("r1"))
    assert not alive(pid)
    await eventually(lambda: agent.states(task_id)[-1] is TaskState.KILLED, "it is reported")
    assert not agent.directory(task_id).path.exists()


async def test_a_task_whose_records_are_all_damaged_can_be_killed(agent: Bench) -> None:
    task_id, pid = await running(agent)
    supervisor = supervisor_of(agent, task_id)
    await agent.stop()
    os.kill(supervisor, signal.SIGKILL)
    for name in RECORDS:
        damage(agent.directory(task_id).path / name)
    agent.begin()
    assert alive(pid)
    killed = await agent.kill(task_id)
    assert (killed.task_id, killed.state) == (task_id, TaskState.KILLED)
    assert not alive(pid)


@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "orphaned"])
@pytest.mark.parametrize("name", ["task.json", "started.json", "status.json"])
async def test_a_record_of_another_task_harms_neither(
    agent: Bench, name: str, supervised: bool
) -> None:
    """As after a repair of the disk, or a restored backup."""
    tasks = dict([await running(agent, "r1"), await running(agent, "r2")])
    mine, other = tasks
    supervisor = supervisor_of(agent, mine)
    await agent.stop()
    if not supervised:
        os.kill(supervisor, signal.SIGKILL)
    record = (agent.directory(other).path / name).read_bytes()
    (agent.directory(mine).path / name).write_bytes(record)
    agent.begin()
    await eventually(
        lambda: all(agent.states(one)[-1:] == [TaskState.RUNNING] for one in tasks), "adopted"
    )
    killed = await agent.kill(mine, 0)
    assert (killed.task_id, killed.state) == (mine, TaskState.KILLED)
    assert (alive(tasks[mine]), alive(tasks[other])) == (False, True)
    await within(agent.runner.destroy("r2"))
    assert not alive(tasks[other])


async def test_an_end_of_another_task_is_not_believed(agent: Bench) -> None:
    """Else the task would be launched again beside itself."""
    ended = order(pod_spec(task_spec("true")))
    await agent.run(ended)
    task_id, pid = await running(agent)
    await agent.stop()
    end = agent.directory(ended.tasks[0].task_id).path / "exit.json"
    (agent.directory(task_id).path / "exit.json").write_bytes(end.read_bytes())
    agent.begin()
    await eventually(lambda: bool(agent.runner.task(task_id).monitors), "it is watched")
    assert alive(pid)
    assert not agent.runner.task(task_id).has_ended
    assert (await agent.kill(task_id, 0)).state is TaskState.KILLED
    assert not alive(pid)


async def test_an_end_that_cannot_be_read_is_a_loss(agent: Bench) -> None:
    asked = order(pod_spec(task_spec("while ! test -e go; do sleep 0.02; done")))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await agent.stop()
    directory = agent.directory(task_id)
    (directory.sandbox / "go").touch()
    await eventually(lambda: directory.exit is not None, "it ends")
    damage(directory.path / "exit.json")
    agent.begin()
    last = await agent.last(task_id)
    assert (last.state, "exit.json can't be read" in last.message) == (TaskState.LOST, True)


async def test_a_lock_that_names_another_process_harms_neither(agent: Bench) -> None:
    task_id, pid = await running(agent)
    other = await asyncio.create_subprocess_exec("sleep", "1000")
    lock = agent.directory(task_id).path / "lock"
    supervisor = supervisor_of(agent, task_id)
    lock.write_text(str(other.pid))
    assert agent.directory(task_id).supervisor() == supervisor
    await agent.restart()
    assert (await agent.kill(task_id)).state is TaskState.KILLED
    assert (alive(pid), alive(other.pid)) == (False, True)
    other.kill()
    await other.wait()


async def test_a_damaged_record_is_damaged_once_only(agent: Bench) -> None:
    """It is written again from what the supervisor and the process say."""
    task_id, _ = await running(agent)
    for name in ("task.json", "started.json", "status.json"):
        damage(agent.directory(task_id).path / name)
    known = agent.runner.task(task_id).record
    await agent.restart()
    await eventually(lambda: agent.runner.task(task_id).directory.status is not None, "adopted")
    await eventually(lambda: bool(agent.runner.task(task_id).monitors), "it is watched")
    fresh = agent.directory(task_id)
    assert fresh.task == known
    assert fresh.started is not None
    assert fresh.unreadable == {}
    newest = fresh.status
    assert newest is not None
    assert newest.sequence > 1_000_000


async def test_other_tasks_are_adopted_beside_a_directory_that_cannot_be_read(
    agent: Bench,
) -> None:
    task_id, pid = await running(agent)
    await agent.stop()
    (agent.settings.work_dir / "tasks" / "strange").mkdir()
    (agent.settings.work_dir / "tasks" / "strange" / "task.json").mkdir()
    agent.begin()
    assert (await agent.kill(task_id)).state is TaskState.KILLED
    assert not alive(pid)


async def test_an_agent_without_readable_identity_says_so(agent: Bench) -> None:
    path = agent.settings.work_dir / "agent.json"
    agent.work_dir.lineage()
    damage(path)
    with pytest.raises(WorkDirUnreadable, match=r"agent\.json can't be read .*; restore the file"):
        agent.work_dir.lineage()
