"""What a standing plan keeps of phases that are over, and of phases that it is given.

The plan of recovery fills itself for as long as its service lives. The system that we follow kept
every completed phase until it was restarted (reference 6.1); here they drop out.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from temporal_plans.domain.board import PhaseBoard
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.plan import PhaseSpec

KEPT_FOR = timedelta(minutes=10)
"""How long a completed phase stays to be looked at."""

KEPT = 50
"""Completed phases that stay at most: the latest."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def over(phases: Sequence[PhaseBoard], now: datetime) -> list[int]:
    """Indexes of the completed phases that are to be dropped by now."""
    ended = sorted(
        ((_ended(phase), index) for index, phase in enumerate(phases) if phase.complete),
        reverse=True,
    )
    return sorted(
        index
        for place, (moment, index) in enumerate(ended)
        if place >= KEPT or now - moment >= KEPT_FOR
    )


def next_over(phases: Sequence[PhaseBoard]) -> datetime | None:
    """When the next phase is to be dropped; None while none is complete."""
    ended = min((_ended(phase) for phase in phases if phase.complete), default=None)
    return None if ended is None else ended + KEPT_FOR


def _ended(phase: PhaseBoard) -> datetime:
    return phase.finished or _LONG_AGO  # it had nothing to do from the start


def refused(spec: PhaseSpec, problems: Collection[Problem]) -> PhaseSpec:
    """A phase that can't run, so that people see it and why: its steps read ERROR."""
    errors = tuple(str(problem) for problem in problems)
    return spec.but(steps=tuple(step.but(errors=errors) for step in spec.steps))
