"""When a phase that would continue as new begins steps all the same."""

from datetime import timedelta

from builders.clock import NOW
from temporal_plans.domain.plans.history_rollover import HARD_LIMIT, LEAVE_TIMEOUT, HistoryRollover

SHORT = 5_000


def rollover() -> HistoryRollover:
    made = HistoryRollover()
    made.begin(NOW)
    return made


def test_nothing_is_held_back_before_it_begins() -> None:
    assert HistoryRollover().may_start(NOW, {1}, HARD_LIMIT)
    assert HistoryRollover().time_left(NOW) is None


def test_steps_at_work_have_a_while_to_end() -> None:
    held = rollover()
    assert not held.may_start(NOW, {1}, SHORT)
    assert held.time_left(NOW + LEAVE_TIMEOUT / 2) == LEAVE_TIMEOUT / 2


def test_what_stays_at_work_holds_up_nothing_else() -> None:
    """And is not asked again and again."""
    held = rollover()
    assert held.may_start(NOW + LEAVE_TIMEOUT, {1}, SHORT)
    assert held.may_start(NOW + 10 * LEAVE_TIMEOUT, {1, 2}, SHORT)
    assert held.time_left(NOW + 10 * LEAVE_TIMEOUT) is None
    assert not held.may_start(NOW + 10 * LEAVE_TIMEOUT, {1}, HARD_LIMIT)


def test_when_it_is_over_the_others_are_asked_to_leave() -> None:
    held = rollover()
    assert held.may_start(NOW + LEAVE_TIMEOUT, {1}, SHORT)
    later = NOW + 3 * LEAVE_TIMEOUT
    assert not held.may_start(later, {2}, SHORT)
    assert held.time_left(later + timedelta(seconds=1)) == LEAVE_TIMEOUT - timedelta(seconds=1)
