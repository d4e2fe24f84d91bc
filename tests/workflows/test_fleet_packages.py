"""Entities that are operator packages: what is published is installed in the cluster that the
environment names."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from builders.packages import package_files
from pauses import until
from temporal_plans.activities.contents.choice import content_store
from temporal_plans.client.errors import Refused
from temporal_plans.domain.fleets.plans import CommandType
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.loading.packages.stored import stored_archive
from temporal_plans.messages.fleets.commands import FleetCommand
from temporal_plans.messages.fleets.payloads import ReleasePackage, ReleasePayload
from temporal_plans.messages.fleets.stops import Suppress, Unsuppress
from temporal_plans.messages.packages import TasksOutcome, TasksResult
from workflows.fleet_kit import Environment, Product, new_environment, new_product
from workflows.package_programs import ScriptedCluster, scripted_cluster
from workflows.plan_kit import Kit

OPERATOR = """\
name: store
operatorVersion: "{version}"
kubernetesVersion: "1.25"
tasks:
  - {{name: server, kind: Apply, spec: {{resources: [app.yaml]}}}}
  - {{name: farewell, kind: Apply, spec: {{resources: [app.yaml]}}}}
plans:
  deploy:
    strategy: serial
    phases: [{{name: main, strategy: serial, steps: [{{name: first, tasks: [server]}}]}}]
  cleanup:
    strategy: serial
    phases: [{{name: main, strategy: serial, steps: [{{name: bye, tasks: [farewell]}}]}}]
# {queue}
"""

PARAMETERS = """\
parameters:
  - {name: SIZE, type: integer, default: "3"}
  - {name: COLOUR, default: red}
  - {name: PASSWORD, default: ""}
  - {name: ENVIRONMENT, default: ""}
