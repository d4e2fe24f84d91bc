"""Verbs for services: deploy, preview, roll back, uninstall, pods and their commands."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from temporal_plans.client.errors import Refused, ServiceEnded, ServiceNotFound
from temporal_plans.client.reading.pod_arrival import has_arrived
from temporal_plans.client.reading.preview import first_installation
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
)
from temporal_plans.client.verbs.base import Verbs
from temporal_plans.domain.owners.configurations import ConfigurationBook, ConfigurationNotFound
from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.owners.runs import RunRecord
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Code, SpecError
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import CommonStatus, PlanRecord, Rollback, UninstallRequest
from temporal_plans.messages.services import (
    ChangeView,
    ConfigQuery,
    Configurations,
    DeployResult,
    PodCommand,
    PodCommandResult,
    Pods,
    PodView,
    ServiceInput,
    ServiceStatus,
    Tasks,
)

_REMOVAL_TIMEOUT = timedelta(seconds=30)
_POD_POLL_INTERVAL = timedelta(seconds=0.5)


class Deployment(Value):
    """A service to deploy, and how. Without ``pool`` a service stays in its pool, and a new service
    gets the pool ``default``. ``rollout`` applies to this deployment only; ``by`` and ``reason``
    are kept with the configuration."""

    spec: ServiceSpec
    pool: str | None = None
    backoff: Backoff = Backoff()
    recovery: RecoveryPolicy = RecoveryPolicy()
    rollout: Rollout = Rollout()
    by: str = ""
    reason: str = ""


class ServiceVerbs(Verbs):
    """The verbs for services. They raise ServiceNotFound for an unknown service, and Refused with
    the service's reason."""

    # --- configurations ---

    async def deploy(
        self, service: ServiceSpec | Deployment, *, pool: str | None = None
    ) -> DeployResult:
        """Install a service, or change it.

        A change that the service refuses is not raised: ``outcome.result`` of the answer is
        ``refused``, and ``change.problems`` has the reasons. Raises SpecError for a service that
        can't be deployed at all.
        """
        request = await self._request(service, pool)
        name = request.spec.name
        for _ in range(2):  # retried if a Service of this name ends meanwhile
            try:
                return await self._gateway.start_and_update(
                    "Service", service_id(name), request, "deploy", DeployResult
                )
            except (NoSuchWorkflow, WorkflowIsClosed, EndedBeforeAnswer):
                continue
        problem = f"service {name!r} ended during its deployment"
        raise Refused.of(Code.UNAVAILABLE, problem, fix="deploy it again")

    async def preview(self, service: ServiceSpec | Deployment) -> ChangeView:
        """Return what ``deploy`` would change or refuse, and the plans as they would begin. Changes
        nothing. Raises SpecError as ``deploy`` does."""
        request = await self._request(service, None)
        try:
            return await self._gateway.query(
                service_id(request.spec.name), "preview", ChangeView, request, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            return first_installation(request)

    async def _request(self, service: ServiceSpec | Deployment, pool: str | None) -> ServiceInput:
        request = service if isinstance(service, Deployment) else Deployment(spec=service)
        generate(request.spec)
        if problems := unsupported(request.spec):
            raise SpecError(problems)
        return ServiceInput(
            spec=request.spec,
            pool=pool or request.pool or await self._pool_of(request.spec.name),
            backoff=request.backoff,
            recovery=request.recovery,
            rollout=request.rollout,
            by=request.by,
            reason=request.reason,
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
        """Return the configurations that the service keeps, oldest first."""
        return await self._query_service(service, "configurations", Configurations)

    async def configuration(self, service: str, config: str = "") -> Configuration:
        """Return a configuration by number or id, by default the one in force. Raises Refused for
        an unknown one."""
        return find_configuration(await self.configurations(service), config)

    async def config(self, service: str, config_id: str = "") -> ServiceSpec:
        """Return the spec of a configuration by id, by default of the one in force."""
        query = ConfigQuery(config_id=config_id)
        return await self._query_service(service, "config", ServiceSpec, query)

    async def rollback(
        self, service: str, config: str = "", *, rollout: Rollout | None = None,
        by: str = "", reason: str = "",
    ) -> DeployResult:  # fmt: skip
        """Deploy an earlier configuration again, by default the one before that in force. Raises
        Refused for an unknown one; the answer is as that of ``deploy``."""
        earlier = await self._earlier(service, config)
        request = Rollback(config=earlier.id, rollout=rollout or Rollout(), by=by, reason=reason)
        return await self._update_service(service, "rollback", request, DeployResult)

    async def preview_rollback(
        self, service: str, config: str = "", *, rollout: Rollout | None = None
    ) -> ChangeView:
        """Return what ``rollback`` would change or refuse, and the plans as they would begin.
        Changes nothing. Raises Refused for an unknown configuration."""
        earlier = await self._earlier(service, config)
        request = Rollback(config=earlier.id, rollout=rollout or Rollout())
        return await self._query_service(service, "preview_rollback", ChangeView, request)

    async def _earlier(self, service: str, config: str) -> Configuration:
        kept = await self.configurations(service)
        return find_configuration(kept, config) if config else _previous(kept)

    async def uninstall(
        self, service: str, *, volumes: bool = False, force: bool = False,
        by: str = "", reason: str = "",
    ) -> Outcome:  # fmt: skip
        """Remove everything of the service, and then the service itself. Its ``removal_plan`` shows
        the progress. Of a package, claims of its pods stay unless ``volumes``, and ``force`` leaves
        out its own plan for this."""
        request = UninstallRequest(volumes=volumes, force=force, by=by, reason=reason)
        try:
            return await self._update_service(service, "uninstall", request, Outcome)
        except ServiceEnded as ended:
            return Outcome(result=Result.UNDER_WAY, message=str(ended))

    async def wait_until_gone(self, service: str, *, timeout: timedelta = _REMOVAL_TIMEOUT) -> bool:
        """Wait until the service has ended, and return whether it did within ``timeout``."""
        return await self._has_ended(service_id(service), timeout)

    # --- state ---

    async def owner(self, name: str) -> CommonStatus:
        """Return the status of a service as far as it is the same for pods and packages; of one
        that was uninstalled the plans that had a run, as long as Temporal keeps them."""
        try:
            return await self._query_service(name, "status", CommonStatus)
        except ServiceNotFound:
            ended = await self._ended_service(name)
        last = {run.plan: run for run in ended.runs.runs}
        plans = tuple(_record(name.strip("/"), run) for run in last.values())
        return CommonStatus(name=name, content=ended.content, config_id="", plans=plans)

    async def service(self, name: str) -> ServiceStatus:
        """Return the status of a service of pods. Raises Refused for a package."""
        if (await self._query_service(name, "status", CommonStatus)).content == "package":
            raise Refused.of(
                Code.NOT_APPLICABLE,
                f"service {name!r} is a package: it has no pods",
                fix=f"see its objects with `temporal plan objects -s {name}`",
            )
        return await self._query_service(name, "status", ServiceStatus)

    async def plans(self, service: str) -> tuple[PlanRecord, ...]:
        """Return the service's records of its plans; for a service that was uninstalled those that
        had a run, as long as Temporal keeps them."""
        return (await self.owner(service)).plans

    async def pods(self, service: str) -> tuple[PodView, ...]:
        """Return the pod instances of a service."""
        return (await self._query_service(service, "pods", Pods)).pods

    async def tasks(self, service: str) -> tuple[TaskRecord, ...]:
        """Return the newest record of each task of a service."""
        return (await self._query_service(service, "tasks", Tasks)).tasks

    # --- pods ---

    async def command_pod(
        self, service: str, verb: PodVerb, pod: str, *, tasks: Sequence[str] = (),
        by: str = "", reason: str = "",
    ) -> PodCommandResult:  # fmt: skip
        """Restart, replace, pause or resume a pod instance (``hello-0``). ``tasks``, for pause and
        resume, are names of tasks; empty: all. Raises Refused for an unknown pod or task, and for
        a package."""
        await self._refuse_package(service)
        command = PodCommand(pod=pod, tasks=tuple(tasks), by=by, reason=reason)
        return await self._update_service(service, verb.value, command, PodCommandResult)

    async def launches(self, service: str, pod: str) -> dict[str, str]:
        """Return the ids of the newest launches of a pod instance's tasks, by the tasks' names."""
        for view in await self.pods(service):
            if view.name == pod:
                return {record.name: record.task_id for record in view.tasks}
        return {}

    async def wait_for_pod(
        self, service: str, pod: str, replaced: Mapping[str, str], *, paused: bool = False
    ) -> PodView:
        """Wait until the tasks of a pod instance have reached their goals or, ``paused``, are
        paused; return the pod as it is then.

        ``replaced`` are the tasks that a command kills, by name, and the ids of their launches
        before it: a new launch of each is awaited. Without any, all tasks of the pod are. Of those
        with the goals ONCE and FINISH, which only their plans launch, it is enough that they run
        again or have ended. Raises as queries do; ``asyncio.timeout`` limits the waiting.
        """
        while True:
            views = [view for view in await self.pods(service) if view.name == pod]
            if views and has_arrived(views[0], replaced, paused=paused):
                return views[0]
            await asyncio.sleep(_POD_POLL_INTERVAL.total_seconds())


def _record(service: str, run: RunRecord) -> PlanRecord:
    """Return the record of a plan by its last run."""
    return PlanRecord(
        name=run.plan,
        workflow_id=f"{service}/{run.plan}",
        priority=0,
        status=run.status,
        run=run.run,
        changed=run.ended or run.started,
    )


def find_configuration(kept: Configurations, config: str) -> Configuration:
    """Return the configuration with this number or id, by default the one in force. Raises
    Refused."""
    with _refused():
        return _book(kept).find(config or kept.target)


def _previous(kept: Configurations) -> Configuration:
    with _refused():
        return _book(kept).before()


def _book(kept: Configurations) -> ConfigurationBook[Configuration]:
    return ConfigurationBook(kept.configurations, kept.target)


@contextmanager
def _refused() -> Generator[None]:
    try:
        yield
    except ConfigurationNotFound as missing:
        raise Refused(missing.refusal) from None
