"""The base of the groups of verbs, which ``client.plans_client.PlansClient`` combines."""

import asyncio
from datetime import timedelta
from typing import TypeVar

from pydantic import BaseModel

from temporal_plans.client.errors import PlansError, Refused, ServiceEnded, ServiceNotFound
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
)
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import (
    PACKAGE_TYPE,
    SERVICES_QUERY,
    CommonStatus,
    OwnerResult,
)
from temporal_plans.messages.plans import CommandLog

LIST_LIMIT = 1000
"""Workflows in one list."""

_END_POLL_INTERVAL = 0.2  # seconds

RUNNING = "ExecutionStatus = 'Running'"

Model = TypeVar("Model", bound=BaseModel)


class Verbs:
    """A group of verbs over one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def services(self) -> list[str]:
        """Return the names of all services. A new service may take a moment to be listed."""
        running = await self._gateway.list(f"{SERVICES_QUERY} AND {RUNNING}", LIST_LIMIT)
        return sorted(run.id.removeprefix("service/") for run in running)

    async def content_of(self, service: str) -> str:
        """Return what a service is made of, ``service`` (pods) or ``package``; empty when none of
        this name runs."""
        try:
            status = await self._gateway.query(
                service_id(service), "status", CommonStatus, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            return ""
        return status.content

    async def _refuse_package(self, service: str) -> None:
        """Raise Refused for a package, which has no pods."""
        if await self.content_of(service) == "package":
            raise Refused.of(
                Code.NOT_APPLICABLE,
                f"service {service} is a package: it has no pods",
                fix=f"see its objects with `temporal plan objects -s {service}`",
            )

    async def _has_ended(self, workflow_id: str, timeout: timedelta) -> bool:
        """Wait until a workflow has ended, and return whether it did within ``timeout``."""
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        while True:
            try:
                if (await self._gateway.describe(workflow_id)).ended is not None:
                    return True
            except NoSuchWorkflow:
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_END_POLL_INTERVAL)

    async def _query_service(
        self, name: str, query: str, result: type[Model], argument: BaseModel | None = None
    ) -> Model:
        try:
            return await self._gateway.query(
                service_id(name), query, result, argument, open_only=True
            )
        except NoSuchWorkflow:
            raise ServiceNotFound(name, await self.services()) from None
        except WorkflowIsClosed:
            raise ServiceNotFound(name, ended=True) from None

    async def _ended_service(self, name: str) -> OwnerResult:
        """Return what a service left when it ended: its log and its runs, as long as Temporal keeps
        them. Raises ServiceNotFound."""
        id = service_id(name.strip("/"))
        try:
            last = await self._gateway.describe(id)
            if last.ended is Ended.COMPLETED:
                return await self._gateway.result_of(id, OwnerResult)
            if last.ended is not None:  # refused, or terminated: it has no result
                log = await self._gateway.query(id, "log", CommandLog)
                runs = await self._gateway.query(id, "runs", RunHistory)
                return OwnerResult(
                    name=name,
                    content="package" if last.type == PACKAGE_TYPE else "service",
                    log=log,
                    runs=runs,
                )
        except (NoSuchWorkflow, PlansError):
            pass
        raise ServiceNotFound(name, await self.services()) from None

    async def _update_service(
        self, name: str, update: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        try:
            return await self._gateway.update(service_id(name), update, argument, result)
        except NoSuchWorkflow:
            raise ServiceNotFound(name, await self.services()) from None
        except WorkflowIsClosed:
            raise ServiceNotFound(name, ended=True) from None
        except EndedBeforeAnswer:
            raise ServiceEnded(name, update) from None
