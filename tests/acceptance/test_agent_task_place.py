"""What a task gets on an agent: user, limits, files, secrets, volumes, ports."""

import grp
import pwd
import time
from ipaddress import ip_address
from pathlib import Path

import pytest

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
from acceptance.agent_processes import as_root
from temporal_plans.activities.agent.sandbox.marks import marks_of
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    HealthCheck,
    HostVolume,
    PortSpec,
    ReadinessCheck,
    ResourceSet,
    RLimit,
    SecretRef,
    VolumeSpec,
)
from temporal_plans.domain.tasks.statuses import TaskState

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


async def test_missing_values_of_a_config_template_are_empty_and_noted(agent: Bench) -> None:
    configs = (ConfigTemplate(name="c", template="<{{ONE}}{{TWO}}>\n", dest="c.xml"),)
    asked = order(pod_spec(task_spec("cat c.xml", configs=configs)))
    first = await agent.launch(asked)
    assert "values that are not set, and empty: c.xml: ONE, TWO" in first.message
    await agent.last(asked.tasks[0].task_id)
    assert agent.read(asked.tasks[0].task_id) == "<>\n"


async def test_a_malformed_config_template_is_refused(agent: Bench) -> None:
    configs = (ConfigTemplate(name="c", template="{{#ONE}}", dest="c.xml"),)
    status = await agent.launch(order(pod_spec(task_spec("./bootstrap", configs=configs))))
    assert (status.state, "configs.c" in status.message) == (TaskState.ERROR, True)
    assert agent.launches() == []


@pytest.mark.parametrize("user", [None, pytest.param("nobody", marks=as_root)])
async def test_a_command_renders_with_what_it_exported(agent: Bench, user: str | None) -> None:
    configs = (
        ConfigTemplate(name="one", template="{{ZK_ROOT}}|{{HEAP}}\n", dest="conf/one"),
        ConfigTemplate(name="two", template="{{#SECURE}}no{{/SECURE}}two\n", dest="two"),
    )
    cmd = "set -e; test ! -e two; export HEAP=512; ./bootstrap 2>&1; cat conf/one two"
    asked = order(pod_spec(task_spec(cmd, configs=configs), user=user))
    assert (await agent.run(asked)).state is TaskState.FINISHED
    assert agent.read(asked.tasks[0].task_id).splitlines() == [
        "bootstrap: wrote conf/one; no value for ZK_ROOT: empty text",
        "bootstrap: wrote two",
        "|512",
        "two",
    ]


async def test_bash_is_the_shell_of_commands_and_checks(agent: Bench) -> None:
    check = ReadinessCheck(cmd="[[ -e up && -n $BASH ]]", interval=0.1, delay=0, timeout=5)
    cmd = "trap 'exit 0' SIGTERM; [[ abc == a* ]] && touch up; while :; do sleep 0.1; done"
    await agent.launch(order(pod_spec(task_spec(cmd, readiness_check=check))))
    await eventually(lambda: any(status.ready for _, status in agent.sent), "it is ready")


async def test_a_service_chooses_another_shell(agent: Bench) -> None:
    asked = order(pod_spec(task_spec('echo "<$BASH>"'), shell="/bin/sh"))
    await agent.run(asked)
    assert agent.read(asked.tasks[0].task_id) in ("<>\n", "</bin/sh>\n")
    unknown = order(pod_spec(task_spec("true"), shell="no-such-shell"), task_id="u")
    refused = await agent.launch(unknown)
    assert (refused.state, "no-such-shell" in refused.message) == (TaskState.ERROR, True)


async def test_the_path_of_the_agent_does_not_reach_tasks(
    agent: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/of/the/agent:/usr/bin:/bin")
    asked = order(pod_spec(task_spec('echo "$PATH $MESOS_CONTAINER_IP"')))
    await agent.run(asked)
    path, address = agent.read(asked.tasks[0].task_id).split()
    assert "/of/the/agent" not in path
    assert "/usr/bin" in path
    assert ip_address(address)


@as_root
async def test_a_task_runs_as_its_user(agent: Bench) -> None:
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    cmd = (
        "id -un; id -gn; id -G; echo $USER; "
        "echo x > data/file && echo y > file && echo z >>/dev/stdout"
    )
    pod = pod_spec(task_spec(cmd), main=main, user="nobody")
    asked = order(pod, held=reservation(volume("v1", "data")))
    last = await agent.run(asked)
    task_id = asked.tasks[0].task_id
    assert agent.read(task_id, "stderr") == ""
    user, group, *groups, name, written = agent.read(task_id).split()
    assert (last.state, user, name, written) == (TaskState.FINISHED, "nobody", "nobody", "z")
    own = pwd.getpwnam("nobody")
    assert grp.getgrgid(own.pw_gid).gr_name == group
    marks = marks_of(agent.work_dir.task(task_id).sandbox)
    assert {*map(int, groups)} - marks == {own.pw_gid}
    owner = (agent.work_dir.volume("v1") / "file").stat().st_uid
    assert owner == own.pw_uid


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
        cmd="test -e seen || exit 0; echo $PASSWORD; exit 1",
        interval=0.1,
        grace_period=0,
        max_consecutive_failures=1,
        delay=0.3,
        timeout=5,
    )
    pod = pod_spec(
        task_spec(
            "test $PASSWORD = s3cr3t-in-env && stat -c %a keys/k && touch seen && sleep 1000"
        ).but(health_check=health),
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
        'pods.hello.image: the built-in agents can\'t do this (found "alpine"); '
        "tasks run as plain processes; remove it; "
        "pods.hello.shm-size: the built-in agents can't do this (found 64); "
        "tasks share the machine's; remove it",
    )
