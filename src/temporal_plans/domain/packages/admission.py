"""Which requests to an instance are admitted now, and which plans they start and supersede.

One function for the validators of ``deploy``, ``rollback``, ``start_plan``, ``restart`` and
``uninstall``: nothing is written before it agreed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

from temporal_plans.domain.owners.admission import StartRequest, by_itself
from temporal_plans.domain.owners.exclusion import PlanSituation, clearance
from temporal_plans.domain.packages.changes import Cause, ChangeRequest
from temporal_plans.domain.packages.installation import Installation
from temporal_plans.domain.packages.parameters import Decode
from temporal_plans.domain.packages.plans import CLEANUP, PackagePlan, exclude_each_other
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


class RemovalRequest(NamedTuple):
    """A request to uninstall. ``force``: a plan ``cleanup`` that failed is run again without the
    phases of the package."""

    force: bool = False


InstanceRequest = ChangeRequest | StartRequest | RemovalRequest


class InstanceSituation(NamedTuple):
    """The facts about an instance that admission needs. ``title`` names it (``service shop``);
    ``plans`` are the last reports of its plans; one that is about to start counts as open."""

    title: str
    installation: Installation | None = None
    plans: Sequence[PlanSituation] = ()
    uninstalling: bool = False

    @property
    def definitions(self) -> Mapping[str, PackagePlan]:
        return self.installation.package.plans if self.installation else {}

    def situation(self, plan: str) -> PlanSituation | None:
        """Return the situation of a plan whose workflow runs; None for all others."""
        return next((one for one in self.plans if one.plan == plan and one.open), None)

    @property
    def busy(self) -> list[PlanSituation]:
        """The plans that run and are not idle."""
        return [one for one in self.plans if one.open and not one.is_idle]


class Admission(NamedTuple):
    """The answer: a ``refusal``, or what is to be done.

    ``plan`` is the plan to begin, from its first step, after those ``superseded`` have ended; it is
    empty where there is nothing to run. ``repeats``: it is at work now, and begins again.
    ``resolved`` is what a change makes of the installation. ``skips_phases``: the plan is
    ``cleanup`` without the phases that the package has in it.
    """

    refusal: Refusal | None = None
    plan: str = ""
    superseded: tuple[str, ...] = ()
    repeats: bool = False
    resolved: Resolved | None = None
    skips_phases: bool = False


def admission(instance: InstanceSituation, request: InstanceRequest, decode: Decode) -> Admission:
    """Return whether a request is admitted, and what it does."""
    match request:
        case ChangeRequest():
            return _change(instance, request, decode)
        case StartRequest():
            return _start(instance, request, decode)
        case RemovalRequest():
            return _removal(instance, request)
    assert_never(request)


def _change(instance: InstanceSituation, request: ChangeRequest, decode: Decode) -> Admission:
    if instance.uninstalling:
        return Admission(_uninstalling(instance))
    resolved = resolve(instance.installation, request, decode)
    if isinstance(resolved, Refusal):
        return Admission(resolved)
    change = resolved.change
    if not change.plan:
        return Admission(resolved=resolved)
    if change.cause is Cause.VERSION:
        begun = _upgrade(instance, change.plan)
    else:
        begun = _begin(instance, change.plan, force=request.force)
    return begun if begun.refusal else begun._replace(resolved=resolved)


def _upgrade(instance: InstanceSituation, plan: str) -> Admission:
    """Another version excludes every plan: one that runs would go on with another package than it
    began with."""
    if instance.busy:
        reasons = (
            Reason(
                problem=f"plan {one.plan} is {one.status}, and the version can't change beside it",
                fix=f"wait for its end, or stop plan {one.plan}{_by_force(instance, one.plan)}",
            )
            for one in sorted(instance.busy)
        )
        return Admission(Refusal(code=Code.IN_USE, reasons=tuple(reasons)))
    return Admission(plan=plan, superseded=clearance(plan, instance.plans).superseded)


def _start(instance: InstanceSituation, request: StartRequest, decode: Decode) -> Admission:
    """Parts of a plan that is at work are repeated by the plan, which judges by its own state."""
    plan, command = request.plan, request.command
    if refusal := _no_such_plan(instance, plan):
        return Admission(refusal)
    part = command.phase or command.step
    if part and not _is_reentrant(instance, plan) and not command.force:
        return Admission(_not_reentrant(plan, "no part of it is repeated"))
    given = {} if request.verb is Verb.RESTART else command.parameters  # it keeps those of the run
    if faults := tuple(_argument_faults(instance, given, decode)):
        return Admission(Refusal(code=Code.INVALID, reasons=faults))
    return _begin(instance, plan, force=command.force)


def _no_such_plan(instance: InstanceSituation, plan: str) -> Refusal | None:
    """Return why people may not start a plan, whatever runs; None when they may."""
    if plan not in (*instance.definitions, CLEANUP):
        fix = suggestion(plan, instance.definitions)
        return Refusal.of(Code.NOT_FOUND, f"plan {plan} not found", fix=fix)
    if instance.uninstalling and plan != CLEANUP:
        return _uninstalling(instance)
    if plan == CLEANUP and not instance.uninstalling:
        reason = by_itself(plan).reasons[0].but(fix="uninstall, which runs it")
        return Refusal(code=Code.BY_ITSELF, reasons=(reason,))
    return None


def _argument_faults(
    instance: InstanceSituation, arguments: Mapping[str, str], decode: Decode
) -> Iterator[Reason]:
    """Yield a reason for each value that a plan can't have for one run."""
    known = instance.installation.package.by_name if instance.installation else {}
    for name, text in arguments.items():
        one, field = known.get(name), f"parameters.{name}"
        if one is None:
            fix = suggestion(name, known) or "the package has no parameters"
            problem = "is not a parameter of the package"
            yield Reason(field=field, problem=problem, value=text, fix=fix)
        elif instance.installation and instance.installation.masked(name):
            fix = "deploy it with --secret-parameter"
            yield Reason(field=field, problem="is secret, so it can't be given", fix=fix)
        elif one.immutable:
            fix = "leave it out"
            yield Reason(field=field, problem="is immutable", value=text, fix=fix)
        elif fault := one.fault(text, decode):
            yield Reason(field=field, problem=fault, value=text or None)


