"""Packages that install others: the tasks run as in the worker of a cluster, but without one."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from builders.packages import package_files, write_package
from pauses import until
from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.mechanics.secrets import EnvironmentSecrets, SecretLookup
from temporal_plans.activities.packages.package_cache import PackageCache
from temporal_plans.activities.packages.package_tasks import PackageTaskActivities
from temporal_plans.activities.packages.service_removal import ServiceRemovalActivities
from temporal_plans.activities.packages.step_execution import TaskIntervals
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import PackageDefinition, definition_of
from temporal_plans.domain.plans.commands import Command, Outcome
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.packages.nested import load_tree
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.messages.contents import ContentStatus, content_id
from temporal_plans.messages.owners import StartPlan, UninstallRequest
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    PackageConfigurations,
    PackageDeployResult,
)
from temporal_plans.messages.plan_views import PlanView
from workflows.package_programs import ScriptedCluster
from workflows.plan_kit import Kit

OPERATOR = """\
name: {name}
operatorVersion: "{version}"
kubernetesVersion: "1.25"
tasks:
  - {{name: inner, kind: KudoOperator, spec: {{package: ./inner, parameterFile: inner.yaml}}}}
  - {{name: pass, kind: Dummy, spec: {{done: true}}}}
  - {{name: fail, kind: Dummy, spec: {{wantErr: true, fatal: true}}}}
  - {{name: hang, kind: Dummy, spec: {{}}}}
plans:
  deploy: {deploy}
  update: {update}
  upgrade: {deploy}
  maintain: {maintain}
"""

PARAMETERS = """\
parameters:
  - {name: SIZE, default: "3"}
  - {name: FIXED, default: "one", immutable: true}
  - {name: EXTRA, default: ""}
  - {name: PASSWORD, default: "", secret: true}
