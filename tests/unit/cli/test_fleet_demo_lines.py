"""What the demo of fleets prints: changes of a fleet, and what happened, of what it remembers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.fleet_changes import fleet_changes
from temporal_plans.cli.terminal.fleet_time_line import (
    environment_events,
    fleet_time_line,
    product_events,
)
from temporal_plans.client.errors import PlansError
from temporal_plans.domain.fleets.decisions import Outcome as Decided
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.fleets.suppressions import (
    Origin,
    Suppression,
    WindowClass,
    WindowOverride,
)
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.messages.plans import CommandLog, LogEntry

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
STOP = Suppression(
    id="failed-web-2", origin=Origin.FAILED_PLAN, entity="web", start=NOON, reason="plan 2 failed"
)


def status(
    *, plan: str = "", outcome: Decided = Decided.NO_WORK, stops: Any = (), **stands: Any
) -> EnvironmentStatus:
    """An environment with one entity."""
    standing = EntityStanding(outcome=outcome, since=NOON, **stands)
    row = StatusRow(
        environment="prod",
        entity="web",
        product="shop:web",
        standing=standing,
        plan_id="environment/prod/web.2" if plan else "",
        plan_status=plan,
    )
    return EnvironmentStatus(
        name="prod", connection="agents-connected", rows=(row,), suppressions=stops
    )


UPGRADE: dict[str, Any] = {
    "installed": "1.0.0",
    "target": "1.1.0",
    "intent": "UPGRADE",
    "number": 2,
}
CLOSED = {"code": "OUTSIDE_WINDOW", "message": "the window is closed"}


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (status(), "prod/web: nothing installed; not decided yet"),
        (status(installed="1.0.0", code="UP_TO_DATE"), "prod/web: 1.0.0; UP_TO_DATE"),
        (
            status(installed="1.0.0", target="1.1.0", code="RECALLED", message="by 1.1.0"),
            "prod/web: 1.0.0; 1.1.0 is wanted, RECALLED by 1.1.0",
        ),
        (
            status(outcome=Decided.BLOCKED, **UPGRADE, **CLOSED),
            "prod/web: 1.0.0; plan 2 UPGRADE to 1.1.0 waits, OUTSIDE_WINDOW the window is closed",
        ),
        (
            status(outcome=Decided.ACTIVE, plan="RUNNING", **UPGRADE),
            "prod/web: 1.0.0; plan 2 UPGRADE to 1.1.0 is RUNNING",
        ),
    ],
)
def test_how_an_entity_stands(now: EnvironmentStatus, line: str) -> None:
    assert next(fleet_changes({}, {"prod": now})) == line


def test_only_what_changed_is_told() -> None:
    before = status(installed="1.0.0", code="UP_TO_DATE")
    assert list(fleet_changes({"prod": before}, {"prod": before})) == []
    later = before.but(suppressions=(STOP,), connection="unknown", problems=("for a moment",))
    assert list(fleet_changes({"prod": before}, {"prod": later})) == [
        "prod: its connection is unknown",
        "prod/web is suppressed (failed-plan failed-web-2): plan 2 failed",
    ]
    silent = PlansError("no answer")
    assert list(fleet_changes({"prod": before}, {"prod": silent})) == [
        "environment prod: no answer"
    ]


def entry(verb: str, said: str, after: int, **more: Any) -> LogEntry:
    outcome = Outcome(result=Result.DONE, message=said)
    return LogEntry(at=NOON + after * SECOND, verb=verb, outcome=outcome, **more)


def test_the_time_line_has_requests_promotions_plans_and_what_stopped_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    window = WindowOverride(
        id="night",
        admits=WindowClass.DOWNTIME,
        start=NOON + 3 * SECOND,
        end=NOON + timedelta(hours=1),
    )
    manual = Suppression(id="look", start=NOON)
    place = status(stops=(STOP.but(start=NOON + 6 * SECOND), manual)).but(overrides=(window,))
    plan = PlanRow(
        entity="web",
        number=2,
        plan_id="environment/prod/web.2",
        kind=PlanKind.CHANGE_VERSION,
        intent=Intent.UPGRADE,
        from_version="1.0.0",
        to="1.1.0",
        status="FAILED",
        issued_at=NOON + 4 * SECOND,
        ended_at=NOON + 6 * SECOND,
        errors=("verify/answers: it is broken",),
    )
    waiting = plan.but(number=3, issued_at=None, ended_at=None)
    log = CommandLog(entries=(entry("suppress", "suppression look", 0, reason="a look", via="u"),))
    product = CommandLog(
        entries=(
            entry("apply", "the product is applied", 0, via="update"),
            entry("pipeline", "the pipeline has 1 stage", 0, via="update"),
            entry("publish 1.1.0", "1.1.0 is published to early", 1, via="update"),
            entry("promote 1.1.0", "1.1.0 is on stable", 2, by="the stage", via="pipeline"),
            entry("recall 1.1.0", "1 releases are recalled", 7, via="update", reason="bad"),
        )
    )
    events = [
        *product_events({"shop:web": product}),
        *environment_events(place, [waiting, plan], log),
    ]
    assert [line.plain for line in fleet_time_line(events)] == [
        "AFTER  WHERE     RESULT  TOOK  WHAT",
        "+0.0s  prod      -       -     suppression look (a look)",
        "+1.0s  shop:web  -       -     1.1.0 is published to early",
        "+2.0s  shop:web  -       -     1.1.0 is on stable, by the stage",
        "+3.0s  prod      -       -     windows are open for downtime until Mon 2026-01-05 13:00Z "
        "(night)",
        "+4.0s  prod/web  FAILED  2.0s  plan 2 UPGRADE from 1.0.0 to 1.1.0: verify/answers: it is "
        "broken",
        "+6.0s  prod/web  -       -     suppressed until it is removed: plan 2 failed",
        "+7.0s  shop:web  -       -     recall 1.1.0: 1 releases are recalled (bad)",
    ]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            50,
            [
                "ENTITY  WHY",
                "web     the window is closed, and opens at night",
            ],
        ),
        (
            40,
            [
                "ENTITY  WHY",
                "web     the window is closed, and opens",
                "        at night",
            ],
        ),
        (
            30,
            [
                "ENTITY",
                "web",
                "    why: the window is closed,",
                "        and opens at night",
            ],
        ),
    ],
)
def test_a_hanging_column_is_wrapped_in_its_place_while_it_has_some_width(
    monkeypatch: pytest.MonkeyPatch, width: int, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("web", "the window is closed, and opens at night")]
    table = columns(("ENTITY", "WHY"), rows, hanging=True)
    assert [line.plain for line in table] == lines
