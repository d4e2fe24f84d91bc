"""Promotions: scenarios by their ids, events, and what becomes of products and environments."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from builders.fleets import decision, entity, release, snapshot
from builders.promotions import (
    DAY,
    FRIDAY,
    HOUR,
    canary,
    differences,
    only,
    published,
    report,
    settled,
    soak,
    state,
    timed,
)
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.promotion.by_hand import HandPromotion
from temporal_plans.domain.fleets.promotion.channels import Channel, default_channels
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.events import (
    Cancelled,
    ChannelChanged,
    Paused,
    PipelineChanged,
    ProductEvent,
    PromotedByHand,
    Published,
    Recalled,
    Reported,
    Resumed,
    Reverted,
    after,
    impacted,
    refusal_of,
)
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline, pipeline_problems
from temporal_plans.domain.fleets.promotion.progress import promoted, with_tests
from temporal_plans.domain.fleets.promotion.reports import EntityReport, reports_of
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from unit.domain.fleets.promotion_rows import (
    CLOSED,
    FILTERS,
    ON_BETA,
    PROMOTIONS,
    canaries,
)

STABLE = {"source": "beta", "target": "stable", "version": "1.1.0"}
RESUMED = Resumed(source="beta", target="stable", version="1.1.0")


@pytest.mark.parametrize(("given", "now", "expected"), [*PROMOTIONS, *FILTERS])
def test_promotion(given: ProductState, now: datetime, expected: Mapping[str, Any]) -> None:
    assert differences(given, now, expected) == []


def _channels(given: ProductState, version: str = "1.1.0") -> tuple[str, ...]:
    return next(one.channels for one in given.product.releases if one.version == version)


def _by_hand(version: str = "1.1.0", **more: Any) -> PromotedByHand:
    return PromotedByHand(promotion=HandPromotion(version=version, reason="needed", **more))


# --- scenarios that are more than one decision ----------------------------------------------------


def test_t038_a_closed_window_does_not_hold_back_a_promotion_by_hand() -> None:
    given = state(published("1.1.0"), stages=[timed()], window=CLOSED)
    event = _by_hand(channels=("beta",))
    assert refusal_of(event, given) is None
    assert _channels(after(event, given, FRIDAY)) == ("DEV", "beta")


def test_t168_a_ramp_under_way_keeps_its_length() -> None:
    given = state(
        published("1.1.0"),
        stages=[timed("0s")],
        rollouts={"beta": "3h"},
        reports=[report("x"), report("y"), report("z", channel="stable")],
    )
    given, _ = settled(given, FRIDAY)
    [ramp] = given.product.ramps
    assert (ramp.channel, ramp.version, ramp.entities) == ("beta", "1.1.0", 2)
    edited = given.but(product=given.product.but(rollouts={"beta": HOUR}))
    edited = after(Published(release=Release(version="1.2.0")), edited, FRIDAY)
    edited, _ = settled(edited, FRIDAY)
    assert [one.duration for one in edited.product.ramps] == [3 * HOUR, HOUR]


@pytest.mark.parametrize("target", ["DEV", "RELEASE_CANDIDATE", "RELEASE"])
def test_t172_no_pipeline_leads_to_a_default_channel(target: str) -> None:
    given = state(published("1.1.0"))
    pipeline = Pipeline.model_validate(
        {"product": "g:a", "stages": [timed(source="beta", target=target)]}
    )
    refusal = refusal_of(PipelineChanged(pipeline=pipeline), given)
    assert refusal is not None
    assert "stages.0.target: is a channel that releases come to when they are published" in str(
        refusal
    )


def test_t174_a_release_that_loses_a_label_stays() -> None:
    rules: list[Any] = [{"name": "beta", "labels": {"tested": []}}]
    given = state(
        published("1.1.0", labels={"tested": "yes"}), stages=[timed("0s")], channels=rules
    )
    given, _ = settled(given, FRIDAY)
    [found] = given.product.releases
    lost = given.but(product=given.product.but(releases=(found.but(labels={}),)))
    after_all, answer = settled(lost, FRIDAY + DAY)
    assert "beta" in _channels(after_all)
    assert answer.promotions == ()


def test_t181_canaries_under_test_are_not_upgraded() -> None:
    given = snapshot(
        {"x": entity(version="1.1.0", release_channel="beta"), "y": entity(release_channel="beta")},
        {"g:a": [release(one, *ON_BETA) for one in ("1.0.0", "1.1.0", "1.2.0")]},
    )
    product = canaries(report("x", soak=soak(0.5)), report("y", "1.0.0"))
    answer = decide_promotions(product, FRIDAY)
    tested = with_tests(given.environment, "g:a", answer.tests, FRIDAY)
    decisions = decide(given.but(environment=tested), FRIDAY)
    assert decision(decisions, "x").code == "SUPPRESSED"
    assert decision(decisions, "y").outcome is Outcome.ISSUE
    assert with_tests(tested, "g:a", answer.tests, FRIDAY + HOUR) is tested
    assert with_tests(tested, "g:a", (), FRIDAY).suppressions == ()


def test_suppressions_of_others_stay() -> None:
    given = snapshot(
        {"x": entity()},
        {},
        suppressions=[
            {"id": "other", "origin": "promotion", "start": FRIDAY, "entity": "x", "by": "g:b"},
            {"id": "manual", "start": FRIDAY, "by": "g:a"},
        ],
    )
    assert with_tests(given.environment, "g:a", (), FRIDAY) is given.environment


def test_t183_a_promotion_goes_on_when_there_are_canaries() -> None:
    given, answer = settled(canaries(), FRIDAY)
    assert only(answer).code == "NO_CANARIES"
    later = FRIDAY + 8 * DAY
    event = Reported(
        reports=(EntityReport.model_validate(report(version="1.0.0", reported_at=later)),)
    )
    given, answer = settled(after(event, given, later), later)
    assert (only(answer).outcome, only(answer).code) == ("EVALUATING", "WAITING_FOR_CANARIES")
    assert only(answer).next_evaluation_at == later + 7 * DAY


def test_t184_a_bad_release_is_rolled_off_everywhere() -> None:
    given = canaries(
        report("x", soak=soak(1, error=0.5)),
        report("y", soak=soak(1)),
        releases=[published("1.0.0", *ON_BETA)],
    )
    roll_off = {"allow_downgrade": True, "minimum_release": "1.0.0"}
    stage = canary(recall={"count": 1, "soak": "1h", "roll_off": roll_off})
    given = given.but(pipeline=Pipeline.model_validate({"product": "g:a", "stages": [stage]}))
    given, answer = settled(given, FRIDAY)
    assert {one.outcome for one in answer.promotions if one.version == "1.1.0"} == {"RECALLED"}
    fleet = snapshot(
        {name: entity(version="1.1.0", release_channel="beta") for name in ("x", "y", "z")}, {}
    ).but(products=(given.product,))
    plans = [one.plan for one in decide(fleet, FRIDAY).decisions]
    assert {(one.intent, one.to) for one in plans if one} == {("RECALL_ROLL_OFF", "1.0.0")}
    assert len(plans) == 3


def test_t186_a_cancelled_promotion_stays_cancelled_until_it_is_resumed() -> None:
    given, answer = settled(canaries(report(version="1.0.0"), at=FRIDAY - 7 * DAY), FRIDAY)
    assert (only(answer).outcome, only(answer).code) == ("CANCELLED", "CANARIES_NOT_REACHED")
    resumed = after(RESUMED, given, FRIDAY)
    _, answer = settled(resumed, FRIDAY)
    assert only(answer).code == "WAITING_FOR_CANARIES"


def test_t190_a_disabled_pipeline_keeps_what_it_promoted() -> None:
    given, _ = settled(state(published("1.1.0"), stages=[timed("0s")]), FRIDAY)
    assert given.pipeline is not None
    disabled = after(PipelineChanged(pipeline=given.pipeline.but(enabled=False)), given, FRIDAY)
    disabled = after(Published(release=Release(version="1.2.0")), disabled, FRIDAY)
    disabled, answer = settled(disabled, FRIDAY + 9 * DAY)
    assert "beta" in _channels(disabled)
    assert only(answer).code == "PIPELINE_DISABLED"


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "channels"),
    [
        ("1.0.0", ("DEV", "RELEASE_CANDIDATE", "RELEASE")),
        ("1.0.0-rc1", ("DEV", "RELEASE_CANDIDATE")),
        ("1.0.0-rc1-2-gabc", ("DEV",)),
        ("1.0.0-2-gabc", ("DEV",)),
    ],
)
def test_a_published_release_comes_to_the_channels_of_its_kind(
    version: str, channels: tuple[str, ...]
) -> None:
    assert default_channels(version) == channels
    given = after(Published(release=Release(version=version)), state(), FRIDAY)
    assert _channels(given, version) == channels
    assert {one.at for one in given.product.admissions} == {FRIDAY}


def test_what_happens_at_once_goes_through_the_whole_pipeline() -> None:
    given = state(stages=[timed("0s"), timed("0s", "beta", "stable")])
    given = after(Published(release=Release(version="1.1.0")), given, FRIDAY)
    given, answer = settled(given, FRIDAY)
    assert _channels(given)[-2:] == ("beta", "stable")
    assert (answer.promotions, answer.next_wakeup) == ((), None)


@pytest.mark.parametrize(
    ("way", "channels"),
    [
        ({"channels": ("other",)}, ("other",)),
        ({"like": "1.0.0"}, ("stable",)),
        ({"up_to": "beta"}, ("beta",)),
        ({"up_to": "stable"}, ("beta", "stable")),
        ({"whole_pipeline": True}, ("beta", "stable", "edge")),
    ],
)
def test_ways_to_promote_by_hand(way: dict[str, Any], channels: tuple[str, ...]) -> None:
    stages = [timed(), timed(source="beta", target="stable"), timed(source="beta", target="edge")]
    given = state(published("1.1.0"), published("1.0.0", "stable"), stages=stages)
    event = _by_hand(**way)
    assert refusal_of(event, given) is None
    assert _channels(after(event, given, FRIDAY)) == ("DEV", *channels)


BROKEN = Pipeline.model_validate(
    {
        "product": "g:b",
        "stages": [
            {"source": "a", "target": "a"},
            timed("32d"),
            timed(),
            canary(promote={"soak": "14d"}),
        ],
    }
)
RULES = [{"name": "beta", "labels": {"tested": ["yes"]}}, {"name": "old", "archived": True}]


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (_by_hand(), "names no channels"),
        (_by_hand(channels=("beta",), like="1.1.0"), "in several ways"),
        (_by_hand("9.9.9", channels=("beta",)), "there is no 9.9.9"),
        (_by_hand(like="9.9.9"), "there is no 9.9.9"),
        (_by_hand(up_to="bta"), "did you mean beta"),
        (_by_hand("1.0.0", channels=("beta",)), "is recalled by r"),
        (_by_hand(channels=("DEV",)), "on all these channels already"),
        (_by_hand(channels=("beta",)), "the channel beta needs the labels tested = yes"),
        (_by_hand(channels=("old",)), "the channel old is archived"),
        (PromotedByHand(promotion=HandPromotion(version="1.1.0", channels=("x",))), "reason"),
        (Published(release=Release(version="1.1.0")), "is published already"),
        (Published(release=Release(version="1.2.0-x")), "has no order"),
        (Published(release=Release(version="1.2.0", channels=("beta",))), "tested = yes"),
        (Reverted(recall="x"), "there is no x"),
        (Paused(source="a", target="b", version="1.1.0", reason=""), "no stage of the pipeline"),
        (Paused(source="DEV", target="beta", version="2.0.0", reason=""), "there is no 2.0.0"),
        (PipelineChanged(pipeline=BROKEN), "another product than g:a"),
        (PipelineChanged(pipeline=BROKEN), "must be either timed or canary"),
        (PipelineChanged(pipeline=BROKEN), "stages.0.target: is the source"),
        (PipelineChanged(pipeline=BROKEN), "stages.1.timed.soak: is too long"),
        (PipelineChanged(pipeline=BROKEN), "another stage from DEV to beta"),
        (PipelineChanged(pipeline=BROKEN), "either a count or a percentage"),
        (PipelineChanged(pipeline=BROKEN), "stages.3.canary.promote.soak: is too long"),
        (ChannelChanged(channel=Channel(name="DEV", archived=True)), "takes every release"),
    ],
)
def test_an_event_that_can_not_happen(event: ProductEvent, complaint: str) -> None:
    given = state(
        published("1.1.0"),
        published("1.0.0"),
        stages=[timed()],
        channels=RULES,
        recalls=[{"id": "r", "start": "1.0.0", "single": True}],
    )
    refusal = refusal_of(event, given)
    assert refusal is not None
    assert complaint in str(refusal)


def test_recalls_come_and_go() -> None:
    given = state(published("1.1.0"), stages=[timed("0s")])
    given = after(Recalled(recall=Recall(id="r", start="1.1.0")), given, FRIDAY)
    assert only(decide_promotions(given, FRIDAY)).outcome == "RECALLED"
    given = after(Reverted(recall="r"), given, FRIDAY)
    assert only(decide_promotions(given, FRIDAY)).outcome == "PROMOTE"


def test_a_person_pauses_and_resumes() -> None:
    given = canaries(report(soak=soak(1)))
    paused = after(
        Paused(source="beta", target="stable", version="1.1.0", reason="audit"), given, FRIDAY
    )
    paused, answer = settled(paused, FRIDAY)
    assert (only(answer).code, only(answer).message) == (
        "PAUSED_BY_HAND",
        "a person paused it: audit",
    )
    assert only(decide_promotions(after(RESUMED, paused, FRIDAY), FRIDAY)).outcome == ("PROMOTE")


def test_a_person_cancels_and_resumes() -> None:
    stage = {"source": "beta", "target": "stable", "version": "1.1.0"}
    given = canaries(report(soak=soak(1)))
    cancelled = after(Cancelled.model_validate({**stage, "reason": "audit"}), given, FRIDAY)
    cancelled, answer = settled(cancelled, FRIDAY)
    assert (only(answer).code, only(answer).message) == (
        "CANCELLED_BY_HAND",
        "it was cancelled (audit): resume it, or promote by hand",
    )
    assert answer.tests == ()
    assert only(decide_promotions(after(RESUMED, cancelled, FRIDAY), FRIDAY)).outcome == "PROMOTE"
    wrong = Cancelled.model_validate({**stage, "target": "x", "reason": "audit"})
    assert "no stage of the pipeline goes from beta to x" in str(refusal_of(wrong, given))


def test_a_pipeline_waits_for_canaries_from_when_it_was_enabled() -> None:
    given = canaries(report(version="1.0.0"), at=FRIDAY - 40 * DAY)
    pipeline, none = given.pipeline, given.but(pipeline=None)
    given = after(PipelineChanged(pipeline=pipeline), none, FRIDAY)
    assert only(decide_promotions(given, FRIDAY)).code == "WAITING_FOR_CANARIES"


def test_an_edit_of_an_enabled_pipeline_lets_its_times_run_on() -> None:
    given = state(published("1.1.0"), stages=[timed()]).but(pipeline=None)
    pipeline = Pipeline.model_validate({"product": "g:a", "stages": [timed()]})
    given = after(PipelineChanged(pipeline=pipeline), given, FRIDAY)
    given = after(PipelineChanged(pipeline=pipeline), given, FRIDAY + DAY)
    assert given.pipeline is not None
    assert given.pipeline.since == FRIDAY
    off = after(PipelineChanged(pipeline=pipeline.but(enabled=False)), given, FRIDAY + DAY)
    on = after(PipelineChanged(pipeline=pipeline), off, FRIDAY + 2 * DAY)
    assert on.pipeline is not None
    assert on.pipeline.since == FRIDAY + 2 * DAY
    assert after(PipelineChanged(pipeline=None), on, FRIDAY).pipeline is None


def test_health_is_counted_from_report_to_report() -> None:
    given, now = canaries(), FRIDAY
    for condition in ("healthy", "unhealthy", "neither"):
        one = EntityReport.model_validate(report(condition=condition, reported_at=now))
        given = after(Reported(reports=(one,)), given, now)
        now += 10 * timedelta(minutes=1)
    [found] = given.reports
    assert found.soak is not None
    assert (found.soak.since, found.soak.at) == (FRIDAY, FRIDAY + HOUR / 3)
    assert (found.soak.healthy, found.soak.unhealthy) == (HOUR / 6, HOUR / 6)
    other = EntityReport.model_validate(report(version="1.2.0", reported_at=now))
    [found] = after(Reported(reports=(other,)), given, now).reports
    assert found.soak is not None
    assert (found.soak.since, found.soak.healthy) == (now, timedelta())
    assert after(Reported(gone=(found.key,)), given, now).reports == ()


def test_weekends_do_not_count_for_health() -> None:
    one = EntityReport.model_validate(report(reported_at=FRIDAY))
    given = after(Reported(reports=(one,)), canaries(), FRIDAY)
    later = one.but(condition="unhealthy", reported_at=FRIDAY + 3 * DAY)
    [found] = after(Reported(reports=(later,)), given, FRIDAY + 3 * DAY).reports
    assert found.soak is not None
    assert found.soak.healthy == DAY


@pytest.mark.parametrize(
    ("health", "all_live", "condition"),
    [
        (None, True, "healthy"),
        (None, False, "neither"),
        ("HEALTHY", True, "healthy"),
        ("HEALTHY", False, "neither"),
        ("DEFERRING", True, "healthy"),
        ("WARNING", True, "neither"),
        ("REPAIRING", True, "neither"),
        ("SUSPENDED", True, "neither"),
        ("TERMINAL", True, "neither"),
        ("ERROR", True, "unhealthy"),
        ("ERROR", False, "unhealthy"),
    ],
)
def test_condition(health: str | None, all_live: bool, condition: str) -> None:
    given = snapshot({"x": entity(state={"health": health, "all_live": all_live})}, {})
    [(product, found)] = reports_of(given.environment, FRIDAY)
    assert (product, found.condition, found.channel) == ("g:a", condition, "stable")


def test_impacted_are_older_entities_on_the_channels() -> None:
    reports = [
        EntityReport.model_validate(one)
        for one in (
            report("a", "1.0.0"),
            report("b", "1.1.0"),
            report("c", "1.2.0"),
            report("d", None),
            report("e", "1.0.0", channel="stable"),
        )
    ]
    assert impacted(reports, "1.1.0", ("beta",)) == 2


def test_what_is_remembered_of_stages_that_are_gone_is_forgotten() -> None:
    given = state(published("1.1.0"), stages=[timed()], runs=[{**STABLE, "status": "cancelled"}])
    assert promoted(given, decide_promotions(given, FRIDAY)).runs == ()


def test_a_pipeline_without_faults_has_no_problems() -> None:
    given = {"product": "g:a", "stages": [timed("31d"), canary("13d")]}
    assert list(pipeline_problems(Pipeline.model_validate(given))) == []
