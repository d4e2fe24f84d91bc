"""Tasks that turn what they may write to against their agent."""

import os
import pwd
from pathlib import Path
from typing import cast

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
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
from acceptance.agent_processes import as_root, health
from temporal_plans.activities.agent.host.activities import AgentActivities
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    PodSpec,
    ResourceSet,
    SecretRef,
    TaskSpec,
    VolumeSpec,
)
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.tasks import ReadLogInput


def of_nobody(*tasks: TaskSpec, main: ResourceSet | None = None) -> PodSpec:
    return pod_spec(*tasks, main=main, user="nobody")


@as_root
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("replacement", "kind"),
    [("mkfifo new", "a FIFO"), ("ln -s /etc/shadow new", "a link"), ("mkdir new", "a directory")],
)
async def test_an_output_that_a_task_replaced_is_refused(
    agent: Bench, replacement: str, kind: str
) -> None:
    cmd = f"{replacement}; rm stdout; mv new stdout; touch done; exec sleep 1000"
    asked = order(of_nobody(task_spec(cmd)))
    task_id = asked.tasks[0].task_id
    await agent.launch(asked)
    sandbox = agent.directory(task_id).sandbox
    await eventually((sandbox / "done").exists, "stdout is replaced")
    activities = AgentActivities(cast(Client, None), agent.runner, "b")
    request = ReadLogInput(task_id=task_id, stream="stdout")
    for _ in range(50):
        with pytest.raises(ApplicationError) as caught:
            await within(ActivityEnvironment().run(activities.read_log, request))
        assert caught.value.message == (
            f"stdout: is no regular file ({kind}): the task has replaced it"
        )
    assert (await agent.kill(task_id, 0)).state is TaskState.KILLED


@as_root
async def test_a_config_is_not_written_through_a_link_that_a_task_left_in_its_volume(
    agent: Bench, tmp_path: Path
) -> None:
    (tmp_path / "app.conf").write_text("of another")
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    held = reservation(volume("v1", "data"))
    trap = f"ln -s {tmp_path} data/conf; ln -s {tmp_path}/app.conf data/app.conf"
    assert (await agent.run(order(of_nobody(task_spec(trap), main=main), held=held))).state is (
        TaskState.FINISHED
    )
    through_file = task_spec("cat data/app.conf").but(
        configs=(ConfigTemplate(name="c", template="mine", dest="data/app.conf"),)
    )
    asked = order(of_nobody(through_file, main=main), held=held)
    assert (await agent.run(asked)).state is TaskState.FINISHED
    assert agent.read(asked.tasks[0].task_id) == "mine"
    through_folder = task_spec("true").but(
        configs=(ConfigTemplate(name="c", template="mine", dest="data/conf/app.conf"),)
    )
    status = await agent.launch(order(of_nobody(through_folder, main=main), held=held))
    assert (status.state, status.message) == (
        TaskState.ERROR,
        "configs.c.dest: data/conf/app.conf is outside of the sandbox, through a link",
    )
    assert (tmp_path / "app.conf").read_text() == "of another"


@as_root
async def test_volumes_and_records_are_closed_to_other_users(agent: Bench) -> None:
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    pod = of_nobody(task_spec("touch data/x"), main=main)
    asked = order(pod, held=reservation(volume("v1", "data")))
    assert (await agent.run(asked)).state is TaskState.FINISHED
    found = agent.work_dir.volume("v1").stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o700, _nobody())
    records = [*agent.directory(asked.tasks[0].task_id).path.iterdir(), agent.work_dir.launches]
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in records if path.is_file()}
    assert modes == dict.fromkeys(modes, "0o600")
    assert {"started.json", "exit.json", "status.json", "task.json", "launches.log"} <= set(modes)


def _nobody() -> int:
    return pwd.getpwnam("nobody").pw_uid


@as_root
@pytest.mark.timeout(60)
async def test_whatever_a_task_leaves_is_deleted(agent: Bench) -> None:
    main = ResourceSet(id="main", memory=32, volumes=(VolumeSpec(path="data", size=10),))
    cmd = "mkfifo data/f; ln -s /etc data/l; mkdir -p data/a/b; touch data/a/b/c; chmod 0 data/a"
    asked = order(of_nobody(task_spec(cmd), main=main), held=reservation(volume("v1", "data")))
    assert (await agent.run(asked)).state is TaskState.FINISHED
    await within(agent.runner.destroy("r1"))
    assert not agent.work_dir.volume("v1").exists()
    assert not agent.directory(asked.tasks[0].task_id).path.exists()
    assert os.path.exists("/etc/passwd")


SHORT, LONG = "s3cr3t-in-file", "s3cr3t-" + "long" * 500


@pytest.mark.parametrize("restart", [False, True], ids=["same agent", "new agent"])
@pytest.mark.parametrize(
    ("cmd", "shown"),
    [
        pytest.param("cat conf/pw; exit 1", ": exit code 1: ***** (", id="file"),
        pytest.param("sed -n 3p conf/pw; exit 1", ": exit code 1: ***** (", id="line"),
        pytest.param('echo "$LONG"; exit 1', ": exit code 1: ***** (", id="long"),
        pytest.param('echo "$LONG" end; cat conf/pw; exit 1', "***** end\n***** (", id="both"),
    ],
)
async def test_no_secret_is_in_a_message(
    tmp_path: Path, cmd: str, shown: str, restart: bool
) -> None:
    (tmp_path / "pw").write_text(f"user: x\n{SHORT}\n  second-{SHORT}\n")
    (tmp_path / "long").write_text(LONG)
    task = task_spec("sleep 1000").but(health_check=health(cmd, delay=0.3))
    pod = pod_spec(
        task,
        secrets=(
            SecretRef(name="pw", secret="pw", file="conf/pw"),
            SecretRef(name="long", secret="long", env_key="LONG"),
        ),
    )
    async with bench(secrets=(f"file:{tmp_path}",)) as agent:
        asked = order(pod)
        task_id = asked.tasks[0].task_id
        await agent.launch(asked)
        if restart:
            await agent.restart()
        last = await agent.last(task_id)
        assert shown in last.message
        records = [path for path in agent.directory(task_id).path.iterdir() if path.is_file()]
        everything = b"".join(path.read_bytes() for path in records) + str(agent.sent).encode()
        for part in (b"s3cr3t", b"longlong"):
            assert part not in everything
