"""What keeps tasks of packages from their cluster, and what the step says about it."""

import asyncio
import json
from pathlib import Path

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import config_map
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import DONE, INTERVALS, Object, Owner, Steps, failed, task
from kubernetes.webhooks import refusing_webhook
from pauses import until
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.tasks.execution import DONE as TASK_DONE
from temporal_plans.activities.packages.tasks.execution import TaskExecution, TaskState
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.messages.packages import RecordObjects, TasksOutcome
from temporal_plans.worker.ports import free_port

AT_ONCE = 10
"""Requests to the server."""


async def test_a_full_quota_is_tried_again(steps: Steps, namespace: Namespace) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {"count/secrets": "0"}},
    }
    await namespace.apply(quota)
    await namespace.until("v1", "ResourceQuota", "full", lambda one: one.get("status"))
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}}
    order = steps.apply(secret)

    async def refused() -> str:
        return failed(await steps.execute(order), TasksOutcome.RETRY)

    # The server may know a quota a moment before it knows its use.
    reason = await until(refused, lambda text: "status unknown" not in text)
    assert reason.startswith("Secret it: ")
    assert "exceeded quota: full" in reason
    await namespace.cluster.delete("v1", "ResourceQuota", "full", namespace.name)
    await namespace.until("v1", "ResourceQuota", "full", lambda one: one is None)
    await until(lambda: steps.execute(order), lambda result: result == DONE)


async def test_a_namespace_that_is_being_deleted_is_tried_again(
    steps: Steps, namespace: Namespace
) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["tests.example/held"]
    await namespace.apply(held)
    await namespace.delete()
    await namespace.cluster.get("v1", "Namespace", namespace.name)
    result = await steps.execute(steps.apply(config_map("settings")))
    await namespace.apply({**held, "metadata": {"name": "held", "finalizers": []}})
    assert "is being terminated" in failed(result, TasksOutcome.RETRY)


async def test_a_missing_namespace_is_an_error(connection: ClusterConnection) -> None:
    steps = Steps(connection, "none")
    reason = failed(await steps.execute(steps.apply(config_map("settings"))))
    assert 'namespaces "none" not found' in reason


async def test_a_webhook_that_refuses_is_an_error_and_one_that_is_down_is_tried_again(
    steps: Steps, namespace: Namespace
) -> None:
    order = steps.apply(config_map("settings"))
    async with refusing_webhook(namespace, "configmaps") as configuration:
        await namespace.cluster.apply(configuration)
        async with asyncio.timeout(50):  # until all of the API server know it
            while (result := await steps.execute(order)).outcome is TasksOutcome.DONE:
                pass
        assert "sundays.tests.example" in failed(result)
        assert "they are forbidden on Sundays" in result.reason
        configuration["webhooks"][0]["clientConfig"]["url"] = f"https://127.0.0.1:{free_port()}/"
        await namespace.cluster.apply(configuration)
        async with asyncio.timeout(50):
            while (result := await steps.execute(order)).outcome is TasksOutcome.FAILED:
                pass
        assert "failed calling webhook" in failed(result, TasksOutcome.RETRY)


async def test_credentials_that_were_renewed_are_read_again(
    control_plane: ControlPlane, namespace: Namespace, tmp_path: Path
) -> None:
    good = json.loads(control_plane.credentials.kubeconfig("admin").read_text())
    expired = json.loads(json.dumps(good))
    expired["users"][0]["user"]["token"] = "expired"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(good))
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        steps = Steps(connection, namespace.name)
        order = steps.apply(config_map("settings"))
        kubeconfig.write_text(json.dumps(expired))
        result = await steps.execute(order)
        assert result.outcome is TasksOutcome.RETRY
        assert result.reason.startswith("deploy.phase.step: cluster tests: ")
        assert "Unauthorized (401)" in result.reason
        kubeconfig.write_text(json.dumps(good))
        assert await steps.execute(order) == DONE


async def test_an_api_server_that_is_down_is_tried_again(
    control_plane: ControlPlane, steps: Steps
) -> None:
    order = steps.apply(config_map("settings"))
    assert await steps.execute(order) == DONE
    await control_plane.server.kill()
    try:
        reason = failed(await steps.execute(order), TasksOutcome.RETRY)
        assert "the API server can't be reached" in reason
    finally:
        await control_plane.start_server()
    assert await steps.execute(order) == DONE


# --- an execution that ends in its middle ---------------------------------------------------------


class Stalling(Owner):
    """Records, and does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def execute_update(self, name: str, message: RecordObjects) -> None:
        await super().execute_update(name, message)
        self.asked.set()
        await asyncio.Event().wait()


async def test_an_execution_that_ends_between_record_and_apply_is_repeated(
    connection: ClusterConnection, namespace: Namespace
) -> None:
    stalling = Stalling()
    steps = Steps(connection, namespace.name, owner=stalling)
    order = steps.apply(config_map("settings"))
    running = asyncio.create_task(steps.execute(order))
    await stalling.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name) is None
    again = Steps(connection, namespace.name)
    assert await again.execute(again.apply(config_map("settings"))) == DONE
    assert again.owner.recorded == stalling.recorded


async def test_a_cancelled_execution_applies_nothing_more(
    steps: Steps, namespace: Namespace
) -> None:
    names = [f"settings-{number}" for number in range(200)]
    order = steps.apply(*map(config_map, names))

    async def applied() -> int:
        found = await namespace.cluster.list("v1", "ConfigMap", namespace.name)
        return sum(one["metadata"]["name"] in names for one in found)

    running = asyncio.create_task(steps.execute(order))
    while not (before := await applied()):
        assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    at_once = await applied()
    await asyncio.sleep(0.5)  # the server still carries out what it had taken
    after = await applied()
    assert before <= at_once <= after <= at_once + AT_ONCE < len(names)
    await asyncio.sleep(0.5)
    assert await applied() == after


# --- kinds of developers --------------------------------------------------------------------------


async def greet(task: CustomTask, context: StepContext) -> TaskExecution:
    """Keep a greeting in a ConfigMap."""
    wanted = await context.objects.enhanced([config_map("greeting", text=task.spec["text"])])
    await context.objects.claim(wanted)

    async def begin() -> None:
        await context.objects.apply(wanted)

    async def look() -> TaskState:
        if task.spec["text"] == "bad":
            raise LookupError("no such greeting")
        return TASK_DONE

    return TaskExecution(begin=begin, look=look, objects=wanted)


async def test_developers_have_kinds_of_their_own(
    connection: ClusterConnection, namespace: Namespace
) -> None:
    steps = Steps(connection, namespace.name, kinds={"Greet": greet}, intervals=INTERVALS)
    order = steps.order([task("Greet", text="hello")], {})
    assert await steps.execute(order) == DONE
    assert steps.owner.names == ["ConfigMap one-anchor", "ConfigMap greeting"]
    live = await namespace.until("v1", "ConfigMap", "greeting", bool)
    assert live["data"] == {"text": "hello"}
    bad = await steps.execute(steps.order([task("Greet", text="bad")], {}))
    assert failed(bad, TasksOutcome.RETRY) == "LookupError: no such greeting"
    unknown = await steps.execute(steps.order([task("Sing")], {}))
    assert failed(unknown) == (
        "no kind of task 'Sing'; this cluster's worker has Apply, Delete, Dummy, Greet, "
        "KudoOperator, Pipe, Toggle"
    )
