"""A hub and a spoke with a Temporal server each, by the shipped commands."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from acceptance.cluster import PROGRAMS, Cluster, running_cluster
from acceptance.programs import Program, Said, run
from acceptance.proxy import Proxy
from pauses import PATIENCE
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.fleets.environment_views import StatusRow
from temporal_plans.messages.fleets.plans import PlanRow, PlanRows, PlansQuery

DOCUMENTS = """
kind: product
name: PRODUCT
---
kind: environment
name: ENVIRONMENT
settings: {release-channel: RELEASE, spoke: true, agent-timeout: 5s}
entities:
  tool: {product: "PRODUCT", kind: plan, config: {1.0.0: {overrides: {PAUSE: 10ms}}}}
"""

PLAN = """
name: install
phases:
  change:
    steps:
      nap: {sleep: "NAP"}
"""

LONG = 3 * PATIENCE


@dataclass
class Places:
    """``hub`` has the environment; ``here`` is the installation of the spoke. ``options`` are those
    by which it reaches the hub, beside the address."""

    hub: Cluster
    here: Cluster
    network: Proxy
    environment: str
    options: tuple[str, ...] = ()

    def spoke(self, name: str, *, place: Cluster | None = None) -> Program:
        """The process of a spoke, with a work directory of its own."""
        where = place or self.here
        return Program(
            PROGRAMS / "temporal-plan",
            self.arguments(self._work_dir(where, name)),
            env=where.env,
            log=self._work_dir(where, name).with_suffix(".log"),
        )

    async def run_spoke(self, name: str) -> Said:
        """Run a spoke to its end: it is one that is refused."""
        here = self.here
        arguments = self.arguments(self._work_dir(here, name))
        program = PROGRAMS / "temporal-plan"
        return await run(program, *arguments, env=here.env, cwd=here.directory, limit=LONG)

    def _work_dir(self, place: Cluster, name: str) -> Path:
        return place.directory / f"{self.environment}-{name}"

    def arguments(self, work_dir: Path) -> list[str]:
        return [
            *("spoke", "--environment", self.environment, "--hub", self.network.address),
            *("--work-dir", str(work_dir), *self.options),
        ]

    @property
    def product(self) -> str:
        return f"{self.environment}:tool"

    async def apply(self, documents: str) -> None:
        path = self.hub.directory / "fleet.yml"
        path.write_text(documents)
        await self.hub.plan("fleet", "apply", "-f", str(path))

    async def publish(self, version: str, nap: str) -> None:
        path = self.hub.directory / "install.yml"
        path.write_text(PLAN.replace("NAP", nap))
        await self.hub.plan("fleet", "publish", self.product, version, "-f", str(path))

    async def row(self) -> StatusRow:
        return (await (await self.hub.client()).environment(self.environment)).rows[0]

    async def until_at(self, version: str) -> None:
        await self.hub.until(
            f"tool is at {version}",
            self.row,
            lambda row: row.standing.installed == version,
            within=LONG,
        )

    async def until_code(self, code: str) -> StatusRow:
        return await self.hub.until(
            f"tool is {code}", self.row, lambda row: row.standing.code == code, within=LONG
        )

    async def until_plan_status(self, status: str) -> StatusRow:
        return await self.hub.until(
            f"the plan is {status}", self.row, lambda row: row.plan_status == status, within=LONG
        )

    async def until_ended_here(self, number: int) -> None:
        """Until the plan of this number has ended at the spoke."""
        await self.here.until_status(self.plan_id(number), Status.COMPLETE, within=LONG)

    async def until_running(self, number: int) -> None:
        """Until the plan of this number runs at the spoke."""

        async def count() -> int:
            return await self.runs_at(self.here, number)

        await self.here.until(f"plan {number} runs", count, lambda now: now == 1, within=LONG)

    async def history(self) -> list[PlanRow]:
        handle = (await self.hub.bare_client()).get_workflow_handle(
            f"environment/{self.environment}"
        )
        rows: PlanRows = await handle.query("plans", PlansQuery(), result_type=PlanRows)
        return list(rows.rows)

    def plan_id(self, number: int) -> str:
        return f"environment/{self.environment}/tool.{number}"

    async def runs_at(self, place: Cluster, number: int) -> int:
        """How often the plan of a number was started on a place's server."""
        client: Client = await place.bare_client()
        query = f"WorkflowId = '{self.plan_id(number)}'"
        return len([one async for one in client.list_workflows(query)])


Servers = tuple[Cluster, Cluster]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def servers() -> AsyncIterator[Servers]:
    """A hub, and the installation of a spoke."""
    async with running_cluster(()) as hub, running_cluster(()) as here:
        yield hub, here


