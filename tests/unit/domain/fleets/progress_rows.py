"""Scenarios: failures and suppressions, commands, plans that wait, facts of other systems."""

from datetime import timedelta
from typing import Any

from builders.fleets import (
    NOW,
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
from unit.domain.fleets.rows import blocked, idle, issue, row, upgrade
from unit.domain.fleets.target_rows import CLOSED_WINDOWS, related, schedule, windowed, with_needs

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
        simple(
            "1.0.0",
            "1.1.0",
            state={"active_plan": running_plan("1.1.0", status="CANCELLING")},
            facts={"agent_seen_at": NOW - timedelta(hours=1)},
        ),
        outcome="ACTIVE",
        code="ACTIVE_PLAN",
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
        "a-command-waits-for-the-connection",
        simple("1.0.0", facts={"connection": "no-connection-expected"}, **commanded("restart")),
        intent="BREAK_GLASS",
        **blocked(K26="NOT_CONNECTED"),
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
    row("T154-before", waited("1.1.0", hours=3.99), to="1.1.0", outcome="BLOCKED"),
    row(
        "T154",
        waited("1.1.0", hours=4),
        to="1.1.0",
        outcome="BLOCKED",
        next_evaluation_at=NOW + timedelta(hours=4),
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
        "T166-rollback",
        ramped(12, 0, at="1.2.0", state={"last_plan": failed_plan("1.2.0", "1.1.0")}),
        **issue("ROLLBACK", "1.1.0"),
    ),
    row(
        "T166-command",
        ramped(12, 0, **commanded("enforce-version", "1.1.0")),
        **issue("BREAK_GLASS", "1.1.0"),
    ),
    row("T166-upgrade", ramped(12, 0), **blocked(K22="RAMP_LIMIT")),
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
        "T209",
        windowed(
            product=False,
            settings={"downtime_window": "never", "no_downtime_window": "never"},
            suppressions=[stop()],
        ),
        code="SUPPRESSED",
        **blocked(K15="SUPPRESSED", K20="OUTSIDE_WINDOW"),
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