"""

FILE = """\
SIZE: "{{ .Params.SIZE }}"
{{ if .Params.EXTRA }}EXTRA: {{ .Params.EXTRA }}{{ end }}
{{ if .Params.PASSWORD }}PASSWORD: {{ .Params.PASSWORD }}{{ end }}
"""


def plan(*tasks: str) -> str:
    """A plan of one step."""
    step = f"{{name: s, tasks: [{', '.join(tasks)}]}}"
    return f"{{strategy: serial, phases: [{{name: p, strategy: serial, steps: [{step}]}}]}}"


def files(name: str, deploy: str, update: str = "", version: str = "1.0.0") -> dict[str, bytes]:
    operator = OPERATOR.format(
        name=name,
        version=version,
        deploy=deploy,
        update=update or deploy,
        maintain=plan("hang"),
    )
    if "inner" not in deploy:  # the innermost one has no other
        operator = "\n".join(line for line in operator.split("\n") if "KudoOperator" not in line)
    return package_files(operator, PARAMETERS, {"inner.yaml": FILE})


def nested_files(inner: Mapping[str, bytes], version: str = "1.0.0") -> dict[str, bytes]:
    below = {f"inner/{path}": content for path, content in inner.items()}
    return files("outer", plan("inner"), version=version) | below


class NoCluster:
    """The connection of a worker whose tasks ask no cluster for anything."""

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Cluster, None]:
        yield cast(Cluster, None)


class Outer:
    """A service ``outer`` whose package installs ``inner``, its plans, and its child's."""

    def __init__(self, plans: Kit, cluster: str, folder: Path) -> None:
        self.name = f"outer-{uuid4()}"
        self.child = f"{self.name}-inner"
        self._plans = plans
        self._cluster = cluster
        self._folder = folder
        self._contents = content_store(plans.client, {}, task_queue=plans.queue)

    async def stored(self, files: Mapping[str, bytes]) -> PackageDefinition:
        """The package as ``deploy`` stores it, with the nested one."""
        tree = load_tree(write_package(self._folder / str(uuid4()), files))
        for each in tree.packages.values():
            assert await self._contents.put(each.archive) == each.digest
        return definition_of(tree.root.package, tree.root.digest)

    async def install(
        self, files: Mapping[str, bytes], secrets: Mapping[str, str] | None = None, **values: str
    ) -> None:
        change = ChangeRequest(
            package=await self.stored(files),
            parameters=dict(values),
            secrets=dict(secrets or {}),
            instance=self.name,
            cluster=self._cluster,
            namespace="prod",
        )
        await self._plans.client.start_workflow(
            "Instance",
            InstanceInput(name=self.name, change=change),
            id=f"service/{self.name}",
            task_queue=self._plans.queue,
        )

    async def change(
        self, files: Mapping[str, bytes] | None = None, service: str = "", **values: str | None
    ) -> PackageDeployResult:
        package = await self.stored(files) if files else None
        request = ChangeRequest(package=package, parameters=values)
        answer: PackageDeployResult = await self._service(service or self.name).execute_update(
            "deploy",
            InstanceInput(name=service or self.name, change=request),
            result_type=PackageDeployResult,
        )
        assert not answer.outcome.refused, answer
        return answer

    async def start(self, plan: str, service: str = "") -> None:
        await self._service(service or self.name).execute_update(
            "start_plan", StartPlan(plan=plan), result_type=Outcome
        )

    async def stop(self, plan: str, service: str) -> None:
        run = self._plans.client.get_workflow_handle(f"{service}/{plan}")
        await run.execute_update("stop", Command(), result_type=Outcome)

    async def view(self, plan: str = "deploy", service: str = "") -> PlanView:
        run = self._plans.client.get_workflow_handle(f"{service or self.name}/{plan}")
        answer: PlanView = await run.query("status", result_type=PlanView)
        return answer

    async def reached(self, plan: str, status: Status, *, run: int = 1, service: str = "") -> None:
        async def records() -> dict[str, tuple[int, Status]]:
            answer: InstanceStatus = await self._service(service or self.name).query(
                "status", result_type=InstanceStatus
            )
            return {one.name: (one.run, one.status) for one in answer.plans}

        await until(records, lambda found: found.get(plan) == (run, status))

    async def until_reason(self, text: str, plan: str = "deploy") -> str:
        """Wait until the step's reason has a text; return the reason."""

        async def reason() -> str:
            try:
                return (await self.view(plan)).phases[0].steps[0].message
            except RPCError:  # the plan has not begun
                return ""

        return await until(reason, lambda found: text in found)

    async def child_runs(self) -> list[tuple[str, int]]:
        history: RunHistory = await self._service(self.child).query("runs", result_type=RunHistory)
        return [(one.plan, one.config) for one in history.runs]

    async def child_content(self) -> str:
        answer: PackageConfigurations = await self._service(self.child).query(
            "configurations", result_type=PackageConfigurations
        )
        return answer.configurations[-1].installation.package.content

    async def child_given(self) -> tuple[dict[str, str], dict[str, str]]:
        """The values that the child was given: texts, and references to secrets."""
        answer: PackageConfigurations = await self._service(self.child).query(
            "configurations", result_type=PackageConfigurations
        )
        installation = answer.configurations[-1].installation
        return installation.given, installation.secrets

    async def child_status(self) -> InstanceStatus:
        answer: InstanceStatus = await self._service(self.child).query(
            "status", result_type=InstanceStatus
        )
        return answer

    async def holders(self, digest: str) -> Sequence[str]:
        content = self._plans.client.get_workflow_handle(content_id(digest))
        answer: ContentStatus = await content.query("status", result_type=ContentStatus)
        return answer.holders

    async def uninstall(self) -> None:
        await self._service(self.name).execute_update("uninstall", UninstallRequest())
        await self._service(self.name).result()

    async def closed(self, service: str) -> bool:
        return (await self._service(service).describe()).close_time is not None

    async def end(self) -> None:
        for service in (self.name, self.child):
            for plan in ("deploy", "update", "upgrade", "maintain"):
                await self._terminate(f"{service}/{plan}")
            await self._terminate(f"service/{service}")

    async def _terminate(self, workflow_id: str) -> None:
        try:
            await self._plans.client.get_workflow_handle(workflow_id).terminate()
        except Exception:  # it has ended, or never was
            return

    def _service(self, name: str) -> Any:
        return self._plans.client.get_workflow_handle(f"service/{name}")


@pytest_asyncio.fixture(loop_scope="session")
async def outer(plans: Kit, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Outer]:
    cluster = f"cluster-{uuid4()}"
    tasks = PackageTaskActivities(
        plans.client,
        PackageCache(content_store(plans.client, {}, task_queue=plans.queue)).get,
        cast(ClusterConnection, NoCluster()),
        SecretLookup([EnvironmentSecrets("", {"PW": "very secret words"})]),
        intervals=TaskIntervals(look=0.1, heartbeat=0.5, answer=5),
    )
    scripted = ScriptedCluster(plans.client, cluster)
    # without the plugin, whose workers of clusters have connections to real ones
    own = plans.client
    client = Client(own.service_client, namespace=own.namespace, data_converter=own.data_converter)
    async with Worker(
        client,
        task_queue=cluster_queue(cluster),
        activities=[
            tasks.run_package_tasks,
            scripted.prepare_installation,
            scripted.look_at_objects,
            ServiceRemovalActivities(client).remove_services,
            scripted.remove_instance,
        ],
    ):
        made = Outer(plans, cluster, tmp_path_factory.mktemp("packages"))
        yield made
        await made.end()


PASSING = files("inner", plan("pass"))


