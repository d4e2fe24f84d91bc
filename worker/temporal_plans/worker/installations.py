"""Services of entities, driven by the client of the worker."""

import asyncio
from collections.abc import Mapping

from temporal_plans.client.errors import NotFound, Refused, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.loading.services.service import load_service_text
from temporal_plans.messages.services import PodView

_FILE = "svc.yml"
_BY = "fleet"
_POLL_INTERVAL = 1.0  # seconds


class ClientInstallations:
    """``Installations`` over a PlansClient of the same server."""

    def __init__(self, client: PlansClient) -> None:
        self._client = client

    async def deploy(
        self, name: str, files: Mapping[str, str], values: Mapping[str, str], reason: str
    ) -> None:
        """Deploy the ``svc.yml`` among the files. Raises SpecError, Refused."""
        if _FILE not in files:
            raise Refused.of(Code.NOT_FOUND, "the release has no such file", field=_FILE)
        spec = load_service_text(files[_FILE], values, templates=files.__getitem__)
        deployment = Deployment(spec=spec.but(name=name), by=_BY, reason=reason)
        result = await self._client.deploy(deployment)
        if result.outcome.refused:
            refusal = result.outcome.refusal
            reasons = result.change.problems if result.change else ()
            raise Refused(refusal or Refusal(code=Code.CONFIGURATION, reasons=tuple(reasons)))

    async def wait(self, name: str) -> str:
        """Wait until the plan ``deploy`` is COMPLETE. Return why it is in ERROR; empty without."""
        plan_id = f"{name}/deploy"
        while True:
            run = await self._last(plan_id)
            if run is not None and run.view.status is Status.COMPLETE:
                return ""
            if run is not None and run.view.status is Status.ERROR:
                return "; ".join(run.view.errors) or f"plan {plan_id} is in ERROR"
            await asyncio.sleep(_POLL_INTERVAL)

    async def _last(self, plan_id: str) -> PlanRun | None:
        """Return the plan at its next rest, where an operator may have to continue it."""
        last = None
        try:
            async for one in self._client.watch(plan_id):
                last = one if isinstance(one, PlanRun) else last
        except NotFound:  # it is about to be started
            return None
        return last

    async def restart(self, name: str, reason: str) -> None:
        """Restart its pods, one after the other. Raises Refused."""
        try:
            pods = await self._client.pods(name)
            for pod in pods:
                if pod.wanted:
                    await self._restart(name, pod, reason)
        except ServiceNotFound as error:
            raise Refused.of(Code.NOT_FOUND, str(error), field="service") from None

    async def _restart(self, name: str, pod: PodView, reason: str) -> None:
        before = await self._client.launches(name, pod.name)
        result = await self._client.command_pod(
            name, PodVerb.RESTART, pod.name, by=_BY, reason=reason
        )
        if result.tasks:
            replaced = {task: before.get(task, "") for task in result.tasks}
            await self._client.wait_for_pod(name, pod.name, replaced)

    async def remove(self, name: str, reason: str) -> None:
        """Uninstall a service, and wait until it is gone."""
        try:
            await self._client.uninstall(name, by=_BY, reason=reason)
        except ServiceNotFound:
            return
        while not await self._client.wait_until_gone(name):
            pass
