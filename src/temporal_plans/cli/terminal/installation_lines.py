"""Configurations of packages as documents and differences."""

from typing import Any

from rich.text import Text

from temporal_plans.cli.terminal.package_change_lines import change_lines
from temporal_plans.domain.packages.changes import Change
from temporal_plans.domain.packages.configuration import PackageConfiguration, rollback_request
from temporal_plans.domain.packages.installation import Installation
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.loading.packages.structures import decode


def installation_document(installation: Installation) -> dict[str, Any]:
    """Return what is installed for people: no plans and templates, no secret values."""
    package = installation.package
    document: dict[str, Any] = {
        "package": package.name,
        "version": package.operator.operator_version,
        "app-version": package.operator.app_version or None,
        "content": package.content,
        "cluster": installation.cluster,
        "namespace": installation.namespace,
        "instance": installation.instance,
        "parameters": dict(installation.given),
        "secret-parameters": dict(installation.secrets),
    }
    return {key: value for key, value in document.items() if value not in (None, {})}


def difference(before: PackageConfiguration, after: PackageConfiguration) -> Change | None:
    """Return the change from one configuration to another; None where the later one can't follow
    the earlier one."""
    resolved = resolve(before.installation, rollback_request(after), decode)
    return resolved.change if isinstance(resolved, Resolved) else None


def difference_lines(change: Change | None) -> list[Text]:
    if change is None:
        return [Text("The one can't follow the other.")]
    if not change.plan:
        return [Text("They do not differ.")]
    return change_lines(change)