async def test_a_nested_package_is_a_service_that_is_waited_for(outer: Outer) -> None:
    await outer.install(nested_files(PASSING), SIZE="7")
    await outer.reached("deploy", Status.COMPLETE)
    await outer.reached("deploy", Status.COMPLETE, service=outer.child)
    status = await outer.child_status()
    assert (status.package, status.instance, status.namespace) == ("inner", outer.child, "prod")
    assert await outer.child_given() == ({"SIZE": "7", "FIXED": "one"}, {})
    digest = await outer.child_content()
    wanted = {f"service/{outer.name}", f"service/{outer.child}"}
    await until(lambda: outer.holders(digest), lambda found: wanted <= set(found))


async def test_an_uninstall_of_the_parent_is_one_of_the_child(outer: Outer) -> None:
    await outer.install(nested_files(PASSING))
    await outer.reached("deploy", Status.COMPLETE)
    assert (await outer.child_status()).parent == outer.name
    await outer.uninstall()
    assert await outer.closed(outer.name)
    assert await outer.closed(outer.child)


async def test_the_same_content_again_is_no_change(outer: Outer) -> None:
    await outer.install(nested_files(PASSING))
    await outer.reached("deploy", Status.COMPLETE)
    await outer.start("deploy")
    await outer.reached("deploy", Status.COMPLETE, run=2)
    assert await outer.child_runs() == [("deploy", 1)]


async def test_a_child_whose_plan_failed_fails_its_parent(outer: Outer) -> None:
    await outer.install(nested_files(files("inner", plan("fail"))))
    await outer.reached("deploy", Status.ERROR)
    reason = await outer.until_reason("failed")
    assert reason == (
        f"deploy.p.s.inner: service {outer.child}: its plan deploy failed; see"
        f" `temporal plan explain deploy -s {outer.child}`, and start it again"
    )


async def test_a_child_is_waited_for_as_long_as_its_plan_runs(outer: Outer) -> None:
    await outer.install(nested_files(files("inner", plan("hang"))))
    await outer.until_reason(f"service {outer.child}: its plan deploy is STARTED")
    await outer.stop("deploy", outer.child)
    await outer.until_reason("its plan deploy is")


async def test_a_child_that_is_busy_is_asked_again(outer: Outer) -> None:
    await outer.install(nested_files(PASSING))
    await outer.reached("deploy", Status.COMPLETE)
    await outer.start("maintain", outer.child)
    await outer.reached("maintain", Status.STARTED, service=outer.child)
    await outer.change(SIZE="8")
    reason = await outer.until_reason("refuses", plan="update")
    assert f"service {outer.child}: refuses: plan maintain is STARTED" in reason
    await outer.reached("update", Status.DELAYED)
    await outer.stop("maintain", outer.child)
    await outer.reached("update", Status.COMPLETE)
    given, _ = await outer.child_given()
    assert given["SIZE"] == "8"


async def test_a_changed_parameter_starts_the_childs_update_and_a_dropped_one_is_unset(
    outer: Outer,
) -> None:
    await outer.install(nested_files(PASSING), EXTRA="more")
    await outer.reached("deploy", Status.COMPLETE)
    assert (await outer.child_given())[0]["EXTRA"] == "more"
    await outer.change(EXTRA=None)
    await outer.reached("update", Status.COMPLETE)
    assert await outer.child_given() == ({"SIZE": "3", "FIXED": "one"}, {})
    assert await outer.child_runs() == [("deploy", 1), ("update", 2)]


async def test_another_version_of_the_parent_upgrades_the_child(outer: Outer) -> None:
    await outer.install(nested_files(PASSING))
    await outer.reached("deploy", Status.COMPLETE)
    newer = files("inner", plan("pass"), version="1.1.0")
    await outer.change(nested_files(newer, version="2.0.0"))
    await outer.reached("upgrade", Status.COMPLETE)
    assert (await outer.child_status()).version == "1.1.0"
    assert await outer.child_runs() == [("deploy", 1), ("upgrade", 2)]
    await outer.change(service=outer.child, SIZE="9")
    await outer.reached("update", Status.COMPLETE, service=outer.child)


async def test_a_secret_reaches_the_child_as_its_reference(outer: Outer) -> None:
    await outer.install(nested_files(PASSING), secrets={"PASSWORD": "PW"})
    await outer.reached("deploy", Status.COMPLETE)
    assert await outer.child_given() == ({"SIZE": "3", "FIXED": "one"}, {"PASSWORD": "PW"})


async def test_a_service_of_another_kind_is_left_alone(outer: Outer) -> None:
    other = files("other", plan("pass"))
    name, outer.name = outer.name, outer.child
    await outer.install(other)
    await outer.reached("deploy", Status.COMPLETE)
    outer.name = name
    await outer.install(nested_files(PASSING))
    await outer.reached("deploy", Status.ERROR)
    reason = await outer.until_reason("refuses")
    assert "is another package than the installed other" in reason
