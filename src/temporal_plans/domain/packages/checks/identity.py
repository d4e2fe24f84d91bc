"""Checks of the name and the versions in ``operator.yaml``."""

from collections.abc import Iterator

from temporal_plans.domain.packages.checks.subject import Subject
from temporal_plans.domain.packages.findings import Finding, error
from temporal_plans.domain.packages.package import OPERATOR_FILE, package_name_fault
from temporal_plans.domain.packages.versions import is_version


def name(subject: Subject) -> Iterator[Finding]:
    """Yield an error for a package without a name, or with one that objects can't have."""
    found = subject.package.name
    if not found:
        yield error(OPERATOR_FILE, "name", "is missing", fix="name the package")
    elif fault := package_name_fault(found):
        yield error(OPERATOR_FILE, "name", fault, value=found, fix="rename it")


_FIX = "write a semantic version such as 1.2.3"


def versions(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each version that is missing or is not semantic."""
    operator = subject.package.operator
    for key, version, required in (
        ("operatorVersion", operator.operator_version, True),
        ("kubernetesVersion", operator.kubernetes_version, True),
        ("appVersion", operator.app_version, False),
        ("kudoVersion", operator.kudo_version, False),
    ):
        if version and not is_version(version):
            yield error(OPERATOR_FILE, key, "is not a version", value=version, fix=_FIX)
        elif required and not version:
            yield error(OPERATOR_FILE, key, "is missing", fix=_FIX)
