"""Verbs about services: deploy, preview, roll back, uninstall, pods and their commands."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from temporal_plans.client.errors import Refused, ServiceEnded
from temporal_plans.client.gateway import EndedMeanwhile, NoSuchWorkflow, WorkflowIsClosed
from temporal_plans.client.preview import first_installation
from temporal_plans.client.verbs import Verbs
from temporal_plans.domain.backend_support import unsupported
from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.commands import Outcome
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.generation import generate
from temporal_plans.domain.model import Value
from temporal_plans.domain.names import suggestion
from temporal_plans.domain.pod_verb import PodVerb
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.messages.cluster import ConfigQuery, service_id
from temporal_plans.messages.service import (
    ChangeView,
    Configurations,
    DeployResult,
    PlanRecord,
    PodCommand,
    PodCommandResult,
    Pods,
    PodView,
    Rollback,
    Rollout,
    ServiceInput,
    ServiceStatus,
    TaskRecord,
    Tasks,
    UninstallRequest,
)

_GONE_WITHIN = timedelta(seconds=30)
_LOOK_EVERY = timedelta(seconds=0.5)


class Deployment(Value):
    """What to deploy, where and how. Without ``pool`` a service stays in the pool that it has, and
    a new one is put into ``default``."""

    spec: ServiceSpec
    pool: str | None = None
    backoff: Backoff = Backoff()
    recovery: RecoveryPolicy = RecoveryPolicy()
    rollout: Rollout = Rollout()
    by: str = ""
    reason: str = ""


class ServiceVerbs(Verbs):
    """Raise ServiceNotFound for a service that is not there, and Refused with its reason."""

    # --- configurations ---

    async def deploy(
        self, service: ServiceSpec | Deployment, *, pool: str | None = None
    ) -> DeployResult:
        """Install a service, or change it. A change that the service refuses is an answer: code
        417, and the reasons in ``change.problems``.

        Raises SpecError for what can't be deployed at all.
        """
        request = await self._request(service, pool)
        name = request.spec.name
        for _ in range(2):  # once more if a Service of the name ended in between
            try:
                return await self._gateway.start_and_update(
                    "Service", service_id(name), request, "deploy", DeployResult
                )
            except (NoSuchWorkflow, WorkflowIsClosed, EndedMeanwhile):
                continue
        raise Refused(f"service {name!r} ended while it was deployed; deploy it again")

    async def preview(self, service: ServiceSpec | Deployment) -> ChangeView:
        """What ``deploy`` of this would change or refuse, and the plans as they would begin.
        Changes nothing. Raises SpecError as ``deploy`` does."""
        request = await self._request(service, None)
        try:
            return await self._gateway.query(
                service_id(request.spec.name), "preview", ChangeView, request, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            return first_installation(request)

    async def _request(self, service: ServiceSpec | Deployment, pool: str | None) -> ServiceInput:
        how = service if isinstance(service, Deployment) else Deployment(spec=service)
        generate(how.spec)
        if problems := unsupported(how.spec):
            raise SpecError(problems)
        return ServiceInput(
            spec=how.spec,
            pool=pool or how.pool or await self._pool_of(how.spec.name),
            backoff=how.backoff,
            recovery=how.recovery,
            rollout=how.rollout,
            by=how.by,
            reason=how.reason,
        )

    async def _pool_of(self, name: str) -> str:
        try:
            status = await self._gateway.query(
                service_id(name), "status", ServiceStatus, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            return "default"
        return status.pool

    async def configurations(self, service: str) -> Configurations:
        """The configurations that the service keeps, oldest first."""
        return await self._ask_service(service, "configurations", Configurations)

    async def configuration(self, service: str, config: str = "") -> Configuration:
        """One by number or id, by default the one in force. Raises Refused for an unknown one."""
        return chosen(await self.configurations(service), config)

    async def config(self, service: str, config_id: str = "") -> ServiceSpec:
        """What a configuration says, by id; by default that in force."""
        query = ConfigQuery(config_id=config_id)
        return await self._ask_service(service, "config", ServiceSpec, query)

    async def rollback(
        self, service: str, config: str = "", *, rollout: Rollout | None = None,
        by: str = "", reason: str = "",
    ) -> DeployResult:  # fmt: skip
        """Deploy an earlier configuration again, by default the one before that in force."""
        kept = await self.configurations(service)
        wanted = chosen(kept, config) if config else _before(kept)
        request = Rollback(config=wanted.id, rollout=rollout or Rollout(), by=by, reason=reason)
        return await self._tell_service(service, "rollback", request, DeployResult)

    async def uninstall(self, service: str, *, by: str = "", reason: str = "") -> Outcome:
        """Take everything of the service away, volumes included, and then the service itself. Its
        plan ``deploy`` shows how far that is."""
        request = UninstallRequest(by=by, reason=reason)
        try:
            return await self._tell_service(service, "uninstall", request, Outcome)
        except ServiceEnded as ended:
            return Outcome(code=202, message=str(ended))

    async def gone(self, service: str, *, within: timedelta = _GONE_WITHIN) -> bool:
        """Wait until the service is no more; whether it is."""
        deadline = asyncio.get_running_loop().time() + within.total_seconds()
        while True:
            try:
                if (await self._gateway.describe(service_id(service))).ended is not None:
                    return True
            except NoSuchWorkflow:
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_LOOK_EVERY.total_seconds())

    # --- what there is ---

    async def service(self, name: str) -> ServiceStatus:
        return await self._ask_service(name, "status", ServiceStatus)

    async def plans(self, service: str) -> tuple[PlanRecord, ...]:
        return (await self.service(service)).plans

    async def pods(self, service: str) -> tuple[PodView, ...]:
        return (await self._ask_service(service, "pods", Pods)).pods

    async def tasks(self, service: str) -> tuple[TaskRecord, ...]:
        return (await self._ask_service(service, "tasks", Tasks)).tasks

    # --- pods ---

    async def command_pod(
        self, service: str, verb: PodVerb, pod: str, *, tasks: Sequence[str] = (),
        by: str = "", reason: str = "",
    ) -> PodCommandResult:  # fmt: skip
        """Restart, replace, pause or resume a pod instance (``hello-0``). ``tasks`` are for pause
        and resume: some of them, all when empty. Raises Refused for an unknown pod or task."""
        command = PodCommand(pod=pod, tasks=tuple(tasks), by=by, reason=reason)
        return await self._tell_service(service, verb.value, command, PodCommandResult)


def chosen(kept: Configurations, config: str) -> Configuration:
    """The configuration of that number or id, the one in force for none. Raises Refused."""
    wanted = config or kept.target
    for one in kept.configurations:
        if wanted in (one.id, str(one.number)):
            return one
    numbers = [str(one.number) for one in kept.configurations]
    raise Refused(f"there is no configuration {wanted!r}; {suggestion(wanted, numbers)}")


def _before(kept: Configurations) -> Configuration:
    target = chosen(kept, "")
    earlier = [one for one in kept.configurations if one.number < target.number]
    if not earlier:
        raise Refused(
            f"there is no configuration before {target.number}, which is in force; see "
            "`temporal plan configs`"
        )
    return max(earlier, key=lambda one: one.number)
