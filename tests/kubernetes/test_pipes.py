"""Pipe tasks on a real API server: KWOK plays the pods, and executes ``stat`` and ``tar``."""

import re
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from kubernetes.control_plane import ControlPlane
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Object, Steps, task
from kubernetes.pipe_cluster import Killed, MakingConnection
from pauses import until
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.packages.tasks.pipe import pipe_kind
from temporal_plans.messages.packages import TasksInput, TasksOutcome, TasksResult
from temporal_plans.worker.control_plane.stages import LABEL, PodFate

DONE = TasksResult(outcome=TasksOutcome.DONE, done=("task",))


class Pipes:
    """A step with a Pipe task: a Secret and a ConfigMap of files, and one of an env file."""

    def __init__(self, plane: ControlPlane, connection: ClusterConnection, where: Namespace):
        self.namespace = where
        self.folder = plane.files
        self.mount = f"/{where.name}"
        paths = [f"{self.mount}/{name}" for name in ("password", "in/page", "settings")]
        self.making = MakingConnection(connection, plane.files, paths)
        self.steps = Steps(cast(ClusterConnection, self.making), where.name)

    @property
    def files(self) -> list[dict[str, str]]:
        return [
            {"file": f"{self.mount}/password", "kind": "Secret", "key": "password"},
            {"file": f"{self.mount}/in/page", "kind": "ConfigMap", "key": "page"},
            {"envFile": f"{self.mount}/settings", "kind": "Secret", "key": "settings"},
        ]

    def order(
        self,
        files: Sequence[dict[str, str]] | None = None,
        *,
        attempt: str = "attempt-1",
        fate: PodFate | None = None,
        pod: Object | None = None,
        **options: Any,
    ) -> TasksInput:
        labels = {LABEL: fate.value} if fate else {}
        template: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "any", "labels": labels},
            "spec": {
                "volumes": [{"name": "made", "emptyDir": {}}],
                "initContainers": [
                    {
                        "name": "make",
                        "image": "example/make:1",
                        "volumeMounts": [{"name": "made", "mountPath": self.mount}],
                    }
                ],
            },
        }
        pipe = task("Pipe", pod="pod.yaml", pipe=list(self.files if files is None else files))
        made = self.steps.order([pipe], {"pod.yaml": [pod or template]}, **options)
        return made.but(attempt=attempt)

    async def execute(self, order: TasksInput) -> TasksResult:
        """Execute until there is nothing to wait for."""
        result = await self.steps.execute(order)
        while result.outcome is TasksOutcome.WAITING:
            result = await self.steps.execute(order.but(shown=result.reason))
        return result

    async def kept(self, key: str, kind: str = "Secret", instance: str = "one") -> Object:
        name = f"{instance}.deploy.phase.step.task.{key}"
        return await self.namespace.until("v1", kind, name, bool)

    async def password(self, instance: str = "one") -> str:
        """What is in the Secret: ``UID=`` and the uid of the pod that made it."""
        return b64decode(
            (await self.kept("password", instance=instance))["data"]["password"]
        ).decode()

    async def pod(self, instance: str = "one") -> Object | None:
        name = f"{instance}.deploy.phase.step.task.pipepod"
        return await self.namespace.cluster.get("v1", "Pod", name, self.namespace.name)

    async def until_without_pod(self, instance: str = "one") -> None:
        await until(lambda: self.pod(instance), lambda found: found is None)


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[ClusterConnection]:
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield connection


@pytest.fixture
def pipes(
    control_plane: ControlPlane, connection: ClusterConnection, namespace: Namespace
) -> Pipes:
    return Pipes(control_plane, connection, namespace)


async def test_what_a_pod_makes_is_kept(pipes: Pipes) -> None:
    assert await pipes.execute(pipes.order()) == DONE
    made = await pipes.password()
    assert made.startswith("UID=")
    secret = await pipes.kept("password")
    assert secret["type"] == "Opaque"
    assert secret["metadata"]["labels"]["kudo.dev/instance"] == "one"
    assert secret["metadata"]["annotations"]["temporal-plans/step-run"] == "attempt-1"
    page = await pipes.kept("page", "ConfigMap")
    assert b64decode(page["binaryData"]["page"]).decode() == made
    settings = await pipes.kept("settings")
    assert f"UID={b64decode(settings['data']['UID']).decode()}" == made
    await pipes.until_without_pod()
    assert pipes.steps.owner.names == [
        "ConfigMap one-anchor",
        "Pod one.deploy.phase.step.task.pipepod",
        "Secret one.deploy.phase.step.task.password",
        "ConfigMap one.deploy.phase.step.task.page",
        "Secret one.deploy.phase.step.task.settings",
    ]
    gone = [str(one) for one in pipes.steps.owner.recorded[-1].gone]
    assert gone == ["Pod one.deploy.phase.step.task.pipepod"], "an inventory has it no more"


async def test_what_was_made_for_a_run_of_the_step_is_not_made_again(pipes: Pipes) -> None:
    assert await pipes.execute(pipes.order()) == DONE
    before = await pipes.kept("password")
    await pipes.until_without_pod()
    pipes.making.seams.clear()
    assert await pipes.execute(pipes.order()) == DONE
    assert pipes.making.seams == ["delete Pod"]
    assert await pipes.kept("password") == before


