"""The pod specification of a launch, from the order or from its Service."""

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from temporalio.client import Client, WorkflowQueryFailedError

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.services.spec import PodSpec, ServiceSpec
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.services import ConfigQuery
from temporal_plans.messages.tasks import LaunchInput

_CACHE_SIZE = 32


class RequestedPod(NamedTuple):
    """A pod, the user of its tasks (None: the agent's user), and the field that names the user."""

    spec: PodSpec
    user: str | None
    user_field: str


class PodSource:
    """Looks pods up; caches the last used configurations, which never change under their id."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cache: OrderedDict[tuple[str, str], ServiceSpec] = OrderedDict()
        self._query_lock = asyncio.Lock()

    async def pod(self, order: LaunchInput) -> RequestedPod:
        """Return the pod of an order. Raises TaskRefused when the Service has no such pod, and
        RPCError when the Service can't be queried now."""
        if order.inline is not None:
            return RequestedPod(order.inline, order.inline.user, f"pods.{order.pod}.user")
        if not order.report_to:
            raise TaskRefused(
                Reason(
                    field="report_to",
                    problem=f"the launch of pod {order.pod} has neither a pod spec nor a service",
                )
            )
        service = await self._service(order.report_to, order.config_id)
        try:
            pod = service.pod(order.pod)
        except KeyError:
            raise TaskRefused(
                Reason(
                    problem=f"{order.report_to} has no pod {order.pod!r} in configuration "
                    f"{order.config_id!r}"
                )
            ) from None
        if pod.user:
            return RequestedPod(pod, pod.user, f"pods.{pod.type}.user")
        return RequestedPod(pod, service.user, "scheduler.user")

    async def _service(self, workflow: str, config_id: str) -> ServiceSpec:
        key = (workflow, config_id)
        async with self._query_lock:  # thirty pods of one service send one query
            if known := self._cache.get(key):
                self._cache.move_to_end(key)
                return known
            service = await self._query_config(workflow, config_id)
            if config_id:
                self._cache[key] = service
                while len(self._cache) > _CACHE_SIZE:
                    self._cache.popitem(last=False)
            return service

    async def _query_config(self, workflow: str, config_id: str) -> ServiceSpec:
        handle = self._client.get_workflow_handle(workflow)
        try:
            service: ServiceSpec = await handle.query(
                "config", ConfigQuery(config_id=config_id), result_type=ServiceSpec
            )
        except WorkflowQueryFailedError as problem:
            raise TaskRefused(
                Reason(problem=f"{workflow} did not return configuration {config_id!r}: {problem}")
            ) from None
        return service
