"""A configuration of an instance."""

from temporal_plans.domain.owners.configurations import OwnedConfiguration
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import Installation


class PackageConfiguration(OwnedConfiguration):
    """One accepted configuration of an instance: what is installed with it."""

    installation: Installation


def rollback_request(found: PackageConfiguration) -> ChangeRequest:
    """Return the request that makes a configuration the one in force again."""
    installation = found.installation
    return ChangeRequest(
        package=installation.package,
        parameters=dict(installation.given),
        secrets=installation.secrets,
        exact=True,
        switches=installation.switches,
        allow_downgrade=True,
    )
