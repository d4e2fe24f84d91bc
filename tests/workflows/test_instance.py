"""An installed package, as its plans and clients see it; the cluster does what a test says."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowUpdateFailedError

from builders.packages import package_files
from pauses import until
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import (
    Switches,
)
from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.domain.packages.readiness import ReadyReason
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code, Reason
from temporal_plans.messages.contents import ContentStatus, content_id
from temporal_plans.messages.owners import OwnerResult, Rollback, UninstallRequest
from temporal_plans.messages.packages import (
    InstanceInput,
    LookRequest,
    ObjectsReport,
    PackageDeployResult,
    PackagePreview,
    Preparation,
    RecordObjects,
    TasksOutcome,
    TasksResult,
)
from temporal_plans.messages.plans import PlanResult
from workflows.instance_kit import Store, stored
from workflows.package_programs import ScriptedCluster, object_of, scripted_cluster
from workflows.plan_kit import Kit

OPERATOR = """\
name: store
operatorVersion: "{version}"
kubernetesVersion: "1.25"
tasks:
  - {{name: config, kind: Apply, spec: {{resources: [app.yaml]}}}}
  - {{name: server, kind: Apply, spec: {{resources: [app.yaml]}}}}
  - {{name: copy, kind: Apply, spec: {{resources: [app.yaml]}}}}
  - {{name: farewell, kind: Apply, spec: {{resources: [app.yaml]}}}}
plans:
  deploy:
    strategy: serial
    phases:
      - name: main
        strategy: serial
        steps:
          - {{name: first, tasks: [config]}}
          - {{name: second, tasks: [server]}}
  update:
    strategy: serial
    phases: [{{name: main, strategy: serial, steps: [{{name: again, tasks: [server]}}]}}]
  backup:
    strategy: serial
    phases: [{{name: main, strategy: serial, steps: [{{name: copy, tasks: [copy]}}]}}]
  cleanup:
    strategy: serial
    phases: [{{name: main, strategy: serial, steps: [{{name: bye, tasks: [farewell]}}]}}]
"""

PARAMETERS = """\
parameters:
  - {name: SIZE, type: integer, default: "3"}
  - {name: NIGHTLY, default: "no", trigger: backup}
