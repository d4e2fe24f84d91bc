"""Scenarios of promotions."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from builders.promotions import (
    DAY,
    FRIDAY,
    HOUR,
    canary,
    published,
    report,
    soak,
    state,
    timed,
)
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.windows import Window

ON_BETA = ("DEV", "beta")
MINUTE = timedelta(minutes=1)
CLOSED = Window.of([(FRIDAY + 4 * DAY, FRIDAY + 5 * DAY)], FRIDAY + 60 * DAY)


def row(scenario: str, given: ProductState, /, *, now: datetime = FRIDAY, **expected: Any) -> Any:
    """A row: ``expected`` of 1.1.0 on its way to ``stable``, or to the channel ``to``."""
    target = expected.pop("to", "stable")
    wanted: dict[str, Any] = {f"1.1.0/{target}": expected}
    if "tests" in expected:
        wanted["tests"] = expected.pop("tests")
    return pytest.param(given, now, wanted, id=scenario)


def held(**failed: str) -> dict[str, Any]:
    return {"outcome": "EVALUATING", "failed": failed}


def canaries(*reports: Any, at: datetime = FRIDAY - HOUR, **more: Any) -> ProductState:
    """1.1.0 on beta for an hour, whose canaries are given."""
    stage = more.pop("stage", canary())
    release = published("1.1.0", *ON_BETA, at=at, **more.pop("release", {}))
    others = more.pop("releases", ())
    return state(release, *others, stages=[stage], reports=reports, **more)


def soaking(stage: Any = None, **more: Any) -> ProductState:
    return state(published("1.1.0"), stages=[stage or timed()], **more)


FOUR = canary(minimum_entities=3)
LABELLED: dict[str, Any] = {"promote": {"count": 1, "soak": "0s"}, "labels": {"tested": ["yes"]}}
NEWER = published("1.2.0", *ON_BETA)

PROMOTIONS = [
    row(
        "T038",
        soaking(window=CLOSED),
        now=FRIDAY + 3 * DAY,
        to="beta",
        next_evaluation_at=FRIDAY + 4 * DAY,
        **held(window="OUTSIDE_WINDOW"),
    ),
    row("T038-open", soaking(window=CLOSED), now=FRIDAY + 4 * DAY, to="beta", outcome="PROMOTE"),
    row(
        "T175-before",
        soaking(),
        now=FRIDAY + 3 * DAY - MINUTE,
        to="beta",
        next_evaluation_at=FRIDAY + 3 * DAY,
        **held(soak="SOAKING"),
    ),
    row("T175", soaking(), now=FRIDAY + 3 * DAY, to="beta", outcome="PROMOTE"),
    row(
        "T175-weekends-before",
        soaking(timed(weekends=True)),
        now=FRIDAY + DAY - MINUTE,
        to="beta",
        next_evaluation_at=FRIDAY + DAY,
        **held(soak="SOAKING"),
    ),
    row(
        "T175-weekends",
        soaking(timed(weekends=True)),
        now=FRIDAY + DAY,
        to="beta",
        outcome="PROMOTE",
    ),
    row(
        "T177",
        canaries(report(soak=soak(1, error=4 / 60))),
        outcome="RECALL",
        code="CANARIES_UNHEALTHY",
        unhealthy=1,
    ),
    row("T177-less", canaries(report(soak=soak(1, error=3 / 60))), outcome="PROMOTE"),
    row(
        "T177-count",
        canaries(
            report(soak=soak(1, error=4 / 60)),
            stage=canary(recall={"count": 2, "soak": "1h"}),
        ),
        unhealthy=1,
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "T178",
        canaries(report(condition="neither", soak=soak(1.9, healthy=0))),
        healthy=0,
        unhealthy=0,
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "T180",
        canaries(*[report(f"x{n}", soak=soak(1)) for n in range(3)], stage=FOUR),
        **held(canaries="TOO_FEW_CANARIES"),
    ),
    row(
        "T180-four",
        canaries(*[report(f"x{n}", soak=soak(1)) for n in range(4)], stage=FOUR),
        outcome="PROMOTE",
    ),
    row(
        "T181",
        canaries(
            report("x", soak=soak(0.5)),
            report("y", "1.0.0"),
            report("z", soak=soak(0.5), channel="stable"),
        ),
        tests=["prod/x"],
        next_evaluation_at=FRIDAY + HOUR / 2,
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "T183",
        canaries(report(connection="no-connection-expected")),
        outcome="PAUSED",
        code="NO_CANARIES",
        tests=[],
    ),
    row(
        "T183-again",
        canaries(
            report(soak=soak(0.5)),
            at=FRIDAY - 20 * DAY,
            runs=[
                {
                    "source": "beta",
                    "target": "stable",
                    "version": "1.1.0",
                    "status": "paused",
                    "code": "NO_CANARIES",
                }
            ],
        ),
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "T184",
        canaries(
            report("x", soak=soak(1, error=0.5)),
            report("y", soak=soak(1)),
            stage=canary(promote={"count": 1, "soak": "1h"}),
        ),
        outcome="RECALL",
        healthy=1,
        tests=[],
    ),
    row(
        "T184-recalled",
        canaries(report(soak=soak(0.5)), recalls=[{"id": "r", "start": "1.1.0"}]),
        outcome="RECALLED",
        code="RECALLED",
        tests=[],
    ),
    row(
        "T186-before",
        canaries(report(version="1.0.0"), at=FRIDAY - 7 * DAY + MINUTE),
        next_evaluation_at=FRIDAY + MINUTE,
        **held(healthy="WAITING_FOR_CANARIES"),
    ),
    row(
        "T186",
        canaries(report(version="1.0.0"), at=FRIDAY - 7 * DAY),
        outcome="CANCEL",
        code="CANARIES_NOT_REACHED",
    ),
    row(
        "T187-before",
        canaries(report(soak=soak(24)), at=FRIDAY - 30 * DAY + MINUTE, stage=canary(**LABELLED)),
        next_evaluation_at=FRIDAY + MINUTE,
        **held(labels="LABELS_MISSING"),
    ),
    row(
        "T187",
        canaries(report(soak=soak(24)), at=FRIDAY - 30 * DAY, stage=canary(**LABELLED)),
        outcome="CANCEL",
        code="PROMOTION_TIMEOUT",
    ),
    row(
        "T187-labelled",
        canaries(
            report(soak=soak(24)),
            at=FRIDAY - 30 * DAY,
            stage=canary(**LABELLED),
            release={"labels": {"tested": "yes"}},
        ),
        outcome="PROMOTE",
    ),
    row(
        "T190",
        canaries(report(soak=soak(1)), pipeline={"enabled": False}),
        outcome="PAUSED",
        code="PIPELINE_DISABLED",
        tests=[],
    ),
    row(
        "T192",
        canaries(report(connection="relayed", soak=soak(1))),
        outcome="PROMOTE",
    ),
    row(
        "T192-unknown",
        canaries(report(connection="unknown", soak=soak(1))),
        outcome="PAUSED",
        code="NO_CANARIES",
    ),
    row(
        "superseded",
        canaries(
            report(version="1.2.0"),
            releases=[NEWER],
            runs=[
                {
                    "source": "beta",
                    "target": "stable",
                    "version": "1.1.0",
                    "started_at": FRIDAY - HOUR,
                }
            ],
        ),
        outcome="PAUSED",
        code="SUPERSEDED",
    ),
    row(
        "superseded-but-on-one-canary",
        canaries(report(version="1.2.0"), report("y", soak=soak(0.5)), releases=[NEWER]),
        tests=["prod/x", "prod/y"],
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        # Twice the soak of a day has passed on weekdays, from Tuesday noon on.
        "soak-timeout",
        canaries(
            report(condition="neither", soak=soak(72, healthy=0)),
            at=FRIDAY - 4 * DAY,
            releases=[NEWER],
            stage=canary("36h"),
        ),
        outcome="CANCEL",
        code="SOAK_TIMEOUT",
    ),
    row(
        "no-soak-timeout-of-the-newest",
        canaries(
            report(condition="neither", soak=soak(72, healthy=0)),
            at=FRIDAY - 4 * DAY,
            stage=canary("36h"),
        ),
        **held(healthy="CANARIES_SOAKING"),
    ),
    *(
        # Of two days on weekdays from Thursday noon, half is over on Friday night.
        row(
            f"soak-timeout-{name}",
            canaries(
                report(condition="neither", soak=soak(24, healthy=0)),
                at=FRIDAY - 2 * DAY,
                releases=[NEWER],
                stage=canary("24h"),
            ),
            now=now,
            outcome=outcome,
        )
        for name, now, outcome in (
            ("on-sunday", FRIDAY + 2 * DAY, "EVALUATING"),
            ("before", FRIDAY + 3 * DAY - MINUTE, "EVALUATING"),
            ("on-monday", FRIDAY + 3 * DAY, "CANCEL"),
        )
    ),
    row(
        "newest-but-for-a-recalled-one",
        canaries(
            report(condition="neither", soak=soak(72, healthy=0)),
            at=FRIDAY - 4 * DAY,
            releases=[NEWER],
            recalls=[{"id": "r", "start": "1.2.0"}],
            stage=canary("36h"),
        ),
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "timed-timeout",
        state(published("1.1.0", at=FRIDAY - 60 * DAY), stages=[timed(labels={"tested": []})]),
        to="beta",
        outcome="CANCEL",
        code="PROMOTION_TIMEOUT",
    ),
    row(
        "timed-timeout-of-a-pipeline-that-was-enabled",
        state(
            published("1.1.0", at=FRIDAY - 60 * DAY),
            stages=[timed(labels={"tested": []})],
            pipeline={"since": FRIDAY - DAY},
        ),
        to="beta",
        next_evaluation_at=FRIDAY + 29 * DAY,
        **held(labels="LABELS_MISSING"),
    ),
    row(
        "channel-labels",
        canaries(report(soak=soak(1)), channels=[{"name": "stable", "labels": {"signed": []}}]),
        **held(labels="LABELS_MISSING"),
    ),
    row(
        "channel-archived",
        canaries(report(soak=soak(1)), channels=[{"name": "stable", "archived": True}]),
        **held(channel="CHANNEL_ARCHIVED"),
    ),
    row(
        "all-that-holds-it-back",
        state(
            published("1.1.0"),
            stages=[timed(labels={"tested": []})],
            channels=[{"name": "beta", "archived": True}],
            window=CLOSED,
        ),
        to="beta",
        **held(
            soak="SOAKING",
            channel="CHANNEL_ARCHIVED",
            labels="LABELS_MISSING",
            window="OUTSIDE_WINDOW",
        ),
    ),
    row(
        "time-on-the-source-unknown",
        state({"version": "1.1.0", "channels": ["DEV"]}, stages=[timed()]),
        to="beta",
        **held(soak="ADMISSION_UNKNOWN"),
    ),
    row(
        "percent",
        canaries(
            *[report(f"x{n}", soak=soak(1 if n else 0.5)) for n in range(3)],
            stage=canary(promote={"percent": 67, "soak": "1h"}),
        ),
        healthy=2,
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "reverted-recall-is-not-repeated",
        canaries(
            report(soak=soak(1, error=0.5)),
            recalls=[
                {
                    "id": "canary-stable-1.1.0",
                    "start": "1.1.0",
                    "single": True,
                    "cause": "promotion",
                    "status": "reverted",
                }
            ],
        ),
        **held(healthy="CANARIES_SOAKING"),
    ),
    row(
        "paused-by-hand",
        canaries(
            report(soak=soak(1)),
            runs=[
                {
                    "source": "beta",
                    "target": "stable",
                    "version": "1.1.0",
                    "status": "paused",
                    "code": "PAUSED_BY_HAND",
                    "reason": "wait for the audit",
                }
            ],
        ),
        outcome="PAUSED",
        code="PAUSED_BY_HAND",
    ),
]

RING: Any = {"labels": {"ring": ["a"]}, "without_labels": {"frozen": []}}
CHOICES: list[tuple[str, Any, dict[str, str], str]] = [
    ("label", RING, {"ring": "a"}, "PROMOTE"),
    ("other-value", RING, {"ring": "b"}, "PAUSED"),
    ("without", RING, {"ring": "a", "frozen": "now"}, "PAUSED"),
    ("named", {"names": ["prod"]}, {}, "PROMOTE"),
    ("others-named", {"names": ["test"]}, {}, "PAUSED"),
    ("excluded", {"excluded": ["prod"]}, {}, "PAUSED"),
]
FILTERS = [
    row(
        f"filter-{name}",
        canaries(report(soak=soak(1), environment_labels=labels), stage=canary(environments=given)),
        outcome=outcome,
    )
    for name, given, labels, outcome in CHOICES
]
