"""The checks of cron expressions."""

import pytest

from temporal_plans.domain.values.cron import cron_problems


@pytest.mark.parametrize(
    "expression",
    [
        "0 3 * * *",
        "*/15 0-6,22 1 JAN-MAR mon-fri",
        "0 4 * * SUN # by night",
        "0 3 * * * 2027",
        "30 0 3 * * 7 *",
        "CRON_TZ=Europe/Oslo 0 3 * * *",
        "@daily",
    ],
)
def test_expressions_of_the_server_are_accepted(expression: str) -> None:
    assert list(cron_problems(expression, "cron")) == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(
            "61 3 * * *",
            "cron: the minute is '61' (found \"61 3 * * *\"); write *, a number from 0 to 59, "
            "a range or a list",
            id="minute",
        ),
        pytest.param(
            "0 3 * * MIN",
            "cron: the day of the week is 'MIN' (found \"0 3 * * MIN\"); write *, a number from "
            "0 to 7, or a name such as SUN, a range or a list",
            id="name",
        ),
        pytest.param(
            "3 * * *",
            'cron: has 4 fields, not 5, 6 or 7 (found "3 * * *"); write minute, hour, day of '
            "month, month, day of week, for example '0 3 * * *'",
            id="four",
        ),
        pytest.param(
            "*/0 3 * * *",
            "cron: the minute is '*/0' (found \"*/0 3 * * *\"); write *, a number from 0 to 59, "
            "a range or a list",
            id="step",
        ),
    ],
)
def test_a_refusal_names_the_field_and_the_bounds(expression: str, expected: str) -> None:
    assert [str(one) for one in cron_problems(expression, "cron")] == [expected]
