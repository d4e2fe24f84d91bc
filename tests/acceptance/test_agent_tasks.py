"""Tasks as an agent runs them: real processes, without a Temporal server."""

import asyncio
import os
import pwd
import shutil
import signal
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from acceptance.agent_bench import (
    Bench,
    bench,
    eventually,
    order,
    pod_spec,
    reservation,
    task_spec,
    volume,
    within,
)
from temporal_plans.activities.agent import shim
from temporal_plans.activities.agent.activities import AgentActivities
from temporal_plans.activities.agent.layout import WorkDir, WorkDirInUse
from temporal_plans.activities.agent.pods import AskedPod
from temporal_plans.activities.agent.preparation import task_record
from temporal_plans.activities.agent.supervision import ShimSpec, read_spec, spawn
from temporal_plans.domain.cluster import ReservedResource
from temporal_plans.domain.service import (
    ConfigTemplate,
    HealthCheck,
    HostVolume,
    PodSpec,
    PortSpec,
    ReadinessCheck,
    ResourceSet,
    RLimit,
    SecretRef,
    VolumeSpec,
    instance_of,
)
from temporal_plans.domain.task import TaskState
from temporal_plans.messages.cluster import LaunchInput

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")


@pytest.fixture
async def agent() -> AsyncGenerator[Bench, None]:
    async with bench() as made:
        yield made


def alive(pid: int) -> bool:
    stat = shim.process_stat(pid)
    return stat is not None and stat.state not in "ZX"


def supervisor_of(agent: Bench, task_id: str) -> int:
    pid = agent.directory(task_id).supervisor()
    assert pid
    return pid


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
    cmd = "sleep 1000 & setsid sleep 1001 & (setsid setsid sleep 1002 &) ; echo $! ; sleep 0.3"
    asked = order(pod_spec(task_spec(cmd)))
    await agent.launch(asked)
    supervisor = supervisor_of(agent, asked.tasks[0].task_id)
    await eventually(lambda: len(shim.process_family(supervisor)) >= 4, "all are started")
    family = shim.process_family(supervisor)
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
    outcomes = await asyncio.gather(
        *(spawn(agent.work_dir.supervisor, fresh, spec) for _ in range(6))
    )
    await agent.kill(task_id)
    started = fresh.started
    assert started is not None
    assert sorted(outcomes) == ["busy"] * 5 + ["started"]
    assert agent.launches() == [task_id, task_id]
    os.kill(started.supervisor, signal.SIGTERM)
    await eventually(lambda: fresh.exit is not None, "the raced task ends")


@pytest.mark.parametrize("when", ["before the order", "during the fetch"])
async def test_a_task_killed_before_its_start_never_starts(
    agent: Bench, when: str, tmp_path: Path
) -> None:
    pipe = tmp_path / "endless"
    os.mkfifo(pipe)  # a fetch that goes on as long as nobody closes it
    asked = order(pod_spec(task_spec("sleep 1000"), uris=(str(pipe),)))
    task_id = asked.tasks[0].task_id
    if when == "before the order":
        answer = await agent.kill(task_id)
        assert (answer.name, answer.state) == (instance_of(task_id), TaskState.KILLED)
        status = await agent.launch(asked)
    else:
        launching = asyncio.create_task(agent.launch(asked))
        writer = await within(asyncio.to_thread(pipe.open, "wb", buffering=0))
        with writer:
            writer.write(b"x")
            killing = asyncio.create_task(agent.kill(task_id))
            await eventually(lambda: agent.directory(task_id).kill is not None, "the wish")
            writer.write(b"x" * 100)
        assert (await killing).state is TaskState.KILLED
        status = await launching
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
    asked = order(pod_spec(task_spec(cmd, kill_grace_period=10)))
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


# --- what a task gets -------------------------------------------------------------------------


async def test_the_environment_has_ports_parameters_and_place(agent: Bench) -> None:
    ports = (PortSpec(name="http", env_key="HTTP_PORT"), PortSpec(name="quiet"))
    main = ResourceSet(id="main", cpus=0.1, memory=32, ports=ports)
    pod = pod_spec(task_spec("env", env={"GREETING": "hello", "X": "spec"}), main=main)
    held = reservation(
        ReservedResource(id="p1", set="main", kind="port", value=1234, name="http"),
        ReservedResource(id="p2", set="main", kind="port", value=1235, name="quiet"),
        zone="z1",
    )
    asked = order(pod, held=held, parameters={"X": "parameter"})
    await agent.run(asked)
    task_id = asked.tasks[0].task_id
    env = dict(line.split("=", 1) for line in agent.read(task_id).splitlines())
    expected = {
        "HTTP_PORT": "1234",
        "GREETING": "hello",
        "X": "parameter",
        "ZONE": "z1",
        "TASK_NAME": "hello-0-server",
        "MESOS_SANDBOX": str(agent.directory(task_id).sandbox),
        "HOME": str(agent.directory(task_id).sandbox),
        "PWD": str(agent.directory(task_id).sandbox),
    }
    assert expected.items() <= env.items()
    assert "REGION" not in env
    assert "1235" not in env.values()


