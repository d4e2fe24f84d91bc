"""Values of fleets: snapshots of one environment, in few words."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.loading.fleets.documents import ExpectationDocument
from temporal_plans.loading.fleets.expectations import unmet

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""A Monday."""

ANY_MAJOR = tuple(f"{major}.0.0" for major in range(10))


def release(version: str, *channels: str, **more: Any) -> dict[str, Any]:
    return {"version": version, "channels": channels or ("stable",), **more}


def needs(product: str, minimum: str | None = None, maximum: str | None = None, **more: Any) -> Any:
    return {"product": product, "minimum_version": minimum, "maximum_version": maximum, **more}


def entity(
    product: str = "g:a",
    version: str | None = "1.0.0",
    *,
    keys: Sequence[str] = ANY_MAJOR,
    state: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """An entity at a version, with blocks of configuration for every major version."""
    return {
        "settings": {
            "product": product,
            "config": {key: {"revision": f"r-{key}"} for key in keys},
            **settings,
        },
        "state": {"version": version, **(state or {})},
    }


def snapshot(
    entities: Mapping[str, Any],
    products: Mapping[str, Any],
    *,
    settings: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    suppressions: Sequence[Any] = (),
    overrides: Sequence[Any] = (),
) -> Snapshot:
    """The environment ``prod``. ``products``: by id, a product or its releases."""
    return Snapshot.model_validate(
        {
            "environment": {
                "name": "prod",
                "settings": settings or {},
                "facts": facts or {},
                "entities": [{"name": name, **one} for name, one in entities.items()],
                "suppressions": suppressions,
                "overrides": overrides,
            },
            "products": [
                {"id": name, **(one if isinstance(one, dict) else {"releases": one})}
                for name, one in products.items()
            ],
        }
    )


def simple(*versions: str, at: str | None = "1.0.0", **more: Any) -> Snapshot:
    """One entity ``a`` of one product, whose channel has some versions."""
    rest = {name: more.pop(name) for name in _OF_SNAPSHOT if name in more}
    product = {"releases": [release(one) for one in versions]} | more.pop("product", {})
    return snapshot({"a": entity("g:a", at, **more)}, {"g:a": product}, **rest)


_OF_SNAPSHOT = ("settings", "facts", "suppressions", "overrides")


def stop(identifier: str = "s", *, minutes: float | None = None, **more: Any) -> dict[str, Any]:
    """A suppression from an hour before ``NOW``, of ``a``; for the environment: ``entity=None``."""
    start = more.pop("start", NOW - timedelta(hours=1))
    end = None if minutes is None else NOW + timedelta(minutes=minutes)
    return {"id": identifier, "entity": "a", "start": start, "end": end, **more}


def failed_plan(to: str, before: str = "1.0.0", /, **more: Any) -> dict[str, Any]:
    return {
        "kind": "CHANGE_VERSION",
        "intent": "UPGRADE",
        "status": "FAILED",
        "to": {"version": to},
        "before": {"version": before},
        **more,
    }


def running_plan(to: str | None, /, **more: Any) -> dict[str, Any]:
    return {"kind": "CHANGE_VERSION", "intent": "UPGRADE", "to": {"version": to}, **more}


def waiting_plan(to: str, /, *, hours: float = 1, **more: Any) -> dict[str, Any]:
    """An upgrade that has been blocked for some hours at ``NOW``."""
    since = NOW - timedelta(hours=hours)
    return {
        "number": 1,
        "kind": "CHANGE_VERSION",
        "intent": "UPGRADE",
        "to": {"version": to},
        "proposed_at": since,
        "blocked_since": since,
        **more,
    }


def decision(answer: FleetDecision, name: str = "a") -> Decision:
    return next(one for one in answer.decisions if one.entity == f"prod/{name}")


def differences(given: Snapshot, now: datetime, expected: Mapping[str, Any]) -> list[str]:
    """What is not as expected: by entity, as documents say it."""
    document = ExpectationDocument.model_validate(
        {
            "kind": "expectation",
            "decisions": {f"prod/{name}": one for name, one in expected.items()},
        }
    )
    return [str(one) for one in unmet(document, decide(given, now).decisions)]