@asynccontextmanager
async def places(servers: Servers, environment: str) -> AsyncGenerator[Places]:
    hub, here = servers
    async with Proxy(hub.server.port) as network:
        at = Places(hub, here, network, environment)
        named = DOCUMENTS.replace("PRODUCT", at.product).replace("ENVIRONMENT", environment)
        await at.apply(named)
        yield at


async def test_a_spoke_carries_out_the_plans_of_its_environment(servers: Servers) -> None:
    async with places(servers, "prod-eu") as at:
        await at.publish("1.0.0", "10ms")
        await at.until_code("NOT_CONNECTED")
        explained = (await at.hub.plan("fleet", "explain", "prod-eu/tool")).out
        assert "its spoke has not registered yet" in explained
        assert "start it: temporal-plan spoke --environment" in explained, explained
        shown = (await at.hub.plan("fleet", "status", at.environment)).out
        assert "prod-eu: its spoke has not registered yet" in shown
        spoke = at.spoke("one")
        await spoke.start()
        try:
            await at.until_at("1.0.0")
            assert await at.runs_at(at.here, 1) == 1
            assert await at.runs_at(at.hub, 1) == 0

            # killed in the middle: its plan goes on, and is not started again
            await at.publish("1.1.0", "15s")
            await at.until_running(2)
            await spoke.kill()
            await spoke.start()
            await at.until_at("1.1.0")
            assert await at.runs_at(at.here, 2) == 1
            found = await at.history()
            assert [(one.number, one.status) for one in found] == [
                (2, "SUCCEEDED"),
                (1, "SUCCEEDED"),
            ]

            # another one of its name, with a work directory of its own
            second = await at.run_spoke("two")
            assert second.code == 1, second
            assert "environment/prod-eu: environment: another spoke on " in second.err
            assert "stop that spoke, or start this one with its work directory" in second.err

            # the same work directory
            third = await at.run_spoke("one")
            assert third.code == 1, third
            assert "is used by another spoke" in third.err
        finally:
            await spoke.stop()


async def test_a_plan_that_ends_while_its_spoke_is_cut_off_is_reported_later(
    servers: Servers,
) -> None:
    async with places(servers, "prod-us") as at:
        spoke = at.spoke("one")
        await spoke.start()
        try:
            await at.publish("1.0.0", "15s")  # the network is cut before it ends
            await at.until_running(1)
            at.network.cut()
            row = await at.until_plan_status("UNKNOWN")
            assert "its spoke was last heard of at " in row.standing.message
            shown = (await at.hub.plan("fleet", "status", at.environment)).out
            assert " is away; it was last heard of at " in shown
            explained = (await at.hub.plan("fleet", "explain", f"{at.environment}/tool")).out
            assert "its spoke was last heard of at " in explained
            await at.publish("1.1.0", "10ms")  # nothing is issued meanwhile
            await at.until_ended_here(1)
            assert [(one.number, one.status) for one in await at.history()] == [(1, "UNKNOWN")]

            at.network.flow()
            await at.until_at("1.1.0")
            found = await at.history()
            assert [(one.number, one.status) for one in found] == [
                (2, "SUCCEEDED"),
                (1, "SUCCEEDED"),
            ]
            assert [await at.runs_at(at.here, number) for number in (1, 2)] == [1, 1]
            shown = (await at.hub.plan("fleet", "status", at.environment)).out
            assert "is away" not in shown
        finally:
            await spoke.stop()


async def test_a_spoke_on_another_server_takes_the_place_of_one_that_is_gone(
    servers: Servers,
) -> None:
    """Nothing is known of the plans of the former one: an operator says how they ended."""
    async with places(servers, "prod-ap") as at:
        former, later = at.spoke("one"), at.spoke("two", place=at.hub)
        await former.start()
        try:
            await at.publish("1.0.0", "2m")
            await at.until_running(1)
            await former.kill()
            await at.until_plan_status("UNKNOWN")
            await later.start()
            row = await at.hub.until(
                "the spoke was replaced",
                at.row,
                lambda row: "replaced by one with another record" in row.standing.message,
                within=LONG,
            )
            assert row.plan_status == "UNKNOWN"
            assert await at.runs_at(at.hub, 1) == 0

            # the former one comes back, is refused, and does not go on
            refused = await at.run_spoke("one")
            assert refused.code == 1, refused
            assert "another spoke on " in refused.err

            await at.publish("1.1.0", "10ms")
            await at.hub.plan(
                "fleet", "resolve", f"{at.environment}/tool", "--outcome", "cancelled"
            )
            await at.until_at("1.1.0")
            assert await at.runs_at(at.hub, 1) == 0
            assert await at.runs_at(at.hub, 2) == 1
            assert await at.runs_at(at.here, 2) == 0
        finally:
            await former.stop()
            await later.stop()
