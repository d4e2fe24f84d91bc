"""Reading a fleet by commands: its log, its plans, its stops, why an entity is as it is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.text import Text

from temporal_plans.cli.actions.fleet_applying import environment_text, product_text
from temporal_plans.cli.terminal.fleet_status_lines import explanation_lines, status_lines
from temporal_plans.domain.fleets.explanation import Explanation
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.messages.fleets.declarations import (
    EnvironmentDeclaration,
    ProductDeclaration,
)
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.product_views import ProductExport
from temporal_plans.messages.plans import CommandLog, LogEntry
from unit.cli.kit import Run
from unit.fake_gateway import FakeGateway, FakeWorkflow

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("subject", "workflow", "kind"),
    [("prod", "environment/prod", "Environment"), ("shop:web", "product/shop:web", "Product")],
)
def test_requests_are_listed_with_author_reason_and_outcome(
    run: Run, gateway: FakeGateway, subject: str, workflow: str, kind: str
) -> None:
    outcome = Outcome(result=Result.DONE, message="so it is")
    entry = LogEntry(
        at=NOW, verb="suppress web", by="ann", reason="a fair", via="update", outcome=outcome
    )
    log = CommandLog(entries=(entry,))
    gateway.workflows[workflow] = FakeWorkflow(kind, {"log": log})
    ran = run("fleet", "log", subject)
    assert ran.code == 0, ran
    assert all(word in ran.out for word in ("suppress web", "ann", "a fair", "so it is"))
    assert '"ann"' in run("fleet", "log", subject, "--json").out


def test_stops_that_begin_later_are_not_told_as_if_they_held() -> None:
    later = {"start": NOW + timedelta(days=1), "end": NOW + timedelta(days=2)}
    status = EnvironmentStatus.model_validate(
        {
            "name": "prod",
            "connection": "agents-connected",
            "suppressions": [
                {"id": "now", "origin": "manual", "start": NOW, "reason": "a fair"},
                {"id": "later", "origin": "manual", "entity": "web", "reason": "a fair", **later},
            ],
            "overrides": [{"id": "open", "admits": "downtime", **later}],
        }
    )
    lines = list(map(str, status_lines({"prod": status}, NOW)))[1:]
    assert lines == [
        "prod is suppressed (manual now): a fair",
        "prod/web will be suppressed (manual later) from Tue 2026-01-06 12:00Z until "
        "Wed 2026-01-07 12:00Z: a fair",
        "prod: windows are open for downtime from Tue 2026-01-06 12:00Z to "
        "Wed 2026-01-07 12:00Z (open)",
    ]


@pytest.mark.parametrize(
    ("verdict", "command"),
    [
        (
            {"code": "SUPPRESSED", "data": {"suppressions": [{"id": "manual-1"}]}},
            "temporal plan fleet unsuppress prod manual-1",
        ),
        (
            {"code": "OUTSIDE_WINDOW", "data": {"window": [{"class": "downtime"}]}},
            "temporal plan fleet override prod/web --for 1h --downtime --reason WHY",
        ),
    ],
)
def test_explain_has_the_command_that_cures(verdict: dict[str, Any], command: str) -> None:
    failed = {"id": "K15", "title": "a rule", "state": "FAILED", **verdict}
    candidate = {"version": "1.0.0", "verdicts": [failed]}
    lines = explained(outcome="BLOCKED", channel="stable", candidates=[candidate])
    assert f"       command: {command}" in lines


def test_explain_says_how_releases_come_to_an_empty_channel() -> None:
    lines = explained(outcome="NO_WORK", channel="stable", candidates=[])
    assert any("fleet publish PRODUCT VERSION --channel stable" in line for line in lines)


def explained(*, outcome: str, **more: Any) -> list[str]:
    decision = {"entity": "prod/web", "outcome": outcome, "at": NOW}
    answer = Explanation.model_validate({"decision": decision, **more})
    return [line.plain if isinstance(line, Text) else line for line in explanation_lines(answer)]


def test_exported_documents_have_what_was_said_and_no_defaults() -> None:
    declared = EnvironmentDeclaration.model_validate(
        {"name": "prod", "entities": {"web": {"product": "shop:web", "kind": "plan"}}}
    )
    assert environment_text(declared) == (
        "kind: environment\nname: prod\nentities:\n  web:\n    product: shop:web\n    kind: plan\n"
    )
    product = ProductExport(product=ProductDeclaration(name="shop:web"))
    assert product_text(product) == "kind: product\nname: shop:web\n"
