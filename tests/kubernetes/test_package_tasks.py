"""Tasks of packages on a real API server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import config_map, deployment
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Object, Steps, task
from kubernetes.stages import PodFate
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.messages.packages import TasksInput, TasksOutcome, TasksResult

PLACE = "deploy.phase.step.task: "


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[ClusterConnection]:
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield connection


@pytest.fixture
def steps(connection: ClusterConnection, namespace: Namespace) -> Steps:
    return Steps(connection, namespace.name)


DONE = TasksResult(outcome=TasksOutcome.DONE, done=("task",))


async def ended(steps: Steps, order: TasksInput) -> TasksResult:
    """Execute a step, as its workflow does, until it no longer waits."""
    result = await steps.execute(order)
    while result.outcome is TasksOutcome.WAITING:
        assert result.about is not None
        assert result.reason.startswith(f"{result.about}: ")
        result = await steps.execute(order.but(shown=result.reason))
    return result


def failed(result: TasksResult, outcome: TasksOutcome = TasksOutcome.FAILED) -> str:
    """The reason of a task that failed, without its place."""
    assert result.outcome is outcome, result
    assert result.reason.startswith(PLACE)
    return result.reason.removeprefix(PLACE)


async def test_what_is_applied_is_marked_recorded_and_becomes_healthy(
    steps: Steps, namespace: Namespace
) -> None:
    order = steps.apply(config_map("settings", key="value"), deployment("app"))
    assert await ended(steps, order) == DONE
    assert steps.owner.names == ["ConfigMap one-anchor", "ConfigMap settings", "Deployment app"]
    live = await namespace.until("v1", "ConfigMap", "settings", bool)
    anchor = await namespace.until("v1", "ConfigMap", "one-anchor", bool)
    assert live["metadata"]["labels"] == {
        "heritage": "kudo",
        "kudo.dev/operator": "web",
        "kudo.dev/instance": "one",
    }
    assert live["metadata"]["annotations"] == {
        "kudo.dev/plan": "deploy",
        "kudo.dev/phase": "phase",
        "kudo.dev/step": "step",
        "kudo.dev/last-plan-execution-uid": "run-1",
    }
    [owner] = live["metadata"]["ownerReferences"]
    assert owner["uid"] == anchor["metadata"]["uid"]


async def test_nothing_is_applied_by_a_run_that_is_over(steps: Steps, namespace: Namespace) -> None:
    steps.owner.over = True
    result = await steps.execute(steps.apply(config_map("settings")))
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason == (
        "deploy.phase.step: service/one refuses: the run of plan deploy is over"
    )
    assert await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name) is None
    assert await namespace.cluster.get("v1", "ConfigMap", "one-anchor", namespace.name) is None


async def test_what_is_deleted_is_gone(steps: Steps, namespace: Namespace) -> None:
    objects = [config_map("settings"), deployment("app"), thing()]
    await ended(steps, steps.apply(*objects[:2]))
    order = steps.order([task("Delete", resources=["all.yaml"])], {"all.yaml": objects})
    assert await ended(steps, order) == DONE
    assert await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name) is None
    assert await namespace.cluster.list("v1", "Pod", namespace.name) == []
    assert await steps.execute(order) == DONE, "there is nothing to delete"


def thing() -> Object:
    return {"apiVersion": "none.example/v1", "kind": "Thing", "metadata": {"name": "it"}}


def toggled(steps: Steps, value: str) -> TasksInput:
    return steps.order(
        [task("Toggle", parameter="ON", resources=["all.yaml"])],
        {"all.yaml": [config_map("extra")]},
        parameters=[{"name": "ON", "default": "true"}],
        given={"ON": value},
    )


async def test_a_toggle_applies_and_deletes(steps: Steps, namespace: Namespace) -> None:
    assert await steps.execute(toggled(steps, "true")) == DONE
    assert await namespace.cluster.get("v1", "ConfigMap", "extra", namespace.name)
    assert await ended(steps, toggled(steps, "0")) == DONE
    assert await namespace.cluster.get("v1", "ConfigMap", "extra", namespace.name) is None
    assert "parameter ON is not true or false" in failed(await steps.execute(toggled(steps, "x")))


@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        ({"done": True}, TasksOutcome.DONE),
        ({"wantErr": True}, TasksOutcome.RETRY),
        ({"wantErr": True, "fatal": True}, TasksOutcome.FAILED),
        ({}, TasksOutcome.WAITING),
    ],
)
async def test_a_dummy_does_nothing(
    steps: Steps, spec: dict[str, Any], outcome: TasksOutcome
) -> None:
    result = await steps.execute(steps.order([task("Dummy", **spec)], {}))
    assert result.outcome is outcome
    assert steps.owner.recorded == []


async def test_all_tasks_are_attempted(steps: Steps, namespace: Namespace) -> None:
    tasks = [
        task("Dummy", "failing", wantErr=True),
        task("Dummy", "waiting"),
        task("Apply", resources=["all.yaml"]),
    ]
    result = await steps.execute(steps.order(tasks, {"all.yaml": [config_map("settings")]}))
    assert (result.outcome, result.done) == (TasksOutcome.RETRY, ("task",))
    assert result.reason.startswith("deploy.phase.step.failing: it fails")
    assert await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name)


async def test_a_task_that_can_never_be_executed_keeps_all_from_it(
    steps: Steps, namespace: Namespace
) -> None:
    tasks = [
        task("Apply", resources=["all.yaml"]),
        task("Apply", "bad", resources=["none.yaml"]),
    ]
    result = await steps.execute(steps.order(tasks, {"all.yaml": [config_map("settings")]}))
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason.startswith("deploy.phase.step.bad: no template 'none.yaml'")
    assert await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ .Params.NONE }}", "all.yaml:1:"),
        ("kind: [", "template all.yaml gives no objects"),
        ("apiVersion: v1\nkind: ConfigMap", "ConfigMap without metadata"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "ConfigMap without a name"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: it}", "Thing it: the cluster has no"),
    ],
)
async def test_what_a_template_gives_may_be_wrong(steps: Steps, text: str, reason: str) -> None:
    order = steps.order([task("Apply", resources=["all.yaml"])], {"all.yaml": text})
    assert failed(await steps.execute(order)).startswith(reason)
    assert steps.owner.recorded == []


async def test_drift_is_corrected_while_the_step_runs(steps: Steps, namespace: Namespace) -> None:
    order = steps.apply(config_map("settings", key="value"), deployment("app", fate=PodFate.HANG))
    waiting = await steps.execute(order)
    assert waiting.outcome is TasksOutcome.WAITING
    await namespace.apply(config_map("settings", key="other"))
    await steps.execute(order)
    live = await namespace.until("v1", "ConfigMap", "settings", bool)
    assert live["data"] == {"key": "value"}


async def test_an_object_that_is_deleted_meanwhile_is_applied_again(
    steps: Steps, namespace: Namespace
) -> None:
    order = steps.apply(deployment("app", fate=PodFate.HANG))
    shown = await steps.execute(order)
    while (again := await steps.execute(order.but(shown=shown.reason))).reason != shown.reason:
        shown = again
    running = asyncio.create_task(steps.execute(order.but(shown=shown.reason)))
    await asyncio.sleep(0.5)
    await namespace.cluster.delete("apps/v1", "Deployment", "app", namespace.name)
    assert "Deployment app: it " in failed(await running, TasksOutcome.RETRY)
    assert (await steps.execute(order)).outcome is TasksOutcome.WAITING
