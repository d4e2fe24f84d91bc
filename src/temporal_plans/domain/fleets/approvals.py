"""Which changes of an environment need an approval, and by whom."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from temporal_plans.domain.values.model import Duration, Value
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


class ChangeKind(StrEnum):
    """What a change is about."""

    SETTINGS = "settings"
    CONFIG = "config"
    ENTITIES = "entities"
    OVERRIDES = "overrides"
    SUPPRESSIONS = "suppressions"
    DELETION = "deletion"


Person = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""The author of a request, as the request says."""


class Approvals(Value):
    """Which changes of an environment become change requests, and who may approve these."""

    changes: tuple[ChangeKind, ...] = Field(
        default=(),
        max_length=len(ChangeKind),
        description="The changes that need an approval: `settings` of the environment, `config` of "
        "it and its entities, `entities` that are added, removed or managed otherwise, `overrides` "
        "of windows, `suppressions` that begin or are removed, `deletion` of the environment. "
        "Break-glass commands need none.",
    )
    approvers: tuple[Person, ...] = Field(
        default=(),
        max_length=1000,
        description="Who may approve and reject, as `--by` names them; without any everyone may.",
    )
    needed: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, description="How many must approve."
    )
    own: bool = Field(
        default=False, description="Whether the author of a request may approve it, too."
    )
    expire_after: Duration = Field(
        default=timedelta(days=7), description="After how long a request that waits expires."
    )

    def holds(self, kinds: tuple[ChangeKind, ...]) -> tuple[ChangeKind, ...]:
        """Return those of some kinds of changes that need an approval."""
        return tuple(one for one in kinds if one in self.changes)

    def problems(self, path: str) -> tuple[Reason, ...]:
        """Return what contradicts itself; ``path`` is the path of the setting."""
        found: list[Reason] = []
        if self.approvers and self.needed > len(set(self.approvers)):
            text = "is more than there are approvers"
            fix = "name more, or need fewer"
            found.append(Reason(field=f"{path}.needed", problem=text, value=self.needed, fix=fix))
        if not timedelta() < self.expire_after <= EXPIRY_LIMIT:
            text = f"must be more than 0, and at most {EXPIRY_LIMIT.days} days"
            found.append(Reason(field=f"{path}.expire-after", problem=text))
        return tuple(found)


EXPIRY_LIMIT = timedelta(days=366)


def approver_refusal(
    rules: Approvals, by: str, author: str, already: tuple[str, ...]
) -> Refusal | None:
    """Return why a person can't approve a request of ``author`` that some have approved."""
    if refusal := judge_refusal(rules, by):
        return refusal
    if by == author and not rules.own:
        fix = "ask another person, or set approvals.own"
        return _refused("asked for the change, and may not approve it", by, fix)
    if by in already:
        return _refused("has approved it already", by, "ask another person")
    return None


def judge_refusal(rules: Approvals, by: str) -> Refusal | None:
    """Return why a person is none of the approvers."""
    if not by.strip():
        return Refusal.of(Code.INVALID, "is missing", field="by", fix="say who approves")
    if rules.approvers and by not in rules.approvers:
        fix = f"ask one of: {', '.join(rules.approvers[:10])}"
        return _refused("is not among the approvers", by, fix)
    return None


def _refused(problem: str, by: str, fix: str) -> Refusal:
    reason = Reason(field="by", problem=problem, value=by, fix=fix)
    return Refusal(code=Code.NOT_APPLICABLE, reasons=(reason,))
