"""Which commands can be given to an entity."""

from typing import Any

import pytest

from builders.fleets import entity
from temporal_plans.domain.fleets.commands import command_refusal
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.plans import Command

WAITING = {"command": {"id": "before", "type": "restart", "reason": "r"}}

RUNNING: dict[str, Any] = {
    "active_plan": {"number": 3, "kind": "CHANGE_VERSION", "intent": "BREAK_GLASS", "to": {}},
}
UPGRADING: dict[str, Any] = {"active_plan": {**RUNNING["active_plan"], "intent": "UPGRADE"}}


def _entity(version: str | None = "1.0.0", **more: Any) -> Entity:
    return Entity.model_validate({"name": "a", **entity("g:a", version, **more)})


@pytest.mark.parametrize(
    ("given", "command", "field"),
    [
        pytest.param(_entity(state=WAITING), {"type": "restart"}, "command", id="T133"),
        pytest.param(_entity(state=RUNNING), {"type": "restart"}, "command", id="T133-carried-out"),
        pytest.param(_entity(state=UPGRADING), {"type": "restart"}, None, id="T131"),
        pytest.param(_entity(), {"type": "restart", "reason": " "}, "reason", id="T139"),
        pytest.param(_entity(), {"type": "restart"}, None, id="restart"),
        pytest.param(_entity(None), {"type": "restart"}, "type", id="restart-of-nothing"),
        pytest.param(_entity(None), {"type": "install"}, "version", id="install-what"),
        pytest.param(_entity(None), {"type": "install", "version": "1.0.0"}, None, id="install"),
        pytest.param(_entity(), {"type": "install", "version": "1.0.0"}, "type", id="installed"),
        pytest.param(_entity(), {"type": "uninstall"}, "type", id="not-marked"),
        pytest.param(_entity(uninstall=True), {"type": "uninstall"}, None, id="uninstall"),
        pytest.param(
            _entity(keys=["1.0.0"]),
            {"type": "enforce-version", "version": "2.0.0"},
            "version",
            id="no-configuration",
        ),
        pytest.param(
            _entity(), {"type": "enforce-config", "version": "1.0.0"}, "version", id="no-version"
        ),
        pytest.param(Entity(name="a"), {"type": "restart"}, "entity", id="unmanaged"),
    ],
)
def test_a_command_can_be_given(given: Entity, command: dict[str, Any], field: str | None) -> None:
    refusal = command_refusal(
        given, Command.model_validate({"id": "c", "reason": "it is down", **command})
    )
    assert (refusal.reasons[0].field if refusal else None) == field
