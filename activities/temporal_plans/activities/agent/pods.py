"""What a launch is about: the pod's specification, from the order or from its Service."""

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from temporalio.client import Client, WorkflowQueryFailedError

from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.service import PodSpec, ServiceSpec
from temporal_plans.messages.cluster import ConfigQuery, LaunchInput

_KEPT = 32


class AskedPod(NamedTuple):
    """A pod, the user that its tasks run as (None: whoever the agent is) and who said so."""

    spec: PodSpec
    user: str | None
    user_field: str


class PodSource:
    """Looks pods up; keeps the newest configurations, which never change under their id."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: OrderedDict[tuple[str, str], ServiceSpec] = OrderedDict()
        self._asking = asyncio.Lock()

    async def pod(self, order: LaunchInput) -> AskedPod:
        """The pod of an order. TaskRefused when the Service doesn't have it; RPCError when the
        Service can't be asked now."""
        if order.inline is not None:
            return AskedPod(order.inline, order.inline.user, f"pods.{order.pod}.user")
        if not order.report_to:
            raise TaskRefused(f"the launch of pod {order.pod} names neither its spec nor a service")
        service = await self._service(order.report_to, order.config_id)
        try:
            pod = service.pod(order.pod)
        except KeyError:
            raise TaskRefused(
                f"{order.report_to} has no pod {order.pod!r} in configuration {order.config_id!r}"
            ) from None
        if pod.user:
            return AskedPod(pod, pod.user, f"pods.{pod.type}.user")
        return AskedPod(pod, service.user, "scheduler.user")

    async def _service(self, workflow: str, config_id: str) -> ServiceSpec:
        key = (workflow, config_id)
        async with self._asking:  # thirty pods of one service ask once
            if known := self._known.get(key):
                self._known.move_to_end(key)
                return known
            service = await self._ask(workflow, config_id)
            if config_id:
                self._known[key] = service
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return service

    async def _ask(self, workflow: str, config_id: str) -> ServiceSpec:
        handle = self._client.get_workflow_handle(workflow)
        try:
            service: ServiceSpec = await handle.query(
                "config", ConfigQuery(config_id=config_id), result_type=ServiceSpec
            )
        except WorkflowQueryFailedError as problem:
            raise TaskRefused(
                f"{workflow} does not answer for its configuration: {problem}"
            ) from None
        return service