async def test_volumes_keep_what_is_in_them_and_are_shared(agent: Bench) -> None:
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    pod = pod_spec(
        task_spec("echo $TASK_NAME >> data/log; echo $TASK_NAME >> shared/log", name="one"),
        task_spec("cat shared/log; cat deep/er/log; cat data/log", name="two"),
        main=main,
        volumes=(VolumeSpec(path="shared", size=10), VolumeSpec(path="deep/er", size=10)),
    )
    held = reservation(
        volume("v1", "data"), volume("v2", "shared", ""), volume("v3", "deep/er", "")
    )
    for _ in range(2):
        asked = order(pod, held=held, tasks={f"one{time.monotonic()}": "one"})
        assert (await agent.run(asked)).state is TaskState.FINISHED
    (agent.work_dir.volume("v3") / "log").write_text("old\n")
    await agent.restart()
    asked = order(pod, held=held, tasks={"two": "two"})
    assert (await agent.run(asked)).state is TaskState.FINISHED
    assert agent.read("two").split() == ["hello-0-one", "hello-0-one", "old", *["hello-0-one"] * 2]


async def test_a_volume_outlives_the_removal_of_its_task_until_the_reservation_ends(
    agent: Bench,
) -> None:
    """Tasks and sets come and go with configurations; the pod and its reservation stay."""
    data = (VolumeSpec(path="data", size=10),)
    pod = pod_spec(task_spec("cat data/log", name="one"))
    both = pod.but(
        tasks=(*pod.tasks, task_spec("echo kept >> data/log", name="two").but(resource_set="side")),
        resource_sets=(*pod.resource_sets, ResourceSet(id="side", memory=32, volumes=data)),
    )
    assert (await agent.run(order(pod))).state is TaskState.FAILED
    held = reservation(volume("v1", "data", "side"))
    added = order(both, held=held, tasks={"two-a": "two"})
    assert (await agent.run(added)).state is TaskState.FINISHED
    removed = order(pod, held=held, tasks={"one-a": "one"})
    assert (await agent.run(removed)).state is TaskState.FAILED, "it is not this task's volume"
    back = order(both, held=held, tasks={"two-b": "two"})
    assert (await agent.run(back)).state is TaskState.FINISHED
    assert (agent.work_dir.volume("v1") / "log").read_text() == "kept\nkept\n"
    await within(agent.runner.destroy(held.id))
    assert not agent.work_dir.volume("v1").exists()


async def test_destroy_deletes_volumes_and_sandboxes_and_forbids_more(
    agent: Bench, tmp_path: Path
) -> None:
    main = ResourceSet(
        id="main",
        memory=32,
        volumes=(VolumeSpec(path="data", size=10), VolumeSpec(path="disk", type="MOUNT", size=1)),
    )
    pod = pod_spec(task_spec("touch data/x disk/x; sleep 1000"), main=main)
    held = reservation(volume("v1", "data"), volume("v2", "disk", source=str(tmp_path)))
    asked = order(pod, held=held)
    await agent.launch(asked)
    await eventually((tmp_path / "v2" / "x").exists, "the task writes to its disk")
    sandbox = agent.directory(asked.tasks[0].task_id).sandbox
    for _ in range(2):
        await within(agent.runner.destroy("r1"))
        assert not sandbox.exists()
        assert not agent.work_dir.volume("v1").exists()
        assert list(tmp_path.iterdir()) == []
    refused = await agent.launch(order(pod, held=held))
    assert (refused.state, "was released" in refused.message) == (TaskState.ERROR, True)
    assert (await agent.launch(asked)).state is TaskState.KILLED
    assert len(agent.launches()) == 1


