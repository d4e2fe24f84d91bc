"""Verbs for operator packages that are installed as services."""

from collections.abc import Mapping
from datetime import timedelta

from temporal_plans.client.errors import PlansError, Refused, ServiceNotFound
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
)
from temporal_plans.client.verbs.base import Verbs
from temporal_plans.domain.kinds.package_removal import PackageRemovalWork
from temporal_plans.domain.owners.configurations import ConfigurationBook, ConfigurationNotFound
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.installation import Switches, definition_of
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.packages.plans import CLEANUP, DEPLOY
from temporal_plans.domain.packages.resolution import resolve
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PlanState
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import CommonStatus, Rollback
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    Inventory,
    LookAtObjects,
    LookRequest,
    ObjectsPreview,
    ObjectsReport,
    PackageConfigurations,
    PackageDeployResult,
    PackagePreview,
    PreviewObjects,
    installed_package,
)
from temporal_plans.messages.plans import PlanResult

_CLUSTER_TIMEOUT = timedelta(seconds=30)
_LOOK_TIMEOUT = timedelta(seconds=10)

MAIN_CLUSTER, DEFAULT_NAMESPACE = "main", "default"
"""Where a package is installed when nothing is said."""


class _Family(CommonStatus):
    """The services of nested packages; a service of pods has none."""

    services: tuple[str, ...] = ()


class PackageDeployment(Value):
    """A change of a package that is installed as the service ``name``, or its installation.

    ``package`` and its ``archive`` are both set, or neither: then the installed one stays.
    ``nested`` are the archives of the packages nested in it (``loading.packages.nested``).
    ``parameters`` are texts by name, None for those to unset; ``secrets`` are names of files of the
    cluster's worker. Empty texts leave the place as it is; a new one is the namespace ``default``
    of the cluster ``main``, and has the service's name.
    ``create_namespace``: a plan creates it where it lacks. ``exact``: parameters that are not named
    are unset. ``settings``: those that are set (``model_fields_set``) change.
    """

    name: str
    package: Package | None = None
    archive: bytes = b""
    nested: tuple[bytes, ...] = ()
    parameters: Mapping[str, str | None] = {}
    secrets: Mapping[str, str] = {}
    exact: bool = False
    instance: str = ""
    cluster: str = ""
    namespace: str = ""
    create_namespace: bool = False
    allow_downgrade: bool = False
    settings: Switches = Switches()
    backoff: Backoff = Backoff()
    by: str = ""
    reason: str = ""


