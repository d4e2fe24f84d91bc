"""Tasks of packages on a real API server."""

import asyncio
import base64
import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kubernetes_asyncio.client.exceptions import ApiException

from kubernetes.manifests import config_map, deployment, job, stateful_set
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import DONE, Object, Steps, ended, failed, task
from pauses import until
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.messages.packages import TasksInput, TasksOutcome
from temporal_plans.worker.control_plane.stages import PodFate


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


@pytest.mark.parametrize("value", ["x", "", "2", "yes"])
async def test_a_toggle_needs_true_or_false(steps: Steps, value: str) -> None:
    result = await steps.execute(toggled(steps, value))
    assert "parameter ON is not true or false" in failed(result)
    assert steps.owner.recorded == []


async def test_a_toggle_needs_its_parameter(steps: Steps) -> None:
    made = [task("Toggle", parameter="NONE", resources=["all.yaml"])]
    order = steps.order(made, {"all.yaml": [config_map("extra")]})
    assert "parameter NONE is not defined" in failed(await steps.execute(order))


async def test_a_toggle_waits_for_what_it_applies(steps: Steps) -> None:
    made = [task("Toggle", parameter="ON", resources=["all.yaml"])]
    hanging = {"all.yaml": [deployment("app", fate=PodFate.HANG)]}
    order = steps.order(made, hanging, parameters=[{"name": "ON", "default": "true"}])
    result = await steps.execute(order)
    assert result.outcome is TasksOutcome.WAITING
    assert result.reason.startswith("Deployment app: ")


async def test_a_job_is_waited_for(steps: Steps) -> None:
    order = steps.apply(job("copy", fate=PodFate.HANG))
    result = await steps.execute(order)
    assert (result.outcome, result.done) == (TasksOutcome.WAITING, ())
    assert result.reason.startswith("Job copy: ")


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


@pytest.mark.parametrize("kind", ["Apply", "Delete", "Toggle"])
async def test_a_task_that_can_never_be_executed_keeps_all_from_it(
    steps: Steps, namespace: Namespace, kind: str
) -> None:
    tasks = [
        task("Apply", resources=["all.yaml"]),
        task(kind, "bad", resources=["none.yaml"], parameter="ON"),
    ]
    on = [{"name": "ON", "default": "true"}]
    order = steps.order(tasks, {"all.yaml": [config_map("settings")]}, parameters=on)
    result = await steps.execute(order)
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
    """Again and again: one deletion may come just before the step begins to look once more."""
    order = steps.apply(deployment("app", fate=PodFate.HANG), uid="run-2")
    running = asyncio.create_task(ended(steps, order))
    await namespace.until("apps/v1", "Deployment", "app", is_of_run("run-2"))

    async def noticed() -> bool:
        with suppress(ApiException):  # it is gone
            await namespace.cluster.delete("apps/v1", "Deployment", "app", namespace.name)
        return running.done()

    await until(noticed)
    assert "Deployment app: it " in failed(await running, TasksOutcome.RETRY)
    assert (await steps.execute(order)).outcome is TasksOutcome.WAITING


def is_of_run(uid: str) -> Callable[[Any], bool]:
    def wanted(live: Any) -> bool:
        key = "kudo.dev/last-plan-execution-uid"
        return bool(live and live["metadata"]["annotations"].get(key) == uid)

    return wanted


# --- objects that others have -------------------------------------------------------------------


async def test_an_object_of_another_instance_is_left_alone(
    steps: Steps, namespace: Namespace
) -> None:
    await steps.execute(steps.apply(config_map("settings", key="theirs"), instance="two"))
    steps.owner.recorded.clear()
    reason = (
        "ConfigMap settings: it belongs to the instance two; give it another name in the template, "
        "or uninstall that instance"
    )
    result = await steps.execute(steps.apply(config_map("settings", key="ours")))
    assert failed(result) == reason
    assert str(result.about) == "ConfigMap settings"
    deleting = steps.order(
        [task("Delete", resources=["all.yaml"])], {"all.yaml": [config_map("settings")]}
    )
    assert failed(await steps.execute(deleting)) == reason
    assert steps.owner.recorded == []
    live = await namespace.until("v1", "ConfigMap", "settings", bool)
    assert live["data"] == {"key": "theirs"}


async def test_an_object_that_another_controls_is_left_alone(
    steps: Steps, namespace: Namespace
) -> None:
    await namespace.apply(deployment("app"))
    [replicas] = await until(
        lambda: namespace.cluster.list("apps/v1", "ReplicaSet", namespace.name)
    )
    name = replicas["metadata"]["name"]
    manifest = {**deployment(name), "kind": "ReplicaSet"}
    result = await steps.execute(steps.apply(manifest))
    assert failed(result).startswith(f"ReplicaSet {name}: it is controlled by Deployment app; ")


