"""Tasks as an agent runs them: real processes, without a Temporal server."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from acceptance.agent_bench import (
    Bench,
    eventually,
    order,
    pod_spec,
    task_spec,
    within,
)
from acceptance.agent_processes import alive, supervisor_of
from temporal_plans.activities.agent.host.activities import AgentActivities
from temporal_plans.activities.agent.host.layout import WorkDir, WorkDirInUse
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.supervision import read_spec, spawn
from temporal_plans.domain.tasks.names import instance_of
from temporal_plans.domain.tasks.statuses import TaskState

# --- how tasks end ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cmd", "state", "exit_code", "message"),
    [
        pytest.param("true", TaskState.FINISHED, 0, "exit code 0", id="success"),
        pytest.param("exit 3", TaskState.FAILED, 3, "exit code 3", id="failure"),
        pytest.param("kill -SEGV $$", TaskState.FAILED, 139, "ended by SIGSEGV", id="signal"),
        pytest.param("no-such-cmd", TaskState.FAILED, 127, "exit code 127", id="no command"),
    ],
)
async def test_a_task_is_reported_as_it_ended(
    agent: Bench, cmd: str, state: TaskState, exit_code: int, message: str
) -> None:
    asked = order(pod_spec(task_spec(cmd)))
    task_id = asked.tasks[0].task_id
    first = await agent.launch(asked)
    last = await agent.last(task_id)
    assert (first.state, first.told, first.name) == (TaskState.RUNNING, True, "hello-0-server")
    assert (last.state, last.exit_code, last.message) == (state, exit_code, message)
    await eventually(lambda: len(agent.sent) == 2, "both statuses sent")
    assert [(to, s.state, s.sequence, s.told) for to, s in agent.sent] == [
        ("service/hello-world", TaskState.RUNNING, 1, True),
        ("service/hello-world", state, 2, False),
    ]


async def test_what_a_task_leaves_behind_ends_with_it(agent: Bench) -> None:
    cmd = "sleep 1000 & setsid sleep 1001 & (setsid setsid sleep 1002 &) ; "
    cmd += "until test -e go; do sleep 0.02; done"
    asked = order(pod_spec(task_spec(cmd)))
    await agent.launch(asked)
    supervisor = supervisor_of(agent, asked.tasks[0].task_id)
    await eventually(lambda: len(shim.process_family(supervisor)) >= 4, "all are started")
    family = shim.process_family(supervisor)
    (agent.directory(asked.tasks[0].task_id).sandbox / "go").touch()
    last = await agent.last(asked.tasks[0].task_id)
    assert last.state is TaskState.FINISHED
    assert not [pid for pid in family if alive(pid)]


# --- at most once -----------------------------------------------------------------------------


async def test_a_launch_repeated_starts_nothing_twice(agent: Bench) -> None:
    asked = order(pod_spec(task_spec("sleep 1000")))
    statuses = await asyncio.gather(*(agent.launch(asked) for _ in range(5)))
    assert len({(status.state, status.sequence) for status in statuses}) == 1
    await agent.restart()
    again = await agent.launch(asked)
    assert again.state is TaskState.RUNNING
    assert agent.launches() == [asked.tasks[0].task_id]


async def test_supervisors_that_race_start_one_process(agent: Bench) -> None:
    asked = order(pod_spec(task_spec("echo once >> $MESOS_SANDBOX/runs; sleep 1000")))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    spec = read_spec(supervisor_of(agent, task_id))
    assert spec is not None
    fresh = agent.work_dir.task("raced")
    fresh.create()
    fresh.sandbox.mkdir()
    assert spec.record is not None
    raced = replace(spec, task_id="raced", record=spec.record.but(task_id="raced"))
    outcomes = await asyncio.gather(
        *(spawn(agent.work_dir.supervisor, fresh, raced) for _ in range(6))
    )
    await agent.kill(task_id)
    started = fresh.started
    assert started is not None
    assert sorted(outcomes) == ["busy"] * 5 + ["started"]
    assert agent.launches() == [task_id, "raced"]
    os.kill(started.supervisor, signal.SIGTERM)
    await eventually(lambda: fresh.exit is not None, "the raced task ends")
    await eventually(lambda: fresh.supervisor() is None, "nobody writes there any more")


@pytest.mark.parametrize("when", ["before the order", "during the fetch"])
async def test_a_task_killed_before_its_start_never_starts(agent: Bench, when: str) -> None:
    asked_for, released = asyncio.Event(), asyncio.Event()

    async def answer_half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        asked_for.set()
        await released.wait()
        writer.close()

    async with await asyncio.start_server(answer_half, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        uri = f"http://127.0.0.1:{port}/endless"
        asked = order(pod_spec(task_spec("sleep 1000"), uris=(uri,)))
        task_id = asked.tasks[0].task_id
        if when == "before the order":
            answer = await agent.kill(task_id)
            assert (answer.name, answer.state) == (instance_of(task_id), TaskState.KILLED)
            status = await agent.launch(asked)
        else:
            launching = asyncio.create_task(agent.launch(asked))
            await within(asked_for.wait())
            assert (await agent.kill(task_id)).state is TaskState.KILLED
            status = await launching
        released.set()
    assert (status.state, status.message) == (
        TaskState.KILLED,
        f"{'killed' if when == 'before the order' else 'a test said so'} (before it was started)",
    )
    await agent.restart()
    assert (await agent.launch(asked)).state is TaskState.KILLED
    assert agent.launches() == []


# --- ending them ------------------------------------------------------------------------------


async def test_kill_asks_first(agent: Bench) -> None:
    cmd = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done"
    asked = order(pod_spec(task_spec(cmd, kill_grace_period=1000)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: agent.read(task_id) == "up\n", "the trap is set")
    began = time.monotonic()
    status = await agent.kill(task_id)
    assert (status.state, status.exit_code) == (TaskState.KILLED, 0)
    assert agent.read(task_id) == "up\nbye\n"
    assert time.monotonic() - began < 5
    assert await agent.kill(task_id) == status  # once more changes nothing


async def test_kill_waits_for_children_that_clean_up(agent: Bench) -> None:
    child = (
        "trap 'sleep 0.3; echo saved > done; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    )
    cmd = f'sh -c "{child}" & wait'
    asked = order(pod_spec(task_spec(cmd, kill_grace_period=10)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: agent.read(task_id) == "up\n", "the child's trap is set")
    await agent.kill(task_id)
    assert agent.read(task_id, "done") == "saved\n"


async def test_kill_escalates_to_the_whole_tree(agent: Bench) -> None:
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    cmd = f'setsid sh -c "{stubborn}" & sh -c "{stubborn}" & {stubborn}'
    asked = order(pod_spec(task_spec(cmd, kill_grace_period=1000)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: agent.read(task_id) == "up\n" * 3, "all traps are set")
    family = shim.process_family(supervisor_of(agent, task_id))
    began = time.monotonic()
    status = await agent.kill(task_id, grace=0.5)
    assert (status.state, status.exit_code) == (TaskState.KILLED, 137)
    assert 0.5 <= time.monotonic() - began < 5
    assert len(family) >= 3
    assert not [pid for pid in family if alive(pid)]


async def test_a_second_kill_can_shorten_the_grace_period(agent: Bench) -> None:
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    asked = order(pod_spec(task_spec(stubborn, kill_grace_period=1000)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: agent.read(task_id) == "up\n", "the trap is set")
    patient = asyncio.create_task(agent.kill(task_id))
    await eventually(lambda: agent.directory(task_id).kill is not None, "the first wish")
    await agent.kill(task_id, grace=0)
    assert (await patient).state is TaskState.KILLED


# --- an agent that goes and comes -------------------------------------------------------------


async def test_a_new_agent_tells_the_true_exit_codes(agent: Bench) -> None:
    """One task goes on over the restart, one ends while no agent is there."""
    goes_on = order(pod_spec(task_spec("while ! test -e go; do sleep 0.02; done; exit 5")))
    ends = order(pod_spec(task_spec("while ! test -e go; do sleep 0.02; done; exit 6")))
    first, second = (asked.tasks[0].task_id for asked in (goes_on, ends))
    await agent.launch(goes_on)
    await agent.launch(ends)
    await agent.stop()
    (agent.directory(second).sandbox / "go").touch()
    await eventually(lambda: agent.directory(second).exit is not None, "it ends on its own")
    agent.begin()
    assert (await agent.last(second)).exit_code == 6
    assert agent.states(first)[:1] == [TaskState.RUNNING]
    (agent.directory(first).sandbox / "go").touch()
    assert (await agent.last(first)).exit_code == 5
    assert sorted(agent.launches()) == sorted([first, second])


async def test_a_task_whose_supervisor_was_killed_is_lost_when_it_ends(agent: Bench) -> None:
    """Like a container it ends with its first process, whatever that leaves behind."""
    asked = order(pod_spec(task_spec("sleep 1000 & while ! test -e go; do sleep 0.02; done")))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    started = agent.directory(task_id).started
    assert started is not None
    os.kill(supervisor_of(agent, task_id), signal.SIGKILL)
    await agent.restart()
    assert (await agent.launch(asked)).state is TaskState.RUNNING
    (agent.directory(task_id).sandbox / "go").touch()
    last = await agent.last(task_id)
    assert (last.state, last.exit_code) == (TaskState.LOST, None)
    assert not shim.process_family(started.pid, started.pid)


async def test_a_task_whose_supervisor_was_killed_can_be_killed(agent: Bench) -> None:
    asked = order(pod_spec(task_spec("sleep 1000 & sleep 1000")))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    started = agent.directory(task_id).started
    assert started is not None
    os.kill(supervisor_of(agent, task_id), signal.SIGKILL)
    await eventually(lambda: agent.directory(task_id).supervisor() is None, "it is dead")
    assert (await agent.kill(task_id)).state is TaskState.KILLED
    assert not shim.process_family(started.pid, started.pid)
    assert not alive(started.pid)


async def test_a_kill_goes_on_when_the_agent_stops_in_the_middle(agent: Bench) -> None:
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    asked = order(pod_spec(task_spec(stubborn, kill_grace_period=1)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually(lambda: agent.read(task_id) == "up\n", "the trap is set")
    killing = asyncio.create_task(agent.kill(task_id))
    await eventually(lambda: agent.directory(task_id).kill is not None, "the wish")
    killing.cancel()
    await agent.restart()
    assert (await agent.last(task_id)).state is TaskState.KILLED


async def test_two_agents_cannot_share_a_work_directory(agent: Bench) -> None:
    with pytest.raises(WorkDirInUse, match="used by another agent"):
        WorkDir(agent.settings.work_dir).acquire()


# --- the activity that runs a task to its end -------------------------------------------------


@pytest.mark.parametrize(
    ("details", "state"),
    [
        pytest.param(
            ActivityCancellationDetails(cancel_requested=True), TaskState.KILLED, id="its workflow"
        ),
        pytest.param(
            ActivityCancellationDetails(worker_shutdown=True), TaskState.RUNNING, id="agent stops"
        ),
    ],
)
async def test_run_task_cancelled(
    agent: Bench, details: ActivityCancellationDetails, state: TaskState
) -> None:
    asked = order(pod_spec(task_spec("sleep 1000")))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, start_to_close_timeout=timedelta(hours=1))
    activities = AgentActivities(cast(Client, None), agent.runner, "boot")
    running = asyncio.create_task(environment.run(activities.run_task, asked))
    await eventually(lambda: bool(agent.launches()), "the task is started")
    environment.cancel(cancellation_details=details)
    with pytest.raises(asyncio.CancelledError):
        await within(running)
    await eventually(lambda: agent.states(asked.tasks[0].task_id)[-1:] == [state], "it is told")


# --- tidying ----------------------------------------------------------------------------------


async def test_old_sandboxes_are_deleted(agent: Bench) -> None:
    ids = [f"task{number}" for number in range(agent.settings.keep_sandboxes + 2)]
    for task_id in ids:
        await agent.run(order(pod_spec(task_spec("true")), task_id=task_id))
    running = order(pod_spec(task_spec("sleep 1000")))
    await agent.launch(running)
    await eventually(lambda: len(agent.sent) >= 2 * len(ids), "all statuses are delivered")
    now = datetime.now(UTC)
    await agent.runner.tidy(now)
    assert set(agent.runner.task_ids()) == {*ids[2:], running.tasks[0].task_id}
    assert not agent.directory(ids[0]).path.exists()
    await agent.runner.tidy(now + timedelta(days=365))
    assert agent.runner.task_ids() == (running.tasks[0].task_id,)
