"""Records the histories that ``test_replay.py`` replays: ``python -m replay.record`` in ``tests``.

Run it once for every released shape of the workflows, and commit what it writes under
``histories/<version>``. Recorded histories are never changed: they stand for plans that run. A
story that the version has not yet is added.
"""

import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from builders.packages import OPERATOR, package_files
from pauses import until
from temporal_plans.activities.agent.host.main import run_agent
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.contents.temporal_contents import TemporalContents
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.cluster.agents import AgentResources
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.loading.services.service import load_service_text
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.contents import ContentHolder, ContentPart, content_id
from temporal_plans.messages.fleets.change_requests import (
    ApproveChange,
    ChangeRequests,
    HoldChange,
    RejectChange,
)
from temporal_plans.messages.fleets.products import RecallRelease
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.messages.fleets.stops import Suppress, Unsuppress
from temporal_plans.messages.packages import TasksOutcome, TasksResult
from temporal_plans.messages.promotions import (
    PromoteRelease,
    PromotionVerb,
    SetChannel,
    SetPipeline,
    SteerPromotion,
)
from temporal_plans.messages.schedules import ScheduledPlan
from temporal_plans.messages.spokes import spoke_id
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.spoke import SpokeSettings, run_spoke
from workflows.fleet_kit import Environment, Product, entities
from workflows.package_programs import scripted_cluster
from workflows.plan_kit import Kit, Recorder, statuses, steps

HISTORIES = Path(__file__).with_name("histories")
SERVICE = """
name: recorded
pods:
  web:
    count: 2
    volume: {path: data, size: 8}
    tasks:
      server:
        goal: RUNNING
        cmd: while true; do sleep 1; done
        cpus: 0.1
        memory: 16
        readiness-check: {cmd: "true", interval: 1, timeout: 5}
      job: {goal: ONCE, cmd: "echo done", cpus: 0.1, memory: 16}
plans:
  deploy:
    phases:
      web: {strategy: serial-canary, pod: web, steps: [{default: [[server]]}]}
  job:
    phases:
      job: {strategy: parallel, pod: web, steps: [{default: [[job]]}]}
"""

LIVED = """
name: lived
pods:
  web:
    count: {count}
    volume: {{path: data, size: 8}}
    allow-decommission: true
    tasks:
      server:
        goal: RUNNING
        cmd: while true; do sleep 1; done
        env: {{NUMBER: "{number}"}}
        cpus: 0.1
        memory: 16
"""


