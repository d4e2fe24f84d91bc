"""Scenarios of fleets, by their ids: what is decided in a situation.

Those of ``DEFAULTS`` are choices of ours where the followed documentation is silent.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.fleets import (
    ANY_MAJOR,
    NOW,
    differences,
    entity,
    failed_plan,
    needs,
    release,
    running_plan,
    simple,
    snapshot,
    stop,
    waiting_plan,
)
from repository import ROOT
from temporal_plans.domain.fleets.environment import Snapshot
from unit.domain.fleets.progress_rows import (
    AUTO,
    COMMANDS,
    FACTS,
    FAILURES,
    HALF_NEW,
    IMAGE,
    INVALIDATION,
    STOPPED,
    WITH_IMAGE,
    counted,
)
from unit.domain.fleets.rows import blocked, idle, issue, row, upgrade
from unit.domain.fleets.scenario_list import DEFAULTS as DEFAULT_IDS
from unit.domain.fleets.scenario_list import NO_FILE, NOT_HERE, SCENARIOS
from unit.domain.fleets.target_rows import (
    BOTH_B,
    CLOSED,
    RECALLS,
    RELATIONS,
    TARGETS,
    WINDOWS,
    recalled,
    related,
    schedule,
    with_needs,
)

DECIDED = [
    *TARGETS,
    *WINDOWS,
    *RECALLS,
    *RELATIONS,
    *FAILURES,
    *COMMANDS,
    *INVALIDATION,
    *FACTS,
]


@pytest.mark.parametrize(("given", "now", "expected"), DECIDED)
def test_decided(given: Snapshot, now: datetime, expected: Mapping[str, Any]) -> None:
    assert differences(given, now, expected) == []


# --- where the followed documentation is silent ---------------------------------------------------

ROLLED_BACK = {
    "last_plan": failed_plan("1.0.0", "1.1.0", intent="ROLLBACK"),
    "version": "1.1.0",
}
AT_NIGHT = {
    "windows": {"night": schedule("SUNDAY/02:30-SUNDAY/03:00", zone="Europe/Berlin")},
    "downtime_window": "night",
    "no_downtime_window": "night",
}
CLOSED_THEN = blocked(K20="OUTSIDE_WINDOW")
DEFAULTS = [
    row("T011", simple("1.0.0", "1.1.0", at="2.0.0"), **idle("AHEAD_OF_CHANNEL")),
    row(
        "T013",
        snapshot(
            {"a": entity("g:a", "1.0.0", keys=["1.0.0", "2.0.0"], release_channel="DEV")},
            {"g:a": [release("1.0.0", "DEV"), release("2.0.0-rc1", "DEV")]},
            settings={"release_channel": "RELEASE"},
        ),
        **idle("CONFIG_BLOCK_MISSING", rejected={"2.0.0-rc1": "CONFIG_BLOCK_MISSING"}),
    ),
    row(
        "T061",
        recalled("1.2.3", "1.2.4", recalls=[CLOSED], suppressions=[AUTO]),
        **blocked(K16="SUPPRESSED"),
    ),
    row(
        "T100",
        related(
            a=[release("1.0.0"), with_needs("1.1.0", needs("g:b", None, "1.x.x"))],
            b=BOTH_B,
            entities={
                "a": entity("g:a"),
                "b": entity("g:b", state={"active_plan": running_plan("2.0.0")}),
            },
        ),
        a={"outcome": "BLOCKED", "code": "DEPENDENCY_OUT_OF_RANGE"},
    ),
    row(
        "T101",
        related(
            a=[
                with_needs("1.0.0", needs("g:b", "2.0.0"), needs("g:c")),
                with_needs("1.1.0", needs("g:c")),
            ],
        ),
        a=upgrade("1.1.0"),
    ),
    row(
        "T114",
        simple(
            "1.0.0",
            "1.1.0",
            at="1.1.0",
            state=HALF_NEW,
            suppressions=[AUTO, stop("t", entity=None, origin="environment-threshold")],
            settings={"suppress_deployment_after_num_autosuppressions": 0},
        ),
        **issue("ROLLBACK", "1.0.0"),
    ),
    row(
        "T115",
        simple(
            "1.0.0",
            "1.1.0",
            at="1.1.0",
            state=ROLLED_BACK,
            suppressions=[stop(origin="failed-plan")],
        ),
        **idle("UP_TO_DATE", notes=("ROLLBACK_FAILED",)),
    ),
    row("T118", counted(5, origin="promotion", stopped=False), z=upgrade("1.1.0")),
    row("T118-all", counted(5, origin="promotion", stopped=False, count_origins="all"), z=STOPPED),
    row(
        "T118c-held",
        simple("1.0.0", "1.1.0", suppressions=[stop(origin="failed-plan", target_version="1.1.0")]),
        **blocked(K16="SUPPRESSED"),
    ),
    row(
        "T118c-changed",
        simple(
            "1.0.0",
            "1.1.0",
            "1.2.0",
            suppressions=[stop(origin="failed-plan", target_version="1.1.0")],
        ),
        **upgrade("1.2.0"),
    ),
    row(
        "artifacts-missing-for-four-hours",
        snapshot(
            {
                "a": entity(
                    state={"proposed_plan": waiting_plan("1.1.0", hours=4), "last_number": 1}
                )
            },
            {"g:a": {"releases": [*WITH_IMAGE["releases"], release("1.0.5")]}},
            facts={"artifacts": {IMAGE: "unavailable"}},
        ),
        **upgrade("1.0.5", skipped=("1.1.0",), discarded="BLOCKED_4H"),
    ),
    row(
        "schema-not-readable",
        snapshot(
            {"a": entity(state={"data_schema": 3})},
            {
                "g:a": [
                    release("1.0.0"),
                    release("1.1.0", schema_migrations=[{"type": "online", "from": 4}]),
                ]
            },
        ),
        outcome="BLOCKED",
        code="SCHEMA_UNSUPPORTED",
    ),
    *(
        # The clock jumps from 02:00 to 03:00 in March, and from 03:00 back to 02:00 in October.
        row(f"T036-{name}", simple("1.0.0", "1.1.0", settings=AT_NIGHT), now=now, **expected)
        for name, now, expected in (
            ("spring-before", datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), CLOSED_THEN),
            ("spring", datetime(2026, 3, 29, 1, tzinfo=UTC), CLOSED_THEN),
            ("spring-half-past", datetime(2026, 3, 29, 1, 30, tzinfo=UTC), CLOSED_THEN),
            ("autumn-before", datetime(2026, 10, 25, 0, 29, 59, tzinfo=UTC), CLOSED_THEN),
            ("autumn-first", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), upgrade("1.1.0")),
            ("autumn-between", datetime(2026, 10, 25, 1, 15, tzinfo=UTC), CLOSED_THEN),
            ("autumn-second", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), upgrade("1.1.0")),
            ("autumn-after", datetime(2026, 10, 25, 2, tzinfo=UTC), CLOSED_THEN),
        )
    ),
    row(
        "agent-silent",
        simple("1.0.0", "1.1.0", facts={"agent_seen_at": NOW - timedelta(minutes=10)}),
        **blocked(K26="AGENT_STALE"),
    ),
]


@pytest.mark.parametrize(("given", "now", "expected"), DEFAULTS)
def test_decided_by_default(given: Snapshot, now: datetime, expected: Mapping[str, Any]) -> None:
    assert differences(given, now, expected) == []


ELSEWHERE = {
    "domain/fleets/test_commands.py": "T133 T139",
    "domain/fleets/test_other_product.py": "T104",
    "domain/fleets/test_progress.py": "T115 T118c T155",
    "domain/fleets/test_scenario_steps.py": (
        "T021 T036 T042 T066 T069 T080 T085 T121 T124 T160 T163"
    ),
    "domain/fleets/test_versions.py": "T200 T202 T203",
    "domain/fleets/promotion_rows.py": "T175 T177 T178 T180 T187 T192",
    "domain/fleets/test_promotion.py": "T038 T168 T172 T174 T181 T183 T184 T186 T190",
    "loading/fleets/test_documents.py": "T171 T172 T211",
    "loading/fleets/test_schedules.py": "T036",
    "../workflows/test_change_requests.py": "T205 T206",
}
"""Scenarios that are tested in other files, by the file."""

EXAMPLES = ROOT / "examples" / "fleets"
_SHOWN = re.compile(r"^# (T\d{3}c?(?:, T\d{3}c?)*):", re.MULTILINE)


def shown_in(folder: Path) -> set[str]:
    """The scenarios that the files of a folder say that they show."""
    lists = [text for path in folder.glob("*.yml") for text in _SHOWN.findall(path.read_text())]
    return {one for text in lists for one in text.split(", ")}


FOLDERS = ("", "scenarios", "defaults")


def test_every_scenario_is_shown_by_an_example_or_has_its_reason() -> None:
    shown = set[str]().union(*(shown_in(EXAMPLES / one) for one in FOLDERS))
    assert sorted(set(SCENARIOS) - shown - set(NO_FILE)) == []
    assert sorted(shown - set(SCENARIOS)) == []
    assert sorted(shown & set(NO_FILE)) == []


def test_an_environment_of_a_scenario_has_its_name_and_is_expected_to_be_decided() -> None:
    for path in (*EXAMPLES.glob("scenarios/*.yml"), EXAMPLES / "defaults" / "decisions.yml"):
        text = path.read_text()
        for one in sorted(shown_in(path.parent)):
            if f"# {one}:" in text:
                name = one.lower()
                assert f"# {one}: " in text.partition(f"name: {name}\n")[0], one
                assert re.search(rf"^  {name}/[a-z]+: ?", text, re.MULTILINE), one


def test_choices_of_ours_are_a_group_of_their_own() -> None:
    """Rows of one table, and files of one folder: both can be left out."""
    rows = {str(one.id).partition("-")[0] for one in DECIDED}
    assert sorted(rows & DEFAULT_IDS) == []
    assert sorted({str(one.id).partition("-")[0] for one in DEFAULTS} - DEFAULT_IDS) == sorted(OWN)
    files = shown_in(EXAMPLES) | shown_in(EXAMPLES / "scenarios")
    assert sorted(files & DEFAULT_IDS) == []
    assert sorted(shown_in(EXAMPLES / "defaults") - DEFAULT_IDS) == []


OWN = {"agent", "artifacts", "schema"}
"""Rows without an id."""


def test_what_is_out_of_scope_is_said() -> None:
    page = (ROOT / "docs" / "fleets.md").read_text()
    scope = page.partition("Out of scope")[2]
    for reason in NOT_HERE.values():
        assert reason.removesuffix(" are out of scope") in scope


def test_every_scenario_is_here_or_has_its_reason() -> None:
    here = {str(one.id).partition("-")[0] for one in (*DECIDED, *DEFAULTS)}
    elsewhere = {one for ids in ELSEWHERE.values() for one in ids.split()}
    assert sorted(set(SCENARIOS) - here - elsewhere - set(NOT_HERE)) == []
    assert sorted(set(NOT_HERE) & (here | elsewhere)) == []


@pytest.mark.parametrize(("path", "ids"), ELSEWHERE.items())
def test_scenarios_are_where_they_are_said_to_be(path: str, ids: str) -> None:
    text = (ROOT / "tests" / "unit" / path).read_text().lower()
    named = set(re.findall(r"\b(?:test_)?(t\d{3}c?)(?![0-9a-z])", text))
    missing = [one for one in ids.lower().split() if one not in named]
    assert missing == []


CLOCK = "T021 T048 T118c T119 T154 T155 T165 T169"
"""Scenarios of environments that come about by time alone: also workflow tests on a clock that
skips time."""

CLOCK_OF_PRODUCTS = "T038 T175 T177 T186 T187"
"""Those of pipelines."""


def test_clock_scenarios_of_environments_are_workflow_tests_too() -> None:
    text = (ROOT / "tests" / "workflows" / "test_fleet_clock.py").read_text()
    named = {one.upper().replace("C", "c") for one in re.findall(r"def test_(t\d{3}c?)_", text)}
    assert named == set(CLOCK.split())


def test_clock_scenarios_of_pipelines_are_workflow_tests_too() -> None:
    text = (ROOT / "tests" / "workflows" / "test_promotion_clock.py").read_text()
    described = re.findall(r'def test_\w+\([^)]*\) -> None:\n    """([^"]*)"""', text)
    named = {one for words in described for one in re.findall(r"\bT\d{3}c?\b", words)}
    assert named == set(CLOCK_OF_PRODUCTS.split())


def test_clock_scenarios_are_scenarios() -> None:
    clock = {*CLOCK.split(), *CLOCK_OF_PRODUCTS.split()}
    assert sorted(clock - set(SCENARIOS)) == []


def test_majors_have_blocks() -> None:
    assert "1.0.0" in ANY_MAJOR
