"""Properties of promotions, over random products."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders.promotions import FRIDAY, published, report, settled
from properties import examples
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import ACTIONS, ProductDecision
from temporal_plans.domain.fleets.promotion.labels import unmet
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline
from temporal_plans.domain.fleets.promotion.progress import promoted
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.soak import Condition, Measured, Soak, utc_weekdays
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import covering
from temporal_plans.domain.fleets.windows import Window

VERSIONS = ("1.0.0", "1.1.0-rc1", "1.1.0", "1.2.0")
CHANNELS = ("DEV", "beta", "stable")
MINUTE = timedelta(minutes=1)
maybe = st.booleans()
conditions = st.sampled_from(["healthy", "unhealthy", "neither"])
ratios = st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0])
soaks = st.sampled_from(["0s", "1h", "36h", "5d"])


def _time(low: int, high: int) -> st.SearchStrategy[datetime]:
    """Times around ``FRIDAY``, in minutes, not only whole ones."""
    return st.integers(low * 60, high * 60).map(lambda s: FRIDAY + timedelta(seconds=s))


labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]))
required = st.dictionaries(
    st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["x", "y"]), max_size=1), max_size=1
)


@st.composite
def stages(draw: st.DrawFn, source: str, target: str) -> dict[str, Any]:
    shared: dict[str, Any] = {"source": source, "target": target}
    wanted = draw(required) if draw(maybe) else {}
    if draw(maybe):
        return {**shared, "timed": {"soak": draw(soaks), "labels": wanted}}
    amount = draw(st.sampled_from([{"count": 1}, {"count": 2}, {"percent": 50}]))
    recall = {**amount, "soak": draw(soaks), "unhealthy": draw(ratios)}
    given: dict[str, Any] = {
        "promote": {**amount, "soak": draw(soaks), "healthy": draw(ratios)},
        "recall": recall if draw(maybe) else None,
        "minimum_entities": draw(st.integers(0, 2)),
        "labels": wanted,
        "environments": {"labels": draw(required)} if draw(maybe) else {},
    }
    return {**shared, "canary": given}


@st.composite
def reports(draw: st.DrawFn, name: str) -> dict[str, Any]:
    since = draw(_time(-20_000, 0))
    at = draw(st.none() | _time(-20_000, 0).filter(lambda time: time >= since))
    passed = utc_weekdays(FRIDAY).open_time(since, at or since)
    part = draw(st.sampled_from([0, 0.05, 0.5, 0.95, 1]))
    soak = {"since": since, "at": at, "healthy": part * passed, "unhealthy": (1 - part) * passed}
    return report(
        name,
        draw(st.none() | st.sampled_from(VERSIONS)),
        channel=draw(st.sampled_from(["beta", "beta", "DEV"])),
        connection=draw(st.sampled_from(["agents-connected"] * 3 + ["unknown"])),
        condition=draw(conditions),
        environment_labels=draw(labels),
        soak=draw(st.sampled_from([soak, soak, None])),
    )


@st.composite
def states(draw: st.DrawFn) -> ProductState:
    releases = [
        published(
            one,
            *draw(st.lists(st.sampled_from(CHANNELS), min_size=1, unique=True)),
            at=draw(_time(-45_000, 0)),
            labels=draw(labels),
        )
        for one in draw(st.lists(st.sampled_from(VERSIONS), min_size=1, unique=True))
    ]
    edges = sorted(draw(st.lists(_time(-600, 6000), max_size=6, unique=True)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    recall = {"id": "r", "start": draw(st.sampled_from(VERSIONS)), "single": True}
    return ProductState.model_validate(
        {
            "product": {
                "id": "g:a",
                "releases": releases,
                "window": Window.of(pairs, FRIDAY + timedelta(days=60)) if draw(maybe) else None,
                "recalls": [recall] if draw(st.integers(0, 3)) == 0 else [],
            },
            "channels": [{"name": "stable", "labels": draw(required)}] if draw(maybe) else [],
            "pipeline": {
                "product": "g:a",
                "enabled": draw(st.integers(0, 9)) > 0,
                "stages": [draw(stages("DEV", "beta")), draw(stages("beta", "stable"))],
            },
            "reports": [
                draw(reports(name))
                for name in draw(st.lists(st.sampled_from(["x", "y", "z"]), unique=True))
            ],
        }
    )


def _shuffled(given_state: ProductState) -> ProductState:
    product = given_state.product
    return given_state.but(
        product=product.but(
            releases=product.releases[::-1],
            recalls=product.recalls[::-1],
            admissions=product.admissions[::-1],
        ),
        channels=given_state.channels[::-1],
        runs=given_state.runs[::-1],
        reports=given_state.reports[::-1],
    )


@examples(100)
@given(states())
def test_the_order_of_the_inputs_does_not_matter(given_state: ProductState) -> None:
    assert decide_promotions(given_state, FRIDAY) == decide_promotions(
        _shuffled(given_state), FRIDAY
    )
    later, _ = settled(given_state, FRIDAY)
    assert decide_promotions(later, FRIDAY) == decide_promotions(_shuffled(later), FRIDAY)


@examples(100)
@given(states())
def test_every_answer_has_a_reason_and_a_time_to_look_again(given_state: ProductState) -> None:
    """What waits for time says when; what waits for people says what would cure it."""
    for one in decide_promotions(given_state, FRIDAY).promotions:
        if one.outcome == "PROMOTE":
            assert (one.code, one.next_evaluation_at) == ("", None)
            continue
        assert one.code
        assert one.message
        for condition in one.conditions:
            if condition.state == "FAILED":
                assert condition.actions


@examples(100)
@given(states())
def test_the_rules_of_channels_hold_and_no_recalled_release_is_promoted(
    given_state: ProductState,
) -> None:
    before = {one.version: set(one.channels) for one in given_state.product.releases}
    after, _ = settled(given_state, FRIDAY)
    for one in after.product.releases:
        for channel in set(one.channels) - before[one.version]:
            assert unmet(one.labels, given_state.channel(channel).labels) == ()
            assert covering(given_state.product.recalls, one.version) == ()
            assert given_state.product.window is None or given_state.product.window.is_open(FRIDAY)


def _without_time(answer: ProductDecision) -> list[Any]:
    """The answers, but for the times of the answers themselves."""
    return [
        answer.tests,
        *(
            one.but(
                next_evaluation_at=None,
                conditions=tuple(c.but(next_change_at=None) for c in one.conditions),
            )
            for one in answer.promotions
        ),
    ]


@examples(60)
@given(states())
def test_no_answer_changes_before_the_next_wakeup(given_state: ProductState) -> None:
    """Seven times between two wakeups, and the microsecond before the next, over months."""
    start, now_state = FRIDAY, given_state
    for _ in range(15):
        now_state, answer = settled(now_state, start)
        end = answer.next_wakeup or start + timedelta(days=40)
        assert end > start
        times = [start + n * (end - start) / 8 for n in range(1, 8)]
        times.append(end - timedelta(microseconds=1))
        for time in times:
            found = decide_promotions(now_state, time)
            assert _without_time(found) == _without_time(answer), time
        if answer.next_wakeup is None:
            return
        start = end


@examples(60)
@given(states())
def test_every_promotion_comes_to_an_end(given_state: ProductState) -> None:
    """Without reports and by time alone all that is not paused is promoted, recalled or cancelled
    in some months, and wakes no more."""
    open_ = given_state.but(product=given_state.product.but(window=None))
    start, now_state = FRIDAY, open_
    for _ in range(200):
        now_state, answer = settled(now_state, start)
        if answer.next_wakeup is None:
            break
        start = answer.next_wakeup
    else:
        raise AssertionError("wakes again and again")
    assert start < FRIDAY + timedelta(days=120)
    for one in answer.promotions:
        assert one.outcome in ("CANCELLED", "RECALLED", "PAUSED"), one


def _acted(answer: ProductDecision) -> set[tuple[str, str, str]]:
    acts = (one for one in answer.promotions if one.outcome in ACTIONS)
    return {(one.source, one.target, one.version) for one in acts}


@examples(60)
@given(states())
def test_what_is_carried_out_is_not_decided_again(given_state: ProductState) -> None:
    answer = decide_promotions(given_state, FRIDAY)
    again = decide_promotions(promoted(given_state, answer), FRIDAY)
    assert not _acted(answer) & _acted(again)
    assert not {one.id for one in answer.recalls} & {one.id for one in again.recalls}


@examples(200)
@given(
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    conditions,
    soaks,
    ratios,
    _time(-5000, 5000),
    maybe,
)
def test_a_soak_changes_at_the_time_that_it_says(
    healthy: int,
    unhealthy: int,
    condition: str,
    wanted: str,
    ratio: float,
    now: datetime,
    good: bool,
) -> None:
    days = utc_weekdays(now)
    passed = timedelta(minutes=healthy + unhealthy)
    since = now - passed
    while days.open_time(since, now) < passed:
        since -= timedelta(hours=1)
    report_ = EntityReport.model_validate(
        report(
            condition=condition,
            soak={
                "since": since,
                "at": now,
                "healthy": healthy * MINUTE,
                "unhealthy": unhealthy * MINUTE,
            },
        )
    )
    pipeline = Pipeline.model_validate(
        {"product": "g:a", "stages": [{"source": "a", "target": "b", "timed": {"soak": wanted}}]}
    )
    assert pipeline.stages[0].timed is not None
    length = pipeline.stages[0].timed.soak
    assert report_.soak is not None

    def answer(soak: Soak, time: datetime) -> bool:
        found = Measured.of(soak, Condition(condition), time, days)
        return found.is_healthy(length, ratio) if good else found.is_unhealthy(length, ratio)

    of = Condition.HEALTHY if good else Condition.UNHEALTHY
    at = Measured.of(report_.soak, Condition(condition), now, days).next_change(length, ratio, of)
    first = answer(report_.soak, now)
    end = at or now + timedelta(days=20)
    assert end > now
    for time in (now + (end - now) / 2, end - timedelta(microseconds=1)):
        assert answer(report_.soak, time) == first
