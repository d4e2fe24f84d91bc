"""Which plans that were issued, and that no spoke has taken, would still be issued later."""

from datetime import timedelta
from typing import Any

import pytest

from builders.fleets import NOW, entity, release, simple, snapshot, stop
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.plans import ActiveStatus
from temporal_plans.domain.fleets.progress import carried_out
from temporal_plans.domain.fleets.untaken import withdrawals
from unit.domain.fleets.target_rows import CLOSED_WINDOWS

LATER = NOW + timedelta(hours=5)


def _issued(given: Snapshot) -> Snapshot:
    """The snapshot after its upgrades were issued; nothing is known of them any more."""
    after = carried_out(given, decide(given, NOW))
    entities = [
        one.but(state=one.state.but(active_plan=plan.but(status=ActiveStatus.UNKNOWN)))
        for one in after.environment.entities
        if (plan := one.state.active_plan) is not None
    ]
    assert len(entities) == len(given.environment.entities)
    return after.but(environment=after.environment.but(entities=tuple(entities)))


def _with(given: Snapshot, other: Snapshot) -> Snapshot:
    """What was issued in one snapshot, with everything else as in the other."""
    issued = {one.name: one.state for one in given.environment.entities}
    entities = tuple(one.but(state=issued[one.name]) for one in other.environment.entities)
    return other.but(environment=other.environment.but(entities=entities))


UPGRADE = _issued(simple("1.0.0", "1.1.0"))
UNMANAGED = UPGRADE.but(
    environment=UPGRADE.environment.but(
        entities=tuple(one.but(settings=None) for one in UPGRADE.environment.entities)
    )
)
RAMP = {
    "channel": "stable",
    "version": "1.1.0",
    "started_at": NOW - timedelta(hours=1),
    "duration": timedelta(hours=10),
    "entities": 1,
}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(UPGRADE, None, id="nothing-has-happened"),
        pytest.param(
            _with(
                UPGRADE,
                simple(
                    "1.0.0",
                    "1.1.0",
                    product={"recalls": [{"id": "r", "start": "1.1.0", "single": True}]},
                ),
            ),
            "RECALLED",
            id="recalled",
        ),
        pytest.param(
            _with(UPGRADE, simple("1.0.0", "1.1.0", settings=CLOSED_WINDOWS)),
            "OUTSIDE_WINDOW",
            id="window-closed",
        ),
        pytest.param(
            _with(UPGRADE, simple("1.0.0", "1.1.0", suppressions=[stop()])),
            "SUPPRESSED",
            id="suppressed",
        ),
        pytest.param(
            _with(UPGRADE, simple("1.0.0", "1.1.0", "1.2.0")), "UPGRADE 1.2.0", id="newer"
        ),
        pytest.param(UNMANAGED, "UNMANAGED", id="entity-gone"),
        pytest.param(
            _with(
                UPGRADE,
                simple(
                    "1.0.0",
                    "1.1.0",
                    product={
                        "releases": [release("1.0.0"), release("1.1.0")],
                        "ramps": [RAMP | {"started": 1}],
                    },
                ),
            ),
            None,
            id="its-place-in-a-ramp-is-kept",
        ),
    ],
)
def test_an_untaken_plan_is_withdrawn_when_it_would_not_be_issued(
    given: Snapshot, why: str | None
) -> None:
    found = withdrawals(given, {"a"}, LATER if why is None else NOW)
    assert (why or "") in found.get("a", "")
    assert bool(found) is (why is not None)


def test_untaken_plans_do_not_hold_each_other_back() -> None:
    names = ("a", "b")
    given = _issued(
        snapshot(
            {name: entity(f"g:{name}") for name in names},
            {f"g:{name}": [release("1.0.0"), release("1.1.0")] for name in names},
        )
    )
    assert withdrawals(given, {"a", "b"}, LATER) == {}
    assert withdrawals(given, set(), LATER) == {}


def test_what_carries_out_a_command_stays() -> None:
    command: dict[str, Any] = {"command": {"id": "c", "type": "restart", "reason": "it hangs"}}
    given = _issued(simple("1.0.0", state=command))
    stopped = _with(given, simple("1.0.0", suppressions=[stop()]))
    assert withdrawals(stopped, {"a"}, LATER) == {}
