"""What people read of promotions and change requests on a server."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from builders.promotions import FRIDAY, canary, published, report, soak, state
from temporal_plans.cli.terminal.promotion_lines import release_explanation, stage_lines
from temporal_plans.cli.terminal.request_lines import request_lines
from temporal_plans.domain.fleets.promotion.canary_standing import canary_standings
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.messages.fleets.change_requests import ChangeRequest
from temporal_plans.messages.fleets.product_views import ProductView
from temporal_plans.messages.promotions import ReleaseExplanation, StageExplanation
from unit.cli.kit import Run


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are not folded, whatever terminal the tests have."""
    monkeypatch.setenv("COLUMNS", "300")


def plain(lines: Any) -> list[str]:
    return [one.plain if isinstance(one, Text) else one for one in lines]


def given() -> ProductState:
    """1.1.0 with a canary in error, one that soaks, and one that has another release."""
    return state(
        published("1.1.0", "beta"),
        stages=[canary("2h", recall={"count": 2, "soak": "30m"})],
        reports=[
            report("bad", soak=soak(1, error=0.5), condition="unhealthy"),
            report("good", soak=soak(1)),
            report("old", version="1.0.0", soak=soak(9)),
        ],
    )


def test_explain_says_how_each_canary_stands_and_when_it_is_looked_at_again() -> None:
    known = given()
    decided = decide_promotions(known, FRIDAY)
    [one] = decided.promotions
    standings = tuple(canary_standings(known, "beta", "stable", "1.1.0", FRIDAY))
    found = ReleaseExplanation(
        product="g:a",
        at=FRIDAY,
        release=known.product.releases[0],
        stages=(StageExplanation(decision=one, canaries=standings),),
    )
    lines = plain(release_explanation(found))
    assert lines[:3] == [
        "g:a 1.1.0 at Fri 2026-01-09 12:00Z",
        "on beta",
        "from beta to stable: EVALUATING (CANARIES_SOAKING)",
    ]
    since = "has it since Fri 2026-01-09 11:00Z"
    assert f"  prod/bad: {since}, unhealthy: in error for too long" in lines
    assert f"  prod/good: {since}, healthy: soaks for 1h 00m more" in lines
    assert "  prod/old: has 1.0.0" in lines
    assert lines[-1].startswith("  looked at again: Fri 2026-01-09 13:00")


def test_releases_lists_what_waits_in_a_stage_and_why() -> None:
    known = given()
    decided = decide_promotions(known, FRIDAY)
    view = ProductView(
        name="g:a",
        pipeline=known.pipeline,
        promotions=decided.promotions,
        tests=decided.tests,
        problems=("nothing is promoted: x",),
    )
    lines = plain(stage_lines(view))
    assert "1.1.0" in lines[2]
    assert "CANARIES_SOAKING: 0 of 3 canaries have soaked with 1.1.0" in lines[2]
    assert "; in error: prod/bad" in lines[2]
    assert lines[3:] == ["under test: prod/bad, prod/good", "nothing is promoted: x"]
    settled = plain(stage_lines(view.but(promotions=(), tests=(), problems=())))
    assert settled == ["no release waits in a stage of the pipeline"]


def test_requests_lists_what_would_be_planned() -> None:
    one = ChangeRequest.model_validate(
        {
            "id": "change-1",
            "subject": "apply a document",
            "kinds": ["entities"],
            "by": "ann",
            "reason": "a region",
            "at": FRIDAY,
            "expires_at": FRIDAY + timedelta(days=7),
            "verb": "apply",
            "needed": 2,
            "approvals": [{"by": "eve", "at": FRIDAY}],
            "planned": [
                {
                    "entity": "web",
                    "standing": {
                        "outcome": "ISSUE",
                        "intent": "INSTALL",
                        "target": "1.0.0",
                        "since": FRIDAY,
                    },
                }
            ],
            "others": 3,
        }
    )
    lines = plain(request_lines([("prod", one)]))
    assert "eve (1 of 2)" in lines[1]
    assert lines[2:] == [
        "prod change-1, because of entities:",
        "  prod/web: ISSUE INSTALL 1.0.0",
        "  and 3 entities more",
    ]
    assert plain(request_lines([])) == ["no change requests"]


def test_promote_takes_exactly_one_way(run: Run) -> None:
    none = run("fleet", "promote", "a:b", "1.0.0")
    both = run("fleet", "promote", "a:b", "1.0.0", "--to", "stable", "--cancel", "stable")
    for ran in (none, both):
        assert ran.code == 2
        assert "give exactly one of: --to, --like" in ran.err
    wrong = run("fleet", "promote", "a:b", "1.0.0", "--to", "x", "--from", "y")
    assert (wrong.code, "--from" in wrong.err) == (2, True)
    release = run("fleet", "explain", "a:b")
    assert "name a release, as group:name/1.2.3" in release.err


MALFORMED = [
    pytest.param(
        "kind: pipeline\nproduct: a:b\nstages:\n"
        "  - {source: x, target: RELEASE, timed: {soak: 1h}}\n",
        "f.yml:4: stages.0.target: is a channel that releases come to when they are published only"
        ' (found "RELEASE"); use a channel of your own',
        id="target",
    ),
    pytest.param(
        "kind: channel\nname: DEV\nlabels: {a: [b]}\n",
        "DEV takes every release of its kind of version; remove labels and archived",
        id="channel",
    ),
    pytest.param(
        "kind: channel\nname: stable\nlabel: {}\n", "f.yml:3: label: unknown key", id="key"
    ),
    pytest.param(
        "kind: environment\nname: e\nsettings:\n  approvals: {changes: [entitees]}\n",
        "f.yml:4: settings.approvals.changes.0:",
        id="kind-of-change",
    ),
    pytest.param(
        "kind: environment\nname: e\nsettings:\n  approvals: {approvers: [a], needed: 2}\n",
        "settings.approvals.needed: is more than there are approvers (found 2); name more",
        id="approvers",
    ),
]


@pytest.mark.parametrize(("text", "complaint"), MALFORMED)
def test_a_document_that_cannot_be_applied_is_refused_before_anything_is_sent(
    run: Run, tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "f.yml"
    path.write_text(text)
    ran = run("fleet", "apply", "-f", str(path))
    assert ran.code == 1
    assert complaint in ran.err
