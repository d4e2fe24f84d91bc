"""What a step keeps from attempt to attempt."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from builders.clock import NOW
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.transitions import (
    KEPT_LIMIT,
    StepState,
    begun,
    checked_kept,
    completed,
    delayed,
    due,
    failed,
    forced,
    restarted,
)

KEPT = {"made": ["a", "b"]}
BEGUN = begun(StepState(), NOW).but(kept=KEPT)


def test_it_outlives_attempts() -> None:
    later = NOW + timedelta(seconds=1)
    again = begun(due(delayed(BEGUN, "not yet", Backoff(), NOW)), later)
    assert (again.attempt, again.kept) == (2, KEPT)
    assert failed(again, "gone wrong").kept == KEPT


@pytest.mark.parametrize(
    "state", [restarted(BEGUN), completed(BEGUN, NOW), forced(BEGUN, NOW)], ids=str
)
def test_it_is_gone_with_a_restart_and_with_the_end(state: StepState) -> None:
    assert state.kept is None


def test_it_is_carried_but_not_mirrored() -> None:
    assert StepState.model_validate_json(BEGUN.model_dump_json()) == BEGUN
    assert BEGUN.mirrored == BEGUN.but(kept=None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param("x" * KEPT_LIMIT, "4002", id="too-large"),
        pytest.param("ü" * (KEPT_LIMIT // 2), "bytes at most", id="too-large-in-bytes"),
        pytest.param({"a": {1, 2}}, "JSON", id="no-json"),
        pytest.param(float("nan"), "JSON", id="no-number"),
    ],
)
def test_it_is_bounded(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        checked_kept(value)
    with pytest.raises(ValidationError, match=problem):
        StepState(kept=value)
