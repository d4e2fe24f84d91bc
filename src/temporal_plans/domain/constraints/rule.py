"""The shape of a rule, and the evaluation of several."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from temporal_plans.domain.values.refusal import Refusal

S = TypeVar("S")
W = TypeVar("W")
S_contra = TypeVar("S_contra", contravariant=True)
W_contra = TypeVar("W_contra", contravariant=True)


class Rule(Protocol[S_contra, W_contra]):
    """Whether a rule holds for ``subject``, as ``world`` is ``now``: None when it does, else the
    refusal, with its cure and the time at which the answer may change.

    A rule is pure and deterministic: the same arguments give the same answer.
    """

    def __call__(self, subject: S_contra, world: W_contra, now: datetime, /) -> Refusal | None: ...


def first_refusal(
    rules: Iterable[Rule[S, W]], subject: S, world: W, now: datetime
) -> Refusal | None:
    """Return the refusal of the first rule that does not hold; None when all hold. For lists whose
    later rules rely on the earlier ones."""
    refusals = (rule(subject, world, now) for rule in rules)
    return next((one for one in refusals if one is not None), None)


def all_refusals(
    rules: Iterable[Rule[S, W]], subject: S, world: W, now: datetime
) -> tuple[Refusal, ...]:
    """Return the refusals of all rules that do not hold, in their order."""
    refusals = (rule(subject, world, now) for rule in rules)
    return tuple(one for one in refusals if one is not None)
