"""Rows of the tables of scenarios, in few words."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from builders.fleets import NOW
from temporal_plans.domain.fleets.environment import Snapshot

Row = tuple[Snapshot, datetime, Mapping[str, Any]]


def row(scenario: str, given: Snapshot, *, now: datetime = NOW, **expected: Any) -> Any:
    """A row: ``expected`` by entity, or of the entity ``a``."""
    by_entity = expected if all(isinstance(one, dict) for one in expected.values()) else None
    if by_entity is None or not set(by_entity) <= {one.name for one in given.environment.entities}:
        by_entity = {"a": expected}
    return pytest.param(given, now, by_entity, id=scenario)


def issue(intent: str, to: str | None, **more: Any) -> dict[str, Any]:
    return {"outcome": "ISSUE", "intent": intent, "to": to, **more}


def upgrade(to: str, **more: Any) -> dict[str, Any]:
    return issue("UPGRADE", to, **more)


def blocked(**failed: str) -> dict[str, Any]:
    return {"outcome": "BLOCKED", "failed": failed}


def idle(code: str, **more: Any) -> dict[str, Any]:
    return {"outcome": "NO_WORK", "code": code, **more}
