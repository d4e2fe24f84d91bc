"""Processes of tasks whose supervisors were killed: every one is found again and ended."""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from acceptance.agent_bench import (
    Bench,
    eventually,
    order,
    pod_spec,
    reservation,
    task_spec,
    within,
)
from acceptance.agent_processes import alive, as_root, supervisor_of
from temporal_plans.activities.agent.supervisor import shim, signs
from temporal_plans.activities.agent.supervisor.strays import Trace, strays
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.tasks import LaunchInput

CHILD = "sleep 1000 & echo $! >> pids"
DAEMON = "(setsid sh -c 'echo $$ >> pids; exec sleep 1000' &)"
CLEAN = "(env -i sh -c 'echo $$ >> pids; exec sleep 1000' &)"
"""A child without the environment, in the task's session."""
CLEAN_DAEMON = "(setsid env -i sh -c 'echo $$ >> pids; exec sleep 1000' &)"
"""Neither: but its output is the task's."""

LEFT = [
    pytest.param(CHILD, id="child"),
    pytest.param(DAEMON, id="daemon with a session of its own"),
    pytest.param(CLEAN, id="child without environment"),
    pytest.param(CLEAN_DAEMON, id="daemon without environment"),
]


async def started(agent: Bench, cmd: str, **more: Any) -> tuple[LaunchInput, list[int]]:
    """A task that runs with a process that it started, and the ids of both."""
    asked = order(pod_spec(task_spec(f"{cmd}; sleep 1000"), **more), held=reservation())
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    written = agent.directory(task_id).sandbox / "pids"
    await eventually(lambda: written.exists() and written.read_text() != "", "it is started")
    record = agent.directory(task_id).started
    assert record is not None
    return asked, [record.pid, *map(int, written.read_text().split())]


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


async def lose(agent: Bench, cmd: str, **more: Any) -> tuple[LaunchInput, list[int]]:
    """The same, after supervisor and task were killed while no agent ran."""
    asked, pids = await started(agent, cmd, **more)
    supervisor = supervisor_of(agent, asked.tasks[0].task_id)
    await agent.stop()
    kill(supervisor, pids[0])
    await eventually(lambda: not alive(pids[0]), "the task is dead")
    assert [alive(pid) for pid in pids[1:]] == [True] * len(pids[1:])
    return asked, pids


def hidden(pid: int, name: str = "") -> str:
    """What can be read of a process that is hidden from the agent."""
    return ""


@contextmanager
def process_of_others(**env: str) -> Generator[int]:
    """A process that no agent started."""
    with subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("cmd", LEFT)
async def test_what_a_lost_task_left_is_ended_before_its_loss_is_reported(
    agent: Bench, cmd: str
) -> None:
    asked, pids = await lose(agent, cmd)
    with process_of_others() as other:
        agent.begin()
        last = await agent.last(asked.tasks[0].task_id)
        assert alive(other)
    assert last.state is TaskState.LOST
    assert [pid for pid in pids if alive(pid)] == []


@as_root
@pytest.mark.parametrize("cmd", LEFT)
async def test_what_a_lost_task_of_another_user_left_is_ended(agent: Bench, cmd: str) -> None:
    asked, pids = await lose(agent, cmd, user="nobody")
    agent.begin()
    assert (await agent.last(asked.tasks[0].task_id)).state is TaskState.LOST
    assert [pid for pid in pids if alive(pid)] == []


