"""What the tests of fleets share: environments and products on a server, asked as clients do."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from pauses import until
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration, ProductDeclaration
from temporal_plans.messages.fleets.environment_views import (
    EnvironmentStatus,
    ExplainEntity,
    StatusRow,
)
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentInput
from temporal_plans.messages.fleets.names import environment_id, product_id
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.plans import PlanRow, PlanRows, PlansQuery
from temporal_plans.messages.fleets.products import ProductApply, Publish
from temporal_plans.messages.plans import CommandLog
from workflows.plan_kit import Kit

Model = TypeVar("Model", bound=BaseModel)

PLAN_FILE = """
name: {kind}
phases:
  change:
    steps:
      work: {{activity: {{type: work, input: "{name}"}}}}
"""


def plan_files(name: str, *kinds: str) -> ReleasePayload:
    """Plan files, each of which runs the activity ``work`` with ``<name> <kind>``."""
    wanted = kinds or ("install", "upgrade", "configure", "uninstall", "rollback")
    files = {f"{kind}.yml": PLAN_FILE.format(name=f"{name} {kind}", kind=kind) for kind in wanted}
    return ReleasePayload(files=files)


@dataclass
class Entity:
    """An entity of an environment under test."""

    environment: "Environment"
    name: str

    async def row(self) -> StatusRow:
        rows = (await self.environment.status()).rows
        return next(row for row in rows if row.entity == self.name)

    async def explain(self) -> Decision:
        question = ExplainEntity(entity=self.name, at=datetime.now(UTC))
        answer = await self.environment.query("explain", FleetDecision, question)
        return answer.decisions[0]

    async def plans(self) -> list[PlanRow]:
        query = PlansQuery(entity=self.name)
        return list((await self.environment.query("plans", PlanRows, query)).rows)

    async def until(self, condition: Callable[[StatusRow], bool]) -> StatusRow:
        try:
            return await until(self.row, condition)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self._story()}") from None

    async def _story(self) -> str:
        status, log = await self.environment.status(), await self.environment.log()
        parts = [status.model_dump_json(indent=1), *map(str, log)]
        return "\n".join([*parts, *map(str, await self.plans())])

    async def until_at(self, version: str | None) -> StatusRow:
        """Wait until a version is installed and no plan runs."""
        return await self.until(
            lambda row: row.standing.installed == version and not row.plan_status
        )

    async def until_code(self, code: str) -> StatusRow:
        return await self.until(lambda row: row.standing.code == code)

    async def until_plan(self, status: str, number: int = 0) -> PlanRow:
        """Wait until a plan of this status is listed."""

        def found(rows: list[PlanRow]) -> list[PlanRow]:
            return [one for one in rows if one.status == status and number in (0, one.number)]

        return found(await until(self.plans, found))[0]


@dataclass
class Workflow:
    """One environment or product under test."""

    kit: Kit
    name: str

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def gateway(self) -> TemporalGateway:
        return TemporalGateway(self.kit.client, task_queue=self.kit.queue)

    @property
    def client(self) -> PlansClient:
        return PlansClient(gateway=self.gateway)

    async def query(self, name: str, kind: type[Model], argument: Any = None) -> Model:
        return await self.gateway.query(self.id, name, kind, argument)

    async def update(self, name: str, argument: Any) -> Outcome:
        return await self.gateway.update(self.id, name, argument, Outcome)

    async def log(self) -> list[tuple[str, str, str]]:
        """(command, who, result)"""
        log = await self.query("log", CommandLog)
        return [(one.verb, one.by, str(one.outcome.result)) for one in log.entries]


@dataclass
class Product(Workflow):
    @property
    def id(self) -> str:
        return product_id(self.name)

    async def apply(self, **more: Any) -> Outcome:
        window = more.pop("maintenance_window", None)
        product = ProductDeclaration(name=self.name, maintenance_window=window)
        return await self.client.apply_product(ProductApply(product=product, **more))

    async def publish(
        self, version: str, payload: ReleasePayload | None = None, **more: Any
    ) -> Outcome:
        release = Release.model_validate({"version": version, "channels": ("stable",), **more})
        files = plan_files(f"{self.name} {version}") if payload is None else payload
        request = Publish(release=release, payload=files, by="ann", reason="new")
        return await self.client.publish(self.name, request)


@dataclass
class Environment(Workflow):
    @property
    def id(self) -> str:
        return environment_id(self.name)

    async def apply(self, document: dict[str, Any], **input: Any) -> Outcome:
        declaration = EnvironmentDeclaration.model_validate({"name": self.name, **document})
        request = EnvironmentApply(environment=declaration, by="ann", reason="wanted")
        begin = EnvironmentInput(name=self.name, **input)
        return await self.gateway.start_and_update(
            "Environment", self.id, begin, "apply", Outcome, request=request
        )

    async def status(self) -> EnvironmentStatus:
        return await self.query("status", EnvironmentStatus)

    def entity(self, name: str = "web") -> Entity:
        return Entity(self, name)


def entities(product: Product, *names: str, **more: Any) -> dict[str, Any]:
    """Entities of the kind plan, with a configuration for every version up to 2.0.0."""
    one: dict[str, Any] = {"product": product.name, "kind": "plan", "config": {"1.0.0": {}}, **more}
    return {"entities": dict.fromkeys(names or ("web",), one)}


async def run_count(kit: Kit, workflow_id: str, status: str = "") -> int:
    """How many runs of a workflow are listed, which a new one may take a moment to be."""
    query = f"WorkflowId = '{workflow_id}'"
    if status:
        query += f" AND ExecutionStatus = '{status}'"
    return (await kit.client.count_workflows(query)).count


def new_product(kit: Kit) -> Product:
    return Product(kit, f"shop:p{uuid4().hex[:8]}")


def new_environment(kit: Kit) -> Environment:
    return Environment(kit, f"e{uuid4().hex[:8]}")
