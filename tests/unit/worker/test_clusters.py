"""The clusters that a process serves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from temporalio.client import Client
from temporalio.worker import WorkerConfig

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.cli.processes.cluster_options import cluster_access
from temporal_plans.cli.processes.process import WorkerSettings
from temporal_plans.worker.clusters import ClusterSettingError
from temporal_plans.worker.plugin import PlansPlugin

PROD = ClusterAccess("prod")


async def nothing(task: Any, context: Any) -> Any: ...


def test_a_worker_of_a_cluster_has_the_activities_of_the_cluster_alone() -> None:
    plugin = PlansPlugin(clusters=[PROD], task_kinds={"Own": nothing})
    client = cast(Client, object())
    config = plugin.configure_worker(WorkerConfig(client=client, task_queue="kubernetes/prod"))
    activities: list[Callable[..., Any]] = [*config.get("activities", [])]
    names = {each.__name__ for each in activities}
    assert "run_package_tasks" in names
    assert not names & {"start_plan", "reserve", "check_change"}
    assert not config.get("workflows")


def test_a_cluster_that_the_plugin_does_not_have_is_refused() -> None:
    with pytest.raises(ClusterSettingError, match="no 'test'; give PlansPlugin"):
        PlansPlugin(clusters=[PROD]).configure_worker(WorkerConfig(task_queue="kubernetes/test"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"clusters": [PROD, PROD]}, "prod twice"),
        ({"task_kinds": {"Apply": nothing}}, "Apply is built in"),
        ({"task_kinds": {"Own": 5}}, "Own is not a function"),
    ],
)
def test_what_can_not_be_served_is_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ClusterSettingError, match=text):
        PlansPlugin(**settings)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "temporal_plans.activities.packages.tasks", None)
    with pytest.raises(ClusterSettingError, match=r"temporal-plans\[kubernetes\]"):
        PlansPlugin(clusters=[PROD])
    PlansPlugin()


@pytest.mark.parametrize(
    ("text", "context"), [("prod={}", None), ("prod={}:ctx", "ctx"), ("prod={}:a:b/c", "a:b/c")]
)
def test_a_cluster_is_a_name_a_kubeconfig_and_a_context(
    text: str, context: str | None, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.touch()
    found = cluster_access([text.format(kubeconfig), "other"])
    assert found == (ClusterAccess("prod", kubeconfig, context), ClusterAccess("other"))


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([""], "must not be empty"),
        (["a/b"], "must not contain '/'"),
        (["a", "a"], "twice"),
        (["a=/none/such"], "no file"),
        (["a="], "must be NAME, NAME=KUBECONFIG or"),
        (["a=x:"], "must be NAME, NAME=KUBECONFIG or"),
    ],
)
def test_a_text_that_is_no_cluster_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(typer.BadParameter, match=problem):
        cluster_access(texts)


@pytest.mark.parametrize(
    ("plans", "queues"),
    [("plans", "plans, kubernetes/prod"), (None, "kubernetes/prod")],
)
def test_a_worker_names_its_queues(plans: str | None, queues: str) -> None:
    assert WorkerSettings(task_queue=plans, clusters=(PROD,)).queues == queues
