"""The constraints over one proposal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from temporal_plans.domain.fleets.constraints.record import Constraint, unchanging
from temporal_plans.domain.fleets.decisions import RejectedTarget, Verdict, VerdictState
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Finding:
    """A constraint that does not hold."""

    constraint: Constraint
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Judgement:
    """What every constraint says of a proposal. ``next_change`` is when any answer may change."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    next_change: datetime | None


def findings(
    proposal: Proposal,
    world: World,
    now: datetime,
    constraints: Iterable[Constraint],
    *,
    all_of_them: bool = True,
) -> tuple[Finding, ...]:
    """Return the constraints that apply to a proposal and do not hold, or only the first."""
    found: list[Finding] = []
    for one in constraints:
        if one.applies_to(proposal.intent):
            refusal = one.rule(proposal, world, now)
            if refusal is not None:
                found.append(Finding(one, refusal))
                if not all_of_them:
                    break
    return tuple(found)


def judge(
    proposal: Proposal, world: World, now: datetime, constraints: Sequence[Constraint]
) -> Judgement:
    """Return what all constraints say: never only the first that does not hold."""
    verdicts: list[Verdict] = []
    found: list[Finding] = []
    changes: list[datetime | None] = []
    for one in constraints:
        applies = one.applies_to(proposal.intent)
        if not applies and not one.is_ignored_by(proposal.intent):
            continue
        refusal = one.rule(proposal, world, now)
        if one.next_change is not unchanging:
            changes.append(one.next_change(proposal, world, now))
        if refusal is None:
            note = one.unchecked(proposal, world, now) if applies else ""
            verdicts.append(_unchecked(one, note) if note else _ok(one))
        elif applies:
            found.append(Finding(one, refusal))
            verdicts.append(verdict(one, refusal, VerdictState.FAILED))
        else:
            verdicts.append(verdict(one, refusal, VerdictState.IGNORED))
    return Judgement(tuple(verdicts), tuple(found), first_time(changes))


@lru_cache(maxsize=1000)
def _ok(constraint: Constraint) -> Verdict:
    return Verdict(id=constraint.id, title=constraint.title, state=VerdictState.OK)


def _unchecked(constraint: Constraint, note: str) -> Verdict:
    return Verdict(
        id=constraint.id, title=constraint.title, state=VerdictState.UNCHECKED, message=note
    )


def verdict(constraint: Constraint, refusal: Refusal, state: VerdictState) -> Verdict:
    """Return a refusal as decisions show it."""
    fixes = [reason.fix for reason in refusal.reasons if reason.fix]
    return Verdict.model_construct(
        id=constraint.id,
        title=constraint.title,
        state=state,
        code=str(refusal.code),
        message=text_of(refusal),
        data=data_of((refusal,)),
        next_change_at=refusal.again,
        actions=tuple(dict.fromkeys([refusal.cure, *fixes] if refusal.cure else fixes)),
        who_can_act=constraint.who_can_act,
    )


def text_of(refusal: Refusal) -> str:
    """Return the problems of a refusal; the values are in the data."""
    return "; ".join(reason.problem for reason in refusal.reasons) or str(refusal.code)


def data_of(refusals: Iterable[Refusal]) -> dict[str, list[Any]]:
    """Return the values of refusals by their fields."""
    data: dict[str, list[Any]] = {}
    for refusal in refusals:
        for reason in refusal.reasons:
            data.setdefault(reason.field, []).append(reason.value)
    return data


def rejected(version: str, found: Sequence[Finding]) -> RejectedTarget:
    """Return a release that was not chosen as decisions show it."""
    codes = tuple(dict.fromkeys(str(one.refusal.code) for one in found))
    return RejectedTarget.model_construct(
        version=version,
        code=codes[0],
        codes=codes,
        message="; ".join(text_of(one.refusal) for one in found),
        data=data_of(one.refusal for one in found),
    )
