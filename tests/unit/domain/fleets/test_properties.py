"""Properties of decisions, over random environments."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from builders.fleets import NOW, failed_plan, needs, release, running_plan, snapshot, stop
from properties import examples
from temporal_plans.domain.fleets.constraints import CONSTRAINTS
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import FleetDecision, Outcome, VerdictState
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.plans import EndStatus, Intent
from temporal_plans.domain.fleets.progress import carried_out, ended
from temporal_plans.domain.fleets.versions import compare, parse_version
from temporal_plans.domain.fleets.windows import Window

VERSIONS = ("1.0.0", "1.1.0-rc1", "1.1.0", "1.2.0", "2.0.0")
PRODUCTS = ("g:a", "g:b", "g:c")
EXTERNALS = ("x:db", "x:queue")
GROUPS = ("default", "other")
ARTIFACTS = ("registry.example/one", "registry.example/two")
NAMES = ("a", "b", "c", "d")
MINUTE = timedelta(minutes=1)
T = TypeVar("T")
maybe = st.booleans()


def few(draw: st.DrawFn, chances: int = 4) -> bool:
    """One time of some, so that what stops everything does not do so nearly always."""
    return draw(st.integers(1, chances)) == chances


def _time(low: int = -300, high: int = 1200) -> st.SearchStrategy[Any]:
    """Times around ``NOW``, not only whole minutes."""
    return st.integers(low * 60, high * 60).map(lambda seconds: NOW + timedelta(seconds=seconds))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    edges = sorted(draw(st.lists(_time(), max_size=6, unique=True)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    return Window.of(pairs, NOW + timedelta(days=60))


@st.composite
def products(draw: st.DrawFn, name: str) -> dict[str, Any]:
    versions = draw(st.lists(st.sampled_from(VERSIONS), min_size=2, max_size=4, unique=True))
    others = [one for one in PRODUCTS if one != name]
    relation = st.builds(
        needs,
        st.sampled_from(others),
        st.sampled_from([None, "1.0.0", "2.0.0"]),
        st.sampled_from([None, "1.x.x", "2.x.x"]),
    )
    outside = st.builds(
        needs, st.sampled_from(EXTERNALS), st.sampled_from(["1.0.0", "2.0.0"]), st.none()
    )
    scan = st.fixed_dictionaries(
        {"scanned_at": _time(-1600, 0), "risk": st.integers(3, 6), "malware": st.just(False)}
    )
    releases = [
        release(
            one,
            dependencies=[
                *([draw(relation)] if few(draw) else []),
                *([draw(outside)] if few(draw) else []),
            ],
            incompatibilities=[draw(relation)] if few(draw) else [],
            artifacts=[draw(st.sampled_from(ARTIFACTS))] if draw(maybe) else [],
            schema_migrations=[{"type": "online", "from": draw(st.integers(1, 3))}]
            if few(draw)
            else [],
            scan=None if few(draw) else draw(scan),
        )
        for one in versions
    ]
    roll_off: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {"allow_downgrade": maybe, "freeze_until": st.none() | _time()}
    )
    recall: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {
            "id": st.just("r"),
            "start": st.sampled_from(["1.0.0", *VERSIONS]),
            "single": maybe,
            "roll_off": roll_off,
            "cause": st.sampled_from(["manual", "vulnerability"]),
        }
    )
    ramp = st.fixed_dictionaries(
        {
            "channel": st.just("stable"),
            "version": st.sampled_from(versions),
            "started_at": _time(-300, 0),
            "duration": st.sampled_from([3600, 36000]),
            "entities": st.integers(0, 5),
            "started": st.integers(0, 5),
        }
    )
    return {
        "window": draw(windows()) if few(draw) else None,
        "releases": releases,
        "recalls": draw(st.lists(recall, max_size=1)),
        "ramps": draw(st.lists(ramp, max_size=1)),
    }


@st.composite
def entities(draw: st.DrawFn) -> dict[str, Any]:
    version = draw(st.sampled_from([None, "1.0.0", *VERSIONS]))
    state: dict[str, Any] = {
        "version": version,
        "health": draw(st.sampled_from([None, "HEALTHY", "ERROR"])),
        "config": {"revision": draw(st.sampled_from([None, "r", "old"]))},
        "data_schema": draw(st.none() | st.integers(1, 3)),
        "pending_secrets": ["token"] if few(draw) else [],
    }
    if draw(st.integers(0, 4)) == 0:
        state["active_plan"] = running_plan(draw(st.sampled_from(VERSIONS)))
    if draw(st.integers(0, 4)) == 0:
        state["last_plan"] = failed_plan("1.1.0", draw(st.sampled_from(VERSIONS)))
    if draw(st.integers(0, 6)) == 0:
        kind = draw(st.sampled_from(["restart", "uninstall", "enforce-config"]))
        state["command"] = {"id": "c", "type": kind, "reason": "now"}
    keys = ["2.0.0"] if few(draw, 6) else ["1.0.0", "2.0.0"]
    package = few(draw, 3)
    settings: dict[str, Any] = {
        "product": draw(st.sampled_from(PRODUCTS)),
        "config": {key: {"revision": "r"} for key in keys},
        "uninstall": draw(st.integers(0, 4)) == 0,
        "downtime": draw(st.sampled_from([None, True])),
        "downtime_window": draw(st.sampled_from([None, "w"])),
        "dependency_groups": draw(st.sampled_from([["default"], ["default"], ["other"], GROUPS])),
        "dependency_group_overrides": {draw(st.sampled_from(PRODUCTS)): ["*"]} if few(draw) else {},
        "ignored_dependencies": [draw(st.sampled_from([*PRODUCTS, *EXTERNALS]))]
        if few(draw)
        else [],
        "awaiting_approval": "request-1" if few(draw, 8) else None,
    }
    if package:
        settings |= {"kind": "package", "namespace": "n", "delete_namespace": draw(maybe)}
        settings["uninstall"] = draw(maybe)
    return {"settings": settings, "state": state}


@st.composite
def environments(draw: st.DrawFn) -> Snapshot:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    given_entities = {name: draw(entities()) for name in names}
    origins = st.sampled_from(["manual", "failed-plan", "promotion"])
    stops = [
        stop(
            f"s{n}",
            origin=draw(origins),
            entity=draw(st.sampled_from([None, *NAMES])),
            start=draw(_time()),
            minutes=draw(st.none() | st.integers(1300, 2000)),
        )
        for n in range(draw(st.integers(0, 2)))
    ]
    for one in stops:
        if one["end"] is not None and one["end"] <= one["start"]:
            one["end"] = None
    overrides = [
        {
            "id": f"o{n}",
            "admits": draw(st.sampled_from(["downtime", "no-downtime"])),
            "start": (start := draw(_time())),
            "end": start + timedelta(hours=1),
        }
        for n in range(draw(st.integers(0, 1)))
    ]
    return snapshot(
        given_entities,
        {name: draw(products(name)) for name in PRODUCTS},
        settings={
            "windows": {"w": draw(windows())},
            "no_downtime_window": draw(st.sampled_from(["all-time", "w"])),
            "suppress_deployment_after_num_autosuppressions": draw(st.sampled_from([None, 0, 1])),
            "max_active_plans": draw(st.sampled_from([None, 1])),
            "vulnerability_upgrades": draw(maybe),
            "external_dependencies": [
                {"product": one, "version": draw(st.sampled_from(["1.0.0", "2.0.0"]))}
                for one in EXTERNALS
                if draw(maybe)
            ],
        },
        facts={
            "agent_seen_at": draw(st.none() | _time(-12, 0)),
            "artifacts": {
                one: draw(st.sampled_from(["available", "unavailable", "unchecked"]))
                for one in ARTIFACTS
            },
            "namespaces": {"n": {"protected": draw(maybe)}},
        },
        suppressions=stops,
        overrides=overrides,
    )


def _shuffled(given_snapshot: Snapshot, order: Random) -> Snapshot:
    """The same, in another order everywhere."""

    def mixed(values: Sequence[T]) -> tuple[T, ...]:
        return tuple(order.sample(values, len(values)))

    environment = given_snapshot.environment
    facts, settings = environment.facts, environment.settings
    return Snapshot(
        environment=environment.but(
            entities=mixed(environment.entities),
            suppressions=mixed(environment.suppressions),
            overrides=mixed(environment.overrides),
            facts=facts.but(artifacts=dict(mixed(list(facts.artifacts.items())))),
            settings=settings.but(external_dependencies=mixed(settings.external_dependencies)),
        ),
        products=tuple(
            one.but(
                releases=mixed(one.releases), recalls=mixed(one.recalls), ramps=mixed(one.ramps)
            )
            for one in mixed(given_snapshot.products)
        ),
    )


@examples(32)
@given(environments(), st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_does_not_matter(given_snapshot: Snapshot, order: Random) -> None:
    assert decide(given_snapshot, NOW) == decide(_shuffled(given_snapshot, order), NOW)


@examples(32)
@given(environments())
def test_nothing_is_issued_that_a_constraint_forbids(given_snapshot: Snapshot) -> None:
    rows = {one.id: one for one in CONSTRAINTS}
    for one in decide(given_snapshot, NOW).decisions:
        failed = [v.id for v in one.constraints if v.state is VerdictState.FAILED]
        if one.outcome is Outcome.ISSUE:
            assert one.plan is not None
            assert failed == []
            applied = {v.id for v in one.constraints if v.state is not VerdictState.IGNORED}
            wanted = {name for name, row in rows.items() if row.applies_to(one.plan.intent)}
            assert wanted <= applied
        elif one.outcome is Outcome.BLOCKED:
            assert one.code


@examples(32)
@given(environments())
def test_an_entity_has_one_plan_at_a_time(given_snapshot: Snapshot) -> None:
    running = {one.name for one in given_snapshot.environment.entities if one.state.active_plan}
    answer = decide(given_snapshot, NOW)
    assert len({one.entity for one in answer.decisions}) == len(answer.decisions)
    for one in answer.decisions:
        if one.entity.partition("/")[2] in running:
            assert one.outcome is Outcome.ACTIVE
    after = decide(carried_out(given_snapshot, answer), NOW)
    issued = {one.entity for one in answer.decisions if one.outcome is Outcome.ISSUE}
    assert not issued & {one.entity for one in after.decisions if one.outcome is Outcome.ISSUE}


@examples(32)
@given(environments())
def test_a_suppression_by_a_person_stops_everything_but_commands(given_snapshot: Snapshot) -> None:
    person = stop("person", entity=None)
    environment = given_snapshot.environment
    with_stop = Snapshot.model_validate(
        {
            **given_snapshot.model_dump(),
            "environment": {
                **environment.model_dump(),
                "suppressions": [*(one.model_dump() for one in environment.suppressions), person],
            },
        }
    )
    for one in decide(with_stop, NOW).decisions:
        if one.outcome is Outcome.ISSUE:
            assert one.plan is not None
            assert one.plan.intent is Intent.BREAK_GLASS


@examples(32)
@given(environments())
def test_versions_only_rise_but_for_ways_back(given_snapshot: Snapshot) -> None:
    ways_back = {Intent.RECALL_ROLL_OFF, Intent.ROLLBACK, Intent.BREAK_GLASS}
    for one in decide(given_snapshot, NOW).decisions:
        plan = one.plan
        if one.outcome is not Outcome.ISSUE or plan is None or plan.intent in ways_back:
            continue
        if plan.from_ and plan.to and plan.intent is Intent.UPGRADE:
            before, after = parse_version(plan.from_), parse_version(plan.to)
            assert before is not None
            assert after is not None
            assert compare(after, before) > 0
        elif plan.to is not None:
            assert plan.from_ in (None, plan.to)


def _without_time(answer: FleetDecision) -> list[Any]:
    """The answers, but for the times of the answers themselves."""
    return [
        (
            one.but(at=NOW, next_evaluation_at=None),
            answer.threshold.removed,
            answer.threshold.created is None,
        )
        for one in answer.decisions
    ]


@examples(15)
@given(environments())
def test_no_answer_changes_before_the_next_wakeup(given_snapshot: Snapshot) -> None:
    """Seven times between two wakeups, and the second before the next, for a day. Decisions are
    carried out first, so that the answers are about what waits: a clock that starts again does so
    once."""
    settled = carried_out(given_snapshot, decide(given_snapshot, NOW))
    start = NOW
    for _ in range(12):
        settled = carried_out(settled, decide(settled, start))
        answer = decide(settled, start)
        end = answer.next_wakeup or NOW + timedelta(days=1)
        assert end > start
        times = [start + n * (end - start) / 8 for n in range(1, 8)]
        times += [end - timedelta(seconds=1)] if end - timedelta(seconds=1) > start else []
        changes = any(one.outcome is Outcome.ISSUE for one in answer.decisions)
        if not changes and answer.threshold.created is None:
            for time in times:
                assert _without_time(decide(settled, time)) == _without_time(answer), time
        start = end
        if start >= NOW + timedelta(days=1):
            return


@examples(30)
@given(environments())
def test_a_settled_fleet_wakes_at_edges_only(given_snapshot: Snapshot) -> None:
    """Where nothing waits, decisions are due only when a failure stops to count, a freeze ends, or
    a running plan could be cancelled."""
    answer = decide(given_snapshot, NOW)
    if {one.outcome for one in answer.decisions} <= {Outcome.NO_WORK, Outcome.UNMANAGED}:
        counted = given_snapshot.environment.suppressions
        ends = {time for one in counted for time in (one.start, one.end)}
        assert answer.next_wakeup is None or answer.next_wakeup in ends


@examples(30)
@given(environments(), st.lists(st.sampled_from(list(EndStatus)), min_size=1, max_size=6))
def test_a_fleet_goes_on_whatever_plans_come_to(
    given_snapshot: Snapshot, outcomes: list[EndStatus]
) -> None:
    """Numbers of plans are used once, and no decision fails."""
    now, numbers = NOW, set[str]()
    for status in outcomes:
        answer = decide(given_snapshot, now)
        for one in answer.decisions:
            if one.outcome is Outcome.ISSUE and one.plan is not None:
                assert one.plan.id not in numbers
                numbers.add(one.plan.id)
        given_snapshot = carried_out(given_snapshot, answer)
        environment = given_snapshot.environment
        for entity in environment.entities:
            environment = ended(environment, entity.name, status, now)
        given_snapshot = given_snapshot.but(environment=environment)
        now += timedelta(hours=1)
