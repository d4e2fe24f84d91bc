"""``temporal-plan worker --kubernetes``: the process that has the credentials of a cluster."""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from acceptance.programs import Program
from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import config_map, deployment
from kubernetes.namespaces import Namespace
from kubernetes.owner_program import StepOwner
from kubernetes.package_steps import Object, Steps
from pauses import until
from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.messages.packages import RecordObjects, TasksInput, TasksOutcome, TasksResult
from temporal_plans.worker.control_plane.stages import PodFate
from temporal_plans.worker.dev import DevServer

COMMAND = Path(sys.executable).parent / "temporal-plan"
OWNERS = "owners"


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[DevServer]:
    async with DevServer() as server:
        yield server


@pytest.fixture
async def client(server: DevServer) -> AsyncIterator[Client]:
    client = await Client.connect(server.address, data_converter=pydantic_data_converter)
    async with Worker(client, task_queue=OWNERS, workflows=[StepOwner]):
        yield client


@pytest.fixture
async def worker(
    server: DevServer, control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Program]:
    """The shipped command, for the cluster alone."""
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text("not to be seen")
    arguments = ["worker", "--kubernetes", f"tests={kubeconfig}:local", "--kubernetes-only"]
    program = Program(
        COMMAND,
        [*arguments, "--secrets", f"file:{tmp_path / 'secrets'}"],
        env={"PATH": os.environ["PATH"], "TEMPORAL_ADDRESS": server.address},
        log=tmp_path / "worker.log",
    )
    await program.start()
    yield program
    await program.stop()


async def owner(
    client: Client, namespace: Namespace, *objects: Object, **options: Any
) -> WorkflowHandle[StepOwner, TasksResult]:
    """Start the owner of a step that applies objects, its package in the content store."""
    unused = ClusterConnection(ClusterAccess("tests"))
    steps = Steps(unused, namespace.name)
    order: TasksInput = steps.apply(*objects, **options)
    for data in steps.contents.kept.values():
        await content_store(client).put(data)
    workflow_id = f"service/{uuid4()}"
    return await client.start_workflow(
        StepOwner.run, order.but(owner=workflow_id), id=workflow_id, task_queue=OWNERS
    )


async def recorded(handle: WorkflowHandle[StepOwner, TasksResult]) -> list[RecordObjects]:
    return await handle.query(StepOwner.recorded)


async def test_a_step_is_executed_where_the_credentials_are(
    client: Client, worker: Program, namespace: Namespace
) -> None:
    template = {"kind": "Secret", "data": {"it": "{{ .Params.P | b64enc }}"}}
    secret: Object = {"apiVersion": "v1", "metadata": {"name": "it"}, **template}
    handle = await owner(
        client,
        namespace,
        config_map("settings", key="value"),
        secret,
        parameters=[{"name": "P", "default": ""}],
        secrets={"P": "password"},
    )
    assert await handle.result() == TasksResult(outcome=TasksOutcome.DONE, done=("task",))
    [message] = await recorded(handle)
    assert [str(one) for one in message.objects] == [
        "ConfigMap one-anchor",
        "ConfigMap settings",
        "Secret it",
    ]
    assert await namespace.cluster.get("v1", "Secret", "it", namespace.name)
    history = (await handle.fetch_history()).to_json()
    assert "not to be seen" not in history
    assert "not to be seen" not in worker.log.read_text()


async def test_a_cancelled_step_ends_soon(
    client: Client, worker: Program, namespace: Namespace
) -> None:
    hanging = deployment("app", fate=PodFate.HANG)
    handle = await owner(client, namespace, hanging)
    await handle.result()
    # Its reason stays the same as soon as the controller has seen the object.
    await namespace.until(
        *("apps/v1", "Deployment", "app"), lambda app: app["status"].get("updatedReplicas")
    )
    result = await (await owner(client, namespace, hanging)).result()
    handle = await owner(client, namespace, hanging, shown=result.reason, uid="run-2")
    await until(lambda: recorded(handle))
    began = time.monotonic()
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert time.monotonic() - began < 6, "the SDK would hold heartbeats back for 8 s"


@pytest.mark.parametrize("end", [Program.kill, Program.stop])
async def test_a_step_of_a_worker_that_has_ended_is_executed_by_the_next(
    client: Client,
    worker: Program,
    namespace: Namespace,
    end: Callable[[Program], Awaitable[None]],
) -> None:
    objects = [config_map(f"settings-{number}") for number in range(100)]
    handle = await owner(client, namespace, *objects)
    await namespace.until("v1", "ConfigMap", "settings-10", bool)
    await end(worker)
    await worker.start()
    assert (await handle.result()).outcome is TasksOutcome.DONE
    found = await namespace.cluster.list("v1", "ConfigMap", namespace.name, "kudo.dev/instance=one")
    assert len(found) == 101


async def test_a_worker_says_at_its_start_whether_it_reaches_its_clusters(
    server: DevServer, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Wrong credentials show at once, and not at the first task."""
    good = control_plane.credentials.kubeconfig("admin")
    wrong = control_plane.credentials.kubeconfig_of("wrong", "wrong-token")
    clusters = [
        part
        for name, kubeconfig in (("good", good), ("wrong", wrong))
        for part in ("--kubernetes", f"{name}={kubeconfig}")
    ]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    env["TEMPORAL_ADDRESS"] = server.address
    worker = Program(
        COMMAND, ["worker", "--kubernetes-only", *clusters], env=env, log=tmp_path / "worker.log"
    )
    await worker.start()

    async def said() -> str:
        return worker.log.read_text()

    try:
        text = await until(said, lambda text: "Error: " in text)
    finally:
        await worker.stop()
    assert "Cluster good: Kubernetes v1." in text
    assert "Error: cluster wrong: " in text
    assert "401" in text
