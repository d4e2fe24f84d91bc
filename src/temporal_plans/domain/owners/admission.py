"""The rules by which a plan of an owner may be started now, checked before anything is written.

The rules are checked in order and the first that does not hold refuses, for later rules rely on
earlier ones. A wing adds its own rules behind them.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from temporal_plans.domain.constraints.rule import Rule
from temporal_plans.domain.plans.commands import Command, CommandRefused, Verb, find_element
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal


class StartRequest(NamedTuple):
    """A request to run a plan again: ``start``, or ``restart`` of the plan, a phase or a step."""

    plan: str
    verb: Verb
    command: Command


class OwnerSituation(NamedTuple):
    """The facts about an owner that the rules need. ``title`` names it (``service hello``);
    ``plans`` are the names of all its plans, ``startable`` the plans that users may start."""

    title: str
    uninstalling: bool
    plans: Collection[str]
    startable: Mapping[str, PlanSpec]


AdmissionRule = Rule[StartRequest, OwnerSituation]


def is_known(request: StartRequest, owner: OwnerSituation, now: datetime) -> Refusal | None:
    """The owner has a plan of that name."""
    if request.plan in owner.plans:
        return None
    known = suggestion(request.plan, owner.plans)
    return Refusal.of(Code.NOT_FOUND, f"plan {request.plan} not found", fix=known)


def is_staying(request: StartRequest, owner: OwnerSituation, now: datetime) -> Refusal | None:
    """The owner is not being uninstalled."""
    if not owner.uninstalling:
        return None
    return Refusal.of(Code.UNINSTALLING, f"{owner.title} is being uninstalled")


def is_for_people(request: StartRequest, owner: OwnerSituation, now: datetime) -> Refusal | None:
    """Users may start the plan: it is not started by its owner only."""
    if request.plan in owner.startable:
        return None
    return by_itself(request.plan)


def by_itself(plan: str) -> Refusal:
    """Return the refusal of a plan that users may not start."""
    text = f"plan {plan} is started by its owner only, when there is work for it"
    return Refusal.of(Code.BY_ITSELF, text)


def has_the_element(request: StartRequest, owner: OwnerSituation, now: datetime) -> Refusal | None:
    """The plan has the phase and the step that are named."""
    phases = owner.startable[request.plan].phases
    try:
        find_element(phases, "", request.command.phase, request.command.step)
    except CommandRefused as refused:
        return refused.refusal
    return None


def may_be_repeated(request: StartRequest, owner: OwnerSituation, now: datetime) -> Refusal | None:
    """Parts of the plan may be repeated: it is reentrant, or the command is forced."""
    part = request.command.phase or request.command.step
    if owner.startable[request.plan].reentrant or request.command.force or not part:
        return None
    return Refusal.of(
        Code.NOT_REENTRANT,
        f"plan {request.plan} is not reentrant, so no part of it is repeated",
        fix="start the whole plan, or force the command (--force)",
    )


def takes_the_parameters(
    request: StartRequest, owner: OwnerSituation, now: datetime
) -> Refusal | None:
    """The parameters are those that the plan declares. A restart keeps the values of the run."""
    if request.verb is Verb.RESTART:
        return None
    declared = owner.startable[request.plan].parameters
    _, problems = check_arguments(declared, request.command.parameters)
    return Refusal(code=Code.INVALID, reasons=tuple(problems)) if problems else None


RULES: tuple[AdmissionRule, ...] = (
    is_known,
    is_staying,
    is_for_people,
    has_the_element,
    may_be_repeated,
    takes_the_parameters,
)
"""The rules of every owner."""