"""


def package_of(version: str = "1.0.0") -> dict[str, bytes]:
    return package_files(OPERATOR.format(version=version), PARAMETERS)


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(client: Client) -> AsyncIterator[ScriptedCluster]:
    async with scripted_cluster(client) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def store(plans: Kit, cluster: ScriptedCluster) -> AsyncIterator[Store]:
    made = Store(plans, cluster, package_of())
    yield made
    await made.remove()


async def test_an_installation_executes_its_tasks_and_records_their_objects(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    assert [one.tasks for one in cluster.begun] == [("config",), ("server",)]
    first = cluster.begun[0]
    assert (first.plan, first.phase, first.step) == ("deploy", "main", "first")
    assert first.run.package.instance == "store"
    assert first.run.package.namespace == "prod"
    assert await store.inventory() == ["config", "server"]
    status = await store.status()
    assert (status.content, status.package, status.version) == ("package", "store", "1.0.0")
    assert set(status.startable) == {"deploy", "update", "backup"}


async def test_a_package_that_can_not_be_installed_is_refused_with_its_reasons(
    plans: Kit, store: Store
) -> None:
    change = ChangeRequest(
        package=await stored(plans, package_of()), parameters={"SIZE": "big", "LIMIT": "1"}
    )
    input = InstanceInput(name=store.name, change=change)
    handle = await plans.client.start_workflow(
        "Instance", input, id=f"service/{store.name}", task_queue=plans.queue
    )
    with pytest.raises(Exception) as failed:  # noqa: PT011  # its cause is looked at
        await handle.result()
    fields = {one.field for one in refusal_of(failed.value.__cause__).reasons}
    assert fields >= {"parameters.SIZE", "parameters.LIMIT", "cluster", "namespace"}


async def test_a_changed_parameter_starts_the_plan_that_it_triggers(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    result = await store.deploy(NIGHTLY="yes")
    assert result.plan == f"{store.name}/backup"
    await store.reached("backup", Status.COMPLETE)
    assert cluster.begun[-1].run.package.given == {"NIGHTLY": "yes"}
    result = await store.deploy(SIZE="5")
    assert result.plan == f"{store.name}/update"
    await store.reached("update", Status.COMPLETE)
    assert cluster.begun[-1].run.package.given == {"NIGHTLY": "yes", "SIZE": "5"}
    assert (await store.status()).number == 3
    again = await store.deploy(SIZE="5")
    assert (again.outcome.result, again.plan) == (Result.NOTHING, "")
    assert (await store.deploy(SIZE="many")).problems[0].field == "parameters.SIZE"
    assert (await store.status()).errors


async def test_every_run_of_a_plan_has_another_uid(store: Store, cluster: ScriptedCluster) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    await store.start("deploy")
    await store.reached("deploy", Status.COMPLETE, run=2)
    uids = [one.run.uid for one in cluster.begun]
    assert uids[0] == uids[1] != uids[2] == uids[3]
    stale = RecordObjects(plan="deploy", uid=uids[0], objects=(object_of("prod", "late"),))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await cluster.record(f"service/{store.name}", stale)
    assert "is over" in str(refused.value.cause)
    assert await store.inventory() == ["config", "server"]


async def test_a_plan_is_refused_beside_one_at_work_and_takes_the_place_of_a_stopped_one(
    store: Store, cluster: ScriptedCluster
) -> None:
    cluster.held["server"] = asyncio.Event()
    await store.install()
    await until(lambda: asyncio.sleep(0, cluster.begun), lambda begun: len(begun) == 2)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await store.start("backup")
    refusal = refusal_of(refused.value.cause)
    assert refusal.code == Code.IN_USE
    assert "deploy" in str(refusal)
    with pytest.raises(WorkflowUpdateFailedError):
        await store.deploy(NIGHTLY="yes")
    await store.command("deploy", "stop")

    async def start() -> bool:
        try:
            return (await store.start("backup")).result is Result.DONE
        except WorkflowUpdateFailedError:  # the instance has yet to hear that it rests
            return False

    await until(start)
    await store.reached("backup", Status.COMPLETE)
    deploy = next(one for one in (await store.status()).plans if one.name == "deploy")
    assert (deploy.open, deploy.superseded) == (False, True)


async def test_a_change_of_the_running_plan_restarts_it_with_the_new_values(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    cluster.held["server"] = asyncio.Event()
    await store.deploy(SIZE="4")
    await until(lambda: asyncio.sleep(0, cluster.begun), lambda begun: len(begun) == 3)
    await store.deploy(SIZE="5")
    cluster.held.pop("server").set()
    await store.reached("update", Status.COMPLETE, run=2)
    assert cluster.begun[-1].run.package.given == {"SIZE": "5"}


async def test_an_error_stops_the_plan_and_another_may_take_its_place(
    store: Store, cluster: ScriptedCluster
) -> None:
    failed = TasksResult(outcome=TasksOutcome.FAILED, reason="ConfigMap server: is wrong")
    cluster.answers["server"] = [failed]
    await store.install()
    await store.reached("deploy", Status.ERROR)
    step = (await store.view("deploy")).phases[0].steps[1]
    assert "is wrong" in " ".join(step.errors)
    await store.deploy(NIGHTLY="yes")
    await store.reached("backup", Status.COMPLETE)


async def test_what_is_done_of_a_step_is_not_done_again(
    plans: Kit, store: Store, cluster: ScriptedCluster
) -> None:
    waits = TasksResult(outcome=TasksOutcome.WAITING, reason="not ready")
    passes = TasksResult(outcome=TasksOutcome.RETRY, reason="no answer")
    cluster.answers["server"] = [waits, passes]
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    later = [one for one in cluster.begun if one.step == "second"]
    assert [one.shown for one in later] == ["", "not ready", ""]
    assert len({one.attempt for one in later}) == 1
    assert later[0].attempt != cluster.begun[0].attempt


async def test_parameters_of_one_run_leave_the_configuration_alone(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    await store.start("backup", parameters={"SIZE": "9"})
    await store.reached("backup", Status.COMPLETE)
    assert cluster.begun[-1].arguments == {"SIZE": "9"}
    assert cluster.begun[-1].run.package.given == {}
    with pytest.raises(WorkflowUpdateFailedError):
        await store.start("backup", parameters={"LIMIT": "9"})


async def test_another_version_is_an_upgrade_and_a_rollback_is_one_as_well(
    plans: Kit, store: Store
) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    newer = ChangeRequest(package=await stored(plans, package_of("1.1.0")))
    preview: PackagePreview = await store.handle.query(
        "preview", InstanceInput(name=store.name, change=newer), result_type=PackagePreview
    )
    assert preview.change is not None
    assert (preview.change.plan, preview.change.version) == ("update", "1.1.0")
    await store.deploy(newer)
    await store.reached("update", Status.COMPLETE)
    assert (await store.status()).version == "1.1.0"
    result: PackageDeployResult = await store.handle.execute_update(
        "rollback", Rollback(config="1"), result_type=PackageDeployResult
    )
    assert result.number == 3
    await store.reached("update", Status.COMPLETE, run=2)
    assert (await store.status()).version == "1.0.0"


async def test_an_uninstall_overrides_what_runs_and_removes_what_is_left(
    store: Store, cluster: ScriptedCluster
) -> None:
    cluster.held["config"] = asyncio.Event()
    await store.install()
    await until(lambda: asyncio.sleep(0, cluster.begun))
    await store.handle.execute_update("uninstall", UninstallRequest(volumes=True))
    result = OwnerResult.model_validate(await store.handle.result())
    assert result.name == store.name
    assert cluster.begun[-1].tasks == ("farewell",)
    assert cluster.removed[0].volumes
    assert {run.plan for run in result.runs.runs} == {"deploy", "cleanup"}


async def test_an_uninstall_by_force_leaves_out_the_plan_that_failed(
    store: Store, cluster: ScriptedCluster
) -> None:
    failed = TasksResult(outcome=TasksOutcome.FAILED, reason="no")
    cluster.answers["farewell"] = [failed] * 5
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    await store.handle.execute_update("uninstall", UninstallRequest())
    await store.reached("cleanup", Status.ERROR)
    assert not cluster.removed
    await store.handle.execute_update("uninstall", UninstallRequest(force=True))
    await store.handle.result()
    assert len(cluster.removed) == 1


async def test_nothing_is_lost_when_it_continues_as_new(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install(history_limit=50)
    await store.reached("deploy", Status.COMPLETE)
    first = (await store.handle.describe()).run_id
    for number in range(2, 12):
        await store.deploy(SIZE=str(number * 10))
        await store.reached("update", Status.COMPLETE, run=number - 1)
    assert (await store.handle.describe()).run_id != first
    assert (await store.status()).number == 11
    assert await store.inventory() == ["config", "server"]
    assert cluster.begun[-1].run.package.given == {"SIZE": "110"}


async def test_the_package_of_a_configuration_is_held_until_the_uninstall(
    plans: Kit, store: Store
) -> None:
    await store.install()
    package = await stored(plans, package_of())
    content = plans.client.get_workflow_handle(content_id(package.content))

    async def holders() -> tuple[str, ...]:
        answer: ContentStatus = await content.query("status", result_type=ContentStatus)
        return answer.holders

    await until(holders, lambda found: store.handle.id in found)
    await store.handle.execute_update("uninstall", UninstallRequest())
    await store.handle.result()
    assert store.handle.id not in await holders()


async def test_it_looks_at_its_objects_when_a_plan_has_ended(
    store: Store, cluster: ScriptedCluster
) -> None:
    ref = object_of("prod", "server")
    bad = ObjectReport(ref=ref, state=ObjectState.FOREIGN, reason="it belongs to another")
    cluster.report = ObjectsReport(total=2, looked=2, objects=(bad,))
    await store.install()

    async def reason() -> ReadyReason | None:
        found = (await store.status()).readiness
        return found.reason if found else None

    await until(reason, lambda found: found is ReadyReason.RESOURCE_NOT_READY)
    cluster.report = ObjectsReport(total=2, looked=2)
    await store.start("backup")
    await until(reason, lambda found: found is ReadyReason.RESOURCES_READY)
    assert cluster.looks == 2


async def test_a_look_of_people_makes_it_look_again(store: Store, cluster: ScriptedCluster) -> None:
    await store.install()

    async def seen() -> str:
        found = (await store.status()).readiness
        return found.message if found else ""

    await until(lambda: _looks(cluster), lambda found: found == 1)
    cluster.report = ObjectsReport(problem="Unauthorized (401)")
    report: ObjectsReport = await store.handle.execute_update(
        "look", LookRequest(), result_type=ObjectsReport
    )
    assert report.problem == "Unauthorized (401)"
    await until(seen, lambda found: found == "Unauthorized (401)")
    assert (await store.status()).trouble == "readiness unknown: Unauthorized (401)"


async def _looks(cluster: ScriptedCluster) -> int:
    return cluster.looks


async def test_its_settings_change_without_a_plan(store: Store, cluster: ScriptedCluster) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    change = ChangeRequest(switches=Switches(look_interval=timedelta(seconds=1)))
    answer: PackageDeployResult = await store.handle.execute_update(
        "deploy", InstanceInput(name=store.name, change=change), result_type=PackageDeployResult
    )
    assert (answer.outcome.result, answer.plan, answer.number) == (Result.DONE, "", 2)
    assert answer.change is not None
    assert answer.change.why == "only settings differ"
    before = cluster.looks
    await until(lambda: _looks(cluster), lambda found: found >= before + 2)


async def test_a_step_begins_when_its_cluster_is_ready(
    store: Store, cluster: ScriptedCluster
) -> None:
    old = Reason(field="cluster", problem="is too old", value="v1.20.0")
    cluster.preparations = [Preparation(waits_for="not yet"), Preparation(problems=(old,))]
    await store.install()
    await store.reached("deploy", Status.ERROR)
    assert cluster.begun == []
    assert "is too old" in " ".join((await store.view("deploy")).phases[0].steps[0].errors)


@pytest.fixture
async def left(own_plans: Kit, cluster: ScriptedCluster) -> AsyncIterator[Store]:
    """An instance on a worker of the test's own."""
    made = Store(own_plans, cluster, package_of())
    yield made
    await made.remove()


