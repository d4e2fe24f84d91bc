"""Scenarios of fleets, by their ids: what is decided in a situation.

Those of ``DEFAULTS`` are choices of ours where the followed documentation is silent.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
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
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.loading.fleets.schedules import WeeklySchedule

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


# --- targets and configuration --------------------------------------------------------------------

OLD_AND_NEW = ("2.0.0", "2.6.0")
TARGETS = [
    row("T001", simple("1.0.0", "1.1.0"), **upgrade("1.1.0")),
    row("T002", simple("1.0.0", "1.1.0", at="1.1.0"), **idle("UP_TO_DATE")),
    row("T004", simple("1.0.0", at=None), **issue("INSTALL", "1.0.0")),
    row(
        "T005",
        simple("1.0.0", "4.0.0", keys=("1.0.0",)),
        **idle("CONFIG_BLOCK_MISSING", rejected={"4.0.0": "CONFIG_BLOCK_MISSING"}),
    ),
    row(
        "T007",
        simple(
            "2.5.0",
            "2.6.0",
            at="2.5.0",
            keys=OLD_AND_NEW,
            state={"config": {"key": "2.0.0", "revision": "r-2.0.0"}},
        ),
        **upgrade("2.6.0", config_key="2.6.0"),
    ),
    row(
        "T008",
        simple(
            "2.5.0",
            at="2.5.0",
            keys=OLD_AND_NEW,
            state={"config": {"key": "2.0.0", "revision": "r-2.0.0"}},
        ),
        **idle("UP_TO_DATE"),
    ),
    row(
        "T010",
        snapshot(
            {
                "a": entity(state={"config": {"environment_revision": "e1"}}),
                "b": entity(state={"config": {"environment_revision": "e1"}}),
                "c": entity(
                    uses_environment_config=False, state={"config": {"environment_revision": "e1"}}
                ),
            },
            {"g:a": [release("1.0.0")]},
            settings={"config_revision": "e2"},
        ),
        a=issue("CONFIG", "1.0.0"),
        b=issue("CONFIG", "1.0.0"),
        c=idle("UP_TO_DATE"),
    ),
    row(
        "T014",
        simple("1.0.0", "1.1.0", state={"pending_secrets": ["token"]}),
        **upgrade("1.1.0", secrets=("token",)),
    ),
    row(
        "T017",
        snapshot(
            {"a": {"state": {"product": "g:a", "version": "1.0.0"}}},
            {"g:a": [release("1.0.0"), release("1.1.0")]},
        ),
        outcome="UNMANAGED",
    ),
]

# --- maintenance windows --------------------------------------------------------------------------


def schedule(*intervals: str, zone: str = "UTC") -> Any:
    span = (NOW - timedelta(days=400), NOW + timedelta(days=400))
    weekly = WeeklySchedule(time_zone_name=zone, time_intervals=intervals)
    return weekly.window(*span)


DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
NIGHTS = schedule(
    *(f"{one}/22:00-{other}/06:00" for one, other in zip(DAYS, (*DAYS[1:], DAYS[0]), strict=True)),
    "FRIDAY/22:00-MONDAY/06:00",
)
BUT_MORNINGS = schedule(
    *(f"{one}/10:00-{other}/06:00" for one, other in pairwise(DAYS[:5])),
    "FRIDAY/10:00-MONDAY/06:00",
)
DAYTIME = schedule(*(f"{one}/08:00-{one}/20:00" for one in DAYS))
NEVER = schedule()


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """A time of the week of ``NOW``; 0 is Monday."""
    return datetime(2026, 1, 5 + day, hour, minute, tzinfo=UTC)


def windowed(
    *,
    product: bool = True,
    downtime: bool = False,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> Snapshot:
    """An upgrade in the environment with the windows of the tutorial."""
    windows = {"nights": NIGHTS, "quiet": BUT_MORNINGS, "never": NEVER, "days": DAYTIME}
    given = {
        "windows": windows,
        "downtime_window": "nights",
        "no_downtime_window": "quiet",
        **(settings or {}),
    }
    return simple(
        "1.0.0",
        "1.1.0",
        downtime=downtime,
        product={"window": DAYTIME} if product else {},
        settings=given,
        **more,
    )


OVERRIDE = {"override_product_maintenance_windows": True}
SIBLINGS = snapshot(
    {"a": entity(downtime=True), "b": entity(downtime=True), "c": entity()},
    {"g:a": [release("1.0.0"), release("1.1.0")]},
    settings={
        "windows": {"never": NEVER},
        "downtime_window": "never",
        "no_downtime_window": "never",
    },
    overrides=[
        {"id": f"o-{name}", "entity": name, "admits": "downtime", "start": NOW, "end": at(0, 13)}
        for name in ("a", "c")
    ],
)
WINDOWS = [
    row("T020", windowed(), now=at(0, 8, 30), **upgrade("1.1.0")),
    row(
        "T021",
        windowed(),
        now=at(0, 21),
        **blocked(K20="OUTSIDE_WINDOW"),
        next_evaluation_at=at(1, 1),  # four hours before the window: the plan is computed again
    ),
    row("T023", windowed(downtime=True), now=at(5, 9), **upgrade("1.1.0", downtime=True)),
    row("T024", windowed(downtime=True), now=at(5, 21), **blocked(K21="OUTSIDE_WINDOW")),
    row(
        "T026-night", windowed(downtime=True, settings=OVERRIDE), now=at(1, 23), **upgrade("1.1.0")
    ),
    row(
        "T026-noon",
        windowed(downtime=True, settings=OVERRIDE),
        now=at(1, 12),
        **blocked(K21="OUTSIDE_WINDOW"),
    ),
    row("T027", windowed(product=False), now=at(0, 8, 30), **blocked(K20="OUTSIDE_WINDOW")),
    row(
        "T029",
        windowed(product=False, downtime=True, settings={"downtime_window": "never"}),
        now=at(0, 12),
        **blocked(K21="OUTSIDE_WINDOW"),
    ),
    row(
        "T030-downtime",
        windowed(product=False, downtime=True, downtime_window="days"),
        now=at(0, 12),
        **upgrade("1.1.0"),
    ),
    row(
        "T030-quiet",
        windowed(product=False, downtime_window="never"),
        now=at(0, 8, 30),
        **blocked(K20="OUTSIDE_WINDOW"),
    ),
    row(
        "T032",
        SIBLINGS,
        a=upgrade("1.1.0", downtime=True),
        b=blocked(K21="OUTSIDE_WINDOW"),
        c=upgrade("1.1.0", downtime=False),
    ),
    row(
        "T033",
        windowed(
            overrides=[{"id": "o", "admits": "downtime", "start": NOW, "end": at(0, 13)}],
            suppressions=[stop()],
        ),
        **blocked(K15="SUPPRESSED"),
    ),
    row(
        "T035",
        windowed(
            product=False,
            settings={
                "windows": {
                    "nights": schedule("FRIDAY/22:00-MONDAY/06:00", zone="America/New_York"),
                    "quiet": NEVER,
                }
            },
        ),
        now=datetime(2026, 1, 11, 17, tzinfo=UTC),
        **upgrade("1.1.0"),
    ),
]

# --- recalls --------------------------------------------------------------------------------------


def recalled(*versions: str, cur: str = "1.2.3", recalls: Any, **more: Any) -> Snapshot:
    """An entity whose product has recalls."""
    return simple(*versions, at=cur, product={"recalls": recalls}, **more)


CLOSED = {"id": "r1", "start": "1.2.3", "end": "1.2.4"}
OPEN = {"id": "r1", "start": "1.2.3"}
DOWN = {**CLOSED, "roll_off": {"allow_downgrade": True, "minimum_release": "1.2.1"}}
FREEZE = {**CLOSED, "roll_off": {"freeze_until": NOW + timedelta(hours=1)}}
TESTS = {**CLOSED, "roll_off": {"test_environments": ["prod"]}}
ELSEWHERE = {**CLOSED, "roll_off": {"test_environments": ["lab"]}}
TO_124 = issue("RECALL_ROLL_OFF", "1.2.4")
NO_TARGET: dict[str, Any] = {"outcome": "BLOCKED", "code": "ROLL_OFF_NO_TARGET"}
CLOSED_WINDOWS = {
    "windows": {"never": NEVER},
    "downtime_window": "never",
    "no_downtime_window": "never",
}


def vulnerable(
    current: float, target: float, *, hours: float = 1, malware: bool = False, clean: bool = False
) -> Snapshot:
    """Releases that are recalled for vulnerabilities, with their risks."""

    def scan(risk: float, age: float = 1, bad: bool = False) -> dict[str, Any]:
        return {"scanned_at": NOW - timedelta(hours=age), "risk": risk, "malware": bad}

    releases = [
        release("1.0.0", scan=scan(current)),
        release("1.1.0", scan=scan(target, hours, malware)),
        *([release("1.2.0")] if clean else []),
    ]
    recall = {"id": "cve", "start": "1.0.0", "end": "1.2.0", "cause": "vulnerability"}
    return snapshot(
        {"a": entity()},
        {"g:a": {"releases": releases, "recalls": [recall]}},
        settings={"vulnerability_upgrades": True},
    )


RECALLS = [
    row("T040", recalled("1.2.3", "1.2.4", recalls=[CLOSED]), **TO_124),
    row("T042", recalled("1.2.3", "1.2.4", "1.2.5", recalls=[OPEN]), **NO_TARGET),
    row(
        "T043",
        recalled("1.2.3", "1.2.4", "1.2.5", recalls=[{**OPEN, "end": "1.2.5"}]),
        **issue("RECALL_ROLL_OFF", "1.2.5"),
    ),
    row("T045", recalled("1.2.0", "1.2.1", "1.2.2", "1.2.3", "1.2.4", recalls=[DOWN]), **TO_124),
    row(
        "T045-down",
        recalled("1.2.0", "1.2.1", "1.2.2", "1.2.3", recalls=[DOWN]),
        **issue("RECALL_ROLL_OFF", "1.2.2"),
    ),
    row("T046", recalled("1.2.0", "1.2.3", recalls=[DOWN]), **NO_TARGET),
    row(
        "T048-before",
        recalled("1.2.3", "1.2.4", recalls=[FREEZE]),
        outcome="BLOCKED",
        code="FROZEN_BY_RECALL",
        next_evaluation_at=NOW + timedelta(hours=1),
    ),
    row(
        "T048-at",
        recalled("1.2.3", "1.2.4", recalls=[FREEZE]),
        now=NOW + timedelta(hours=1),
        **TO_124,
    ),
    row("T049-here", recalled("1.2.3", "1.2.4", recalls=[TESTS]), **TO_124),
    row(
        "T049-elsewhere",
        recalled("1.2.3", "1.2.4", recalls=[ELSEWHERE]),
        outcome="BLOCKED",
        code="FROZEN_BY_RECALL",
    ),
    row(
        "T051",
        recalled(
            "1.3.0",
            "1.3.1",
            "1.4.0",
            cur="1.2.0",
            recalls=[{"id": "r", "start": "1.2.0", "end": "1.5.0", "except_versions": ["1.3.1"]}],
        ),
        **issue("RECALL_ROLL_OFF", "1.3.1"),
    ),
    row(
        "T052",
        recalled(
            "1.3.0-rc2",
            "1.4.0",
            cur="1.3.0-rc2",
            recalls=[{"id": "r", "start": "1.2.0", "end": "1.3.0"}],
        ),
        **issue("RECALL_ROLL_OFF", "1.4.0"),
    ),
    row(
        "T054",
        recalled(
            "1.2.3", "1.2.4", recalls=[{**CLOSED, "status": "reverted"}, {**CLOSED, "id": "r2"}]
        ),
        **TO_124,
    ),
    row(
        "T055",
        recalled("1.2.3", "1.2.4", cur="1.2.4", recalls=[{**CLOSED, "status": "reverted"}]),
        **idle("UP_TO_DATE"),
    ),
    row(
        "T057",
        recalled(
            "1.2.3",
            "1.2.4",
            recalls=[CLOSED],
            settings={
                **CLOSED_WINDOWS,
                "require_maintenance_windows_for_no_downtime_recalled_release_roll_offs": True,
            },
        ),
        **blocked(K20="OUTSIDE_WINDOW"),
    ),
    row(
        "T057-not-set",
        recalled("1.2.3", "1.2.4", recalls=[CLOSED], settings=CLOSED_WINDOWS),
        **TO_124,
    ),
    row(
        "T058",
        recalled("1.2.3", "1.2.4", recalls=[CLOSED], settings=CLOSED_WINDOWS, downtime=True),
        **blocked(K21="OUTSIDE_WINDOW"),
    ),
    row(
        "T060-entity",
        recalled("1.2.3", "1.2.4", recalls=[CLOSED], suppressions=[stop()]),
        **blocked(K15="SUPPRESSED"),
    ),
    row(
        "T060-environment",
        recalled("1.2.3", "1.2.4", recalls=[CLOSED], suppressions=[stop(entity=None)]),
        **blocked(K15="SUPPRESSED"),
    ),
    row("T063", recalled("1.2.3", recalls=[CLOSED], release_channel="stable"), **NO_TARGET),
    row(
        "T064",
        snapshot(
            {"a": entity("g:a"), "b": entity("g:b", "1.2.3")},
            {
                "g:a": [release("1.0.0"), release("1.1.0")],
                "g:b": {"releases": [release("1.2.3"), release("1.2.4")], "recalls": [CLOSED]},
            },
            settings={"max_active_plans": 1},
        ),
        a=blocked(K24="ACTIVE_PLAN"),
        b=TO_124,
    ),
    row("T066", vulnerable(6, 5), **issue("RECALL_ROLL_OFF", "1.1.0")),
    row("T067", vulnerable(6, 6), **issue("RECALL_ROLL_OFF", "1.1.0")),
    row(
        "T069",
        vulnerable(6, 5, hours=24),
        **NO_TARGET,
        rejected={"1.1.0": "CVE_NOT_ELIGIBLE"},
    ),
    row("T070", vulnerable(6, 5, clean=True), **issue("RECALL_ROLL_OFF", "1.2.0")),
    row("T070-malware", vulnerable(6, 5, malware=True), **NO_TARGET),
    row(
        "recalled-target",
        simple("1.0.0", "1.1.0", "1.2.0", product={"recalls": [{"id": "r", "start": "1.2.0"}]}),
        **upgrade("1.1.0", rejected={"1.2.0": "RECALLED"}),
    ),
]

# --- relations ------------------------------------------------------------------------------------

A_B = {"a": entity("g:a"), "b": entity("g:b")}


def related(
    a: list[Any] | None = None,
    b: list[Any] | None = None,
    entities: Mapping[str, Any] | None = None,
    **more: Any,
) -> Snapshot:
    """``a`` and ``b`` of two products."""
    return snapshot(
        entities or A_B,
        {"g:a": a or [release("1.0.0")], "g:b": b or [release("1.0.0")]},
        **more,
    )


def with_needs(version: str, *given: Any) -> dict[str, Any]:
    return release(version, dependencies=given)


PINNED = with_needs("1.0.0", needs("g:b", "1.0.0", "1.x.x"))
WANTS_2 = with_needs("1.1.0", needs("g:b", "2.0.0", "2.x.x"))
BOTH_B = [release("1.0.0"), release("2.0.0")]
B_AT_1 = {"a": entity("g:a"), "b": entity("g:b")}
CYCLE = {
    f"g:{one}": [with_needs("1.0.0", needs(f"g:{other}"))]
    for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
}
UNINSTALL_B = {"a": entity("g:a"), "b": entity("g:b", uninstall=True)}
OTHER_GROUP = {"a": entity("g:a", None, dependency_groups=["g2"]), "b": entity("g:b")}


def grouped(**overrides: Any) -> Snapshot:
    entities = {
        "a": entity(
            "g:a", None, dependency_groups=["g2"], dependency_group_overrides=overrides.get("o", {})
        ),
        "b": entity("g:b"),
    }
    return related(a=[with_needs("1.0.0", needs("g:b"))], entities=entities)


RELATIONS = [
    row(
        "T080",
        related(a=[PINNED, WANTS_2], b=BOTH_B),
        a={
            "outcome": "BLOCKED",
            "code": "DEPENDENCY_OUT_OF_RANGE",
            "rejected": {"1.1.0": "DEPENDENCY_OUT_OF_RANGE"},
        },
        b={
            "outcome": "BLOCKED",
            "code": "DEPENDENT_WOULD_BREAK",
            "rejected": {"2.0.0": "DEPENDENT_WOULD_BREAK"},
        },
    ),
    row(
        "T082",
        related(a=[PINNED], b=[*BOTH_B, release("1.5.0")]),
        b=upgrade("1.5.0", rejected={"2.0.0": "DEPENDENT_WOULD_BREAK"}),
    ),
    row(
        "T083",
        related(
            a=[PINNED, WANTS_2],
            b=BOTH_B,
            entities={"a": entity("g:a", ignored_dependencies=["g:b"]), "b": entity("g:b")},
        ),
        a=upgrade("1.1.0"),
        b=upgrade("2.0.0"),
    ),
    row(
        "T085",
        related(
            a=[with_needs("1.0.0", needs("g:b"))],
            entities={"a": entity("g:a", None), "b": entity("g:b", None)},
            suppressions=[stop(origin="failed-plan", entity="b", minutes=60)],
        ),
        a={"outcome": "BLOCKED", "code": "DEPENDENCY_MISSING"},
        b=blocked(K16="SUPPRESSED"),
    ),
    row(
        "T086",
        snapshot({one: entity(f"g:{one}", None) for one in "abc"}, CYCLE),
        a=issue("INSTALL", "1.0.0"),
        b=issue("INSTALL", "1.0.0"),
        c=issue("INSTALL", "1.0.0"),
    ),
    row(
        "T088",
        related(a=[release("1.0.0"), with_needs("1.1.0", needs("g:b", "2.0.0", optional=True))]),
        a={"outcome": "BLOCKED", "code": "DEPENDENCY_OUT_OF_RANGE"},
    ),
    row(
        "T089",
        related(
            a=[release("1.0.0"), with_needs("1.1.0", needs("g:b", "2.0.0", optional=True))],
            entities={"a": entity("g:a"), "b": entity("g:b", None)},
            suppressions=[stop(entity="b")],  # else its installation would be under way
        ),
        a=upgrade("1.1.0"),
    ),
    row(
        "T091",
        related(a=[with_needs("1.0.0", needs("g:b", optional=True))], entities=UNINSTALL_B),
        b=issue("UNINSTALL", None, downtime=True),
    ),
    row(
        "uninstall-of-a-required-product",
        related(a=[with_needs("1.0.0", needs("g:b"))], entities=UNINSTALL_B),
        b=blocked(K9="DEPENDENT_WOULD_BREAK", K27="DEPENDENTS_INSTALLED"),
    ),
    row(
        "T092",
        related(
            a=[with_needs("1.0.0", needs("g:b"))],
            b=[release("1.0.0"), release("1.1.0")],
            entities=UNINSTALL_B,
        ),
        b=upgrade("1.1.0", waiting="UNINSTALL"),
    ),
    row("T094", grouped(), a={"outcome": "BLOCKED", "code": "DEPENDENCY_MISSING"}),
    row("T095-named", grouped(o={"g:b": ["default"]}), a=issue("INSTALL", "1.0.0")),
    row("T095-any", grouped(o={"g:b": ["*"]}), a=issue("INSTALL", "1.0.0")),
    row(
        "T097",
        related(
            a=[release("1.0.0", incompatibilities=[needs("g:b")])],
            entities={"a": entity("g:a"), "b": entity("g:b", None, dependency_groups=["other"])},
        ),
        b=issue("INSTALL", "1.0.0"),
    ),
    row(
        "T097-same-group",
        related(
            a=[release("1.0.0", incompatibilities=[needs("g:b")])],
            entities={"a": entity("g:a"), "b": entity("g:b", None)},
        ),
        b={"outcome": "BLOCKED", "code": "INCOMPATIBLE"},
    ),
    row(
        "T098",
        related(
            a=[release("1.0.0"), with_needs("1.1.0", needs("g:b", None, "1.2.3"))],
            entities={"a": entity("g:a"), "b": entity("g:b", "1.2.3-4-gabc")},
        ),
        a={"outcome": "BLOCKED", "code": "DEPENDENCY_OUT_OF_RANGE"},
    ),
    row(
        "T103",
        simple("1.40.0", "1.45.0", at="1.40.0", uninstall=True, uninstall_minimum_version="1.45.0"),
        **upgrade("1.45.0", notes=("UNINSTALL_NOT_YET",)),
    ),
    row(
        "T103-later",
        simple("1.45.0", at="1.45.0", uninstall=True, uninstall_minimum_version="1.45.0"),
        **issue("UNINSTALL", None),
    ),
    row(
        "external-dependency",
        simple(
            product={"releases": [release("1.0.0"), with_needs("1.1.0", needs("x:db", "14.0.0"))]},
            settings={"external_dependencies": [{"product": "x:db", "version": "13.2.0"}]},
        ),
        outcome="BLOCKED",
        code="EXTERNAL_DEPENDENCY",
    ),
    row(
        "install-waits-for-what-is-under-way",
        related(
            a=[with_needs("1.0.0", needs("g:b"))],
            entities={"a": entity("g:a", None), "b": entity("g:b", None)},
        ),
        a={"outcome": "BLOCKED", "code": "DEPENDENCY_MISSING"},
        b=issue("INSTALL", "1.0.0"),
    ),
]

# --- failures, suppressions, rollback -------------------------------------------------------------

AUTO = stop(origin="failed-plan", minutes=240)
HALF_NEW = {"last_plan": failed_plan("1.1.0")}


def counted(count: int, *, origin: str = "failed-plan", stopped: bool, **settings: Any) -> Snapshot:
    """Entities of which some are suppressed, in an environment with the threshold 2."""
    names = ("a", "b", "c", "d", "e")
    stops = [stop(f"s-{name}", entity=name, origin=origin) for name in names[:count]]
    whole = [stop("t", entity=None, origin="environment-threshold")] if stopped else []
    return snapshot(
        {name: entity() for name in (*names, "z")},
        {"g:a": [release("1.0.0"), release("1.1.0")]},
        settings={"suppress_deployment_after_num_autosuppressions": 2, **settings},
        suppressions=[*stops, *whole],
    )


STOPPED = blocked(K17="SUPPRESSED")
FAILURES = [
    row(
        "T111",
        simple("1.0.0", "1.1.0", at="1.1.0", state=HALF_NEW, suppressions=[AUTO]),
        **issue("ROLLBACK", "1.0.0"),
    ),
    row(
        "T112",
        simple("1.0.0", "1.1.0", state=HALF_NEW, suppressions=[AUTO]),
        **blocked(K16="SUPPRESSED"),
    ),
    row("T117-three", counted(3, stopped=False), z=STOPPED),
    row("T117-two", counted(2, stopped=True), z=STOPPED),
    row("T117-one", counted(1, stopped=True), z=upgrade("1.1.0")),
    row("T117-two-before", counted(2, stopped=False), z=upgrade("1.1.0")),
    row(
        "T119-before",
        simple("1.0.0", "1.1.0", suppressions=[stop(start=NOW + timedelta(hours=1))]),
        **upgrade("1.1.0"),
    ),
    row(
        "T119-in",
        simple("1.0.0", "1.1.0", suppressions=[stop(start=NOW, minutes=60)]),
        **blocked(K15="SUPPRESSED"),
        next_evaluation_at=NOW + timedelta(hours=1),
    ),
    row(
        "T119-after",
        simple("1.0.0", "1.1.0", suppressions=[stop(minutes=0)]),
        **upgrade("1.1.0"),
    ),
    row("T121", simple("1.0.0", "1.1.0", suppressions=[]), **upgrade("1.1.0")),
    row(
        "T122",
        simple(
            "1.0.0", "1.1.0", state={"active_plan": running_plan("1.1.0")}, suppressions=[stop()]
        ),
        outcome="ACTIVE",
    ),
    row(
        "T122-ticked",
        simple(
            "1.0.0",
            "1.1.0",
            state={"active_plan": running_plan("1.1.0")},
            suppressions=[stop(cancel_active=True)],
        ),
        outcome="ACTIVE",
        cancel="SUPPRESSED",
    ),
    row(
        "T124",
        simple("1.0.0", "1.1.0", state={"active_plan": running_plan("1.1.0", status="CANCELLING")}),
        outcome="ACTIVE",
    ),
    row(
        "T125",
        simple("1.0.0", "1.1.0", state={"last_plan": failed_plan("1.1.0", status="CANCELLED")}),
        **upgrade("1.1.0"),
    ),
    row(
        "T127-running",
        simple(
            "1.0.0",
            "1.1.0",
            state={"active_plan": running_plan("1.1.0")},
            facts={"connection": "no-connection-expected"},
        ),
        outcome="ACTIVE",
        cancel="NOT_CONNECTED",
    ),
    row(
        "T127",
        simple("1.0.0", "1.1.0", facts={"connection": "no-connection-expected"}),
        **idle("NOT_CONNECTED"),
    ),
    row(
        "T128",
        simple("1.0.0", state={"config": {"revision": "old"}}, suppressions=[AUTO]),
        **blocked(K16="SUPPRESSED"),
    ),
    row(
        "manual-stop-on-a-rollback",
        simple("1.0.0", "1.1.0", at="1.1.0", state=HALF_NEW, suppressions=[AUTO, stop("m")]),
        **blocked(K15="SUPPRESSED"),
    ),
]

# --- commands -------------------------------------------------------------------------------------


def commanded(kind: str, to: str | None = None, /, **state: Any) -> dict[str, Any]:
    return {
        "state": {
            "command": {"id": "c", "type": kind, "version": to, "reason": "now"},
            **state,
        }
    }


COMMANDS = [
    row(
        "T130",
        simple(
            "1.0.0",
            "1.1.0",
            product={"recalls": [{"id": "r", "start": "1.1.0"}]},
            settings=CLOSED_WINDOWS,
            suppressions=[stop(entity=None)],
            **commanded("enforce-version", "1.1.0", health="ERROR"),
        ),
        **issue("BREAK_GLASS", "1.1.0", failed={}),
    ),
    row(
        "T131",
        simple("1.0.0", "1.1.0", **commanded("restart", active_plan=running_plan("1.1.0"))),
        outcome="ACTIVE",
        waiting="BREAK_GLASS",
    ),
    row(
        "T131-later",
        simple("1.0.0", "1.1.0", **commanded("restart")),
        **issue("BREAK_GLASS", "1.0.0"),
    ),
    row(
        "T134",
        simple(
            "1.0.0",
            "1.1.0",
            state={
                "last_plan": failed_plan("1.0.0", "1.1.0", intent="BREAK_GLASS", status="SUCCEEDED")
            },
        ),
        **upgrade("1.1.0"),
    ),
    row(
        "T136",
        simple(
            "1.0.0", at=None, **commanded("install", "1.0.0", version=None, pending_secrets=["s"])
        ),
        **issue("BREAK_GLASS", "1.0.0", secrets=("s",)),
    ),
    row(
        "T137",
        related(
            a=[with_needs("1.0.0", needs("g:b"))],
            entities={
                "a": entity("g:a"),
                "b": entity("g:b", uninstall=True, **commanded("uninstall", version="1.0.0")),
            },
        ),
        b=issue("BREAK_GLASS", None),
    ),
    row(
        "T140",
        simple(
            "1.0.0",
            "1.1.0",
            product={
                "ramps": [
                    {
                        "channel": "stable",
                        "version": "1.1.0",
                        "started_at": NOW,
                        "duration": 3600,
                        "entities": 10,
                        "started": 1,
                    }
                ]
            },
            **commanded("enforce-version", "1.1.0"),
        ),
        **issue("BREAK_GLASS", "1.1.0"),
    ),
]

# --- invalidation and clock -----------------------------------------------------------------------


def waited(*versions: str, hours: float = 1, **more: Any) -> Snapshot:
    """An entity whose upgrade to 1.1.0 waits for a suppression."""
    state = {"proposed_plan": waiting_plan("1.1.0", hours=hours), "last_number": 1}
    return simple("1.0.0", *versions, state=state, suppressions=[stop()], **more)


INVALIDATION = [
    row(
        "T151",
        waited("1.1.0", "1.2.0"),
        **blocked(K15="SUPPRESSED"),
        to="1.2.0",
        discarded="SUPERSEDED",
    ),
    row(
        "T152",
        waited("1.1.0", "1.0.5", product={"recalls": [{"id": "r", "start": "1.1.0"}]}),
        **blocked(K15="SUPPRESSED"),
        to="1.0.5",
        discarded="SUPERSEDED",
    ),
    row(
        "T157",
        simple(
            "1.0.0",
            "1.1.0",
            state={
                "proposed_plan": waiting_plan(
                    "1.1.0",
                    to={"version": "1.1.0", "config": {"key": "1.0.0", "revision": "before"}},
                )
            },
            suppressions=[stop()],
        ),
        **blocked(K15="SUPPRESSED"),
        to="1.1.0",
        discarded="SUPERSEDED",
    ),
]

# --- artifacts, health, ramps ---------------------------------------------------------------------

IMAGE = "registry.example/a:1.1.0"
WITH_IMAGE = {"releases": [release("1.0.0"), release("1.1.0", artifacts=[IMAGE])]}


def image(state: str | None) -> Snapshot:
    facts = {"artifacts": {IMAGE: state}} if state else {}
    return snapshot({"a": entity()}, {"g:a": WITH_IMAGE}, facts=facts)


def ramped(started: int, hours: float, **more: Any) -> Snapshot:
    """A ramp over 3 hours among 12 entities."""
    ramp = {
        "channel": "stable",
        "version": "1.1.0",
        "started_at": NOW - timedelta(hours=hours),
        "duration": 3 * 3600,
        "entities": 12,
        "started": started,
    }
    product = {"ramps": [ramp]} | more.pop("product", {})
    return simple("1.0.0", "1.1.0", product=product, **more)


PAUSED_WINDOW = {"window": schedule("MONDAY/09:00-MONDAY/10:00", "MONDAY/12:00-MONDAY/20:00")}
FACTS = [
    row("T160", image("unavailable"), **blocked(K14="ARTIFACT_UNAVAILABLE")),
    row("T162", image(None), **upgrade("1.1.0")),
    row("T162-not-reachable", image("unchecked"), **upgrade("1.1.0")),
    row("T163", image("available"), **upgrade("1.1.0")),
    row("T165-first", ramped(0, 0), **upgrade("1.1.0")),
    row(
        "T165-second",
        ramped(1, 0),
        **blocked(K22="RAMP_LIMIT"),
        next_evaluation_at=NOW + timedelta(minutes=15),
    ),
    row("T165-later", ramped(1, 0.25), **upgrade("1.1.0")),
    row("T165-over", ramped(12, 3), **upgrade("1.1.0")),
    row("T166-install", ramped(12, 0, at=None), **issue("INSTALL", "1.1.0")),
    row(
        "T166-roll-off",
        ramped(12, 0, product={"recalls": [{"id": "r", "start": "1.0.0", "single": True}]}),
        **issue("RECALL_ROLL_OFF", "1.1.0"),
    ),
    row(
        "T166-config",
        ramped(12, 0, state={"config": {"revision": "old"}}),
        **issue("CONFIG", "1.0.0", waiting="UPGRADE"),
    ),
    row(
        # Open for an hour before 10:00, and again from 12:00: of 3 hours one has passed.
        "T169",
        ramped(5, 3, product=PAUSED_WINDOW),
        **blocked(K22="RAMP_LIMIT"),
        next_evaluation_at=NOW + timedelta(minutes=15),
    ),
    row("T169-more", ramped(4, 3, product=PAUSED_WINDOW), **upgrade("1.1.0")),
    row(
        "T189",
        snapshot(
            {
                "a": entity(version="14.3.8", keys=["14.0.0"]),
                "b": entity(version="14.3.7", keys=["14.0.0"]),
            },
            {"g:a": [release("14.3.7"), release("14.3.8")]},
        ),
        a=idle("UP_TO_DATE"),
        b=upgrade("14.3.8"),
    ),
    row(
        "T208",
        windowed(
            product=False,
            settings={"downtime_window": "never", "no_downtime_window": "never"},
            state={"health": "ERROR"},
            suppressions=[stop()],
        ),
        **blocked(K15="SUPPRESSED", K20="OUTSIDE_WINDOW", K23="UNHEALTHY"),
    ),
    row(
        "awaiting-approval",
        simple("1.0.0", "1.1.0", awaiting_approval="cr-1"),
        **blocked(K28="AWAITING_APPROVAL"),
    ),
    row(
        "namespace",
        simple(
            "1.0.0",
            uninstall=True,
            kind="package",
            namespace="n",
            delete_namespace=True,
            facts={"namespaces": {"n": {"protected": True}}},
        ),
        **blocked(K30="NAMESPACE_IN_USE"),
    ),
]

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
    "T016": "edits of secrets are refused by workflows, which are not built",
    "T036": "in tests/unit/loading/fleets/test_schedules.py",
    "T038": "promotion is not built",
    "T072": "modules are out of scope",
    "T104": "adding entities is a command of workflows, which are not built",
    "T118c": "the length of suppressions is in test_progress.py",
    "T133": "in test_commands.py",
    "T139": "in test_commands.py",
    "T155": "in test_progress.py",
    "T168": "edits of ramps are commands of workflows, which are not built",
    "T171": "in tests/unit/loading/fleets/test_documents.py",
    **dict.fromkeys(
        ("T172", "T174", "T175", "T177", "T178", "T180", "T181", "T183", "T184", "T186", "T187"),
        "promotion is not built",
    ),
    "T190": "promotion is not built",
    "T192": "promotion is not built",
    "T200": "in test_versions.py",
    "T202": "in test_versions.py",
    "T203": "in test_versions.py",
    "T205": "change requests are not built",
    "T206": "change requests are not built",
    "T209": "the order of constraints is in test_constraints.py",
    "T211": "in tests/unit/loading/fleets/test_documents.py",
}
"""Scenarios that are no decision, or that are not there yet, and why."""

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
    assert sorted(set(SCENARIOS.split()) - here - set(NOT_HERE)) == []
    assert sorted(set(NOT_HERE) & here - {"T118c"}) == []


def test_majors_have_blocks() -> None:
    assert "1.0.0" in ANY_MAJOR
