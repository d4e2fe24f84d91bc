"""What an environment's state becomes by the report at the end of a plan."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_plans.domain.fleets.entities import Entity, EntityState, Health
from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.fleets.plans import ActivePlan, EntityVersion, Intent, PlanKind
from temporal_plans.domain.fleets.promotion.reports import condition_of
from temporal_plans.domain.fleets.promotion.soak import Condition
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.messages.fleets.reports import EntityReport
from temporal_plans.workflows.fleets import book

ISSUED = datetime(2026, 1, 2, 12, tzinfo=UTC)
BEFORE, SINCE, NOW = (ISSUED + timedelta(minutes=minutes) for minutes in (-1, 1, 2))
DOWN = {"health": Health.ERROR, "health_message": "down", "all_live": False}


def _reported(told: Health | None, **known: Any) -> EntityState:
    """The state of an entity after the report of the plan that runs."""
    plan = ActivePlan(
        kind=PlanKind.CHANGE_VERSION,
        intent=Intent.UPGRADE,
        to=EntityVersion(version="1.1.0"),
        issued_at=ISSUED,
    )
    entity = Entity(name="web", state=EntityState(version="1.0.0", active_plan=plan, **known))
    state = EnvironmentState(
        declaration=EnvironmentDeclaration(name="prod"),
        environment=Environment(name="prod", entities=(entity,)),
    )
    report = EntityReport(entity="web", number=1, health=told)
    after = book.entity_of(book.with_report(state, report, NOW), "web")
    assert after is not None
    assert after.state.reported_at == NOW
    return after.state


@pytest.mark.parametrize("known", [{}, {**DOWN, "reported_at": BEFORE}], ids=["unknown", "before"])
def test_a_plan_tells_the_health_that_its_kind_knows(known: dict[str, Any]) -> None:
    state = _reported(Health.HEALTHY, **known)
    assert (state.health, state.health_message, state.all_live) == (Health.HEALTHY, "", True)
    assert condition_of(state) is Condition.HEALTHY


def test_what_others_report_while_a_plan_runs_goes_before_it() -> None:
    state = _reported(Health.HEALTHY, **DOWN, reported_at=SINCE)
    assert (state.health, state.health_message, state.all_live) == (Health.ERROR, "down", False)


def test_a_kind_that_knows_no_health_leaves_it_as_it_was() -> None:
    assert _reported(None).health is None
    assert _reported(None, **DOWN, reported_at=BEFORE).health is Health.ERROR
