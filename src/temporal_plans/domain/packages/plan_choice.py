"""Which plan of a package a change starts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from temporal_plans.domain.packages.changes import ParameterChange
from temporal_plans.domain.packages.installation import PackageDefinition
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.plans import CLEANUP, DEPLOY, UPDATE, UPGRADE
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import listed

NAMES_LISTED = 5
"""Parameters that a text names."""


class PlanChoice(NamedTuple):
    """A plan and why it is that one, or the ``faults`` that leave none."""

    plan: str = ""
    why: str = ""
    warnings: tuple[Reason, ...] = ()
    faults: tuple[Reason, ...] = ()


def for_installation(package: PackageDefinition) -> PlanChoice:
    """Return the plan of an installation."""
    if DEPLOY in package.plans:
        return PlanChoice(DEPLOY, "it installs the package")
    fix = f"add the plan {DEPLOY} to the package"
    return _refused(Reason(field="package", problem=f"has no plan {DEPLOY}", fix=fix))


def for_parameters(package: PackageDefinition, changed: Iterable[ParameterChange]) -> PlanChoice:
    """Return the plan for changed parameters of the same version: the one that they name, else
    ``update``, else ``deploy``. No plan when nothing changed."""
    known = package.by_name
    parameters = [known[one.name] for one in changed if one.is_asked_for]
    if not parameters:
        return PlanChoice()
    triggers = _by_trigger(parameters)
    silent = triggers.pop("", [])
    if faults := tuple(_trigger_faults(package, triggers)):
        return PlanChoice(faults=faults)
    if triggers:
        (plan, names), *_ = triggers.items()
        verb = "triggers" if len(names) == 1 else "trigger"
        why = f"{_parameters(names)} {verb} it"
        return PlanChoice(plan, why, tuple(_without_effect(plan, silent)))
    plan = next((name for name in (UPDATE, DEPLOY) if name in package.plans), "")
    if not plan:
        problem = f"there is no plan for them: the package has neither {UPDATE} nor {DEPLOY}"
        return _refused(Reason(field="parameters", problem=problem))
    other = "" if plan == UPDATE else f", and the package has no plan {UPDATE}"
    have = "has" if len(silent) == 1 else "have"
    return PlanChoice(plan, f"{_parameters(silent)} {have} no trigger{other}")


def for_version(
    package: PackageDefinition, changed: Sequence[ParameterChange], existing: Iterable[str]
) -> PlanChoice:
    """Return the plan for another version: the first of ``upgrade``, ``update`` and ``deploy`` that
    it has. ``existing`` are the parameters of both versions: changed together with the version,
    they must not need another plan than ``deploy``."""
    both = set(existing)
    asked = for_parameters(package, [one for one in changed if one.name in both])
    if asked.faults:
        return asked
    if asked.plan not in ("", DEPLOY):
        names = [one.name for one in changed if one.name in both and one.is_asked_for]
        problem = (
            f"the version can't change together with {_parameters(names)}:"
            f" that starts plan {asked.plan}"
        )
        fix = "change the version first, then the parameters"
        return _refused(Reason(field="parameters", problem=problem, fix=fix))
    wanted = (UPGRADE, UPDATE, DEPLOY)
    plan = next((name for name in wanted if name in package.plans), "")
    if not plan:
        problem = f"has none of the plans {', '.join(wanted)}"
        return _refused(Reason(field="package", problem=problem))
    missing = wanted[: wanted.index(plan)]
    without = f", and the package has no plan {' or '.join(missing)}" if missing else ""
    return PlanChoice(plan, f"the version changes{without}")


def _by_trigger(parameters: Iterable[Parameter]) -> dict[str, list[str]]:
    """Return the names of parameters by the plan that they name."""
    found: dict[str, list[str]] = {}
    for one in parameters:
        found.setdefault(one.trigger, []).append(one.name)
    return found


def _trigger_faults(
    package: PackageDefinition, triggers: Mapping[str, Sequence[str]]
) -> Iterable[Reason]:
    for plan, names in triggers.items():
        for name in names:
            field = f"parameters.{name}"
            if plan == CLEANUP:
                problem = f"its trigger is {CLEANUP}, which runs at the uninstall only"
                yield Reason(field=field, problem=problem, fix="name another plan in the package")
            elif plan not in package.plans:
                problem = f"its trigger {plan} is not a plan of the package"
                yield Reason(field=field, problem=problem, fix=suggestion(plan, package.plans))
    if len(triggers) > 1:
        plans = "; ".join(f"{plan}: {listed(triggers[plan], 5)}" for plan in sorted(triggers))
        problem = f"the change would start several plans at once ({plans})"
        fix = "change the parameters of one plan at a time"
        yield Reason(field="parameters", problem=problem, fix=fix)


def _without_effect(plan: str, names: Sequence[str]) -> Iterable[Reason]:
    for name in names:
        problem = f"has no trigger: it takes effect where plan {plan}, or a later one, renders it"
        fix = "start the plan that renders it afterwards"
        yield Reason(field=f"parameters.{name}", problem=problem, fix=fix)


def _parameters(names: Sequence[str]) -> str:
    noun = "parameter" if len(names) == 1 else "parameters"
    return f"{noun} {listed(names, NAMES_LISTED)}"


def _refused(reason: Reason) -> PlanChoice:
    return PlanChoice(faults=(reason,))
