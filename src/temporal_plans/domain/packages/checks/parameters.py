"""Checks of the definitions of parameters."""

from collections import Counter
from collections.abc import Iterator

from temporal_plans.domain.packages.checks.subject import Subject
from temporal_plans.domain.packages.findings import Finding, error, warning
from temporal_plans.domain.packages.package import PARAMETERS_FILE
from temporal_plans.domain.packages.parameters import Parameter, ParameterType
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.values.names import suggestion

_FORBIDDEN = ";,"


def names(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each name that is a second one, whatever its case, or can't be written on
    the command line."""
    first: dict[str, str] = {}
    for one in subject.package.parameters:
        if (other := first.setdefault(one.name.lower(), one.name)) is not one.name:
            problem = f"is the same name as {other}"
            yield _error(one, "name", problem, value=one.name, fix="rename one of them")
        if not one.name or any(sign in one.name for sign in _FORBIDDEN):
            fix = "write a name without ; and ,"
            yield _error(one, "name", "can't be a name", value=one.name, fix=fix)


def values(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each unknown type, for each default and each value to choose from that is
    not of the type, and for each default that is none of the choices."""
    for one in subject.package.parameters:
        if one.type and one.type not in list(ParameterType):
            fix = suggestion(one.type, list(ParameterType))
            yield _error(one, "type", "is unknown", value=one.type, fix=fix)
            continue
        if one.enum is not None and not one.enum:
            yield _error(one, "enum", "is empty", fix="list the values, or remove it")
        for index, choice in enumerate(one.enum or ()):
            if problem := one.type_fault(choice, subject.decode):
                yield _error(one, f"enum.{index}", problem, value=choice)
        if one.default and (problem := one.fault(one.default, subject.decode)):
            yield _error(one, "default", problem, value=one.default)


def presence(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each immutable parameter that need not have a value, and for each advanced
    one that most people can't leave alone."""
    for one in subject.package.parameters:
        if one.immutable and one.default is None and not one.required:
            fix = "give it a default, or write required: true"
            yield _error(one, "immutable", "would fix a value that need not be there", fix=fix)
        if one.advanced and one.default is None and one.required:
            fix = "give it a default, or write required: false"
            yield _error(one, "advanced", "is required and has no default", fix=fix)


def groups(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each group that is defined twice or has a slash in its name, and for each
    parameter in an unknown group."""
    package = subject.package
    counts = Counter(group.name for group in package.groups)
    for name, count in counts.items():
        if count > 1:
            yield error(PARAMETERS_FILE, f"groups.{name}", "is defined twice", fix="remove one")
        if "/" in name:
            fix = "write a name without /"
            yield error(PARAMETERS_FILE, f"groups.{name}", "has a slash", value=name, fix=fix)
    for one in package.parameters:
        if "/" in one.group:
            yield _error(one, "group", "has a slash", value=one.group, fix="remove it")
        elif one.group and one.group not in counts:
            fix = suggestion(one.group, counts) or "define it under groups"
            yield _error(one, "group", "is not defined", value=one.group, fix=fix)


def triggers(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each trigger that is no plan, and a warning for one that can't be
    started."""
    plans = subject.package.operator.plans
    for one in subject.package.parameters:
        if one.trigger and one.trigger not in plans:
            fix = suggestion(one.trigger, plans)
            yield _error(one, "trigger", "is not a plan", value=one.trigger, fix=fix)
        elif one.trigger == CLEANUP:
            yield warning(
                PARAMETERS_FILE,
                f"parameters.{one.name}.trigger",
                "runs at the uninstall only: a change of the parameter will be refused",
                value=one.trigger,
                fix="name another plan",
            )


def _error(
    one: Parameter, key: str, problem: str, *, value: object = None, fix: str = ""
) -> Finding:
    return error(PARAMETERS_FILE, f"parameters.{one.name}.{key}", problem, value=value, fix=fix)