async def test_an_object_without_an_instance_is_taken_over(
    steps: Steps, namespace: Namespace
) -> None:
    """What a client applied that computes changes itself: its fields go when they are not sent."""
    metadata = {
        "name": "settings",
        "namespace": namespace.name,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    before = {**config_map("settings", gone="1", kept="1"), "metadata": metadata}
    await namespace.cluster.create(before, field_manager="kubectl-client-side-apply")
    await namespace.apply(config_map("settings", others="3"))
    for _ in range(2):
        assert await steps.execute(steps.apply(config_map("settings", kept="2"))) == DONE
    live = await namespace.until("v1", "ConfigMap", "settings", bool)
    assert live["data"] == {"kept": "2", "others": "3"}
    managers = {one["manager"] for one in live["metadata"]["managedFields"]}
    assert managers == {"temporal-plans", "tests"}


# --- what can't be changed ----------------------------------------------------------------------


def with_image(manifest: Object, image: str) -> Object:
    made = copy.deepcopy(manifest)
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


async def test_a_job_that_has_ended_is_replaced_when_its_template_changes(
    steps: Steps, namespace: Namespace
) -> None:
    assert await ended(steps, steps.apply(job("once"))) == DONE
    first = await namespace.until("batch/v1", "Job", "once", bool)
    assert await ended(steps, steps.apply(job("once"))) == DONE
    same = await namespace.until("batch/v1", "Job", "once", bool)
    assert same["metadata"]["uid"] == first["metadata"]["uid"]
    assert await ended(steps, steps.apply(with_image(job("once"), "other"))) == DONE
    changed = await namespace.until("batch/v1", "Job", "once", bool)
    assert changed["metadata"]["uid"] != first["metadata"]["uid"]


async def test_a_job_that_runs_is_not_replaced(steps: Steps, namespace: Namespace) -> None:
    running = job("once", fate=PodFate.HANG)
    await steps.execute(steps.apply(running))
    reason = failed(await steps.execute(steps.apply(with_image(running, "other"))))
    assert "field is immutable" in reason
    assert "spec.template" in reason
    assert "it runs with another template: wait for its end or delete it" in reason


async def test_a_field_that_can_not_be_changed_is_named(steps: Steps) -> None:
    await ended(steps, steps.apply(stateful_set("db", storage="1Gi")))
    result = await steps.execute(steps.apply(stateful_set("db", storage="2Gi")))
    reason = failed(result)
    assert reason.startswith("StatefulSet db: ")
    assert "updates to statefulset spec for fields other than" in reason
    assert str(result.about) == "StatefulSet db"


async def test_two_entries_with_the_same_key_are_said_to_be_so(steps: Steps) -> None:
    manifest = deployment("app")
    port = {"containerPort": 80}
    manifest["spec"]["template"]["spec"]["containers"][0]["ports"] = [port, port]
    reason = failed(await steps.execute(steps.apply(manifest)))
    assert "duplicate entries for key" in reason
    assert reason.count("keep one of the entries with the same key in the template") == 1


async def test_a_job_that_fails_is_an_error(steps: Steps) -> None:
    result = await ended(steps, steps.apply(job("once", fate=PodFate.FAIL)))
    assert failed(result).startswith("Job once: the Job failed: ")


# --- secrets ------------------------------------------------------------------------------------


async def test_values_of_secrets_are_in_no_reason(
    connection: ClusterConnection, namespace: Namespace
) -> None:
    steps = Steps(connection, namespace.name, secrets={"PASS": "Hidden_Value"})
    parameters = [{"name": "PASSWORD", "default": "x"}]

    def order(text: str) -> TasksInput:
        return steps.order(
            [task("Apply", resources=["all.yaml"])],
            {"all.yaml": text},
            parameters=parameters,
            secrets={"PASSWORD": "pass"},
        )

    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\n"
    known = order(secret + "data: {it: '{{ .Params.PASSWORD | b64enc }}'}")
    assert await steps.execute(known) == DONE
    live = await namespace.until("v1", "Secret", "it", bool)
    assert base64.b64decode(live["data"]["it"]) == b"Hidden_Value"
    named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Params.PASSWORD }}'}"
    for text in (
        named,
        "{{ .Params.PASSWORD }}: [",
        "{{ fail .Params.PASSWORD }}",
        secret + "data: {it: '{{ .Params.PASSWORD }}'}",
        secret + "stringData: {it: {inner: '{{ .Params.PASSWORD }}'}}",
    ):
        result = await steps.execute(order(text))
        assert result.outcome is TasksOutcome.FAILED
        assert "Hidden" not in result.model_dump_json()


