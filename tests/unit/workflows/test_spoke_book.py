"""What an environment's state becomes by its spoke."""

from datetime import UTC, datetime

from temporal_plans.domain.fleets.environment import Connection, EnvironmentSettings
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.messages.fleets.declarations import DeclaredEnvironment, EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.workflows.fleets import book, spoke_book

NOW = datetime(2026, 1, 2, tzinfo=UTC)
INFO = SpokeInfo(lineage="a", record="r", boot="1", hostname="host")


def _applied(state: EnvironmentState | None, *, spoke: bool) -> EnvironmentState:
    settings = EnvironmentSettings(release_channel="stable", spoke=spoke)
    return book.applied(
        state, EnvironmentDeclaration(name="prod"), DeclaredEnvironment(settings=settings)
    )


def _connection(state: EnvironmentState) -> tuple[Connection, datetime | None]:
    facts = state.environment.facts
    return facts.connection, facts.agent_seen_at


def test_the_connection_of_an_environment_is_that_of_its_spoke() -> None:
    state = _applied(None, spoke=True)
    assert _connection(state) == (Connection.UNKNOWN, None)
    assert spoke_book.spoke_problems(state) == ["its spoke has not registered yet"]
    state = spoke_book.with_spoke(state, INFO, NOW)
    assert _connection(state) == (Connection.CONNECTED, None)
    assert spoke_book.spoke_problems(state) == []
    state = spoke_book.without_contact(state, NOW)
    assert _connection(state) == (Connection.CONNECTED, NOW)
    away = "its spoke on host is away; it was last heard of at 2026-01-02 00:00:00 UTC"
    assert spoke_book.spoke_problems(state) == [away]
    assert _connection(_applied(state, spoke=True)) == (Connection.CONNECTED, NOW)


def test_an_environment_that_has_no_spoke_any_more_does_not_wait_for_one() -> None:
    never = _applied(_applied(None, spoke=True), spoke=False)
    assert _connection(never) == (Connection.CONNECTED, None)
    there = spoke_book.with_spoke(_applied(None, spoke=True), INFO, NOW)
    without = spoke_book.without_contact(_applied(there, spoke=False), NOW)
    assert _connection(without) == (Connection.CONNECTED, None)
    assert spoke_book.spoke_problems(without) == []
    assert _connection(_applied(without, spoke=True)) == (Connection.CONNECTED, NOW)
