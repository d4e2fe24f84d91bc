"""An entity is of one product as long as anything of it is there."""

from typing import Any

import pytest

from builders.fleets import NOW, decision, entity, release, running_plan, snapshot
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.entities import EntityOptions
from temporal_plans.domain.fleets.other_product import product_refusal
from temporal_plans.domain.values.refusal import Code

OTHER = EntityOptions(product="g:b")


def refusal(one: dict[str, Any], declared: EntityOptions = OTHER) -> str:
    given = snapshot({"a": one}, {}).environment
    found = product_refusal(given, {"a": declared})
    if found is None:
        return ""
    assert found.code == Code.NAME_TAKEN
    [reason] = found.reasons
    assert (reason.field, reason.value) == ("entities.a.product", "g:b")
    assert reason.fix
    return reason.problem


def test_t104_an_entity_that_is_uninstalled_and_still_managed_is_not_added_again() -> None:
    assert "still managed" in refusal(entity("g:a", None, uninstall=True))


@pytest.mark.parametrize(
    ("version", "before", "afterwards"),
    [("1.0.0", "UNINSTALL", "UPGRADE"), (None, None, "INSTALL")],
)
def test_t104_the_same_product_takes_the_uninstall_back(
    version: str | None, before: str | None, afterwards: str
) -> None:
    """A document says what is to be there: that it names an entity again is the undo."""
    releases = {"g:a": [release("1.0.0"), release("1.1.0")]}
    given = snapshot({"a": entity("g:a", version, uninstall=True)}, releases)
    assert product_refusal(given.environment, {"a": EntityOptions(product="g:a")}) is None
    undone = snapshot({"a": entity("g:a", version)}, releases)
    for one, intent in ((given, before), (undone, afterwards)):
        plan = decision(decide(one, NOW)).plan
        assert (plan.intent if plan else None) == intent


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(entity("g:a"), "1.0.0 of that is installed", id="installed"),
        pytest.param(
            {"state": {"product": "g:a", "version": "1.0.0"}}, "is installed", id="unmanaged"
        ),
        pytest.param(
            entity("g:a", None, state={"active_plan": running_plan("1.0.0")}),
            "a plan of it runs",
            id="being-installed",
        ),
    ],
)
def test_what_is_there_keeps_its_product(one: dict[str, Any], why: str) -> None:
    assert why in refusal(one)


def test_what_is_not_there_may_be_of_another_product() -> None:
    assert refusal(entity("g:a", None)) == ""
    assert refusal(entity("g:b")) == ""
    assert product_refusal(snapshot({}, {}).environment, {"a": OTHER}) is None