@as_root
@pytest.mark.parametrize("cmd", LEFT)
async def test_what_another_user_left_is_ended_by_an_agent_that_may_not_read_it(
    agent: Bench, cmd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container, where root may not look into processes of others."""
    asked, pids = await lose(agent, cmd, user="nobody")
    monkeypatch.setattr(signs, "sandbox_of", hidden)
    monkeypatch.setattr(signs, "_link", hidden)
    agent.begin()
    assert (await agent.last(asked.tasks[0].task_id)).state is TaskState.LOST
    assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.parametrize("cmd", LEFT)
async def test_what_a_task_without_supervisor_left_is_ended_with_it(agent: Bench, cmd: str) -> None:
    asked, pids = await started(agent, cmd)
    task_id = asked.tasks[0].task_id
    kill(supervisor_of(agent, task_id))
    await eventually(lambda: agent.directory(task_id).supervisor() is None, "it is dead")
    assert (await agent.kill(task_id)).state is TaskState.KILLED
    assert [pid for pid in pids if alive(pid)] == []


async def test_what_an_unnoticed_loss_left_is_ended_at_the_next_launch(agent: Bench) -> None:
    """An agent of an earlier version reported the loss, and left the processes."""
    asked, pids = await lose(agent, DAEMON)
    [launch] = asked.tasks
    directory = agent.directory(launch.task_id)
    status = directory.status
    assert status is not None
    directory.status = status.but(state=TaskState.LOST, sequence=2)
    agent.begin()
    again = order(pod_spec(task_spec("sleep 1000")), held=reservation())
    assert (await agent.launch(again)).state is TaskState.RUNNING
    assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.parametrize("how", ["kill", "destroy", "kill of an unknown task"])
async def test_what_an_unnoticed_loss_left_is_ended_with(agent: Bench, how: str) -> None:
    asked, pids = await lose(agent, DAEMON)
    [launch] = asked.tasks
    directory = agent.directory(launch.task_id)
    status = directory.status
    assert status is not None
    directory.status = status.but(state=TaskState.LOST, sequence=2)
    if how == "kill of an unknown task":
        directory.path.rename(agent.settings.work_dir / "gone")
    agent.begin()
    if how == "destroy":
        await within(agent.runner.destroy(asked.reservation.id))
    else:
        await agent.kill(launch.task_id)
    assert [pid for pid in pids if alive(pid)] == []


async def test_processes_of_others_are_never_taken_for_those_of_a_task(agent: Bench) -> None:
    """Not by a part of the path, nor by the session's reused id, nor when they are older."""
    asked, pids = await lose(agent, CHILD)
    directory = agent.directory(asked.tasks[0].task_id)
    record, sandbox = directory.started, str(directory.sandbox)
    assert record is not None
    own = {process.pid for process in strays([Trace(directory.sandbox, record)])}
    assert own >= set(pids[1:])
    with (
        process_of_others(MESOS_SANDBOX=f"{sandbox}/below") as below,
        process_of_others(MESOS_SANDBOX=sandbox.replace("/tasks/", "/other/")) as elsewhere,
        process_of_others(OTHER=f"MESOS_SANDBOX={sandbox}") as mentions,
        process_of_others(MESOS_SANDBOX=sandbox) as marked,
    ):
        others = {below, elsewhere, mentions, marked, os.getpid()}
        found = {process.pid for process in strays([Trace(directory.sandbox, record)])}
        assert found & others == {marked}
        start = shim.process_stat(marked)
        assert start is not None
        later = record.but(pid=marked - 1, start=start.start + 1)
        assert strays([Trace(directory.sandbox, later)]) == []
        reused = record.but(pid=below)  # the session of a process that is no task's
        assert below not in {one.pid for one in strays([Trace(directory.sandbox, reused)])}
        rebooted = record.but(boot="another")
        assert strays([Trace(directory.sandbox, rebooted)]) == []
    agent.begin()


# --- a task beside itself -------------------------------------------------------------------------


async def test_a_task_is_never_launched_beside_itself(agent: Bench) -> None:
    """Whatever its service believes about the launch before."""
    pod = pod_spec(task_spec("sleep 1000"))
    first, second = order(pod, held=reservation()), order(pod, held=reservation())
    before, after = first.tasks[0].task_id, second.tasks[0].task_id
    await agent.launch(first)
    await eventually(lambda: len(agent.sent) == 1, "the first status is sent")
    refused = await agent.launch(second)
    assert (refused.state, before in refused.message) == (TaskState.FAILED, True)
    assert agent.launches() == [before]
    await eventually(
        lambda: (
            [status.state for _, status in agent.sent if status.task_id == before]
            == [TaskState.RUNNING] * 2
        ),
        "its service is reminded that it runs, to kill it",
    )
    await agent.kill(before)
    third = order(pod, held=reservation())
    assert (await agent.launch(third)).state is TaskState.RUNNING
    assert agent.launches() == [before, third.tasks[0].task_id]
    assert after not in agent.launches()


async def test_of_two_launches_at_once_one_is_started(agent: Bench) -> None:
    pod = pod_spec(task_spec("sleep 1000"))
    both = [order(pod, held=reservation()) for _ in range(2)]
    statuses = await asyncio.gather(*(agent.launch(one) for one in both))
    assert sorted(status.state for status in statuses) == [TaskState.FAILED, TaskState.RUNNING]
    assert len(agent.launches()) == 1


async def test_a_launch_waits_for_the_adoption_of_the_one_before(agent: Bench) -> None:
    asked, pids = await lose(agent, DAEMON)
    agent.begin()
    again = order(pod_spec(task_spec("sleep 1000")), held=reservation())
    assert (await within(agent.launch(again))).state is TaskState.RUNNING
    assert (await agent.last(asked.tasks[0].task_id)).state is TaskState.LOST
    assert [pid for pid in pids if alive(pid)] == []


async def test_of_several_launches_that_wait_for_the_one_before_one_is_started(
    agent: Bench,
) -> None:
    await lose(agent, DAEMON)
    agent.begin()
    pod = pod_spec(task_spec("sleep 1000"))
    orders = [order(pod, held=reservation()) for _ in range(4)]
    statuses = await within(asyncio.gather(*(agent.launch(one) for one in orders)))
    assert Counter(status.state for status in statuses) == {
        TaskState.FAILED: 3,
        TaskState.RUNNING: 1,
    }
    assert len(agent.launches()) == 2


async def test_the_same_task_in_another_place_is_launched(agent: Bench) -> None:
    pod = pod_spec(task_spec("sleep 1000"))
    for place in ("here", "there"):
        asked = order(pod, held=reservation(id=place))
        assert (await agent.launch(asked)).state is TaskState.RUNNING
