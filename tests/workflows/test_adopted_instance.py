"""An instance that is taken over from a cluster: it begins with what is there, and runs no plan."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.client.errors import ClusterUnreachable
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.dependencies import KeptHash
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.packages import (
    Adopted,
    AdoptedRun,
    ClusterAnswer,
    ClusterQuestion,
    InstanceInput,
)
from workflows.instance_kit import Store, stored
from workflows.package_programs import ScriptedCluster
from workflows.plan_kit import Kit
from workflows.test_instance import cluster, package_of, store

__all__ = ["cluster", "store"]

THEN = datetime(2021, 7, 1, 10, tzinfo=UTC)
OBJECT = ObjectRef(api_version="apps/v1", kind="Deployment", namespace="prod", name="server")
HASH = KeptHash(ref=OBJECT, computed="ours", live="theirs")
ADOPTED = Adopted(
    runs=(
        AdoptedRun(plan="deploy", uid="u1", status=Status.COMPLETE, at=THEN),
        AdoptedRun(plan="backup", uid="u2", status=Status.ERROR),
    ),
    inventory=(OBJECT,),
    hashes=(HASH,),
)


async def test_it_begins_with_its_objects_and_runs_and_applies_nothing(
    store: Store, cluster: ScriptedCluster
) -> None:
    await store.install(adopted=ADOPTED, history_limit=50)
    status = await store.status()
    records = {one.name: one for one in status.plans}
    assert (records["deploy"].status, records["deploy"].run) == (Status.COMPLETE, 1)
    assert (records["backup"].status, records["update"].run) == (Status.ERROR, 0)
    assert (status.uids, status.number) == ({"deploy": "u1", "backup": "u2"}, 1)
    assert await store.inventory() == ["server"]
    history = await store.handle.query("runs", result_type=RunHistory)
    assert {run.plan: run.what for run in history.runs} == dict.fromkeys(
        ("deploy", "backup"), "before the import"
    )
    assert cluster.begun == []

    for size in ("5", "6"):  # the second after it continued as new, as like as not
        result = await store.deploy(SIZE=size)
        assert result.plan == f"{store.name}/update"
        await store.reached("update", Status.COMPLETE, run=int(size) - 4)
    assert [one.run.hashes for one in cluster.begun] == [(HASH,), (HASH,)]


async def test_what_is_installed_is_not_taken_over(store: Store) -> None:
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    again = InstanceInput(name=store.name, change=ChangeRequest(), adopted=ADOPTED)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await store.handle.execute_update("deploy", again)
    assert refusal_of(refused.value.cause).code == Code.NAME_TAKEN


async def test_what_is_taken_over_is_checked_as_any_installation(
    plans: Kit, store: Store, cluster: ScriptedCluster
) -> None:
    change = ChangeRequest(
        package=await stored(plans, package_of()),
        parameters={"SIZE": "many"},
        instance="store",
        cluster=cluster.name,
        namespace="prod",
    )
    await plans.client.start_workflow(
        "Instance",
        InstanceInput(name=store.name, change=change, adopted=ADOPTED),
        id=f"service/{store.name}",
        task_queue=plans.queue,
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await store.handle.result()
    assert "parameters.SIZE" in str(failed.value.cause)


async def test_a_cluster_without_a_worker_is_named(plans: Kit) -> None:
    gateway = TemporalGateway(plans.client)
    with pytest.raises(ClusterUnreachable, match="no worker of cluster 'nowhere'"):
        await gateway.ask_cluster(
            "nowhere",
            "ask_cluster",
            ClusterQuestion(cluster="nowhere"),
            ClusterAnswer,
            timeout=timedelta(seconds=1),
        )
