"""Scenarios of more than one step, and what decisions say of them beside their codes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from builders.fleets import (
    NOW,
    decision,
    entity,
    failed_plan,
    needs,
    release,
    running_plan,
    simple,
    snapshot,
    stop,
)
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision
from temporal_plans.domain.fleets.environment import ArtifactState, Snapshot
from temporal_plans.domain.fleets.events import Fleet, FleetEvent, after, event_refusal
from temporal_plans.domain.fleets.plans import ActiveStatus, EndStatus
from temporal_plans.domain.fleets.progress import carried_out, ended
from temporal_plans.domain.fleets.promotion.state import ProductState
from unit.domain.fleets.progress_rows import IMAGE, image
from unit.domain.fleets.target_rows import (
    BOTH_B,
    PINNED,
    WANTS_2,
    at,
    recalled,
    related,
    schedule,
    vulnerable,
    windowed,
    with_needs,
)

HOUR = timedelta(hours=1)


def decided(given: Snapshot, now: datetime = NOW, name: str = "a") -> Decision:
    return decision(decide(given, now), name)


def carried(given: Snapshot, now: datetime = NOW) -> Snapshot:
    return carried_out(given, decide(given, now))


def finished(given: Snapshot, name: str, status: EndStatus, now: datetime = NOW) -> Snapshot:
    return given.but(environment=ended(given.environment, name, status, now))


def answer_of(one: Decision) -> tuple[str, str | None, str | None]:
    """The outcome with the intent and the version of the plan."""
    return (one.outcome, one.plan.intent if one.plan else None, one.plan.to if one.plan else None)


UPGRADE = ("ISSUE", "UPGRADE", "1.1.0")


def happened(given: Snapshot, **event: Any) -> Snapshot:
    """The snapshot after an event, which must be one that can happen."""
    one = FleetEvent.model_validate({"at": NOW, **event})
    fleet = Fleet(
        {product.id: ProductState(product=product) for product in given.products},
        {given.environment.name: given.environment},
        {},
    )
    assert event_refusal(one, fleet) is None
    fleet = after(one, fleet, NOW)
    return Snapshot(
        environment=fleet.environments[given.environment.name],
        products=tuple(state.product for state in fleet.products.values()),
    )


# --- windows --------------------------------------------------------------------------------------


def test_t021_the_next_opening_is_said() -> None:
    [held] = [one for one in decided(windowed(), at(0, 21)).constraints if one.state == "FAILED"]
    assert held.data["window"] == [{"class": "no-downtime", "next_opening": at(1, 8).isoformat()}]
    assert held.next_change_at == at(1, 8)
    assert "next opens 2026-01-06T08:00" in held.message
    assert decided(windowed(), at(1, 8) - timedelta(seconds=1)).outcome == "BLOCKED"
    assert answer_of(decided(windowed(), at(1, 8))) == UPGRADE


FIRST, SECOND = (datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1))


@pytest.mark.parametrize(
    ("status", "code"), [(EndStatus.SUCCEEDED, "UP_TO_DATE"), (EndStatus.FAILED, "SUPPRESSED")]
)
def test_t036_a_window_that_is_repeated_repeats_no_plan(status: EndStatus, code: str) -> None:
    """On the day on which 02:30 comes twice."""
    settings = {
        "windows": {"night": schedule("SUNDAY/02:30-SUNDAY/03:00", zone="Europe/Berlin")},
        "downtime_window": "night",
        "no_downtime_window": "night",
    }
    given = simple("1.0.0", "1.1.0", settings=settings)
    assert answer_of(decided(given, FIRST)) == UPGRADE
    running = carried(given, FIRST)
    assert decided(running, SECOND).outcome == "ACTIVE"
    done = finished(running, "a", status, FIRST + HOUR / 6)
    assert decided(done, SECOND).code == code


# --- recalls --------------------------------------------------------------------------------------


def test_t042_a_release_in_the_range_of_a_recall_is_recalled_when_it_is_published() -> None:
    given = recalled("1.2.3", "1.2.4", recalls=[{"id": "r1", "start": "1.2.3"}])
    published = happened(given, product="g:a", publish=release("1.2.5"))
    for one, versions in ((given, ["1.2.4"]), (published, ["1.2.5", "1.2.4"])):
        found = decided(one)
        assert (found.outcome, found.code) == ("BLOCKED", "ROLL_OFF_NO_TARGET")
        assert [row.version for row in found.rejected_targets] == versions
        assert {row.code for row in found.rejected_targets} == {"RECALLED"}


@pytest.mark.parametrize("target", [5, 6])
def test_t066_the_plan_has_both_risks(target: float) -> None:
    plan = decided(vulnerable(6, target)).plan
    assert plan is not None
    assert (plan.risk, plan.current_risk) == (target, 6)


def test_a_plan_to_a_release_that_is_not_recalled_has_no_risks() -> None:
    plan = decided(vulnerable(6, 5, clean=True)).plan
    assert plan is not None
    assert (plan.to, plan.risk, plan.current_risk) == ("1.2.0", None, None)


def test_t069_a_scan_that_is_too_old_is_to_be_made_again() -> None:
    found = decided(vulnerable(6, 5, hours=24))
    [held] = [one for one in found.constraints if one.state == "FAILED"]
    assert (held.id, held.code, held.actions) == ("K29", "CVE_NOT_ELIGIBLE", ("scan it again",))
    assert held.data["scan"] == [
        {"release": "target", "scanned_at": (NOW - 24 * HOUR).isoformat()},
    ]
    assert held.who_can_act == ("product editor",)
    assert answer_of(decided(vulnerable(6, 5, hours=23))) == ("ISSUE", "RECALL_ROLL_OFF", "1.1.0")


# --- relations ------------------------------------------------------------------------------------


def test_t080_each_says_what_it_waits_for() -> None:
    given = related(a=[PINNED, WANTS_2], b=BOTH_B)
    wanted = {
        "a": ("dependencies", "g:b", "g:b", "2.0.0 to 2.x.x"),
        "b": ("dependents", "a", "g:a", "1.0.0 to 1.x.x"),
    }
    for name, (field, other, product, required) in wanted.items():
        [row] = decided(given, name=name).rejected_targets
        assert row.data[field] == [
            {"other": other, "product": product, "current": "1.0.0", "required": required}
        ]


def test_t085_after_a_failed_installation_what_requires_it_goes_on_waiting() -> None:
    given = related(
        a=[with_needs("1.0.0", needs("g:b"))],
        entities={"a": entity("g:a", None), "b": entity("g:b", None)},
    )
    assert answer_of(decided(given, name="b")) == ("ISSUE", "INSTALL", "1.0.0")
    running = carried(given)
    assert decided(running).code == "DEPENDENCY_MISSING"
    failed = finished(running, "b", EndStatus.FAILED)
    [made] = failed.environment.suppressions
    assert (made.origin, made.entity, made.end) == ("failed-plan", "b", NOW + 4 * HOUR)
    for now in (NOW, NOW + 3.9 * HOUR):
        failed = carried(failed, now)
        assert (decided(failed, now).outcome, decided(failed, now).code) == (
            "BLOCKED",
            "DEPENDENCY_MISSING",
        )
        assert decided(failed, now, "b").code == "SUPPRESSED"
    again = carried(failed, NOW + 4 * HOUR)
    done = finished(again, "b", EndStatus.SUCCEEDED, NOW + 5 * HOUR)
    assert answer_of(decided(done, NOW + 5 * HOUR)) == ("ISSUE", "INSTALL", "1.0.0")


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "constraint"), [("manual", "K15"), ("failed-plan", "K16"), ("promotion", "K18")]
)
def test_t121_a_plan_is_issued_as_soon_as_its_stop_is_removed(origin: str, constraint: str) -> None:
    state = {"last_plan": failed_plan("1.1.0")} if origin == "failed-plan" else {}
    given = simple("1.0.0", "1.1.0", state=state, suppressions=[stop(origin=origin)])
    held = decided(given)
    assert [one.id for one in held.constraints if one.state == "FAILED"] == [constraint]
    freed = happened(carried(given), unsuppress="s")
    assert answer_of(decided(freed)) == UPGRADE


def test_t124_a_plan_whose_agent_is_offline_goes_on_being_cancelled() -> None:
    given = simple(
        "1.0.0",
        "1.1.0",
        state={"active_plan": running_plan("1.1.0", number=7)},
        facts={"agent_seen_at": NOW - HOUR},
        suppressions=[stop(cancel_active=True)],
    )
    assert decided(given).cancel == "SUPPRESSED"
    for now in (NOW, NOW + HOUR, NOW + 1000 * HOUR):
        given = carried(given, now)
        found = decided(given, now)
        assert (found.outcome, found.code, found.cancel) == ("ACTIVE", "ACTIVE_PLAN", None)
        assert found.plan is not None
        assert (found.plan.id, found.plan.status) == ("prod/a/7", ActiveStatus.CANCELLING)
        [state] = [one.state for one in given.environment.entities]
        assert state.active_plan is not None
        assert state.active_plan.status is ActiveStatus.CANCELLING


# --- artifacts and ramps --------------------------------------------------------------------------


def test_t160_the_artifact_that_is_missing_is_named() -> None:
    other = "registry.example/b:1.1.0"
    given = snapshot(
        {"a": entity()},
        {"g:a": [release("1.0.0"), release("1.1.0", artifacts=[IMAGE, other])]},
        facts={"artifacts": {IMAGE: "unavailable", other: "available"}},
    )
    [held] = [one for one in decided(given).constraints if one.state == "FAILED"]
    assert held.data["artifacts"] == [{"uri": IMAGE}]
    assert held.message == f"{IMAGE} is unavailable"


def test_t163_the_plan_is_issued_when_its_artifact_is_found() -> None:
    given = carried(image("unavailable"))
    assert decided(given).code == "ARTIFACT_UNAVAILABLE"
    environment = given.environment
    facts = environment.facts.but(artifacts={IMAGE: ArtifactState.AVAILABLE})
    probed = decided(given.but(environment=environment.but(facts=facts)), NOW + HOUR)
    assert answer_of(probed) == UPGRADE
    assert probed.plan is not None
    assert (probed.plan.number, probed.plan.proposed_at) == (1, NOW)
