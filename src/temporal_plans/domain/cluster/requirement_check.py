"""The check of a requirement by itself, before any agent is evaluated."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from temporal_plans.domain.cluster.offer import MAX_PORT
from temporal_plans.domain.cluster.placement import PlacementError, parse_placement
from temporal_plans.domain.cluster.requirements import Requirement, SetWant
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError


class RequirementError(RefusedError):
    """A requirement that no agent could ever satisfy, whatever it offers, with every reason."""

    def __init__(self, key: str, reasons: Sequence[Reason]) -> None:
        subject = f"requirement {key}"
        super().__init__(Refusal(code=Code.INVALID, subject=subject, reasons=tuple(reasons)))


def check_requirement(requirement: Requirement) -> None:
    """Raise RequirementError with everything that is wrong with a requirement by itself."""
    problems = list(_problems(requirement))
    if problems:
        raise RequirementError(requirement.key, problems)


def _problems(requirement: Requirement) -> Iterator[Reason]:
    for field in ("owner", "pod", "notify"):
        if not getattr(requirement, field):
            yield Reason(field=field, problem="is empty", fix="name a workflow or a pod")
    if requirement.index < 0:
        yield Reason(field="index", problem="must be 0 or more", value=requirement.index)
    try:
        parse_placement(requirement.placement)
    except PlacementError as error:
        yield from error.reasons
    for repeated in _repeated(wanted.id for wanted in requirement.sets):
        yield Reason(
            field="sets", problem=f"has the id {repeated!r} twice", fix="use different ids"
        )
    for wanted in requirement.sets:
        yield from _set_problems(wanted)


def _set_problems(wanted: SetWant) -> Iterator[Reason]:
    where = f"sets.{wanted.id or '(pod)'}"
    for field in ("cpus", "gpus", "memory"):
        amount = getattr(wanted, field)
        if not math.isfinite(amount) or amount < 0:
            yield _amount_problem(f"{where}.{field}", "must be a number of 0 or more", amount)
    for repeated in _repeated(port.name for port in wanted.ports):
        problem = f"has the name {repeated!r} twice"
        yield Reason(field=f"{where}.ports", problem=problem, fix="use different names")
    for port in wanted.ports:
        if not 0 <= port.port <= MAX_PORT:
            yield _amount_problem(
                f"{where}.ports.{port.name}", f"must be 0 (any) to {MAX_PORT}", port.port
            )
    for repeated in _repeated(volume.path for volume in wanted.volumes):
        problem = f"has the path {repeated!r} twice"
        yield Reason(field=f"{where}.volumes", problem=problem, fix="use different paths")
    for volume in wanted.volumes:
        if volume.size <= 0:
            yield _amount_problem(
                f"{where}.volumes.{volume.path}", "must be more than 0 MB", volume.size
            )


def _amount_problem(field: str, problem: str, amount: float) -> Reason:
    """The reason for a wrong amount; NaN and infinity are shown as text, for JSON has neither."""
    value = amount if math.isfinite(amount) else str(amount)
    return Reason(field=field, problem=problem, value=value)


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)
