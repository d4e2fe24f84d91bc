"""Deciding about what has changed gives the answers of deciding about everything."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.fleets import NOW, entity, needs, release, running_plan, simple, snapshot, stop
from properties import examples
from temporal_plans.domain.fleets.answers import Answers
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, Outcome
from temporal_plans.domain.fleets.entities import Entity, EntitySettings
from temporal_plans.domain.fleets.environment import Connection, Snapshot
from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.fleets.progress import carried_out, ended
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.standing import after_pass, passed
from temporal_plans.domain.fleets.suppressions import Origin, Suppression
from temporal_plans.domain.fleets.world import World
from unit.domain.fleets.test_properties import NAMES, PRODUCTS, VERSIONS, entities, environments

HOUR = timedelta(hours=1)
EVENTS = (
    *("version", "uninstall", "health", "gone", "new", "group", "channel", "ended", "ended"),
    *("publish", "recall", "edit", "suppress", "unsuppress", "limit", "connection", "later"),
)


class Event(NamedTuple):
    """Something that happens; most events use a part of the values."""

    kind: str
    number: int
    version: str
    status: EndStatus
    new: dict[str, Any]


events = st.builds(
    Event,
    st.sampled_from(EVENTS),
    st.integers(0, 3),
    st.sampled_from(VERSIONS),
    st.sampled_from(list(EndStatus)),
    entities(),
)


def _with(given_snapshot: Snapshot, **changes: Any) -> Snapshot:
    return given_snapshot.but(environment=given_snapshot.environment.but(**changes))


def _changed(given_snapshot: Snapshot, event: Event, now: datetime) -> Snapshot:
    """The snapshot after an event; what it does not concern stays the same object."""
    kind, index, version, status, new = event
    environment = given_snapshot.environment
    if kind in ("publish", "recall", "edit"):
        product = given_snapshot.products[index % len(PRODUCTS)]
        if kind == "recall":
            recall = Recall(id="r", start=version, single=True)
            product = product.but(recalls=() if product.recalls else (recall,))
        elif kind == "publish":
            others = tuple(one for one in product.releases if one.version != version)
            product = product.but(releases=(*others, Release.model_validate(release(version))))
        else:
            product = product.but(releases=product.releases[1:])
        rest = given_snapshot.products
        return given_snapshot.but(
            products=tuple(product if one.id == product.id else one for one in rest)
        )
    if kind == "suppress":
        one = Suppression(id=f"n{now:%s}{index}", entity=[None, *NAMES][index], start=now)
        return _with(given_snapshot, suppressions=(*environment.suppressions, one))
    if kind == "unsuppress":
        return _with(given_snapshot, suppressions=environment.suppressions[1:])
    if kind == "limit":
        limit = None if environment.settings.max_active_plans else 1
        return _with(given_snapshot, settings=environment.settings.but(max_active_plans=limit))
    if kind == "connection":
        connected = environment.facts.connection is Connection.CONNECTED
        connection = Connection.NOT_EXPECTED if connected else Connection.CONNECTED
        return _with(given_snapshot, facts=environment.facts.but(connection=connection))
    if kind == "new":
        made = Entity.model_validate({"name": NAMES[index], **new})
        kept = tuple(one for one in environment.entities if one.name != made.name)
        return _with(given_snapshot, entities=(*kept, made))
    if not environment.entities or kind == "later":
        return given_snapshot
    old = environment.entities[index % len(environment.entities)]
    if kind == "gone":
        return _with(
            given_snapshot, entities=tuple(e for e in environment.entities if e is not old)
        )
    if kind == "ended":
        return given_snapshot.but(environment=ended(environment, old.name, status, now))
    state, settings = old.state, old.settings or EntitySettings(product="g:a")
    if kind == "version":
        state = state.but(version=version)
    elif kind == "health":
        state = state.but(health="ERROR")
    elif kind == "uninstall":
        settings = settings.but(uninstall=not settings.uninstall)
    elif kind == "group":
        settings = settings.but(
            dependency_groups=("other",), dependency_group_overrides={"g:b": ("*",)}
        )
    elif kind == "channel":
        settings = settings.but(release_channel="none")
    changed = old.but(state=state, settings=settings)
    return _with(
        given_snapshot,
        entities=tuple(changed if one is old else one for one in environment.entities),
    )


def _issued(answer: FleetDecision) -> set[str]:
    plans = (one.plan for one in answer.decisions if one.outcome is Outcome.ISSUE)
    return {f"{one.id} {one.intent} {one.to}" for one in plans if one}


def _timeless(one: Decision) -> Decision:
    return one.but(at=NOW, next_evaluation_at=None)


def _compared(answers: Answers, given_snapshot: Snapshot, now: datetime) -> Snapshot:
    """Decide both ways until nothing is issued; returns the snapshot then."""
    for _ in range(20):
        whole, part = decide(given_snapshot, now), answers.decide(now)
        assert _issued(part) == _issued(whole)
        assert part.threshold == whole.threshold
        done = carried_out(given_snapshot, part)
        assert done == carried_out(given_snapshot, whole)
        given_snapshot = done
        answers.change_to(given_snapshot)
        if not _issued(whole) and whole.threshold.created is None and not whole.threshold.removed:
            wanted = {one.entity.partition("/")[2]: _timeless(one) for one in whole.decisions}
            assert {n: _timeless(one) for n, one in answers.decisions.items()} == wanted
            return given_snapshot
    raise AssertionError("issues again and again")


@examples(60)
@given(environments(), st.lists(events, min_size=1, max_size=8))
def test_deciding_about_changes_equals_deciding_from_nothing(
    given_snapshot: Snapshot, happening: list[Event]
) -> None:
    now = NOW
    answers = Answers(given_snapshot)
    given_snapshot = _compared(answers, given_snapshot, now)
    for one in happening:
        if one.kind == "later":
            now += (one.number + 1) * HOUR
        given_snapshot = _changed(given_snapshot, one, now)
        answers.change_to(given_snapshot)
        given_snapshot = _compared(answers, given_snapshot, now)


@examples(60)
@given(environments(), st.lists(events, min_size=1, max_size=4))
def test_what_holds_of_a_decision_made_elsewhere_equals_deciding_later(
    given_snapshot: Snapshot, happening: list[Event]
) -> None:
    """The environment changes while an activity decides about all of it."""
    answers = Answers(given_snapshot)
    done = passed(given_snapshot, decide(given_snapshot, NOW), {})
    answers.take(done.again)
    now, later = NOW, given_snapshot
    for one in happening:
        if one.kind == "later":
            now += HOUR
        later = _changed(later, one, now)
    kept = answers.without_changed(done, later, now)
    issued = {one.partition("/")[2] for one in _names(decide(later, now))}
    if later.environment.settings.max_active_plans is None:
        assert set(kept.issued) <= issued
    else:  # a plan that came meanwhile may have gone first
        assert len(kept.issued) <= len(issued)
    environment = after_pass(later.environment, kept, now)
    products = tuple(
        one.but(ramps=kept.ramps.get(one.id, one.ramps)) if kept.ramps else one
        for one in later.products
    )
    after = later.but(environment=environment, products=products)
    answers.change_to(after)
    _agreed(answers, after, now)


def _names(answer: FleetDecision) -> list[str]:
    return [one.entity for one in answer.decisions if one.outcome is Outcome.ISSUE]


def _agreed(answers: Answers, given_snapshot: Snapshot, now: datetime) -> None:
    """Decide until nothing is issued: what is decided of all is what deciding from nothing says."""
    for _ in range(20):
        whole, part = decide(given_snapshot, now), answers.decide(now)
        assert _issued(part) == _issued(whole)
        done = carried_out(given_snapshot, part)
        assert done == carried_out(given_snapshot, whole)
        given_snapshot = done
        answers.change_to(given_snapshot)
        if not _issued(whole):
            return
    raise AssertionError("issues again and again")


@examples(60)
@given(environments())
def test_a_world_is_not_changed_by_deciding(given_snapshot: Snapshot) -> None:
    world = World(given_snapshot)
    first = decide(world, NOW)
    assert decide(world, NOW) == first == decide(given_snapshot, NOW)


def _fleet() -> Snapshot:
    """Three products in a row, each needing the one before, in two groups of entities."""
    products = {
        f"g:{name}": [
            release("1.0.0", dependencies=[needs(f"g:{before}")] if before else []),
            release("2.0.0", dependencies=[needs(f"g:{before}", "2.0.0")] if before else []),
        ]
        for name, before in (("a", ""), ("b", "a"), ("c", "b"))
    }
    members = {
        f"{name}{group}": entity(f"g:{name}", dependency_groups=[f"group{group}"])
        for name in "abc"
        for group in (1, 2)
    }
    return snapshot(members, products, suppressions=[stop(entity=None)])


def test_one_event_concerns_an_entity_and_its_neighbours() -> None:
    given_snapshot = _fleet()
    answers = Answers(given_snapshot)
    assert len(answers.decide(NOW).decisions) == 6
    assert answers.decide(NOW).decisions == ()
    [old] = [one for one in given_snapshot.environment.entities if one.name == "a1"]
    answers.change_entity(old.but(state=old.state.but(version="2.0.0")))
    assert [one.entity for one in answers.decide(NOW).decisions] == ["prod/a1", "prod/b1"]


def test_what_others_do_not_see_concerns_the_entity_only() -> None:
    given_snapshot = _fleet()
    answers = Answers(given_snapshot)
    answers.decide(NOW)
    old = given_snapshot.environment.entities[0]
    answers.change_entity(old.but(state=old.state.but(health="ERROR")))
    assert [one.entity for one in answers.decide(NOW).decisions] == [f"prod/{old.name}"]


def test_a_new_release_concerns_the_entities_of_its_product() -> None:
    given_snapshot = _fleet()
    answers = Answers(given_snapshot)
    answers.decide(NOW)
    old = next(one for one in given_snapshot.products if one.id == "g:b")
    made = Release.model_validate(release("3.0.0"))
    answers.change_product(old.but(releases=(*old.releases, made)))
    assert [one.entity for one in answers.decide(NOW).decisions] == ["prod/b1", "prod/b2"]


def test_a_suppression_concerns_its_entity_and_its_end_is_a_wakeup() -> None:
    given_snapshot = simple("1.0.0", "1.1.0")
    answers = Answers(given_snapshot)
    one = Suppression(id="s", entity="a", start=NOW, end=NOW + HOUR)
    answers.change_to(_with(given_snapshot, suppressions=(one,)))
    assert answers.decide(NOW).next_wakeup == NOW + HOUR
    assert answers.decide(NOW + HOUR / 2).decisions == ()
    assert [one.outcome for one in answers.decide(NOW + HOUR).decisions] == ["ISSUE"]


@pytest.mark.parametrize(("limit", "count"), [(None, 1), (1, 3), (3, 1)])
def test_the_end_of_a_plan_concerns_all_where_the_bound_is_reached(
    limit: int | None, count: int
) -> None:
    members = {name: entity() for name in "bc"}
    members["a"] = entity(state={"active_plan": running_plan("1.1.0")})
    given_snapshot = snapshot(
        members,
        {"g:a": [release("1.0.0"), release("1.1.0")]},
        settings={"max_active_plans": limit},
        suppressions=[stop("b", entity="b"), stop("c", entity="c")],
    )
    answers = Answers(given_snapshot)
    answers.decide(NOW)
    done = ended(given_snapshot.environment, "a", EndStatus.SUCCEEDED, NOW)
    answers.change_to(given_snapshot.but(environment=done))
    assert len(answers.decide(NOW).decisions) == count


def test_the_threshold_concerns_all() -> None:
    given_snapshot = snapshot(
        {name: entity() for name in "abc"},
        {"g:a": [release("1.0.0")]},
        settings={"suppress_deployment_after_num_autosuppressions": 0},
    )
    answers = Answers(given_snapshot)
    answers.decide(NOW)
    failed = Suppression(id="f", origin=Origin.FAILED_PLAN, entity="a", start=NOW, end=NOW + HOUR)
    answers.change_to(_with(given_snapshot, suppressions=(failed,)))
    answer = answers.decide(NOW)
    assert len(answer.decisions) == 3
    assert answer.next_wakeup == NOW + HOUR


def test_an_entity_that_is_gone_has_no_decision() -> None:
    given_snapshot = _fleet()
    answers = Answers(given_snapshot)
    answers.decide(NOW)
    answers.change_to(_with(given_snapshot, entities=given_snapshot.environment.entities[:-1]))
    answers.decide(NOW)
    assert "c2" not in answers.decisions


# --- what concerns more than neighbours -----------------------------------------------------------


def _follow(before: Snapshot, after: Snapshot) -> tuple[set[str], dict[str, Decision]]:
    """Decide, change, and decide again as from nothing; returns whose answers are others now, and
    all answers."""
    answers = Answers(before)
    answers.decide(NOW)
    first = dict(answers.decisions)
    answers.change_to(after)
    answers.decide(NOW)
    found = {name: _timeless(one) for name, one in answers.decisions.items()}
    whole = decide(after, NOW).decisions
    assert found == {one.entity.partition("/")[2]: _timeless(one) for one in whole}
    return {n for n, one in found.items() if one != _timeless(first[n])}, found


def _without(given_snapshot: Snapshot, name: str) -> Snapshot:
    left = tuple(one for one in given_snapshot.environment.entities if one.name != name)
    return _with(given_snapshot, entities=left)


def test_what_a_failed_plan_needed_is_forgotten() -> None:
    members = {
        "a": entity("g:a"),
        "b": entity("g:b", state={"active_plan": running_plan("2.0.0", number=1)}),
    }
    products = {
        "g:a": [release("1.0.0"), release("1.5.0")],
        "g:b": [release("1.0.0"), release("2.0.0", dependencies=[needs("g:a", "2.0.0")])],
    }
    before = snapshot(members, products)
    assert decide(before, NOW).decisions[0].code == "DEPENDENT_WOULD_BREAK"
    done = ended(
        before.environment,
        "b",
        EndStatus.FAILED,
        NOW,
        reached=before.environment.entities[1].state.current,
    )
    changed, found = _follow(before, before.but(environment=done))
    assert changed == {"a", "b"}
    assert found["a"].outcome is Outcome.ISSUE


def test_what_a_failed_plan_was_incompatible_with_is_forgotten() -> None:
    running = running_plan("2.0.0", number=1)
    members = {"a": entity("g:a"), "b": entity("g:b", state={"active_plan": running})}
    products = {
        "g:a": [release("1.0.0"), release("1.5.0")],
        "g:b": [release("1.0.0"), release("2.0.0", incompatibilities=[needs("g:a", "1.5.0")])],
    }
    before = snapshot(members, products)
    assert decide(before, NOW).decisions[0].code == "INCOMPATIBLE"
    reached = before.environment.entities[1].state.current
    done = ended(before.environment, "b", EndStatus.FAILED, NOW, reached=reached)
    _, found = _follow(before, before.but(environment=done))
    assert found["a"].outcome is Outcome.ISSUE


def test_another_provider_that_goes_concerns_one_that_is_to_go() -> None:
    members = {
        "a1": entity("g:a", uninstall=True),
        "a2": entity("g:a"),
        "d": entity("g:d"),
    }
    products = {
        "g:a": [release("1.0.0")],
        "g:d": [release("1.0.0", dependencies=[needs("g:a")])],
    }
    before = snapshot(members, products)
    changed, found = _follow(before, _without(before, "a2"))
    assert "a1" in changed
    failed = {one.id for one in found["a1"].constraints if one.state == "FAILED"}
    assert failed == {"K9", "K27"}


def _ring(*names: str, **more: Any) -> Snapshot:
    """Products that need each other in a circle, of which nothing is installed; all is stopped."""
    rest = (*names[1:], names[0])
    products = {
        f"g:{one}": [
            release("1.0.0", dependencies=[needs(f"g:{other}")]),
            release("2.0.0", "beta"),
        ]
        for one, other in zip(names, rest, strict=True)
    }
    members = {one: entity(f"g:{one}", None) for one in names}
    return snapshot(members, products, suppressions=[stop(entity=None)], **more)


def test_a_circle_that_opens_concerns_all_in_it() -> None:
    before = _ring("a", "b", "c", "d")
    product = before.products[3]
    made = Release.model_validate(release("3.0.0"))
    opened = product.but(releases=(*product.releases, made))
    changed, _ = _follow(before, before.but(products=(*before.products[:3], opened)))
    assert changed == {"a", "b", "c", "d"}


def test_a_circle_is_looked_for_again_on_another_channel() -> None:
    """On beta b still needs a, and a does not need b."""
    products = {
        "g:a": [release("1.0.0", dependencies=[needs("g:b")]), release("2.0.0", "beta")],
        "g:b": [
            release("1.0.0", dependencies=[needs("g:a")]),
            release("2.0.0", "beta", dependencies=[needs("g:a")]),
        ],
    }
    before = snapshot(
        {"a": entity("g:a", None), "b": entity("g:b", None)},
        products,
        suppressions=[stop(entity=None)],
    )
    settings = before.environment.settings.but(release_channel="beta")
    changed, found = _follow(before, _with(before, settings=settings))
    assert changed == {"a", "b"}
    assert found["b"].code == "DEPENDENCY_MISSING"


def test_the_last_entity_of_a_namespace_that_goes_concerns_the_namespace() -> None:
    shared: dict[str, Any] = {"kind": "package", "namespace": "n"}
    members = {
        "a": entity("g:a", uninstall=True, delete_namespace=True, **shared),
        "b": entity("g:b", **shared),
    }
    before = snapshot(members, {"g:a": [release("1.0.0")], "g:b": [release("1.0.0")]})
    changed, found = _follow(before, _without(before, "b"))
    assert changed >= {"a"}
    assert found["a"].outcome is Outcome.ISSUE
