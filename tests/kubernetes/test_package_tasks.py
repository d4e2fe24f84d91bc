"""Tasks of packages on a real API server."""

from collections.abc import AsyncIterator

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import config_map, deployment
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Steps
from temporal_plans.activities.kubernetes.connection import ClusterAccess, ClusterConnection
from temporal_plans.messages.packages import TasksOutcome, TasksResult


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[ClusterConnection]:
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield connection


@pytest.fixture
def steps(connection: ClusterConnection, namespace: Namespace) -> Steps:
    return Steps(connection, namespace.name)


DONE = TasksResult(outcome=TasksOutcome.DONE, done=("task",))


async def test_what_is_applied_is_marked_recorded_and_becomes_healthy(
    steps: Steps, namespace: Namespace
) -> None:
    order = steps.apply(config_map("settings", key="value"), deployment("app"))
    result = await steps.execute(order)
    while result.outcome is TasksOutcome.WAITING:
        assert result.reason.startswith("Deployment app: ")
        result = await steps.execute(order.but(shown=result.reason))
    assert result == DONE
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
