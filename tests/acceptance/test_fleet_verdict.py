"""What the soak test of fleets would notice: without any server."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acceptance.fleet_soak.catalogue import Catalogues, Published, payload
from acceptance.fleet_soak.ledger import Ledger
from acceptance.fleet_soak.oracle import Oracle
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.domain.fleets.releases import Dependency, Release
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.fleets.suppressions import Suppression
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow
from temporal_plans.messages.fleets.plans import PlanRow

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)

BACK = RollOff(allow_downgrade=True)


def catalogues() -> Catalogues:
    """shop:a has 1.0.0 to 1.2.0; 1.0.0 of shop:b needs at most its 1.1."""
    made = Catalogues()
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        made.products["shop:a"].add(Published(Release(version=version), payload(version)))
    need = Dependency(product="shop:a", minimum_version="1.0.0", maximum_version="1.1.x")
    release = Release(version="1.0.0", dependencies=(need,))
    made.products["shop:b"].add(Published(release, payload("1.0.0")))
    return made


def faults(at: dict[str, str | None], *recalls: Recall, **more: Any) -> list[str]:
    rows = tuple(
        StatusRow(
            environment="north",
            entity=name,
            product=f"shop:{name[0]}",
            standing=EntityStanding(outcome=Outcome.NO_WORK, installed=version, since=NOW),
        )
        for name, version in at.items()
    )
    status = EnvironmentStatus(name="north", connection="", rows=rows, **more)
    oracle = Oracle(catalogues(), {"shop:a": recalls, "shop:b": ()})
    return list(oracle.faults(status, NOW))


def test_the_newest_release_is_missed() -> None:
    assert faults({"a0": "1.2.0"}) == []
    assert faults({"a0": "1.1.0"}) == ["north/a0 at 1.1.0: stays, and could go to 1.2.0"]
    stop = Suppression(id="s", entity="a0", start=NOW)
    assert faults({"a0": "1.1.0"}, suppressions=(stop,)) == []


def test_an_entity_that_could_leave_a_recalled_release_is_seen() -> None:
    held = Recall(id="r", start="1.2.0", single=True)
    assert faults({"a0": "1.2.0"}, held) == []
    [fault] = faults({"a0": "1.2.0"}, held.but(roll_off=BACK))
    assert "though it is recalled" in fault


def test_a_violated_dependency_is_seen_and_one_that_holds_back_is_no_fault() -> None:
    assert faults({"a0": "1.1.0", "b0": "1.0.0"}) == []
    found = faults({"a0": "1.2.0", "b0": "1.0.0"})
    assert any("needs shop:a 1.0.0 to 1.1.x, and a0 is at 1.2.0" in one for one in found)
    assert any("which is not there" in one for one in faults({"b0": "1.0.0"}))


PLAN = "environment/north/a0.1"


def ledger(path: Path, *runs: str) -> Ledger:
    """One in which each of some runs carried the plan out."""
    lines = [
        {"event": event, "file": "install", "version": "1.0.0", "workflow": f"{PLAN}/change/work"}
        | {"run": run, "activity": "1", "attempt": 1}
        for run in runs
        for event in ("begun", "done")
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Ledger(path)


def row(status: str = "SUCCEEDED") -> dict[str, PlanRow]:
    one = PlanRow(
        entity="a0",
        number=1,
        plan_id=PLAN,
        kind=PlanKind.INSTALL,
        intent=Intent.INSTALL,
        to="1.0.0",
        status=status,
    )
    return {PLAN: one}


def test_a_plan_that_is_carried_out_twice_or_never_or_unheard_of_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert ledger(path, "one").faults(row(), resolved=set()) == []
    [twice] = ledger(path, "one", "two").faults(row(), resolved=set())
    assert "was carried out 2 times" in twice
    [never] = ledger(path).faults(row(), resolved=set())
    assert "was never carried out" in never
    [unheard] = ledger(path, "one").faults({}, resolved=set())
    assert "is listed nowhere" in unheard
