"""When pods are replaced by themselves (behaviour 6.5)."""

from datetime import timedelta

import pytest

from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.values.refusal import SpecError


@pytest.mark.parametrize(
    ("environment", "timeout", "apart"),
    [
        pytest.param({}, None, 10, id="nothing"),
        pytest.param({"ENABLE_AUTOMATIC_POD_REPLACEMENT": "true"}, 1200, 10, id="on"),
        pytest.param({"ENABLE_AUTOMATIC_POD_REPLACEMENT": " False "}, None, 10, id="off"),
        pytest.param({"ENABLE_AUTOMATIC_POD_REPLACEMENT": ""}, None, 10, id="empty"),
        pytest.param(
            {
                "ENABLE_AUTOMATIC_POD_REPLACEMENT": "true",
                "PERMANENT_FAILURE_TIMEOUT_SECS": "60",
                "MIN_REPLACE_DELAY_SECS": "5m",
            },
            60,
            300,
            id="all",
        ),
        pytest.param({"PERMANENT_FAILURE_TIMEOUT_SECS": "60"}, None, 10, id="a timeout, but off"),
        pytest.param({"MIN_REPLACE_DELAY_SECS": "0"}, None, 0, id="no delay"),
    ],
)
def test_from_the_environment(
    environment: dict[str, str], timeout: float | None, apart: float
) -> None:
    assert RecoveryPolicy.from_environment(environment) == RecoveryPolicy(
        permanent_failure_timeout=None if timeout is None else timedelta(seconds=timeout),
        min_replace_delay=timedelta(seconds=apart),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENABLE_AUTOMATIC_POD_REPLACEMENT", "perhaps"),
        ("PERMANENT_FAILURE_TIMEOUT_SECS", "-1"),
        ("PERMANENT_FAILURE_TIMEOUT_SECS", "soon"),
        ("PERMANENT_FAILURE_TIMEOUT_SECS", "nan"),
        ("MIN_REPLACE_DELAY_SECS", "9999d"),
    ],
)
def test_a_bad_environment_is_refused_by_the_variables_name(name: str, value: str) -> None:
    with pytest.raises(SpecError) as refused:
        RecoveryPolicy.from_environment({name: value})
    assert [(one.field, one.value) for one in refused.value.reasons] == [(name, value)]


def test_all_bad_variables_are_told_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        RecoveryPolicy.from_environment(
            {
                "ENABLE_AUTOMATIC_POD_REPLACEMENT": "?",
                "PERMANENT_FAILURE_TIMEOUT_SECS": "?",
                "MIN_REPLACE_DELAY_SECS": "?",
            }
        )
    assert len(refused.value.reasons) == 3
