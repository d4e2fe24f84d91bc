"""States of steps by the letters of behaviour 1.6."""

from collections.abc import Mapping

from builders.clock import NOW
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import (
    StepState,
    begun,
    completed,
    delayed,
    failed,
    prepared,
)

AT_WORK = begun(StepState(), NOW)
COMPLETE = completed(AT_WORK, NOW)
STATES: Mapping[str, StepState] = {
    "P": StepState(),
    "W": StepState(interrupted=True),
    "PR": prepared(StepState(), "no offer fits"),
    "SG": AT_WORK,
    "SD": AT_WORK.but(status=Status.STARTED),
    "D": delayed(AT_WORK, "exit code 1", Backoff(), NOW),
    "R": AT_WORK.but(status=Status.PENDING),  # to be retried
    "C": COMPLETE,
    "E": failed(AT_WORK, "gone wrong"),
}


def in_states(letters: str) -> dict[int, StepState]:
    """States by step of a phase whose steps are in them: ``C SG P``."""
    return {index: STATES[letter] for index, letter in enumerate(letters.split())}
