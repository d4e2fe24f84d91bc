"""The queries of an instance."""

from collections.abc import Iterator

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.readiness import Readiness
from temporal_plans.domain.packages.resolution import resolve
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.loading.packages.structures import decode
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    Inventory,
    LookAtObjects,
    LookRequest,
    ObjectsReport,
    PackageConfigurations,
    PackagePreview,
    installed_package,
)
from temporal_plans.messages.pools import Holdings
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.packages.observation import ObjectWatch, look

FROM_THE_FIRST = LookRequest()


class InstanceQueries(Owner):
    """A base class of the Instance workflow; the handlers read these attributes."""

    _configs: ConfigurationBook[PackageConfiguration]
    _input: InstanceInput
    _services: tuple[str, ...]
    _inventory: dict[tuple[str, str, str, str], ObjectRef]
    _readiness: Readiness | None
    _uids: dict[str, str]
    _rejected: tuple[str, ...]
    _watch: ObjectWatch

    @workflow.query(name="status", description="The package, its plans and configurations.")
    def status(self) -> InstanceStatus:
        target = self._configs.target
        installation = target.installation
        return InstanceStatus(
            name=self.owner_name,
            content="package",
            config_id=target.id,
            number=target.number,
            errors=self._rejected,
            trouble=self._readiness.trouble if self._readiness else "",
            uninstalling=self.uninstalling,
            configs=tuple(config.id for config in self._configs.all),
            plans=(*self.plans.records.values(), *self._never_run()),
            package=installation.package.name,
            version=installation.package.version,
            instance=installation.instance,
            cluster=installation.cluster,
            namespace=installation.namespace,
            objects=len(self._inventory),
            parent=self._input.parent,
            services=self._services,
            startable=tuple(self.startable),
            readiness=self._readiness,
            seen=self._watch.last,
            uids=self._uids,
        )

    def _never_run(self) -> Iterator[PlanRecord]:
        for name in self.startable:
            if name not in self.plans.records:
                yield PlanRecord(name=name, workflow_id=self.plans.workflow_id(name), priority=0)

    @workflow.query(name="configurations", description="The configurations that are kept.")
    def configurations(self) -> PackageConfigurations:
        return PackageConfigurations(
            configurations=self._configs.all, target=self._configs.target.id
        )

    @workflow.query(name="preview", description="What deploying this would change.")
    def preview(self, input: InstanceInput) -> PackagePreview:
        before = self._configs.target.installation
        resolved = resolve(before, input.change, decode)
        installed = installed_package(self.owner_name, before)
        if isinstance(resolved, Refusal):
            return PackagePreview(problems=resolved.reasons, before=installed)
        return PackagePreview(
            change=resolved.change,
            before=installed,
            after=installed_package(self.owner_name, resolved.installation),
        )

    @workflow.query(name="inventory", description="The objects that it has in its cluster.")
    def inventory(self) -> Inventory:
        return Inventory(
            package=installed_package(self.owner_name, self._configs.target.installation),
            objects=tuple(self._inventory.values()),
            services=self._services,
        )

    @workflow.update(
        name="look", description="Look at the objects in the cluster now. Input {first}, optional."
    )
    async def look(self, request: LookRequest = FROM_THE_FIRST) -> ObjectsReport:
        package = installed_package(self.owner_name, self._configs.target.installation)
        order = LookAtObjects(
            owner=workflow.info().workflow_id, package=package, first=request.first
        )
        report = await look(order)
        if not request.first:  # its own notes are older than this answer
            self._watch.look_soon()
            self.changed()
        return report

    @workflow.query(name="pods", description="Refused: a package has objects instead.")
    def pods(self) -> None:
        raise self._no_pods()

    @workflow.query(name="tasks", description="Refused: a package has objects instead.")
    def tasks(self) -> None:
        raise self._no_pods()

    @workflow.query(name="config", description="Refused: ask for the configurations.")
    def config(self) -> None:
        raise self._no_pods()

    def _no_pods(self) -> ApplicationError:
        return refused(
            Code.NOT_APPLICABLE,
            f"service {self.owner_name} is a package: it has no pods",
            fix=f"see its objects with `temporal plan objects -s {self.owner_name}`",
        )

    @workflow.query(name="holdings", description="A package reserves nothing in a Pool.")
    def holdings(self) -> Holdings:
        return Holdings()

    @workflow.query(name="wanted", description="A package reserves nothing in a Pool.")
    def wanted(self) -> Holdings:
        return Holdings()
