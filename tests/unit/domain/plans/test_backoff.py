"""Back-off delays (behaviour 3.9)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.domain.plans.backoff import RETRY_INTERVAL, Backoff
from temporal_plans.domain.values.refusal import SpecError


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_the_first_delay_then_longer_ones_up_to_the_longest() -> None:
    backoff = Backoff(initial=seconds(60), factor=1.15, maximum=seconds(80))
    found: list[timedelta] = []
    for _ in range(4):
        found.append(backoff.after(found[-1] if found else None))
    assert found == [seconds(60), seconds(69), seconds(79.35), seconds(80)]


def test_the_first_delay_is_bounded_too() -> None:
    assert Backoff(initial=seconds(60), maximum=seconds(5)).after(None) == seconds(5)


def test_off_there_is_still_a_pace() -> None:
    backoff = Backoff(enabled=False)
    assert (backoff.after(None), backoff.after(seconds(60))) == (RETRY_INTERVAL, RETRY_INTERVAL)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, Backoff(), id="nothing"),
        pytest.param({"ENABLE_BACKOFF": "true"}, Backoff(enabled=True), id="on"),
        pytest.param({"ENABLE_BACKOFF": " FALSE "}, Backoff(enabled=False), id="off"),
        pytest.param(
            {
                "FRAMEWORK_INITIAL_BACKOFF": "60",
                "FRAMEWORK_BACKOFF_FACTOR": "1.15",
                "FRAMEWORK_MAX_LAUNCH_DELAY": "5m",
            },
            Backoff(initial=seconds(60), factor=1.15, maximum=seconds(300)),
            id="all",
        ),
        pytest.param({"FRAMEWORK_BACKOFF_FACTOR": ""}, Backoff(), id="empty"),
    ],
)
def test_from_the_environment(environment: dict[str, str], expected: Backoff) -> None:
    assert Backoff.from_environment(environment) == expected


def test_a_bad_environment_is_refused_by_the_variables_names() -> None:
    with pytest.raises(SpecError) as refused:
        Backoff.from_environment(
            {
                "FRAMEWORK_INITIAL_BACKOFF": "-1",
                "FRAMEWORK_BACKOFF_FACTOR": "fast",
                "FRAMEWORK_MAX_LAUNCH_DELAY": "300",
            }
        )
    assert [problem.field for problem in refused.value.reasons] == [
        "FRAMEWORK_INITIAL_BACKOFF",
        "FRAMEWORK_BACKOFF_FACTOR",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"factor": 0.5},
        {"factor": float("inf")},
        {"factor": float("nan")},
        {"initial": -1},
        {"maximum": "9999d"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Backoff.model_validate(settings)


@given(
    initial=st.floats(0, 1e6),
    factor=st.floats(1, 1e300),
    maximum=st.floats(0, 1e6),
    failures=st.integers(1, 20),
)
def test_delays_never_shrink_nor_pass_the_longest(
    initial: float, factor: float, maximum: float, failures: int
) -> None:
    backoff = Backoff(initial=seconds(initial), factor=factor, maximum=seconds(maximum))
    delay = backoff.after(None)
    for _ in range(failures):
        longer = backoff.after(delay)
        assert delay <= longer <= backoff.maximum
        delay = longer
