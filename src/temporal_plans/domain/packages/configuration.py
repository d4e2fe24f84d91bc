"""A configuration of an instance."""

from temporal_plans.domain.owners.configurations import OwnedConfiguration
from temporal_plans.domain.packages.installation import Installation


class PackageConfiguration(OwnedConfiguration):
    """One accepted configuration of an instance: what is installed with it."""

    installation: Installation