def _begin(instance: InstanceSituation, plan: str, *, force: bool) -> Admission:
    """Return the begin of a plan beside those that run. One that is at work itself begins again,
    unless it is not reentrant."""
    definitions = instance.definitions
    own = instance.situation(plan)
    repeats = own is not None and not own.is_idle
    if repeats and not force and not _is_reentrant(instance, plan):
        return Admission(_not_reentrant(plan, "it is not begun again while it runs"))
    others = [
        one
        for one in instance.plans
        if one.plan != plan and exclude_each_other(definitions, plan, one.plan)
    ]
    found = clearance(plan, others)
    if found.refusal is not None:
        return Admission(_with_repetition(found.refusal, others, definitions))
    itself = (plan,) if own else ()
    return Admission(
        plan=plan, superseded=tuple(sorted({*found.superseded, *itself})), repeats=repeats
    )


def _by_force(instance: InstanceSituation, plan: str) -> str:
    return "" if _is_reentrant(instance, plan) else " by force (--force): it is not reentrant"


def _is_reentrant(instance: InstanceSituation, plan: str) -> bool:
    definition = instance.definitions.get(plan)
    return definition is None or definition.reentrant


def _with_repetition(
    refusal: Refusal, others: Sequence[PlanSituation], plans: Mapping[str, PackagePlan]
) -> Refusal:
    """Return a refusal that also says which of the plans in the way may be restarted."""
    busy = sorted(one.plan for one in others if one.open and not one.is_idle)
    reasons = tuple(
        reason.but(fix=f"{reason.fix}; it may be restarted")
        if name in plans and plans[name].reentrant
        else reason.but(fix=f"{reason.fix} by force (--force): it is not reentrant")
        if name in plans
        else reason
        for name, reason in zip(busy, refusal.reasons, strict=True)
    )
    return refusal.but(reasons=reasons)


def _removal(instance: InstanceSituation, request: RemovalRequest) -> Admission:
    """``cleanup`` supersedes anything; an instance has that plan whether or not its package has. A
    second request repeats one that failed or was stopped."""
    everything = clearance(CLEANUP, instance.plans, overrides=True)
    begun = Admission(plan=CLEANUP, superseded=everything.superseded)
    if not instance.uninstalling:
        return begun
    cleanup = next((one for one in instance.plans if one.plan == CLEANUP), None)
    done = cleanup is not None and cleanup.status is Status.COMPLETE
    if done or (cleanup is not None and not cleanup.is_idle):
        return Admission()
    return begun._replace(skips_phases=request.force)


def _uninstalling(instance: InstanceSituation) -> Refusal:
    cleanup = instance.situation(CLEANUP)
    failed = cleanup is not None and cleanup.status is Status.ERROR
    fix = "repeat the uninstall, or end it with uninstall --force" if failed else ""
    return Refusal.of(Code.UNINSTALLING, f"{instance.title} is being uninstalled", fix=fix)


def _not_reentrant(plan: str, what: str) -> Refusal:
    return Refusal.of(
        Code.NOT_REENTRANT,
        f"plan {plan} is not reentrant, so {what}",
        fix="wait for its end, or force the command (--force)",
    )
