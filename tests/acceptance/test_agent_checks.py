"""Checks of tasks on an agent, and paused tasks (behaviour 6.8)."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from acceptance.agent_bench import (
    Bench,
    eventually,
    order,
    pod_spec,
    task_spec,
)
from acceptance.agent_processes import alive, as_root, health, supervisor_of
from temporal_plans.activities.agent.host.pods import RequestedPod
from temporal_plans.activities.agent.host.preparation import task_record
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.supervision import ShimSpec, spawn
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    PodSpec,
    ReadinessCheck,
)
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.tasks import LaunchInput


@pytest.mark.parametrize(
    "restart", [pytest.param(False, id="same agent"), pytest.param(True, id="new agent")]
)
async def test_an_unhealthy_task_is_killed_and_failed(agent: Bench, restart: bool) -> None:
    task = task_spec("touch ok; sleep 1000", env={"NEEDED": "ok"}, kill_grace_period=20)
    check = health("echo looking for $NEEDED; test -e $NEEDED", grace_period=0.5)
    asked = order(pod_spec(task.but(health_check=check)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    sandbox = agent.directory(task_id).sandbox
    await eventually((sandbox / "ok").exists, "the task is healthy")
    if restart:
        await agent.restart()
    (sandbox / "ok").unlink()
    last = await agent.last(task_id)
    assert last.state is TaskState.FAILED
    assert last.message == (
        "unhealthy: the health check failed 2 times: exit code 1: looking for ok (ended by SIGTERM)"
    )


WHO = "test $(id -un) = nobody && test $NEEDED = ok"


async def orphaned(agent: Bench, cmd: str, runs: str = "ok") -> str:
    """A task of nobody's with checks, without its supervisor, under a new agent; its id. ``runs``
    is a file that it makes."""
    ready = ReadinessCheck(cmd=f"{WHO} && test -e ready", interval=0.05, delay=0, timeout=5)
    task = task_spec(f"touch ok; {cmd}", env={"NEEDED": "ok"})
    pod = pod_spec(task.but(readiness_check=ready, health_check=health(f"{WHO} && test -e ok")))
    asked = order(pod.but(user="nobody"))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    directory = agent.directory(task_id)
    await eventually((directory.sandbox / runs).exists, "the task runs")
    os.kill(supervisor_of(agent, task_id), signal.SIGKILL)
    await eventually(lambda: directory.supervisor() is None, "its supervisor is dead")
    await agent.restart()
    return task_id


@as_root
async def test_the_checks_of_a_task_without_supervisor_go_on(agent: Bench) -> None:
    """As its user, with its environment."""
    task_id = await orphaned(agent, "sleep 1000")
    sandbox = agent.directory(task_id).sandbox
    (sandbox / "ready").touch()
    await eventually(lambda: any(status.ready for _, status in agent.sent), "it is ready")
    (sandbox / "ok").unlink()
    last = await agent.last(task_id)
    assert "unhealthy: the health check failed 2 times" in last.message


@as_root
@pytest.mark.skipif(shutil.which("perl") is None, reason="perl is what does it here")
async def test_a_task_is_not_killed_for_what_is_no_more_known_of_it(
    agent: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Some programs write their title over their environment."""
    perl = "$0 = qq(a title); open F, q(>titled); sleep 1000"
    task_id = await orphaned(agent, f"exec perl -e '{perl}'", runs="titled")
    await eventually(lambda: "lost its supervisor and its checks" in caplog.text, "it is said")
    assert agent.states(task_id) == [TaskState.RUNNING]
    await agent.kill(task_id)