async def test_a_restart_of_the_step_makes_it_again(pipes: Pipes) -> None:
    assert await pipes.execute(pipes.order()) == DONE
    before = await pipes.password()
    assert await pipes.execute(pipes.order(attempt="attempt-2")) == DONE
    assert await pipes.password() != before
    kept = await pipes.kept("settings")
    assert kept["metadata"]["annotations"]["temporal-plans/step-run"] == "attempt-2"


async def test_a_pod_of_an_earlier_run_of_the_step_is_replaced(pipes: Pipes) -> None:
    pipes.making.killed_at = (1, "after")
    with pytest.raises(Killed):
        await pipes.execute(pipes.order())
    assert pipes.making.seams == ["apply ConfigMap", "apply Pod"]
    old = await pipes.pod()
    assert old is not None
    pipes.making.killed_at = None
    assert await pipes.execute(pipes.order(attempt="attempt-2")) == DONE
    assert await pipes.password() != f"UID={old['metadata']['uid']}"


async def test_a_worker_may_be_killed_at_any_moment(pipes: Pipes) -> None:
    whole = await pipes.execute(pipes.order(instance="whole"))
    assert whole == DONE
    seams = list(pipes.making.seams)
    assert seams == [
        "apply ConfigMap", "apply Pod",
        "stat", "tar", "stat", "tar", "stat", "tar",
        "apply Secret", "apply ConfigMap", "apply Secret", "delete Pod",
    ]  # fmt: skip
    for number, name in enumerate(seams):
        for moment in ("before", "after"):
            await _killed_once(pipes, number, moment, f"{name.split()[0]}{number}{moment}")


async def _killed_once(pipes: Pipes, number: int, moment: str, instance: str) -> None:
    """Whatever was applied before the kill is what is there in the end: of one pod."""
    order = pipes.order(instance=instance)
    pipes.making.seams.clear()
    pipes.making.killed_at = (number, moment)
    with pytest.raises(Killed):
        await pipes.execute(order)
    pod = await pipes.pod(instance)
    pipes.making.killed_at = None
    assert await pipes.execute(order) == DONE, instance
    made = await pipes.password(instance)
    if pod is not None:
        assert made == f"UID={pod['metadata']['uid']}", instance
    page = await pipes.kept("page", "ConfigMap", instance)
    assert b64decode(page["binaryData"]["page"]).decode() == made, instance
    versions = [(await pipes.kept(key, instance=instance)) for key in ("password", "settings")]
    await pipes.until_without_pod(instance)
    assert await pipes.execute(order) == DONE
    again = [(await pipes.kept(key, instance=instance)) for key in ("password", "settings")]
    assert again == versions, instance


async def test_an_execution_that_was_overtaken_keeps_what_the_other_made(pipes: Pipes) -> None:
    """A frozen worker goes on: its pod was lost meanwhile, and another one made the files again."""
    order, frozen = pipes.order(), pipes.making.seams
    kept: list[str] = []

    async def overtake() -> None:
        pipes.making.meanwhile, pipes.making.seams = None, []
        pipes.steps.environment = ActivityEnvironment()
        pod = "one.deploy.phase.step.task.pipepod"
        await pipes.namespace.cluster.delete("v1", "Pod", pod, pipes.namespace.name)
        await pipes.until_without_pod()
        assert await pipes.execute(order) == DONE
        kept.append(await pipes.password())

    pipes.making.meanwhile = overtake
    assert await pipes.execute(order) == DONE
    assert frozen == ["apply ConfigMap", "apply Pod", *["stat", "tar"] * 3, "delete Pod"]
    assert kept == [await pipes.password()]


async def test_files_of_a_pod_that_was_replaced_are_not_kept(pipes: Pipes) -> None:
    """Some may be of the one, and some of the other."""
    order, frozen = pipes.order(), pipes.making.seams

    async def overtake() -> None:
        pipes.making.after_reading, pipes.making.seams = None, []
        pod = "one.deploy.phase.step.task.pipepod"
        await pipes.namespace.cluster.delete("v1", "Pod", pod, pipes.namespace.name)
        await pipes.until_without_pod()

    pipes.making.after_reading = overtake
    result = await pipes.execute(order)
    assert result.outcome is TasksOutcome.RETRY
    assert result.reason.endswith("pipepod: it was replaced while its files were read")
    assert frozen[-1] == "tar"
    assert await pipes.execute(order) == DONE


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        pytest.param("none", "stat ended with exit code 1: is the file there?", id="not-there"),
        pytest.param("folder", "it is a folder", id="folder"),
        pytest.param("link", "it is a link", id="link"),
        pytest.param("large", "it has 1048577 bytes, at most 1048576 fit", id="too-large"),
    ],
)
async def test_a_file_that_can_not_be_kept_fails_the_step(
    pipes: Pipes, file: str, problem: str
) -> None:
    folder = pipes.folder / pipes.mount.lstrip("/")
    (folder / "folder").mkdir(parents=True)
    (folder / "link").symlink_to("password")
    (folder / "large").write_bytes(bytes(1_048_577))
    files = [{"file": f"{pipes.mount}/{file}", "kind": "Secret", "key": "key"}]
    result = await pipes.execute(pipes.order(files))
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason == (
        "deploy.phase.step.task: Pod one.deploy.phase.step.task.pipepod: "
        f"{pipes.mount}/{file} can't be read: {problem}"
    )


