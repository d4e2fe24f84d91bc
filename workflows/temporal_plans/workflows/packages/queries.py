"""The queries of an instance."""

from temporalio import workflow

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.resolution import resolve
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.loading.packages.structures import decode
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    Inventory,
    PackageConfigurations,
    PackagePreview,
)
from temporal_plans.messages.pools import Holdings
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.packages.plan_inputs import installed_package


class InstanceQueries(Owner):
    """A base class of the Instance workflow; the handlers read these attributes."""

    _configs: ConfigurationBook[PackageConfiguration]
    _inventory: dict[tuple[str, str, str, str], ObjectRef]
    _rejected: tuple[str, ...]

    @workflow.query(name="status", description="The package, its plans and configurations.")
    def status(self) -> InstanceStatus:
        target = self._configs.target
        installation = target.installation
        return InstanceStatus(
            name=self.owner_name,
            config_id=target.id,
            number=target.number,
            errors=self._rejected,
            uninstalling=self.uninstalling,
            configs=tuple(config.id for config in self._configs.all),
            plans=tuple(plan for plan in self.plans.records.values() if not plan.dropped),
            package=installation.package.name,
            version=installation.package.version,
            instance=installation.instance,
            cluster=installation.cluster,
            namespace=installation.namespace,
            objects=len(self._inventory),
            startable=tuple(self.startable),
        )

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
        )

    @workflow.query(name="holdings", description="A package reserves nothing in a Pool.")
    def holdings(self) -> Holdings:
        return Holdings()

    @workflow.query(name="wanted", description="A package reserves nothing in a Pool.")
    def wanted(self) -> Holdings:
        return Holdings()
