"""Why an entity is at its version: every release of its channel with every verdict."""

from typing import Any

from builders.fleets import NOW, entity, needs, release, simple, snapshot, stop
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Outcome, VerdictState
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.explanation import CANDIDATES_LIMIT, Explanation, explained
from temporal_plans.domain.fleets.world import World


def explanation(given: Snapshot, name: str = "a") -> Explanation:
    found = explained(World(given), name, NOW)
    assert found is not None
    return found


def failed(found: Explanation) -> dict[str, list[str]]:
    """The codes that hold each candidate back, newest first."""
    return {one.version: [verdict.code for verdict in one.failed] for one in found.candidates}


def test_every_candidate_has_every_verdict_about_it() -> None:
    recall = {"id": "bad", "start": "1.2.0", "single": True}
    given = simple("1.0.0", "1.1.0", "1.2.0", product={"recalls": [recall]}, suppressions=[stop()])
    found = explanation(given)
    assert failed(found) == {
        "1.2.0": ["RECALLED", "SUPPRESSED"],
        "1.1.0": ["SUPPRESSED"],
        "1.0.0": ["NO_NEWER_RELEASE", "SUPPRESSED"],
    }
    [chosen] = [one for one in found.candidates if one.chosen]
    [installed] = [one for one in found.candidates if one.installed]
    assert (chosen.version, installed.version) == ("1.1.0", "1.0.0")
    assert all(len(one.verdicts) == len(chosen.verdicts) for one in found.candidates)
    assert [one for one in chosen.failed if one.actions]
    assert {one.state for one in chosen.verdicts} >= {VerdictState.OK, VerdictState.FAILED}


def test_there_is_an_answer_when_there_is_nothing_to_do() -> None:
    found = explanation(simple("1.0.0", "1.1.0", at="1.1.0"))
    assert (found.decision.outcome, found.decision.code) == (Outcome.NO_WORK, "UP_TO_DATE")
    assert list(failed(found)) == ["1.1.0", "1.0.0"]
    assert (found.channel, found.count) == ("stable", 2)


def test_the_newest_and_the_installed_releases_are_shown_of_many() -> None:
    given = simple(*(f"1.{minor}.0" for minor in range(100)))
    found = explanation(given)
    assert len(found.candidates) == CANDIDATES_LIMIT + 1
    assert (found.candidates[-1].installed, found.count) == (True, 100)


def test_the_decision_is_that_of_deciding() -> None:
    given = snapshot(
        {"a": entity("g:a"), "b": entity("g:b")},
        {
            "g:a": [release("1.1.0", dependencies=[needs("g:b", "2.0.0")])],
            "g:b": [release("1.0.0")],
        },
    )
    for name in ("a", "b"):
        [answer] = decide(given, NOW, only={name}).decisions
        assert explanation(given, name).decision == answer
    assert failed(explanation(given)) == {"1.1.0": ["DEPENDENCY_OUT_OF_RANGE"]}


def test_an_unmanaged_entity_has_no_candidates_and_one_that_is_not_there_no_answer() -> None:
    unmanaged: dict[str, Any] = {"settings": None, "state": {"product": "g:a", "version": "1.0.0"}}
    given = snapshot({"a": unmanaged}, {"g:a": [release("1.1.0")]})
    assert explanation(given).candidates == ()
    assert explained(World(given), "b", NOW) is None