@asynccontextmanager
async def cluster(directory: Path) -> AsyncGenerator[Kit]:
    """A server, a worker and an agent in this process."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(DevServer(database=directory / "db"))
        client = await Client.connect(server.address, plugins=[PlansPlugin()])
        recorder = Recorder()
        worker = Worker(
            client,
            task_queue=PLANS_QUEUE,
            activities=[recorder.work, recorder.noop],
            graceful_shutdown_timeout=timedelta(seconds=1),
        )
        await stack.enter_async_context(worker)
        stop = asyncio.Event()
        bare = await Client.connect(server.address, data_converter=pydantic_data_converter)
        settings = AgentSettings(
            id="agent",
            hostname="host",
            work_dir=directory / "agent",
            resources=AgentResources(cpus=2, memory=256, disk=100),
            kill_tasks_on_exit=True,
        )
        agent = asyncio.create_task(run_agent(bare, settings, stop=stop))
        try:
            yield Kit(client, PLANS_QUEUE, recorder)
        finally:
            stop.set()
            await agent


async def happy(kit: Kit) -> list[str]:
    """Two phases of activities, as children and inline."""
    ids: list[str] = []
    for mode in ("child", "inline"):
        run = await kit.start(
            {
                "steps": mode,
                "phases": {
                    "one": {"strategy": "parallel", "steps": steps(f"{mode}-a", f"{mode}-b")},
                    "two": {"steps": {"wait": {"sleep": "10ms"}, **steps(f"{mode}-c")}},
                },
            }
        )
        await run.result()
        ids += [run.handle.id, f"{run.handle.id}/one", f"{run.handle.id}/one/{mode}-a"]
    return ids[:5]  # an inline step has no workflow


async def steered(kit: Kit) -> list[str]:
    """Canary gates, an approval, a failure with restart, interrupt, force, bad signals."""
    kit.recorder.failures["broken"] = 1
    run = await kit.start(
        {
            "phases": {
                "canary": {"strategy": "canary", "steps": steps("c1", "c2", "c3")},
                "rest": {"steps": {"ok": {"approval": "fine?"}, **steps("broken", "last")}},
            }
        }
    )
    await run.until_status(Status.WAITING)
    await run.handle.signal("continue", {"phase": "canary"})
    await run.handle.signal("restrt", {"phase": "canary"})
    await run.handle.signal("restart", {"fase": 1})
    await run.until(lambda view: statuses(view)[0] == "COMPLETE")
    await run.update(Verb.INTERRUPT)
    await run.update(Verb.CONTINUE, "canary")
    await run.update(Verb.CONTINUE)
    await run.until(lambda view: statuses(view, 1)[0] == "WAITING")
    await run.update(Verb.CONTINUE, "rest", "ok")
    await run.until_status(Status.ERROR)
    await run.update(Verb.RESTART, "rest", "broken")
    await run.result()
    plan = run.handle.id
    return [plan, f"{plan}/canary", f"{plan}/rest", f"{plan}/rest/ok", f"{plan}/rest/broken"]


async def long(kit: Kit) -> list[str]:
    """A phase and a plan that continue as new."""
    names = [f"n{i}" for i in range(60)]
    run = await kit.start(
        {
            "history_limit": 80,
            "phases": {
                "many": {"strategy": {"name": "max-parallel", "limit": 8}, "steps": steps(*names)}
            },
        }
    )
    await run.result()
    return [run.handle.id, f"{run.handle.id}/many"]


async def deployed(kit: Kit) -> list[str]:
    """A service through its canary, a restart of a pod step, and a plan beside deploy."""
    plans = PlansClient(kit.client)
    spec = load_service_text(SERVICE, {}, source="recorded", templates=lambda name: name)
    await plans.deploy(spec)

    async def done(plan: str, count: int) -> bool:
        phase = (await plans.show(f"recorded/{plan}")).view.phases[0]
        return sum(step.status is Status.COMPLETE for step in phase.steps) >= count

    deploy = "recorded/deploy"
    await plans.command(deploy, Verb.CONTINUE, Command(phase="web"))
    await until(lambda: done("deploy", 1))
    await plans.command(deploy, Verb.RESTART, Command(phase="web", step="web-0:[server]"))
    await plans.command(deploy, Verb.CONTINUE, Command(phase="web"))
    await until(lambda: done("deploy", 2))
    await plans.command("recorded/job", Verb.START, Command())
    await until(lambda: done("job", 2))
    return [
        "service/recorded",
        "pool/default",
        deploy,
        f"{deploy}/web",
        f"{deploy}/web/web-0:[server]",
        "recorded/job/job",
    ]


async def lived(kit: Kit) -> list[str]:
    """A service that fails, is paused, is changed in the middle of a change, shrinks, and goes."""
    plans = PlansClient(kit.client)
    tasks = iter(range(100))

    async def deploy(count: int) -> None:
        text = LIVED.format(count=count, number=next(tasks))
        await plans.deploy(load_service_text(text, {}, source="lived", templates=lambda name: name))

    async def runs(number: int) -> bool:
        records = await plans.tasks("lived")
        states = [record.status.state for record in records if record.status is not None]
        return states.count(TaskState.RUNNING) == number == len(records)

    async def is_complete(plan: str) -> bool:
        return (await plans.show(f"lived/{plan}")).view.status is Status.COMPLETE

    async def recovers(verb: PodVerb) -> None:
        ids = {record.task_id for record in await plans.tasks("lived")}
        await plans.command_pod("lived", verb, "web-0")
        await until(lambda: _differs(plans, ids))
        await until(lambda: runs(2))
        await until(lambda: is_complete("recovery"))

    await deploy(2)
    await until(lambda: is_complete("deploy"))
    for verb in (PodVerb.RESTART, PodVerb.PAUSE, PodVerb.RESUME, PodVerb.REPLACE):
        await recovers(verb)
    await deploy(2)
    await deploy(1)  # in the middle of that
    await until(lambda: is_complete("deploy"))
    await until(lambda: is_complete("decommission"))
    await until(lambda: runs(1))
    await plans.uninstall("lived")
    await until(lambda: plans.wait_until_gone("lived"))
    ended = ["lived/deploy", "lived/decommission", "lived/recovery"]
    return ["service/lived", *ended, *await _below(kit.client, ended)]


async def _differs(plans: PlansClient, ids: set[str]) -> bool:
    return {record.task_id for record in await plans.tasks("lived")} != ids


async def _below(client: Client, plans: list[str]) -> list[str]:
    """The phases of plans, and their steps."""
    found = [
        run.id
        async for run in client.list_workflows("WorkflowType IN ('Phase', 'Step')")
        if any(run.id.startswith(f"{plan}/") for plan in plans)
    ]
    return sorted(set(found))


async def scheduled(kit: Kit) -> list[str]:
    """A plan of a service, begun as a schedule does it."""
    run = await kit.client.start_workflow(
        "ScheduledRun",
        ScheduledPlan(service="recorded", plan="job", schedule="recorded/job"),
        id="scheduled/recorded/job",
        task_queue=PLANS_QUEUE,
    )
    await run.result()
    return [run.id]


async def fleet(kit: Kit) -> list[str]:
    """A product whose second release fails, and is rolled back and recalled, in an environment."""
    product, environment = Product(kit, "recorded:web"), Environment(kit, "recorded")
    web = environment.entity()
    await product.apply()
    await environment.apply(entities(product), history_limit=100)
    await product.publish("1.0.0")
    await web.until_at("1.0.0")
    kit.recorder.failures[f"{product.name} 1.1.0 upgrade"] = 1
    await product.publish("1.1.0")
    await web.until_code("SUPPRESSED")
    recall = Recall(id="bad", start="1.1.0", single=True)
    await product.update("recall", RecallRelease(recall=recall, by="ann", reason="it failed"))
    [stop] = (await environment.status()).suppressions
    await environment.update("unsuppress", Unsuppress(id=stop.id, by="ann"))
    await product.publish("1.2.0")
    await web.until_at("1.2.0")
    plans = [row.plan_id for row in reversed(await web.plans())]
    await environment.update("delete", DeleteRequest(by="ann"))
    await kit.client.get_workflow_handle(environment.id).result()
    await product.update("delete", DeleteRequest(by="ann"))
    await kit.client.get_workflow_handle(product.id).result()
    return [environment.id, product.id, *plans]


async def apart(kit: Kit) -> list[str]:
    """An environment whose plans a spoke carries out, here on the same server."""
    product, environment = Product(kit, "recorded:far"), Environment(kit, "recorded-far")
    web = environment.entity()
    await product.apply()
    document = entities(product) | {"settings": {"release_channel": "stable", "spoke": True}}
    await environment.apply(document)
    bare = await Client.connect(
        kit.client.service_client.config.target_host, data_converter=pydantic_data_converter
    )
    stop = asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        settings = SpokeSettings(environment=environment.name, work_dir=Path(folder))
        running = asyncio.create_task(run_spoke(bare, bare, settings, stop=stop))
        for release in ("1.0.0", "1.1.0"):
            await product.publish(release)
            await web.until_at(release)
        stop.set()
        await running
    return [environment.id, spoke_id(environment.name)]


async def returned(kit: Kit) -> list[str]:
    """An environment whose spoke goes away before it has taken a plan: when it is back, that is
    withdrawn, since its release was recalled meanwhile."""
    product, environment = Product(kit, "recorded:back"), Environment(kit, "recorded-back")
    web = environment.entity()
    await product.apply()
    document = entities(product) | {"settings": {"release_channel": "stable", "spoke": True}}
    await environment.apply(document)
    bare = await Client.connect(
        kit.client.service_client.config.target_host, data_converter=pydantic_data_converter
    )

    async def away() -> bool:
        spoke = (await environment.status()).spoke
        return spoke is not None and spoke.away

    with tempfile.TemporaryDirectory() as folder:
        settings = SpokeSettings(environment=environment.name, work_dir=Path(folder))
        for release in ("1.0.0", "1.0.5"):
            stop = asyncio.Event()
            running = asyncio.create_task(run_spoke(bare, bare, settings, stop=stop))
            if release == "1.0.0":
                await product.publish(release)
            await web.until_at(release)
            stop.set()
            await running
            await until(away)
            if release == "1.0.0":
                await product.publish("1.1.0")
                await web.until_plan("ISSUED")
                recall = Recall(id="bad", start="1.1.0", single=True)
                request = RecallRelease(recall=recall, by="ann", reason="it leaks")
                await product.update("recall", request)
                await product.publish("1.0.5")
    await web.until_plan("CANCELLED")
    return [environment.id, spoke_id(environment.name)]


async def promoted(kit: Kit) -> list[str]:
    """A product whose pipeline promotes a release that canaries run well with, and recalls one that
    they fail with; a third is steered and promoted by hand."""
    product = Product(kit, "recorded:piped")
    beta, production = Environment(kit, "recorded-beta"), Environment(kit, "recorded-production")
    recall = {"count": 1, "soak": "0s", "roll_off": {"allow_downgrade": True}}
    promote: dict[str, Any] = {"percent": 100, "soak": "0s"}
    canary = {"promote": promote, "recall": recall}
    stage = {"source": "beta", "target": "stable", "canary": canary}
    pipeline = PipelineOptions.model_validate({"product": product.name, "stages": [stage]})
    await product.apply()
    await product.update("channel", SetChannel(channel=Channel(name="stable"), by="ann"))
    await product.update("pipeline", SetPipeline(pipeline=pipeline, by="ann"))
    await beta.apply({**entities(product), "settings": {"release_channel": "beta"}})
    await production.apply(entities(product))
    await product.publish("1.0.0", channels=("beta",))
    await production.entity().until_at("1.0.0")
    promote["soak"] = "1h"
    pipeline = PipelineOptions.model_validate({"product": product.name, "stages": [stage]})
    await product.update("pipeline", SetPipeline(pipeline=pipeline, by="ann"))
    await product.publish("1.1.0", channels=("beta",))
    await beta.entity().until_at("1.1.0")
    facts = {"web": EntityFacts(health=Health.ERROR)}
    await beta.update("report", ReportFacts(entities=facts))
    await beta.entity().until_at("1.0.0")
    facts = {"web": EntityFacts(health=Health.HEALTHY)}
    await beta.update("report", ReportFacts(entities=facts))
    await product.publish("1.2.0", channels=("beta",))
    await beta.entity().until_at("1.2.0")
    steer = SteerPromotion(
        verb=PromotionVerb.PAUSE, version="1.2.0", target="stable", reason="a look", by="ann"
    )
    await product.update("steer", steer)
    await product.update("steer", steer.but(verb=PromotionVerb.RESUME))
    by_hand = PromoteRelease(version="1.2.0", channels=("stable",), reason="now", by="ann")
    await product.update("promote", by_hand)
    await production.entity().until_at("1.2.0")
    for environment in (beta, production):
        await environment.update("delete", DeleteRequest(by="ann"))
        await kit.client.get_workflow_handle(environment.id).result()
    await product.update("delete", DeleteRequest(by="ann"))
    await kit.client.get_workflow_handle(product.id).result()
    return [product.id, beta.id, production.id]


async def asked(kit: Kit) -> list[str]:
    """An environment whose changes need approvals: one is approved, one rejected, one withdrawn."""
    product, environment = Product(kit, "recorded:asked"), Environment(kit, "recorded-asked")
    rules = {"changes": ["entities", "suppressions"]}
    document = {**entities(product), "settings": {"approvals": rules}}
    await product.apply()
    await environment.apply(document)
    await product.publish("1.0.0")
    await environment.entity().until_at("1.0.0")
    await environment.apply(document | entities(product, "web", "shop"))
    await environment.update("hold", HoldChange(id="change-1", by="ann", reason="a fair"))
    await environment.update("approve", ApproveChange(id="change-1", by="eve"))
    await environment.update("hold", HoldChange(id="change-1", held=False, by="ann"))
    await environment.entity("shop").until_at("1.0.0")
    for by in ("eve", "ann"):
        await environment.update("suppress", Suppress(by="ann", reason="an incident"))
        [newest, *_] = (await environment.query("requests", ChangeRequests)).requests
        await environment.update("reject", RejectChange(id=newest.id, by=by, reason="no"))
    await environment.update("delete", DeleteRequest(by="ann"))
    await kit.client.get_workflow_handle(environment.id).result()
    return [environment.id]


async def stored(kit: Kit) -> list[str]:
    """A content that is held and released, one whose holders are checked, and one that continues
    as new."""
    store = TemporalContents(kit.client)
    held = await store.put(b"held")
    for holder in ("service/a", "service/b", "service/a"):
        await store.hold(held, holder)
    handle = kit.client.get_workflow_handle(content_id(held))
    await handle.signal("hold", {"holdr": "service/c"})
    for holder in ("service/a", "service/b"):
        await store.release(held, holder)
    await handle.query("status")
    past = datetime(2026, 1, 1, tzinfo=UTC)
    checked = await _part(kit, "checked", next_check=past)
    await checked.query("status")
    long = await _part(kit, "long", history_limit=10)
    for number in range(10):
        await long.signal("hold", ContentHolder(holder=f"service/{number}"))
        await long.query("status")
    return [handle.id, checked.id, long.id]


async def installed(kit: Kit) -> list[str]:
    """A package that is installed, changed, in error, upgraded and uninstalled, in a cluster that
    does what this story says."""
    # without the plugin, whose workers of clusters have connections to real ones
    plain = Client(
        kit.client.service_client,
        namespace=kit.client.namespace,
        data_converter=kit.client.data_converter,
    )
    async with scripted_cluster(plain) as cluster:
        plans = PlansClient(kit.client)
        refused = TasksResult(outcome=TasksOutcome.FAILED, reason="ConfigMap web: is wrong")
        waits = TasksResult(outcome=TasksOutcome.WAITING, reason="ConfigMap web: not yet")
        later = TasksResult(outcome=TasksOutcome.RETRY, reason="no answer")
        cluster.answers["app"] = [waits, later]
        await plans.deploy_package(_deployment(cluster.name, package_files()))

        async def runs(number: int) -> None:
            async def record() -> tuple[int, Status]:
                [plan] = (await plans.instance("web")).plans
                return plan.run, plan.status

            await until(record, lambda found: found == (number, Status.COMPLETE))

        await runs(1)
        await plans.deploy_package(PackageDeployment(name="web", parameters={"SIZE": "5"}))
        await runs(2)
        cluster.answers["app"] = [refused]
        await plans.deploy_package(PackageDeployment(name="web", parameters={"SIZE": "6"}))
        await until(lambda: plans.instance("web"), lambda one: one.plans[0].status is Status.ERROR)
        newer = package_files(OPERATOR.replace("1.0.0", "1.1.0"))
        await plans.deploy_package(_deployment(cluster.name, newer))
        await runs(4)
        await until(lambda: plans.instance("web"), lambda one: one.seen is not None)
        await plans.uninstall("web")
        await kit.client.get_workflow_handle("service/web").result()
    return ["service/web", "web/deploy", "web/cleanup", "web/deploy/main", "web/deploy/main/app"]


def _deployment(cluster: str, files: dict[str, bytes]) -> PackageDeployment:
    package = read_files(files, "web").package
    return PackageDeployment(
        name="web", package=package, archive=write_archive(files), cluster=cluster
    )


async def _part(kit: Kit, text: str, **fields: Any) -> "WorkflowHandle[Any, Any]":
    data = text.encode()
    part = ContentPart.of(data, holder="service/none").but(**fields)
    id = content_id(hashlib.sha256(data).hexdigest())
    return await kit.client.start_workflow("Content", part, id=id, task_queue=PLANS_QUEUE)


STORIES = (
    happy,
    steered,
    long,
    deployed,
    scheduled,
    lived,
    stored,
    fleet,
    installed,
    promoted,
    asked,
    apart,
    returned,
)
"""Each is recorded once for a version: what a version lacks is recorded beside what it has."""


async def main() -> None:
    target = HISTORIES / version("temporal-plans")
    target.mkdir(parents=True, exist_ok=True)
    left = [one for one in STORIES if not list(target.glob(f"{one.__name__}-*"))]
    if not left:
        sys.exit(f"{target.name} is recorded already; histories are never changed")
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        async with cluster(Path(scratch)) as kit:
            for story in left:
                for number, workflow_id in enumerate(await story(kit)):
                    await _keep(kit.client, workflow_id, target / f"{story.__name__}-{number}.json")


async def _keep(client: Client, workflow_id: str, path: Path) -> None:
    """The first run of the chain: where it continued as new, that is part of the story."""
    run_id: str | None = None
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
        run_id = event.workflow_execution_started_event_attributes.first_execution_run_id
        break
    history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
    recorded = {"workflow_id": workflow_id, "history": json.loads(history.to_json())}
    path.write_text(json.dumps(recorded, indent=1), encoding="utf-8")
    print(f"{path.name}: {workflow_id}, {len(history.events)} events")


if __name__ == "__main__":
    asyncio.run(main())
    time.sleep(0.3)
