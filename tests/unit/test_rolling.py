"""When a phase that would continue as new begins steps all the same."""

from datetime import UTC, datetime, timedelta

from temporal_plans.workflows.rolling import HARD_LIMIT, PATIENCE, Rolling

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHORT = 5_000


def rolling() -> Rolling:
    made = Rolling()
    made.begin(NOW)
    return made


def test_nothing_is_held_back_before_it_begins() -> None:
    assert Rolling().may_start(NOW, {1}, HARD_LIMIT)
    assert Rolling().patience(NOW) is None


def test_steps_at_work_have_a_while_to_end() -> None:
    held = rolling()
    assert not held.may_start(NOW, {1}, SHORT)
    assert held.patience(NOW + PATIENCE / 2) == PATIENCE / 2


def test_what_stays_at_work_holds_up_nothing_else() -> None:
    """And is not asked again and again."""
    held = rolling()
    assert held.may_start(NOW + PATIENCE, {1}, SHORT)
    assert held.may_start(NOW + 10 * PATIENCE, {1, 2}, SHORT)
    assert held.patience(NOW + 10 * PATIENCE) is None
    assert not held.may_start(NOW + 10 * PATIENCE, {1}, HARD_LIMIT)


def test_when_it_is_over_the_others_are_asked_to_leave() -> None:
    held = rolling()
    assert held.may_start(NOW + PATIENCE, {1}, SHORT)
    later = NOW + 3 * PATIENCE
    assert not held.may_start(later, {2}, SHORT)
    assert held.patience(later + timedelta(seconds=1)) == PATIENCE - timedelta(seconds=1)
