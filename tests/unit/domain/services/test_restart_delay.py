"""The back-off of tasks that no step follows (behaviour 3.9)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.clock import NOW, at, seconds
from temporal_plans.domain.plans.backoff import RETRY_INTERVAL, Backoff
from temporal_plans.domain.services.recovery.delay import RestartDelay, after_end, after_failure
from temporal_plans.domain.tasks.statuses import TaskState

BACKOFF = Backoff(initial=seconds(2), factor=2, maximum=seconds(10))


def test_a_crash_loop_waits_longer_and_longer_up_to_the_longest() -> None:
    delay = None
    found: list[float] = []
    for _ in range(5):
        delay = after_failure(delay, seconds(1), BACKOFF, NOW)
        found.append(delay.delay.total_seconds())
    assert found == [2, 4, 8, 10, 10]
    assert delay is not None
    assert (delay.failures, delay.since, delay.until) == (5, NOW, at(10))


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        pytest.param(None, 8, id="never ran"),
        pytest.param(1, 8, id="ran a second"),
        pytest.param(10, 8, id="ran just as long as the longest delay"),
        pytest.param(10.1, 2, id="ran longer"),
    ],
)
def test_only_a_long_life_starts_it_over(ran: float | None, expected: float) -> None:
    before = RestartDelay(delay=seconds(4), until=NOW, failures=3, since=NOW)
    lived = None if ran is None else seconds(ran)
    delay = after_failure(before, lived, BACKOFF, at(100))
    assert delay.delay == seconds(expected)
    assert (delay.failures, delay.since) == ((1, at(100)) if expected == 2 else (4, NOW))


def test_off_there_is_still_a_pace() -> None:
    off = Backoff(enabled=False)
    first = after_failure(None, None, off, NOW)
    assert after_failure(first, None, off, NOW).delay == first.delay == RETRY_INTERVAL


BEFORE = RestartDelay(delay=seconds(4), until=at(-50), failures=2, since=at(-90))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (TaskState.FAILED, BEFORE.but(delay=seconds(8), until=at(8), failures=3)),
        (TaskState.ERROR, BEFORE.but(delay=seconds(8), until=at(8), failures=3)),
        (TaskState.FINISHED, BEFORE.but(until=NOW + RETRY_INTERVAL)),
        (TaskState.KILLED, BEFORE),
        (TaskState.LOST, BEFORE),
        (TaskState.GONE, BEFORE),
        (TaskState.GONE_BY_OPERATOR, None),
    ],
    ids=lambda value: value.name if isinstance(value, TaskState) else "",
)
def test_what_an_end_means(state: TaskState, expected: RestartDelay | None) -> None:
    assert after_end(BEFORE, state, seconds(1), BACKOFF, NOW) == expected


def test_one_that_finishes_waits_for_the_pace_and_its_next_failure_is_the_first() -> None:
    delay = after_end(None, TaskState.FINISHED, seconds(1), BACKOFF, NOW)
    assert delay is not None
    assert (delay.until, delay.failures) == (NOW + RETRY_INTERVAL, 0)
    failed = after_failure(delay, seconds(1), BACKOFF, at(60))
    assert (failed.delay, failed.failures) == (BACKOFF.initial, 1)


@pytest.mark.parametrize("state", [TaskState.KILLED, TaskState.LOST, TaskState.GONE_BY_OPERATOR])
def test_a_task_without_a_history_that_is_killed_is_not_delayed(state: TaskState) -> None:
    assert after_end(None, state, None, BACKOFF, NOW) is None


def test_it_is_pending_until_its_time() -> None:
    delay = after_failure(None, None, BACKOFF, NOW)
    assert [delay.pending(at(second)) for second in (0, 1.9, 2, 3)] == [True, True, False, False]


@given(lives=st.lists(st.none() | st.floats(0, 10), min_size=1, max_size=20))
def test_delays_never_shrink_without_a_long_life(lives: list[float | None]) -> None:
    delay, before = None, timedelta(0)
    for lived in lives:
        ran = None if lived is None else seconds(lived)
        delay = after_failure(delay, ran, BACKOFF, NOW)
        assert before <= delay.delay <= BACKOFF.maximum
        before = delay.delay
