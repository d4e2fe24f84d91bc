"""Two processes with copies of one work directory do not fight at full speed."""

import logging

import pytest

from temporal_plans.activities.fleets.spoke.pace import RegistrationPace


def test_short_watches_make_pauses_longer_and_are_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pace = RegistrationPace()
    with caplog.at_level(logging.WARNING):
        assert [pace.pause_after(0.1) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    [line] = caplog.messages
    assert "copy of its work directory" in line


def test_a_watch_that_lasted_is_begun_again_at_once() -> None:
    pace = RegistrationPace()
    assert pace.pause_after(0.1) == 1
    assert pace.pause_after(3600) == 0
    assert pace.pause_after(0.1) == 1
