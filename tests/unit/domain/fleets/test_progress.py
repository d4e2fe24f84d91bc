"""What a snapshot becomes when decisions are carried out and plans end."""

from datetime import datetime, timedelta

import pytest

from builders.fleets import (
    NOW,
    decision,
    entity,
    release,
    running_plan,
    simple,
    snapshot,
    stop,
)
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.plans import ActiveStatus, EndStatus, EntityVersion
from temporal_plans.domain.fleets.progress import carried_out, ended

HOUR = timedelta(hours=1)


def _decided(given: Snapshot, now: datetime) -> Snapshot:
    return carried_out(given, decide(given, now))


def _ended(given: Snapshot, status: EndStatus, now: datetime, at: str | None = None) -> Snapshot:
    reached = EntityVersion(version=at) if at else None
    return given.but(environment=ended(given.environment, "a", status, now, reached=reached))


def test_a_plan_runs_ends_and_leaves_nothing_to_do() -> None:
    running = _decided(simple("1.0.0", "1.1.0"), NOW)
    assert decision(decide(running, NOW)).outcome == "ACTIVE"
    done = _ended(running, EndStatus.SUCCEEDED, NOW + HOUR)
    [found] = done.environment.entities
    assert (found.state.version, found.state.active_plan) == ("1.1.0", None)
    assert decision(decide(done, NOW + HOUR)).code == "UP_TO_DATE"


@pytest.mark.parametrize("status", ActiveStatus)
def test_t124_a_decision_says_how_far_a_running_plan_is(status: ActiveStatus) -> None:
    given = simple("1.0.0", "1.1.0", state={"active_plan": running_plan("1.1.0", status=status)})
    plan = decision(decide(given, NOW)).plan
    assert plan is not None
    assert plan.model_dump(mode="json")["status"] == str(status)
    waiting = decision(decide(simple("1.0.0", "1.1.0", suppressions=[stop()]), NOW)).plan
    assert waiting is not None
    assert waiting.status is None


def test_t155_the_same_plan_goes_on_and_its_clock_starts_again() -> None:
    given = simple("1.0.0", "1.1.0", suppressions=[stop()])
    waiting = _decided(given, NOW)
    first = decision(decide(waiting, NOW + 3.9 * HOUR)).plan
    later = decision(decide(waiting, NOW + 4 * HOUR))
    assert first is not None
    assert later.plan is not None
    assert (first.number, first.blocked_since) == (1, NOW)
    assert (later.plan.number, later.plan.proposed_at) == (1, NOW)
    assert later.plan.blocked_since == NOW + 4 * HOUR
    assert later.discarded is None


def test_t118c_the_same_failure_suppresses_for_longer_each_time_then_until_the_target_changes() -> (
    None
):
    given, now = simple("1.0.0", "1.1.0"), NOW
    lengths: list[timedelta | None] = []
    for _ in range(4):
        given = _decided(given, now)
        assert given.environment.entities[0].state.active_plan is not None
        given = _ended(given, EndStatus.FAILED, now)
        last = given.environment.suppressions[-1]
        lengths.append(None if last.end is None else last.end - now)
        now = last.end or now
    assert lengths == [4 * HOUR, 8 * HOUR, 24 * HOUR, None]
    held = decision(decide(given, now + 1000 * HOUR))
    assert (held.outcome, held.code) == ("BLOCKED", "SUPPRESSED")


def test_t115_a_failed_rollback_suppresses_until_a_person_removes_it() -> None:
    given = _decided(simple("1.0.0", "1.1.0"), NOW)
    given = _ended(given, EndStatus.FAILED, NOW, at="1.1.0")
    given = _decided(given, NOW)
    plan = given.environment.entities[0].state.active_plan
    assert plan is not None
    assert (plan.intent, plan.to.version) == ("ROLLBACK", "1.0.0")
    given = _ended(given, EndStatus.FAILED, NOW, at="1.1.0")
    assert given.environment.suppressions[-1].end is None
    after = decision(decide(given, NOW + 100 * HOUR))
    assert [one.code for one in after.notes] == ["ROLLBACK_FAILED"]
    assert after.outcome != "ISSUE"