async def test_config_templates_are_rendered_from_the_environment(agent: Bench) -> None:
    template = ConfigTemplate(
        name="server.xml",
        template="<p>{{PORT}}{{#hello-0-server}}!{{/hello-0-server}}</p>",
        dest="c/s.xml",
    )
    task = task_spec("cat c/s.xml; echo $CONFIG_TEMPLATE_SERVER_XML", env={"PORT": "80"})
    asked = order(pod_spec(task.but(configs=(template,))))
    await agent.run(asked)
    assert agent.read(asked.tasks[0].task_id) == ("<p>80!</p>config-templates/server.xml,c/s.xml\n")


async def test_a_config_template_with_missing_values_is_an_error(agent: Bench) -> None:
    configs = (ConfigTemplate(name="c", template="{{ONE}}\n{{TWO}}", dest="c.xml"),)
    status = await agent.launch(order(pod_spec(task_spec("true", configs=configs))))
    assert status.state is TaskState.ERROR
    assert "configs.c" in status.message
    assert "ONE" in status.message
    assert "TWO" in status.message
    assert agent.launches() == []


@as_root
async def test_a_task_runs_as_its_user(agent: Bench) -> None:
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    cmd = "id -un; id -Gn; echo $USER; echo x > data/file && echo y > file && echo z >>/dev/stdout"
    pod = pod_spec(task_spec(cmd), main=main, user="nobody")
    asked = order(pod, held=reservation(volume("v1", "data")))
    last = await agent.run(asked)
    task_id = asked.tasks[0].task_id
    assert agent.read(task_id, "stderr") == ""
    assert (last.state, agent.read(task_id).split()[0]) == (TaskState.FINISHED, "nobody")
    assert agent.read(task_id).split()[-2:] == ["nobody", "z"]
    owner = (agent.work_dir.volume("v1") / "file").stat().st_uid
    assert owner == pwd.getpwnam("nobody").pw_uid


@as_root
async def test_a_task_runs_below_a_directory_that_is_closed_to_its_user(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="deep/data", size=10),))
    pod = pod_spec(
        task_spec("echo x > deep/data/file && cat deep/data/file"), main=main, user="nobody"
    )
    agent = Bench(tmp_path / "closed" / "work")
    asked = order(pod, held=reservation(volume("v1", "deep/data")))
    first = await agent.launch(asked)
    last = await agent.last(asked.tasks[0].task_id)
    await agent.stop()
    assert first.message.startswith("nobody can't use absolute paths of the sandbox: ")
    assert (last.state, agent.read(asked.tasks[0].task_id)) == (TaskState.FINISHED, "x\n")


@as_root
@pytest.mark.parametrize(
    ("user", "allow_root", "message"),
    [
        pytest.param("nosuchuser", True, "there is no user 'nosuchuser'", id="unknown"),
        pytest.param("root", False, "runs no tasks as root", id="root"),
    ],
)
async def test_users_that_cannot_be_had_are_errors(
    user: str, allow_root: bool, message: str
) -> None:
    async with bench(allow_root_tasks=allow_root) as agent:
        status = await agent.launch(order(pod_spec(task_spec("true"), user=user)))
    assert status.state is TaskState.ERROR
    assert status.message.startswith("pods.hello.user: ")
    assert message in status.message


async def test_rlimits_are_set(agent: Bench) -> None:
    limits = (
        RLimit(name="RLIMIT_NOFILE", soft=100, hard=200),
        RLimit(name="RLIMIT_CORE", soft=0, hard=0),
    )
    asked = order(pod_spec(task_spec("ulimit -Sn; ulimit -Hn; ulimit -c"), rlimits=limits))
    assert (await agent.run(asked)).state is TaskState.FINISHED
    assert agent.read(asked.tasks[0].task_id).split() == ["100", "200", "0"]


async def test_secrets_reach_the_task_and_no_file_or_message(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "password").write_text("s3cr3t-in-env")
    (tmp_path / "key").write_bytes(b"s3cr3t-in-file\xff")
    health = HealthCheck(
        cmd="echo $PASSWORD; exit 1",
        interval=0.1,
        grace_period=0,
        max_consecutive_failures=1,
        delay=0.3,
        timeout=5,
    )
    pod = pod_spec(
        task_spec("test $PASSWORD = s3cr3t-in-env && stat -c %a keys/k && sleep 1000").but(
            health_check=health
        ),
        secrets=(
            SecretRef(name="a", secret="db/password", env_key="PASSWORD"),
            SecretRef(name="b", secret="key", file="keys/k"),
        ),
    )
    async with bench(secrets=(f"file:{tmp_path}",)) as agent:
        asked = order(pod)
        task_id = asked.tasks[0].task_id
        await agent.launch(asked)
        await eventually(lambda: agent.read(task_id) == "600\n", "the task sees both secrets")
        last = await agent.last(task_id)
        assert (last.state, "*****" in last.message) == (TaskState.FAILED, True)
        everything = [
            path.read_bytes() for path in agent.work_dir.root.rglob("*") if path.is_file()
        ]
        assert not [text for text in everything if b"s3cr3t-in-env" in text]
        assert sum(b"s3cr3t-in-file" in text for text in everything) == 1
        assert "s3cr3t" not in str(agent.sent)