"""


async def published(product: Product, version: str) -> Outcome:
    """A package of this version, published as clients do."""
    files = package_files(OPERATOR.format(version=version, queue=product.kit.queue), PARAMETERS)
    read = read_files(files, "store")
    assert not read.faults
    archive = stored_archive(files, read.package.nested)
    contents = content_store(product.kit.client, {}, task_queue=product.kit.queue)
    digest = await contents.put(archive)
    package = ReleasePackage(name="store", version=version, digest=digest)
    return await product.publish(version, ReleasePayload(package=package))


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(client: Client) -> AsyncIterator[ScriptedCluster]:
    async with scripted_cluster(client) as made:
        yield made


def document(product: Product, cluster: ScriptedCluster, **more: Any) -> dict[str, Any]:
    config = {"overrides": {"SIZE": 5, "PASSWORD": {"secret": "db"}}}
    entity = {"product": product.name, "kind": "package", "config": {"1.0.0": config}, **more}
    return {
        "settings": {"cluster": cluster.name, "namespace": "prod"},
        "config": {"COLOUR": "blue", "REGION": "eu"},
        "entities": {"web": entity},
    }


async def installation(environment: Environment) -> tuple[Any, Any]:
    """The installation of the entity ``web``, and the status of its service."""
    name = f"{environment.name}.web"
    kept = await environment.client.package_configurations(name)
    found = next(one for one in kept.configurations if one.id == kept.target)
    return found.installation, await environment.client.instance(name)


async def test_a_package_that_is_published_is_installed_upgraded_and_uninstalled(
    plans: Kit, cluster: ScriptedCluster
) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(document(product, cluster))
    await published(product, "1.0.0")
    web = environment.entity()
    await web.until_at("1.0.0")
    installed, status = await installation(environment)
    assert (installed.instance, installed.cluster, installed.namespace) == (
        "web",
        cluster.name,
        "prod",
    )
    given = {"SIZE": "5", "COLOUR": "blue", "ENVIRONMENT": environment.name}
    assert (installed.given, installed.secrets) == (given, {"PASSWORD": "db"})
    assert status.version == "1.0.0"
    [plan] = await web.plans()
    handle = plans.client.get_workflow_handle(plan.plan_id, result_type=dict)
    phases = (await handle.result())["view"]["phases"]
    names = [(one["name"], [step["name"] for step in one["steps"]]) for one in phases]
    assert names == [
        ("prepare", ["check"]),
        ("change", ["deploy"]),
        ("verify", ["wait"]),
        ("report", ["state"]),
    ]

    await published(product, "1.1.0")
    await web.until_at("1.1.0")
    installed, status = await installation(environment)
    assert (status.version, installed.given) == ("1.1.0", given)

    gone = document(product, cluster, uninstall=True)
    await environment.apply(gone)
    await web.until_at(None)
    assert [one.package.service for one in cluster.removed] == [f"{environment.name}.web"]
    assert await environment.client.content_of(f"{environment.name}.web") == ""


async def test_a_package_whose_plan_fails_is_rolled_back_and_repeated_after_the_suppression(
    plans: Kit, cluster: ScriptedCluster
) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(document(product, cluster))
    await published(product, "1.0.0")
    web = environment.entity()
    await web.until_at("1.0.0")
    broken = TasksResult(outcome=TasksOutcome.FAILED, reason="no such image")
    cluster.answers["server"] = [broken]
    await published(product, "1.1.0")
    failed = await web.until_plan("FAILED")
    assert any("no such image" in one for one in failed.errors)
    rollback = await web.until_plan("SUCCEEDED", number=failed.number + 1)
    assert (rollback.intent, rollback.to) == ("ROLLBACK", "1.0.0")
    assert (await installation(environment))[1].version == "1.0.0"
    [stop] = (await environment.status()).suppressions
    await environment.update("unsuppress", Unsuppress(id=stop.id))
    await web.until_at("1.1.0")


async def test_an_entity_without_a_parameter_that_its_package_has_fails_before_it_changes(
    plans: Kit, cluster: ScriptedCluster
) -> None:
    product, environment = new_product(plans), new_environment(plans)
    config = {"1.0.0": {"overrides": {"SIZ": 5}}}
    await environment.apply(document(product, cluster, config=config))
    await published(product, "1.0.0")
    failed = await environment.entity().until_plan("FAILED")
    assert [one for one in failed.errors if "prepare/check" in one and "SIZE" in one]
    assert await environment.client.content_of(f"{environment.name}.web") == ""
    assert (await environment.entity().row()).standing.code == "SUPPRESSED"


async def test_what_failed_and_was_not_rolled_back_begins_again_by_command(
    plans: Kit, cluster: ScriptedCluster
) -> None:
    """The configuration is in force already, so that its deployment alone would change nothing."""
    product, environment = new_product(plans), new_environment(plans)
    cluster.answers["server"] = [TasksResult(outcome=TasksOutcome.FAILED, reason="no such image")]
    cluster.held["server"] = asyncio.Event()
    await environment.apply(document(product, cluster))
    await published(product, "1.0.0")
    await until(lambda: environment.client.content_of(f"{environment.name}.web"))
    await environment.update("suppress", Suppress(entity="web", reason="no rollback"))
    cluster.held.pop("server").set()
    web = environment.entity()
    await web.until_plan("FAILED")
    command = FleetCommand(
        entity="web", command=CommandType.ENFORCE_VERSION, version="1.0.0", reason="repaired"
    )
    await environment.update("command", command)
    assert (await web.until_plan("SUCCEEDED")).intent == "BREAK_GLASS"
    assert [task for one in cluster.begun for task in one.tasks] == ["server", "server"]
    status = await environment.client.instance(f"{environment.name}.web")
    assert [(one.name, one.status) for one in status.plans if one.run] == [
        ("deploy", Status.COMPLETE)
    ]


async def test_a_package_that_is_not_in_the_content_store_is_not_published(plans: Kit) -> None:
    product = new_product(plans)
    package = ReleasePackage(name="store", digest="0" * 64)
    with pytest.raises(Refused) as caught:
        await product.publish("1.0.0", ReleasePayload(package=package))
    assert "is not in the store" in str(caught.value)
