"""The verification of packages: what reading one found, and what the checks of the domain find."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from temporal_plans.domain.packages.checks import CHECKS, findings, verification
from temporal_plans.domain.packages.checks.subject import Check, Subject
from temporal_plans.domain.packages.findings import Finding, Severity, Verification
from temporal_plans.domain.packages.package import PARAMETERS_FILE, TEMPLATES_FOLDER
from temporal_plans.loading.forms.form import PLACEHOLDER
from temporal_plans.loading.packages.reader import ReadPackage
from temporal_plans.loading.packages.references import template_use
from temporal_plans.loading.packages.rendering_check import rendering_findings
from temporal_plans.loading.packages.structures import decode

_RENDERING = "rendering"
_FORM = "form"


def verify(
    read: ReadPackage,
    *,
    task_kinds: Collection[str] = (),
    checks: Collection[Check] = CHECKS,
    rendering: bool = True,
) -> Verification:
    """Return every error and warning of a package, in the order of files and lines.

    ``task_kinds`` are the names of kinds that developers registered. ``rendering``: templates are
    rendered, too, which takes a process of its own. While parts of the package are unreadable,
    warnings of checks are left out: those parts may be what they miss.
    """
    subject = Subject(
        package=read.package,
        decode=decode,
        uses={key: template_use(text) for key, text in read.package.templates.items()},
        task_kinds=task_kinds,
    )
    found = [*_of_the_package(findings(subject, checks), read.faults)]
    if rendering:
        found += _rendered(read, found)
    of_the_form = [one.but(check=_FORM) for one in (*read.faults, *read.findings)]
    return verification([*of_the_form, *map(read.placed, found)])


def _rendered(read: ReadPackage, found: Sequence[Finding]) -> list[Finding]:
    """Return what is wrong with what the templates give, where nothing else explains it."""
    faulty = {one.file for one in (*read.faults, *found) if one.severity is Severity.ERROR}
    if PARAMETERS_FILE in faulty:
        return []  # the defaults may be those that templates can't use
    templates = read.package.templates
    unusable = [key for key in templates if f"{TEMPLATES_FOLDER}/{key}" in faulty]
    rendered = rendering_findings(read.package, unusable)
    return [one.but(check=_RENDERING) for one in rendered]


def _of_the_package(found: Iterable[Finding], faults: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that do not result from a value that stands in for an unreadable one."""
    unreadable = [(fault.file, f"{fault.field}.") for fault in faults]
    for one in found:
        derived = any(
            file == one.file and f"{one.field}.".startswith(field) for file, field in unreadable
        )
        if derived or PLACEHOLDER in str(one):
            continue
        if not unreadable or one.severity is Severity.ERROR:
            yield one