async def test_a_secret_that_nobody_has_fails_the_task(tmp_path: Path) -> None:
    secrets = (SecretRef(name="a", secret="db/password", env_key="PASSWORD"),)
    async with bench(secrets=(f"file:{tmp_path}", "env:NONE_")) as agent:
        status = await agent.launch(order(pod_spec(task_spec("true"), secrets=secrets)))
    assert (status.state, status.message) == (
        TaskState.FAILED,
        "pods.hello.secrets.a: secret 'db/password' was not found; this agent's providers: "
        "FileSecrets, EnvironmentSecrets",
    )


async def test_host_volumes_are_links(agent: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from the host")
    volumes = (HostVolume(name="h", host_path=str(tmp_path), container_path="in/h", mode="RO"),)
    asked = order(pod_spec(task_spec("cat in/h/file"), host_volumes=volumes))
    first = await agent.launch(asked)
    await agent.last(asked.tasks[0].task_id)
    assert first.message == "host volumes not kept read-only: h"
    assert agent.read(asked.tasks[0].task_id) == "from the host"


async def test_what_plain_processes_cannot_give_is_refused(agent: Bench) -> None:
    status = await agent.launch(order(pod_spec(task_spec("true"), image="alpine", shm_size=64)))
    assert (status.state, status.message) == (
        TaskState.ERROR,
        "pods.hello.image: tasks are plain processes; containers are not supported; "
        "pods.hello.shm-size: tasks share the host's /dev/shm",
    )


# --- checks -----------------------------------------------------------------------------------


def health(cmd: str, **more: float) -> HealthCheck:
    fields = {"interval": 0.1, "grace_period": 0, "delay": 0, "timeout": 5} | more
    return HealthCheck.model_validate({"cmd": cmd, "max_consecutive_failures": 2} | fields)


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


async def orphaned(agent: Bench, cmd: str) -> str:
    """A task of nobody's with checks, without its supervisor, under a new agent; its id."""
    ready = ReadinessCheck(cmd=f"{WHO} && test -e ready", interval=0.05, delay=0, timeout=5)
    task = task_spec(f"touch ok; {cmd}", env={"NEEDED": "ok"})
    pod = pod_spec(task.but(readiness_check=ready, health_check=health(f"{WHO} && test -e ok")))
    asked = order(pod.but(user="nobody"))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    await eventually((agent.directory(task_id).sandbox / "ok").exists, "the task runs")
    os.kill(supervisor_of(agent, task_id), signal.SIGKILL)
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
    task_id = await orphaned(agent, "exec perl -e '$0 = qq(a title); sleep 1000'")
    await eventually(lambda: "lost its supervisor and its checks" in caplog.text, "it is said")
    assert agent.states(task_id) == [TaskState.RUNNING]
    await agent.kill(task_id)


async def test_a_check_that_hangs_is_killed_at_its_timeout(agent: Bench) -> None:
    check = health("echo $$ > check; sleep 1000", timeout=0.3).but(max_consecutive_failures=1)
    asked = order(pod_spec(task_spec("sleep 1000").but(health_check=check)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    last = await agent.last(task_id)
    assert "took longer than 0.3 s" in last.message
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


async def test_readiness_is_told_of_a_task_that_was_just_being_started(agent: Bench) -> None:
    """The agent was killed after it had started a supervisor, and the disk is slow today."""
    check = ReadinessCheck(cmd="true", interval=0.05, delay=0, timeout=5)
    pod = pod_spec(task_spec("sleep 1000").but(readiness_check=check))
    asked = order(pod)
    [launch] = asked.tasks
    directory = agent.directory(launch.task_id)
    directory.create()
    directory.sandbox.mkdir()
    directory.task = task_record(asked, launch, AskedPod(pod, None, ""))
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


# --- paused tasks (reference 6.8) ---------------------------------------------------------------


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
    assert not agent.runner.task("1").over


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