class PackageVerbs(Verbs):
    """The verbs for packages. They raise ServiceNotFound, and Refused with the reasons."""

    async def removal_plan(self, service: str) -> str:
        """Return the name of the plan that an uninstall of the service runs."""
        return CLEANUP if await self.content_of(service) == "package" else DEPLOY

    async def what_stays(self, plan_id: str) -> str:
        """Return what an uninstalled package has left in its cluster, in words; empty for nothing,
        and for a service of pods. ``plan_id`` is that of its removal plan, which has ended."""
        try:
            result = await self._gateway.result_of(plan_id, PlanResult)
        except (NoSuchWorkflow, PlansError):
            return ""
        state = result.state or PlanState()
        found = [
            state.phases[at].steps[index].result
            for at, phase in enumerate(result.view.phases)
            for index, step in enumerate(phase.steps)
            if step.kind == PackageRemovalWork.name() and at in state.phases
        ]
        return "; ".join(text for text in found if isinstance(text, str))

    async def deploy_package(self, deployment: PackageDeployment) -> PackageDeployResult:
        """Install a package, or change what is installed. A change that is refused is not raised:
        ``outcome.result`` of the answer is ``refused``, and ``problems`` has the reasons."""
        name = deployment.name
        request = await self._package_request(deployment)
        if request.change.package is None:
            return await self._update_service(name, "deploy", request, PackageDeployResult)
        for _ in range(2):  # retried if an Instance of this name ends meanwhile
            try:
                return await self._gateway.start_and_update(
                    "Instance", service_id(name), request, "deploy", PackageDeployResult
                )
            except (NoSuchWorkflow, WorkflowIsClosed, EndedBeforeAnswer):
                continue
        problem = f"service {name!r} ended during its deployment"
        raise Refused.of(Code.UNAVAILABLE, problem, fix="deploy it again")

    async def preview_package(self, deployment: PackageDeployment) -> PackagePreview:
        """Return the change that a deployment would make, or why it would be refused."""
        from temporal_plans.loading.packages.structures import decode

        request = await self._package_request(deployment)
        if await self.content_of(deployment.name):
            return await self._query_service(deployment.name, "preview", PackagePreview, request)
        resolved = resolve(None, request.change, decode)
        if isinstance(resolved, Refusal):
            return PackagePreview(problems=resolved.reasons)
        after = installed_package(deployment.name, resolved.installation)
        return PackagePreview(change=resolved.change, after=after)

    async def preview_objects(
        self, preview: PackagePreview, *, timeout: timedelta = _CLUSTER_TIMEOUT
    ) -> ObjectsPreview | None:
        """Return what the plan of a previewed change would do with each object in the cluster; None
        for a change that starts no plan. Raises ClusterUnreachable."""
        if preview.after is None or preview.change is None or not preview.change.plan:
            return None
        order = PreviewObjects(before=preview.before, after=preview.after, plan=preview.change.plan)
        return await self._gateway.ask_cluster(
            preview.after.cluster, "preview_objects", order, ObjectsPreview, timeout=timeout
        )

    async def _package_request(self, deployment: PackageDeployment) -> InstanceInput:
        content = await self.content_of(deployment.name)
        if content == "service":
            raise _taken(deployment.name)
        if not content and deployment.package is None:
            raise ServiceNotFound(deployment.name, await self.services())
        definition = None
        if deployment.package is not None:
            for archive in deployment.nested:
                await self._gateway.put_content(archive)
            digest = await self._gateway.put_content(deployment.archive)
            definition = definition_of(deployment.package, digest)
        new = not content
        change = ChangeRequest(
            package=definition,
            parameters=dict(deployment.parameters),
            secrets=dict(deployment.secrets),
            exact=deployment.exact,
            instance=deployment.instance or (deployment.name if new else ""),
            cluster=deployment.cluster or (MAIN_CLUSTER if new else ""),
            namespace=deployment.namespace or (DEFAULT_NAMESPACE if new else ""),
            create_namespace=deployment.create_namespace,
            allow_downgrade=deployment.allow_downgrade,
            switches=await self._switches(deployment.name, deployment.settings, new=new),
        )
        return InstanceInput(
            name=deployment.name,
            change=change,
            backoff=deployment.backoff,
            by=deployment.by,
            reason=deployment.reason,
        )

    async def _switches(self, service: str, asked: Switches, *, new: bool) -> Switches | None:
        """Return the settings in force with those that are asked for; None where these are none."""
        if not asked.model_fields_set:
            return None
        if new:
            return asked
        installed = found_in(await self.package_configurations(service)).installation.switches
        return installed.but(**{name: getattr(asked, name) for name in asked.model_fields_set})

    async def preview_change(self, service: str, change: ChangeRequest) -> PackagePreview:
        """Return what a change of an installed package would be, or why it would be refused."""
        request = InstanceInput(name=service, change=change)
        return await self._query_service(service, "preview", PackagePreview, request)

    async def rollback_package(
        self, service: str, config: str, *, by: str = "", reason: str = ""
    ) -> PackageDeployResult:
        """Deploy an earlier configuration again, by id or number."""
        request = Rollback(config=config, by=by, reason=reason)
        return await self._update_service(service, "rollback", request, PackageDeployResult)

    async def instance(self, service: str) -> InstanceStatus:
        """Return the status of an installed package."""
        return await self._query_service(service, "status", InstanceStatus)

    async def family(self, service: str) -> list[str]:
        """Return a service and those of packages nested in its own, each before its own nested
        ones."""
        try:
            status = await self._query_service(service, "status", _Family)
        except ServiceNotFound:
            return [service]
        return [service, *[name for one in status.services for name in await self.family(one)]]

    async def package_configurations(self, service: str) -> PackageConfigurations:
        """Return the configurations that an installed package keeps, oldest first."""
        return await self._query_service(service, "configurations", PackageConfigurations)

    async def objects(self, service: str) -> ObjectsReport:
        """Look at all objects of an installed package now. A report with a ``problem`` says why the
        cluster or its worker does not answer, and has no objects."""
        report = await self._update_service(service, "look", LookRequest(), ObjectsReport)
        while report.following is not None and not report.problem:
            request = LookRequest(first=report.following)
            more = await self._update_service(service, "look", request, ObjectsReport)
            report = joined(report, more)
        return report

    async def notable_objects(
        self, service: str, *, timeout: timedelta = _LOOK_TIMEOUT
    ) -> ObjectsReport:
        """Look at all objects of an installed package now, and report those that are not healthy
        or were changed by others. Raises ClusterUnreachable when no worker takes the question
        within ``timeout``."""
        package = (await self.inventory(service)).package
        order = LookAtObjects(owner=service_id(service), package=package, notable=True)
        return await self._gateway.ask_cluster(
            package.cluster, "look_at_objects", order, ObjectsReport, timeout=timeout
        )

    async def inventory(self, service: str) -> Inventory:
        """Return the objects that an installed package has in its cluster."""
        return await self._query_service(service, "inventory", Inventory)


def _taken(name: str) -> Refused:
    return Refused.of(
        Code.NAME_TAKEN,
        f"service {name!r} has pods, so no package can have this name",
        fix=f"choose another with -s, or `temporal plan uninstall -s {name}` first",
    )


def found_in(kept: PackageConfigurations, config: str = "") -> PackageConfiguration:
    """Return the configuration with this number or id, by default the one in force. Raises
    Refused."""
    try:
        return ConfigurationBook(kept.configurations, kept.target).find(config or kept.target)
    except ConfigurationNotFound as missing:
        raise Refused(missing.refusal) from None


def joined(first: ObjectsReport, more: ObjectsReport) -> ObjectsReport:
    """Return two consecutive reports as one. It is for people, and may be larger than a message."""
    states = {*first.counts, *more.counts}
    return more.but(
        looked=first.looked + more.looked,
        counts={one: first.counts.get(one, 0) + more.counts.get(one, 0) for one in states},
        changed=first.changed + more.changed,
        objects=(*first.objects, *more.objects),
    )