async def test_a_wrong_line_of_an_env_file_fails_the_step_without_its_content(
    pipes: Pipes,
) -> None:
    folder = pipes.folder / pipes.mount.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "wrong").write_text("A=1\nsecret words\n")
    files = [{"envFile": f"{pipes.mount}/wrong", "kind": "Secret", "key": "key"}]
    result = await pipes.execute(pipes.order(files))
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason.endswith("/wrong: line 2: has no =; write NAME=VALUE lines in UTF-8")


async def test_a_file_of_the_largest_size_is_kept(pipes: Pipes) -> None:
    folder = pipes.folder / pipes.mount.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "large").write_bytes(bytes(1_048_576))
    files = [
        {"file": f"{pipes.mount}/large", "kind": kind, "key": f"key{kind}"}
        for kind in ("Secret", "ConfigMap")
    ]
    result = await pipes.execute(pipes.order(files))
    assert result.reason == ""


async def test_a_pod_that_is_no_pipe_is_refused(pipes: Pipes) -> None:
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": ["main"]}}
    result = await pipes.execute(pipes.order(pod=pod))
    assert result.outcome is TasksOutcome.FAILED
    assert result.reason.startswith(
        "deploy.phase.step.task: template pod.yaml: spec.containers: must be absent; "
    )
    assert await pipes.pod() is None


async def test_a_pod_that_hangs_is_waited_for(pipes: Pipes) -> None:
    pod = "Pod one.deploy.phase.step.task.pipepod"
    order = pipes.order(fate=PodFate.HANG)
    result = await pipes.steps.execute(order)
    while "ContainerCreating" not in result.reason:
        assert result.outcome is TasksOutcome.WAITING
        result = await pipes.steps.execute(order.but(shown=result.reason))
    reason = f"{pod}: the pod is Pending and not ready: waiter: ContainerCreating"
    assert result.reason == reason
    assert str(result.about) == pod


@pytest.mark.parametrize(
    ("environ", "image"),
    [
        ({}, "busybox"),
        ({"TEMPORAL_PLANS_PIPE_IMAGE": "registry.example/busybox:1"}, "registry.example/busybox:1"),
    ],
)
async def test_the_image_of_the_waiting_container_is_the_workers(
    pipes: Pipes, environ: dict[str, str], image: str
) -> None:
    pipes.steps = Steps(
        cast(ClusterConnection, pipes.making),
        pipes.namespace.name,
        kinds={"Pipe": pipe_kind(environ)},
    )
    await pipes.steps.execute(pipes.order(fate=PodFate.HANG))
    pod = await pipes.pod()
    assert pod is not None
    assert [one["image"] for one in pod["spec"]["containers"]] == [image]


async def test_a_pod_that_crashes_is_given_up(pipes: Pipes) -> None:
    result = await pipes.execute(pipes.order(fate=PodFate.CRASH))
    assert result.outcome is TasksOutcome.FAILED
    # It restarts once a second, and may do so between two looks.
    assert re.search(r"the container waiter failed [56] times", result.reason), result.reason
    assert await pipes.pod() is not None, "people can look at it"


async def test_a_pod_that_was_lost_is_made_again(pipes: Pipes) -> None:
    order = pipes.order(fate=PodFate.FAIL)
    result = await pipes.execute(order)
    assert result.outcome is TasksOutcome.RETRY
    assert "Pod one.deploy.phase.step.task.pipepod: the pod ended: it failed" in result.reason
    await pipes.until_without_pod()
    assert await pipes.execute(pipes.order()) == DONE


async def test_no_refusal_shows_a_secret(pipes: Pipes, control_plane: ControlPlane) -> None:
    """A policy of the cluster quotes what it refuses."""
    name = pipes.namespace.name
    policy: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["secrets"],
                    }
                ],
            },
            "validations": [
                {
                    "expression": "!has(object.data)",
                    "messageExpression": "'not with ' + string(object.data['password'])",
                }
            ],
        },
    }
    binding: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    cluster = pipes.namespace.cluster
    await cluster.apply(policy)
    await cluster.apply(binding)
    probe = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "probe", "namespace": name},
        "data": {"password": "cHJvYmU="},
    }

    async def refused() -> bool:
        try:
            await cluster.apply(probe, dry_run="All")
        except Exception as error:
            return "not with" in str(error)
        return False

    try:
        await until(refused)
        result = await pipes.execute(pipes.order())
    finally:
        for one in (binding, policy):
            await cluster.delete(one["apiVersion"], one["kind"], name)
    assert result.outcome in (TasksOutcome.FAILED, TasksOutcome.RETRY)
    assert "not with *****" in result.reason
    assert "VUlEP" not in result.reason
    assert "UID=" not in result.reason