def test_a_cancelled_plan_that_changed_something_is_rolled_back() -> None:
    given = _ended(_decided(simple("1.0.0", "1.1.0"), NOW), EndStatus.CANCELLED, NOW, at="1.1.0")
    assert given.environment.suppressions == ()
    plan = decision(decide(given, NOW)).plan
    assert plan is not None
    assert (plan.intent, plan.to) == ("ROLLBACK", "1.0.0")


def test_the_stop_of_the_environment_is_kept_and_ends() -> None:
    stops = [stop(f"s{name}", entity=name, origin="failed-plan", minutes=60) for name in "ab"]
    given = snapshot(
        {name: entity() for name in "abc"},
        {"g:a": [release("1.0.0"), release("1.1.0")]},
        settings={"suppress_deployment_after_num_autosuppressions": 1},
        suppressions=stops,
    )
    answer = decide(given, NOW)
    stopped = carried_out(given, answer)
    assert answer.threshold.created is not None
    assert answer.next_wakeup == NOW + HOUR
    assert [one.origin for one in stopped.environment.suppressions][-1] == "environment-threshold"
    freed = decide(stopped, NOW + HOUR)
    assert freed.threshold.removed == (answer.threshold.created.id,)
    assert {one.outcome for one in freed.decisions} == {"ISSUE"}


def test_secrets_that_were_edited_while_a_plan_ran_still_wait() -> None:
    running = _decided(simple("1.0.0", "1.1.0", state={"pending_secrets": ["old"]}), NOW)
    reported = _with_secrets(running, "old", "new")
    done = _ended(reported, EndStatus.SUCCEEDED, NOW + HOUR)
    assert done.environment.entities[0].state.pending_secrets == ("new",)
    plan = decision(decide(done, NOW + HOUR)).plan
    assert plan is not None
    assert (plan.intent, plan.secrets) == ("SECRET", ("new",))


def test_a_plan_of_a_former_version_takes_all_secrets_for_applied() -> None:
    given = simple("1.0.0", state={"pending_secrets": ["s"], "active_plan": running_plan("1.1.0")})
    done = _ended(given, EndStatus.SUCCEEDED, NOW)
    assert done.environment.entities[0].state.pending_secrets == ()


def test_what_is_uninstalled_needs_no_secrets() -> None:
    running = _decided(simple("1.0.0", uninstall=True, state={"pending_secrets": ["s"]}), NOW)
    done = _ended(running, EndStatus.SUCCEEDED, NOW)
    [found] = done.environment.entities
    assert (found.state.version, found.state.pending_secrets) == (None, ())


def _with_secrets(given: Snapshot, *names: str) -> Snapshot:
    [one] = given.environment.entities
    entities = (one.but(state=one.state.but(pending_secrets=names)),)
    return given.but(environment=given.environment.but(entities=entities))


@pytest.mark.parametrize("status", list(EndStatus))
def test_an_entity_without_a_plan_is_not_changed(status: EndStatus) -> None:
    given = simple("1.0.0")
    assert ended(given.environment, "a", status, NOW) == given.environment
    assert ended(given.environment, "z", status, NOW) == given.environment


def test_starts_are_counted_in_the_ramp() -> None:
    ramp = {
        "channel": "stable",
        "version": "1.1.0",
        "started_at": NOW,
        "duration": 3600,
        "entities": 3,
    }
    given = snapshot(
        {name: entity() for name in "abc"},
        {"g:a": {"releases": [release("1.0.0"), release("1.1.0")], "ramps": [ramp]}},
    )
    starts: list[int] = []
    for minutes in (0, 20, 40):
        given = _decided(given, NOW + timedelta(minutes=minutes))
        starts.append(given.products[0].ramps[0].started)
    assert starts == [1, 2, 3]
