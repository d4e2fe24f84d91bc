"""From a request to what is to be installed, and the change that this is."""

from collections.abc import Iterator
from typing import NamedTuple

from temporal_plans.domain.packages.changes import Cause, Change, ChangeRequest, ParameterChange
from temporal_plans.domain.packages.installation import (
    DEFINITION_LIMIT,
    Installation,
    PackageDefinition,
    Switches,
)
from temporal_plans.domain.packages.object_names import object_name_fault
from temporal_plans.domain.packages.parameter_changes import (
    Values,
    faults_of_values,
    parameter_changes,
    request_faults,
    values_after,
)
from temporal_plans.domain.packages.parameters import Decode
from temporal_plans.domain.packages.plan_choice import (
    PlanChoice,
    for_installation,
    for_parameters,
    for_version,
)
from temporal_plans.domain.packages.plan_specs import plan_faults
from temporal_plans.domain.packages.versions import is_lower
from temporal_plans.domain.values.refusal import Code, Reason, Refusal

NOTHING_DIFFERS = "nothing differs from what is installed"


class Resolved(NamedTuple):
    """An accepted request: what is to be installed, and how it differs from what is."""

    installation: Installation
    change: Change


def resolve(
    before: Installation | None, request: ChangeRequest, decode: Decode
) -> Resolved | Refusal:
    """Return what a request makes of what is installed (None: nothing), or every reason against
    it."""
    package = request.package or (before.package if before else None)
    if package is None:
        problem, fix = "nothing is installed under this name", "name the package to install"
        return Refusal.of(Code.CONFIGURATION, problem, field="package", fix=fix)
    switches = request.switches or (before.switches if before else Switches())
    values = values_after(before, request, package)
    refused = list(request_faults(before, request, package))
    unknown = [one for one in refused if _is_unknown(one, package)]
    ignored = switches.unknown_parameters == "ignore"
    faults = [one for one in refused if not (ignored and one in unknown)]
    if before is None or package.content != before.package.content:
        faults += _package_faults(before, request, package, switches)
    faults += _place_faults(before, request)
    faults += faults_of_values(before, values, package, decode)
    changes = tuple(parameter_changes(before, values, package))
    choice = _choice(before, package, changes)
    faults += choice.faults
    if faults:
        return Refusal(code=Code.CONFIGURATION, reasons=tuple(faults))
    warnings = (*choice.warnings, *(unknown if ignored else ()), *_doubts(before, package))
    after = _installation(before, request, package, values, switches)
    resets = before is not None and before.switches != switches
    return Resolved(after, _change(before, package, changes, choice, warnings, resets))


def _is_unknown(reason: Reason, package: PackageDefinition) -> bool:
    return reason.field.removeprefix("parameters.") not in package.by_name


def _package_faults(
    before: Installation | None,
    request: ChangeRequest,
    package: PackageDefinition,
    switches: Switches,
) -> Iterator[Reason]:
    """Yield a reason for all that is wrong with a package that was not installed before."""
    if (size := len(package.model_dump_json())) > DEFINITION_LIMIT:
        problem = f"its plans and parameters have more than {DEFINITION_LIMIT} characters"
        yield Reason(
            field="package", problem=problem, value=size, fix="make several packages of it"
        )
    yield from plan_faults(package, switches)
    if before is None:
        return
    old = before.package
    if package.name != old.name:
        fix = "uninstall first, or install it under another name"
        problem = f"is another package than the installed {old.name}"
        yield Reason(field="package", problem=problem, value=package.name, fix=fix)
    elif not request.allow_downgrade and _is_downgrade(old, package):
        problem = f"is of a lower version than the installed {old.version}"
        fix = "allow it with --allow-downgrade"
        yield Reason(field="package", problem=problem, value=package.version, fix=fix)


def _is_downgrade(old: PackageDefinition, new: PackageDefinition) -> bool:
    """Return whether the version of the package is lower; of two with the same, that of its
    application."""
    before, after = old.operator, new.operator
    if is_lower(after.operator_version, before.operator_version):
        return True
    same = not is_lower(before.operator_version, after.operator_version)
    return same and is_lower(after.app_version, before.app_version)


def _doubts(before: Installation | None, package: PackageDefinition) -> Iterator[Reason]:
    if before is None or before.package.content == package.content:
        return
    if before.package.version == package.version:
        problem = (
            f"has another content than the installed one of the same version {package.version}"
        )
        fix = "give each content a version of its own"
        yield Reason(field="package", problem=problem, fix=fix)


def _place_faults(before: Installation | None, request: ChangeRequest) -> Iterator[Reason]:
    """Yield a reason for each part of its place that is missing, or that would change."""
    for field in ("instance", "cluster", "namespace"):
        asked: str = getattr(request, field)
        if before is None:
            if not asked:
                yield Reason(field=field, problem="is missing", fix=f"name the {field}")
            elif field != "cluster" and (fault := object_name_fault(asked)):
                fix = "write lower-case letters, digits and '-'"
                yield Reason(field=field, problem=fault, value=asked, fix=fix)
        elif asked and asked != (now := getattr(before, field)):
            problem = f"can't change from {now}: objects stay where they are"
            fix = "uninstall first, or install the package under another name"
            yield Reason(field=field, problem=problem, value=asked, fix=fix)


def _choice(
    before: Installation | None, package: PackageDefinition, changes: tuple[ParameterChange, ...]
) -> PlanChoice:
    if before is None:
        return for_installation(package)
    if before.package.content == package.content:
        return for_parameters(package, changes)
    return for_version(package, changes, before.package.by_name)


def _installation(
    before: Installation | None,
    request: ChangeRequest,
    package: PackageDefinition,
    values: Values,
    switches: Switches,
) -> Installation:
    place: Installation | ChangeRequest = before or request
    return Installation(
        package=package,
        instance=place.instance,
        cluster=place.cluster,
        namespace=place.namespace,
        given=dict(values.given),
        secrets=dict(values.secrets),
        create_namespace=place.create_namespace or request.create_namespace,
        switches=switches,
    )


def _change(
    before: Installation | None,
    package: PackageDefinition,
    changes: tuple[ParameterChange, ...],
    choice: PlanChoice,
    warnings: tuple[Reason, ...],
    resets: bool,
) -> Change:
    """``resets``: its settings differ."""
    if before is None:
        cause = Cause.INSTALLATION
    elif before.package.content != package.content:
        cause = Cause.VERSION
    else:
        cause = Cause.PARAMETERS if choice.plan else Cause.NOTHING
    return Change(
        cause=cause,
        plan=choice.plan,
        why=choice.why or ("only settings differ" if resets else NOTHING_DIFFERS),
        version_before=before.package.version if before else "",
        version=package.version,
        parameters=changes,
        warnings=warnings,
    )
