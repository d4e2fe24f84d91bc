"""Checks of packages.

To add a check: a function that yields findings, and its line in ``CHECKS``.
"""

from collections.abc import Collection, Iterable

from temporal_plans.domain.packages.checks import identity, parameters, plans, tasks, templates
from temporal_plans.domain.packages.checks.subject import Check, Subject
from temporal_plans.domain.packages.findings import Finding, Severity, Verification

CHECKS: tuple[Check, ...] = (
    Check("name", identity.name),
    Check("version", identity.versions),
    Check("parameter-name", parameters.names),
    Check("parameter-value", parameters.values),
    Check("parameter-presence", parameters.presence),
    Check("group", parameters.groups),
    Check("trigger", parameters.triggers),
    Check("task", tasks.specs),
    Check("task-name", tasks.names),
    Check("task-reference", tasks.references),
    Check("deploy", plans.deploy),
    Check("plan-name", plans.names),
    Check("strategy", plans.strategies),
    Check("dependency", plans.dependencies),
    Check("conflict", plans.conflicts),
    Check("step", plans.tasks),
    Check("pipe-key", plans.pipes),
    Check("template-syntax", templates.syntax),
    Check("template-field", templates.fields),
    Check("template-parameter", templates.parameters),
    Check("template-file", templates.files),
    Check("template-pipe", templates.pipes),
)


def findings(subject: Subject, checks: Collection[Check] = CHECKS) -> list[Finding]:
    """Return what the checks find, in their order."""
    return [found.but(check=check.name) for check in checks for found in check.find(subject)]


def verification(found: Iterable[Finding]) -> Verification:
    """Return findings as a result, in the order of files and lines."""
    ordered = sorted(found, key=lambda one: (one.file, one.line or 0))
    return Verification(
        errors=tuple(one for one in ordered if one.severity is Severity.ERROR),
        warnings=tuple(one for one in ordered if one.severity is Severity.WARNING),
    )
