"""Environments whose time passes at once while nothing is at work for them.

The clock is that of the environment's workflow: its plans and products run in real time. All that
is to be so at the beginning is in the first input, because time flies from then on.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import uuid4

from temporalio.api.common.v1 import TimeSkippingConfig
from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowInput
from temporalio.client import WorkflowHandle as Handle
from temporalio.worker import Worker

from temporal_plans.activities.fleets.declarations import DeclarationActivities
from temporal_plans.activities.fleets.kinds import ENTITY_KINDS
from temporal_plans.domain.fleets.configuration import config_for
from temporal_plans.domain.fleets.environment import EnvironmentFacts
from temporal_plans.domain.fleets.suppressions import Suppression
from temporal_plans.messages.fleets.declarations import (
    EnvironmentDeclaration,
    ReadEnvironment,
    Schedule,
)
from temporal_plans.messages.fleets.environments import EnvironmentInput
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.fleets import book
from workflows.fleet_kit import Environment, Product, entities
from workflows.plan_kit import Kit, Recorder

SKIPS_LIMIT = 20_000


class _Skipping(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> Handle[Any, Any]:
        if input.workflow == "Environment":
            input.time_skipping_config = TimeSkippingConfig(
                enabled=True, max_session_skip_count=SKIPS_LIMIT
            )
        return await super().start_workflow(input)


class Skipping(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Skipping(next)


@asynccontextmanager
async def skipping_kit(address: str) -> AsyncGenerator[Kit]:
    """A worker whose client starts environments on clocks that skip."""
    recorder = Recorder()
    client = await Client.connect(address, plugins=[PlansPlugin()], interceptors=[Skipping()])
    queue = f"plans-{uuid4()}"
    async with Worker(
        client,
        task_queue=queue,
        activities=[recorder.work, recorder.noop],
        graceful_shutdown_timeout=timedelta(seconds=1),
    ):
        yield Kit(client, queue, recorder)


def schedule(*times: tuple[datetime, datetime]) -> Schedule:
    """A weekly schedule that is open at these times of one week, in whole minutes."""
    intervals = [f"{_weekly(start)}-{_weekly(end)}" for start, end in times]
    return Schedule(time_zone_name="UTC", time_intervals=tuple(intervals))


def _weekly(time: datetime) -> str:
    return f"{time:%A/%H:%M}".upper()


@dataclass
class Beginning:
    """An environment at its beginning, with entities of one product that are installed."""

    environment: Environment
    product: Product
    start: datetime
    """When it begins; the start of the workflow is a moment later."""

    async def run(
        self,
        *names: str,
        version: str | None = "1.0.0",
        facts: Mapping[str, Any] | None = None,
        suppressions: Sequence[Mapping[str, Any]] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        document = {**entities(self.product, *names), "settings": dict(settings or {})}
        name = self.environment.name
        declaration = EnvironmentDeclaration.model_validate({"name": name, **document})
        reader = DeclarationActivities(
            {one.name: one for one in ENTITY_KINDS}, cast(Any, None), cast(Any, None)
        )
        request = ReadEnvironment(declaration=declaration, now=self.start)
        state = book.applied(None, declaration, await reader.read_environment(request))
        installed = tuple(
            one.but(
                state=one.state.but(version=version, config=config_for(one, version, None))
                if version
                else one.state
            )
            for one in state.environment.entities
        )
        environment = state.environment.but(
            entities=installed,
            facts=EnvironmentFacts.model_validate(facts or {}),
            suppressions=tuple(map(Suppression.model_validate, suppressions)),
        )
        kit = self.environment.kit
        await kit.client.start_workflow(
            "Environment",
            EnvironmentInput(name=name, state=state.but(environment=environment)),
            id=self.environment.id,
            task_queue=kit.queue,
        )
