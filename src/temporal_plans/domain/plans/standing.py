"""Which completed phases a standing plan keeps, and how it shows phases that it refuses.

The plan ``recovery`` gets new phases for as long as its service lives. The followed system kept
every completed phase until its restart (behaviour 6.1); here completed phases expire.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from temporal_plans.domain.plans.board import PhaseBoard
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.values.refusal import Reason

RETENTION_TIME = timedelta(minutes=10)
"""How long a completed phase stays visible."""

RETENTION_LIMIT = 50
"""Completed phases that stay visible at most: the latest."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expired(
    phases: Sequence[PhaseBoard],
    now: datetime,
    *,
    limit: int = RETENTION_LIMIT,
    time: timedelta = RETENTION_TIME,
) -> list[int]:
    """Return the indexes of the completed phases that are to be dropped now."""
    ended = sorted(
        ((_ended(phase), index) for index, phase in enumerate(phases) if phase.complete),
        reverse=True,
    )
    return sorted(
        index
        for place, (moment, index) in enumerate(ended)
        if place >= limit or now - moment >= time
    )


def next_expiry(
    phases: Sequence[PhaseBoard], *, time: timedelta = RETENTION_TIME
) -> datetime | None:
    """Return when the next phase is to be dropped; None while none is complete."""
    ended = min((_ended(phase) for phase in phases if phase.complete), default=None)
    return None if ended is None else ended + time


def _ended(phase: PhaseBoard) -> datetime:
    return phase.finished or _EPOCH  # complete from the start, without any work


def with_errors(spec: PhaseSpec, problems: Collection[Reason]) -> PhaseSpec:
    """Return a phase that can't run with its problems as errors of its steps, for users to see."""
    errors = tuple(str(problem) for problem in problems)
    return spec.but(steps=tuple(step.but(errors=errors) for step in spec.steps))
