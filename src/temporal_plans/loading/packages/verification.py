"""The verification of packages: what reading one found, and what the checks of the domain find."""

from collections.abc import Collection, Iterable, Iterator

from temporal_plans.domain.packages.checks import CHECKS, findings, verification
from temporal_plans.domain.packages.checks.subject import Check, Subject
from temporal_plans.domain.packages.findings import Finding, Verification
from temporal_plans.loading.forms.form import PLACEHOLDER
from temporal_plans.loading.packages.reader import ReadPackage
from temporal_plans.loading.packages.references import template_use
from temporal_plans.loading.packages.structures import decode


def verify(
    read: ReadPackage, *, task_kinds: Collection[str] = (), checks: Collection[Check] = CHECKS
) -> Verification:
    """Return every error and warning of a package, in the order of files and lines.

    ``task_kinds`` are the names of kinds that developers registered.
    """
    subject = Subject(
        package=read.package,
        decode=decode,
        uses={key: template_use(text) for key, text in read.package.templates.items()},
        task_kinds=task_kinds,
    )
    found = _of_the_package(findings(subject, checks), read.faults)
    return verification([*read.faults, *read.findings, *map(read.placed, found)])


def _of_the_package(found: Iterable[Finding], faults: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that do not result from a value that stands in for an unreadable one."""
    unreadable = [(fault.file, f"{fault.field}.") for fault in faults]
    for one in found:
        derived = any(
            file == one.file and f"{one.field}.".startswith(field) for file, field in unreadable
        )
        if not derived and PLACEHOLDER not in str(one):
            yield one
