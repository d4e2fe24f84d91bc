"""What the report at the end of a plan tells of the health of an entity, by its kind."""

from datetime import UTC, datetime
from typing import Any

import pytest

from temporal_plans.activities.fleets.composition import plan_input
from temporal_plans.activities.fleets.kinds import ENTITY_KINDS
from temporal_plans.activities.fleets.kinds.record import EntityChange
from temporal_plans.domain.fleets.plans import EntityVersion, Intent, PlanKind
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.messages.fleets.payloads import ReleasePackage, ReleasePayload
from temporal_plans.messages.fleets.plans import ChangeOrder

KINDS = {one.name: one for one in ENTITY_KINDS}
PLAN = "name: web\nphases: {run: {steps: {say: {command: {cmd: echo}}}}}"
FILES = {"svc.yml": "name: web", "install.yml": PLAN, "uninstall.yml": PLAN}


def _told(kind: str, change: PlanKind) -> dict[str, Any]:
    """The report in the last step of the plan of a change."""
    order = ChangeOrder(
        environment="prod",
        entity="web",
        entity_kind=kind,
        product="shop:web",
        number=1,
        kind=change,
        intent=Intent.INSTALL if change is PlanKind.INSTALL else Intent.UNINSTALL,
        to=EntityVersion(version="1.0.0" if change is PlanKind.INSTALL else None),
        owner="environment/prod",
        starter="first",
        at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    payload = ReleasePayload(files=FILES, package=ReleasePackage(name="web", digest="0" * 64))
    planned = plan_input(order, KINDS[kind].plan(EntityChange(order, payload, payload)))
    work = planned.phases[-1].steps[-1].work
    assert isinstance(work, ActivityWork)
    report: dict[str, Any] = work.input["report"]
    return report


@pytest.mark.parametrize(
    ("kind", "change", "health"),
    [
        ("service", PlanKind.INSTALL, "HEALTHY"),
        ("package", PlanKind.INSTALL, "HEALTHY"),
        ("plan", PlanKind.INSTALL, None),  # its steps may be anything
        ("service", PlanKind.UNINSTALL, None),
        ("package", PlanKind.UNINSTALL, None),
    ],
)
def test_a_kind_that_waits_for_what_it_deployed_tells_its_health(
    kind: str, change: PlanKind, health: str | None
) -> None:
    assert _told(kind, change).get("health") == health
