"""Changes of entities whose release is as it was: steps that do something, or a refusal."""

import pytest

from builders.fleets import NOW
from temporal_plans.activities.fleets.kinds import package, service
from temporal_plans.activities.fleets.kinds.record import EntityChange
from temporal_plans.domain.fleets.plans import EntityVersion, Intent, PlanKind
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.messages.fleets.payloads import ReleasePackage, ReleasePayload
from temporal_plans.messages.fleets.plans import ChangeOrder

SAME = (PlanKind.RESTART, PlanKind.CHANGE_SECRETS)
"""What leaves the version and the configuration as they are."""


def change(entity_kind: str, kind: PlanKind, files: ReleasePayload) -> EntityChange:
    at = EntityVersion(version="1.0.0")
    order = ChangeOrder(
        environment="prod",
        entity="web",
        entity_kind=entity_kind,
        product="shop:web",
        number=2,
        kind=kind,
        intent=Intent.BREAK_GLASS if kind is PlanKind.RESTART else Intent.SECRET,
        before=at,
        to=at,
        owner="environment/prod",
        starter="run",
        at=NOW,
    )
    return EntityChange(order, target=files, current=files)


@pytest.mark.parametrize("kind", SAME)
def test_a_service_is_restarted_for_a_restart_and_for_its_secrets(kind: PlanKind) -> None:
    """A deployment of the same spec would change nothing, and its plan be COMPLETE already."""
    files = ReleasePayload(files={service.FILE: "name: web"})
    [phase] = service.plan(change("service", kind, files)).phases
    [step] = phase.steps
    assert isinstance(step.work, ActivityWork)
    assert (phase.name, step.work.type) == ("change", "restart_installation")


@pytest.mark.parametrize("kind", SAME)
def test_a_package_refuses_what_it_can_not_do(kind: PlanKind) -> None:
    files = ReleasePayload(package=ReleasePackage(name="store", digest="0" * 64))
    with pytest.raises(SpecError, match="package"):
        package.plan(change("package", kind, files))