async def test_an_instance_supersedes_the_plan_of_a_terminated_one(
    store: Store, cluster: ScriptedCluster
) -> None:
    """That would stay open for ever: its reports are for another owner."""
    cluster.answers["server"] = [TasksResult(outcome=TasksOutcome.FAILED, reason="no")]
    await store.install()
    await store.reached("deploy", Status.ERROR)
    former = await store.run_id("deploy")
    await store.handle.terminate()

    await store.install()
    await store.reached("deploy", Status.COMPLETE)

    assert await store.run_id("deploy") != former
    result = PlanResult.model_validate(await store.result("deploy", former))
    assert result.superseded


@pytest.mark.engine(leave_timeout=timedelta(seconds=1))
async def test_no_plan_of_a_terminated_instance_runs_beside_those_of_the_next(
    left: Store, cluster: ScriptedCluster
) -> None:
    """What is at work is cancelled."""
    await left.install()
    await left.reached("deploy", Status.COMPLETE)
    cluster.held["copy"] = asyncio.Event()
    await left.start("backup")
    await until(lambda: asyncio.sleep(0, cluster.begun[-1].plan), lambda plan: plan == "backup")
    former = await left.run_id("backup")
    await left.handle.terminate()

    before = len(cluster.begun)
    await left.install()
    await left.reached("deploy", Status.COMPLETE)

    result = PlanResult.model_validate(await left.result("backup", former))
    assert result.superseded
    assert {one.plan for one in cluster.begun[before:]} == {"deploy"}


@pytest.mark.engine(leave_timeout=timedelta(seconds=1))
async def test_an_uninstall_does_not_wait_for_the_plan_of_a_terminated_instance(
    left: Store, cluster: ScriptedCluster
) -> None:
    cluster.held["config"] = asyncio.Event()
    await left.install()
    await until(lambda: asyncio.sleep(0, cluster.begun))
    await left.handle.terminate()

    await left.install()
    await left.handle.execute_update("uninstall", UninstallRequest())

    result = OwnerResult.model_validate(await left.handle.result())
    assert [run.plan for run in result.runs.runs] == ["deploy", "cleanup"]
    assert len(cluster.removed) == 1
