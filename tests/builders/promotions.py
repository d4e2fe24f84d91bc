"""Values of promotions: the state of one product, ``g:a``, in few words."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import ProductDecision, PromotionDecision
from temporal_plans.domain.fleets.promotion.progress import promoted
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.loading.fleets.documents import ExpectationDocument
from temporal_plans.loading.fleets.expectations import unmet_promotions

FRIDAY = datetime(2026, 1, 9, 12, tzinfo=UTC)
"""The Friday after ``NOW``, at noon."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def published(version: str, *channels: str, at: datetime = FRIDAY, **more: Any) -> dict[str, Any]:
    """A release that came to its channels at a time."""
    return {"version": version, "channels": channels or ("DEV",), "published_at": at, **more}


def timed(soak: str = "24h", source: str = "DEV", target: str = "beta", **more: Any) -> Any:
    return {"source": source, "target": target, "timed": {"soak": soak, **more}}


def canary(
    soak: str = "1h", *, source: str = "beta", target: str = "stable", **more: Any
) -> dict[str, Any]:
    """A stage that promotes when one canary is healthy, and recalls when one is not."""
    given: dict[str, Any] = {
        "promote": {"count": 1, "soak": soak},
        "recall": {"count": 1, "soak": soak},
        **more,
    }
    return {"source": source, "target": target, "canary": given}


def soak(
    hours: float = 0, *, now: datetime = FRIDAY, healthy: float | None = None, error: float = 0
) -> dict[str, Any]:
    """A soak of some hours, with so many healthy ones (without it all but those in error)."""
    good = hours - error if healthy is None else healthy
    return {
        "since": now - hours * HOUR,
        "healthy": timedelta(hours=good),
        "unhealthy": timedelta(hours=error),
        "at": now,
    }


def report(
    entity: str = "x", version: str | None = "1.1.0", *, channel: str = "beta", **more: Any
) -> dict[str, Any]:
    return {
        "environment": "prod",
        "entity": entity,
        "channel": channel,
        "version": version,
        **more,
    }


def state(
    *releases: Mapping[str, Any],
    stages: Sequence[Any] = (),
    reports: Sequence[Any] = (),
    pipeline: Mapping[str, Any] | None = None,
    channels: Sequence[Any] = (),
    runs: Sequence[Any] = (),
    **product: Any,
) -> ProductState:
    return ProductState.model_validate(
        {
            "product": {"id": "g:a", "releases": releases, **product},
            "pipeline": {"product": "g:a", "stages": stages, **(pipeline or {})},
            "channels": channels,
            "runs": runs,
            "reports": reports,
        }
    )


def settled(given: ProductState, now: datetime) -> tuple[ProductState, ProductDecision]:
    """The state when there is nothing more to carry out, and what is decided of it."""
    for _ in range(100):
        answer = decide_promotions(given, now)
        given = promoted(given, answer)
        if not answer.acts:
            return given, answer
    raise AssertionError("decides again and again")


def only(answer: ProductDecision) -> PromotionDecision:
    [found] = answer.promotions
    return found


def differences(given: ProductState, now: datetime, expected: Mapping[str, Any]) -> list[str]:
    """What is not as expected: of each ``version/target``, as documents say it, and ``tests``."""
    document = ExpectationDocument.model_validate(
        {
            "kind": "expectation",
            "promotions": {f"g:a/{n}": one for n, one in expected.items() if n != "tests"},
            "tests": expected.get("tests"),
        }
    )
    return [str(one) for one in unmet_promotions(document, [decide_promotions(given, now)])]
