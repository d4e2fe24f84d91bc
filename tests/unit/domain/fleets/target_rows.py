"""Scenarios: targets and configuration, maintenance windows, recalls, relations."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from builders.fleets import NOW, entity, needs, release, simple, snapshot, stop
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.loading.fleets.schedules import WeeklySchedule
from unit.domain.fleets.rows import blocked, idle, issue, row, upgrade

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