async def test_a_check_that_hangs_is_killed_at_its_timeout(agent: Bench) -> None:
    check = health("echo $$ > check; sleep 1000", timeout=3).but(max_consecutive_failures=1)
    asked = order(pod_spec(task_spec("sleep 1000").but(health_check=check)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    last = await agent.last(task_id)
    assert "took longer than 3 s" in last.message
    assert not alive(int(agent.read(task_id, "check")))


@pytest.mark.parametrize(
    "restart", [pytest.param(False, id="same agent"), pytest.param(True, id="new agent")]
)
async def test_readiness_is_told_once_it_is_reached(agent: Bench, restart: bool) -> None:
    check = ReadinessCheck(cmd="test -e ready", interval=0.05, delay=0, timeout=5)
    asked = order(pod_spec(task_spec("sleep 1000").but(readiness_check=check)))
    task_id = asked.tasks[0].task_id
    first = await agent.launch(asked)
    assert (first.state, first.ready) == (TaskState.RUNNING, False)
    if restart:
        await agent.restart()
    (agent.directory(task_id).sandbox / "ready").touch()
    await eventually(lambda: any(status.ready for _, status in agent.sent), "it is ready")
    assert agent.states(task_id) == [TaskState.RUNNING, TaskState.RUNNING]


async def test_why_a_task_is_not_ready(agent: Bench) -> None:
    cmd = "echo no schema yet; echo wait; exit 3"
    check = ReadinessCheck(cmd=cmd, interval=0.5, delay=0, timeout=5)
    asked = order(pod_spec(task_spec("sleep 1000").but(readiness_check=check)))
    await agent.launch(asked)

    def reported() -> bool:
        problem = "the readiness check fails: exit code 3: no schema yet\nwait"
        expected = (TaskState.RUNNING, False, problem)
        return any((s.state, s.ready, s.message) == expected for _, s in agent.sent)

    await eventually(reported, "its reason is reported")


async def test_readiness_is_told_of_a_task_that_was_just_being_started(agent: Bench) -> None:
    """The agent was killed after it had started a supervisor, and the disk is slow today."""
    check = ReadinessCheck(cmd="true", interval=0.05, delay=0, timeout=5)
    pod = pod_spec(task_spec("sleep 1000").but(readiness_check=check))
    asked = order(pod)
    [launch] = asked.tasks
    directory = agent.directory(launch.task_id)
    directory.create()
    directory.sandbox.mkdir()
    directory.task = task_record(asked, launch, RequestedPod(pod, None, ""))
    spec = ShimSpec(
        task_id=launch.task_id,
        cmd="sleep 1000",
        env={},
        sandbox=str(directory.sandbox),
        launch_log=str(agent.work_dir.launches),
    )
    starting = asyncio.create_task(spawn(_slow_supervisor(agent), directory, spec))
    await eventually(lambda: bool(directory.supervisor()), "the supervisor has the lock")
    try:
        await agent.restart()
        await asyncio.sleep(0.1)  # long enough for an agent that does not wait to go past
        assert agent.sent == []
    finally:
        (directory.path / "go").touch()
    assert await starting == "started"
    await eventually(lambda: any(status.ready for _, status in agent.sent), "it is ready")
    assert agent.states(launch.task_id) == [TaskState.RUNNING, TaskState.RUNNING]


def _slow_supervisor(agent: Bench) -> Path:
    """The program of one that starts nothing before there is a file ``go``."""
    start = "        supervisor.start()\n"
    text = Path(shim.__file__).read_text()
    assert text.count(start) == 1
    wait = "        while not os.path.exists(directory + '/go'): time.sleep(0.01)\n"
    program = agent.work_dir.root / "slow.py"
    program.write_text(text.replace(start, wait + start))
    return program


async def test_without_a_readiness_check_ready_is_unknown(agent: Bench) -> None:
    assert (await agent.launch(order(pod_spec(task_spec("sleep 1000"))))).ready is None


# --- paused tasks (behaviour 6.8) ---------------------------------------------------------------


def paused(pod: PodSpec) -> LaunchInput:
    asked = order(pod)
    return asked.but(tasks=tuple(launch.but(paused=True) for launch in asked.tasks))


@pytest.mark.parametrize("restart", [False, True], ids=["same agent", "new agent"])
async def test_a_paused_task_runs_the_pause_command_and_no_checks(
    agent: Bench, restart: bool
) -> None:
    task = task_spec(
        "touch ran",
        env={"PORT": "80"},
        configs=(ConfigTemplate(name="c", template="port {{PORT}}", dest="c"),),
        health_check=health("touch checked; false"),
        readiness_check=ReadinessCheck(cmd="touch checked", interval=0.1, timeout=5, delay=0),
    )
    asked = paused(pod_spec(task))
    task_id = asked.tasks[0].task_id
    first = await agent.launch(asked)
    assert (first.state, first.ready, first.message) == (TaskState.RUNNING, None, "paused")
    if restart:
        await agent.restart()
        assert (await agent.launch(asked)).state is TaskState.RUNNING
    await eventually(lambda: "is paused" in agent.read(task_id), "it says so")
    assert agent.read(task_id, "c") == "port 80"
    known = agent.runner.task(task_id)
    assert (known.record.health_check, known.record.readiness_check) == (None, None)
    assert known.record.paused
    await eventually(lambda: bool(known.monitors), "it is watched")
    assert [monitor.get_name() for monitor in known.monitors] == ["watch"]
    killed = await agent.kill(task_id, grace=1000)
    assert (killed.state, killed.message) == (
        TaskState.KILLED,
        "a test said so (ended by SIGTERM)",
    )
    sandbox = agent.directory(task_id).sandbox
    assert not (sandbox / "ran").exists()
    assert not (sandbox / "checked").exists()


async def test_a_task_can_have_a_pause_command_of_its_own(agent: Bench) -> None:
    task = task_spec("exit 1", env={"PAUSE_OVERRIDE_CMD": "echo $TASK_NAME naps; exit 3"})
    asked = paused(pod_spec(task))
    assert (await agent.run(asked)).exit_code == 3
    assert agent.read(asked.tasks[0].task_id) == "hello-0-server naps\n"


async def test_one_task_of_a_pod_is_paused_and_the_other_is_not(agent: Bench) -> None:
    pod = pod_spec(task_spec("exit 1", name="one"), task_spec("echo works", name="two"))
    asked = order(pod, tasks={"1": "one", "2": "two"})
    one, two = asked.tasks
    await agent.runner.launch(asked.but(tasks=(one.but(paused=True), two)), lambda text: None)
    assert (await agent.last("2")).state is TaskState.FINISHED
    assert agent.read("2") == "works\n"
    assert not agent.runner.task("1").has_ended