async def test_a_secret_that_is_not_there_is_named(steps: Steps) -> None:
    order = steps.apply(config_map("it"), secrets={"PASSWORD": "db/pass"})
    result = await steps.execute(order)
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason == (
        "deploy.phase.step: parameter PASSWORD: secret 'db/pass' was not found; the providers of "
        "this cluster's worker: EnvironmentSecrets"
    )


# --- pods that read what changes ------------------------------------------------------------------


async def test_pods_are_replaced_when_what_they_read_changes(
    steps: Steps, namespace: Namespace
) -> None:
    manifest = deployment("app")
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]

    async def hash_with(*objects: Object) -> str:
        await steps.execute(steps.apply(*objects, manifest))
        live = await namespace.until("apps/v1", "Deployment", "app", bool)
        marks = live["spec"]["template"]["metadata"]["annotations"]
        return str(marks["kudo.dev/dependencies-hash"])

    first = await hash_with(config_map("settings", key="1"))
    assert await hash_with() == first, "the same as it is in the cluster"
    assert await hash_with(config_map("settings", key="2")) != first


# --- kinds ----------------------------------------------------------------------------------------


def definition(group: str) -> Object:
    """A definition as packages of those years write it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "additionalPrinterColumns": [{"name": "A", "type": "string", "JSONPath": ".spec.a"}],
        },
    }


async def test_a_kind_is_known_in_the_step_after_its_definition(
    steps: Steps, namespace: Namespace
) -> None:
    """Both in one step can't be: what is not known can't be prepared."""
    group = f"{namespace.name}.example"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "it"}}
    both = await steps.execute(steps.apply(definition(group), thing))
    assert "apply its CustomResourceDefinition in an earlier step" in failed(both)
    assert await ended(steps, steps.apply(definition(group))) == DONE
    assert await ended(steps, steps.apply({**thing, "spec": {"a": "1"}})) == DONE
    live = await namespace.until(f"{group}/v1", "Thing", "it", bool)
    assert live["spec"] == {"a": "1"}
    deleting = steps.order(
        [task("Delete", resources=["all.yaml"])], {"all.yaml": [thing, definition(group)]}
    )
    assert await ended(steps, deleting) == DONE
    # Also when its kind is gone, which the server lists a moment longer.
    await until(lambda: ended(steps, deleting), lambda result: result == DONE)


async def test_versions_that_clusters_no_longer_have_are_raised(steps: Steps) -> None:
    rbac = "rbac.authorization.k8s.io/v1beta1"
    role: Object = {"apiVersion": rbac, "kind": "Role", "metadata": {"name": "it"}, "rules": []}
    budget: Object = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "it"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "it"}}},
    }
    assert await ended(steps, steps.apply(role, budget)) == DONE
    assert [one.api_version for one in steps.owner.recorded[-1].objects] == [
        "v1",
        "rbac.authorization.k8s.io/v1",
        "policy/v1",
    ]


async def test_an_object_of_the_cluster_belongs_to_the_instance_of_one_namespace(
    steps: Steps, connection: ClusterConnection, namespace: Namespace
) -> None:
    """Two instances of one name have the same labels, in different namespaces."""
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": namespace.name},
        "rules": [],
    }
    assert await steps.execute(steps.apply(role)) == DONE
    other = Steps(connection, "default")
    assert failed(await other.execute(other.apply(role))).startswith(
        f"ClusterRole {namespace.name}: it belongs to the instance one of namespace "
        f"{namespace.name}; give it another name"
    )
    assert other.owner.recorded == []
    order = steps.order([task("Delete", resources=["all.yaml"])], {"all.yaml": [role]})
    assert await ended(steps, order) == DONE


async def test_an_object_of_the_cluster_has_no_owner(steps: Steps, namespace: Namespace) -> None:
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": namespace.name, "namespace": "elsewhere"},
        "rules": [],
    }
    assert await steps.execute(steps.apply(role)) == DONE
    live = await namespace.cluster.get(role["apiVersion"], "ClusterRole", namespace.name)
    assert live is not None
    assert live["metadata"]["labels"]["kudo.dev/instance"] == "one"
    assert "ownerReferences" not in live["metadata"]
    order = steps.order([task("Delete", resources=["all.yaml"])], {"all.yaml": [role]})
    assert await ended(steps, order) == DONE
