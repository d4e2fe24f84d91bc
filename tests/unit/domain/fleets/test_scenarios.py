"""Scenarios of fleets, by their ids: what is decided in a situation.

Those of ``DEFAULTS`` are choices of ours where the followed documentation is silent.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
    waited,
)
from unit.domain.fleets.rows import blocked, idle, issue, row, upgrade
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
    row("T154-before", waited("1.1.0", hours=3.99), to="1.1.0", outcome="BLOCKED"),
    row(
        "T154-artifacts",
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


NOT_HERE = {
    "T016": "keys of agents are out of scope",
    "T072": "modules are out of scope",
    "T104": "an entity is added by a change of documents, which a workflow takes",
    "T205": "change requests are workflows",
    "T206": "change requests are workflows",
}
"""Scenarios that are no decision, and why."""

ELSEWHERE = {
    "domain/fleets/test_commands.py": "T133 T139",
    "domain/fleets/test_progress.py": "T115 T118c T155",
    "domain/fleets/test_versions.py": "T200 T202 T203",
    "domain/fleets/promotion_rows.py": "T175 T177 T178 T180 T187 T192",
    "domain/fleets/test_promotion.py": "T038 T168 T172 T174 T181 T183 T184 T186 T190",
    "loading/fleets/test_documents.py": "T171 T172 T211",
    "loading/fleets/test_schedules.py": "T036",
}
"""Scenarios that are tested in other files, by the file."""

SCENARIOS = """
T001 T002 T004 T005 T007 T008 T010 T011 T013 T014 T016 T017 T020 T021 T023 T024 T026 T027 T029
T030 T032 T033 T035 T036 T038 T040 T042 T043 T045 T046 T048 T049 T051 T052 T054 T055 T057 T058
T060 T061 T063 T064 T066 T067 T069 T070 T072 T080 T082 T083 T085 T086 T088 T089 T091 T092 T094
T095 T097 T098 T100 T101 T103 T104 T111 T112 T114 T115 T117 T118 T118c T119 T121 T122 T124 T125
T127 T128 T130 T131 T133 T134 T136 T137 T139 T140 T151 T152 T154 T155 T157 T160 T162 T163 T165
T166 T168 T169 T171 T172 T174 T175 T177 T178 T180 T181 T183 T184 T186 T187 T189 T190 T192 T200
T202 T203 T205 T206 T208 T209 T211
"""


def test_every_scenario_is_here_or_has_its_reason() -> None:
    here = {str(one.id).partition("-")[0] for one in (*DECIDED, *DEFAULTS)}
    elsewhere = {one for ids in ELSEWHERE.values() for one in ids.split()}
    assert sorted(set(SCENARIOS.split()) - here - elsewhere - set(NOT_HERE)) == []
    assert sorted(set(NOT_HERE) & (here | elsewhere)) == []


@pytest.mark.parametrize(("path", "ids"), ELSEWHERE.items())
def test_scenarios_are_where_they_are_said_to_be(path: str, ids: str) -> None:
    text = (ROOT / "tests" / "unit" / path).read_text().lower()
    named = set(re.findall(r"\b(?:test_)?(t\d{3}c?)(?![0-9a-z])", text))
    missing = [one for one in ids.lower().split() if one not in named]
    assert missing == []


def test_majors_have_blocks() -> None:
    assert "1.0.0" in ANY_MAJOR
