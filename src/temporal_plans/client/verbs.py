"""What the groups of verbs share. ``client.plans_client.PlansClient`` is all of them in one."""

from typing import TypeVar

from pydantic import BaseModel

from temporal_plans.client.errors import ServiceEnded, ServiceNotFound
from temporal_plans.client.gateway import (
    EndedMeanwhile,
    Gateway,
    NoSuchWorkflow,
    WorkflowIsClosed,
)
from temporal_plans.messages.cluster import service_id

MANY = 1000
"""Workflows that are listed at most."""

RUNNING = "ExecutionStatus = 'Running'"

Model = TypeVar("Model", bound=BaseModel)


class Verbs:
    """A group of verbs over one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def services(self) -> list[str]:
        """The names of the services that there are. A new one may take a moment to be listed."""
        running = await self._gateway.list(f"WorkflowType = 'Service' AND {RUNNING}", MANY)
        return sorted(run.id.removeprefix("service/") for run in running)

    async def _ask_service(
        self, name: str, query: str, result: type[Model], argument: BaseModel | None = None
    ) -> Model:
        try:
            return await self._gateway.query(
                service_id(name), query, result, argument, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise ServiceNotFound(name, await self.services()) from None

    async def _tell_service(
        self, name: str, update: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        try:
            return await self._gateway.update(service_id(name), update, argument, result)
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise ServiceNotFound(name, await self.services()) from None
        except EndedMeanwhile:
            raise ServiceEnded(name, update) from None
