"""The entity kind ``service``: a release carries a ``svc.yml`` and the templates that it names.

The service of an entity is ``<environment>.<entity>``. Its steps name the release; the activities
read the file from the product, so that it is in no plan.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from temporal_plans.activities.fleets.kinds.record import (
    CHANGE,
    VERIFY,
    EntityChange,
    EntityKind,
    KindPlan,
)
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.plans import PlanKind
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.plans.parameters import escaped
from temporal_plans.domain.plans.plan import PhaseSpec, StepSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.messages.fleets.installations import Installation

FILE = "svc.yml"
WAIT_TIMEOUT = timedelta(days=7)
"""How long a deployment may take; an operator may cancel the plan at any time."""
_HEARTBEAT_TIMEOUT = timedelta(seconds=30)


def plan(change: EntityChange) -> KindPlan:
    """Return the steps of a change of a service. Raises SpecError."""
    order = change.order
    installation = installation_of(change)
    if order.kind is PlanKind.UNINSTALL:
        step = installation_phase(CHANGE, "uninstall", "remove_installation", installation)
        return KindPlan((step,), parameters=())
    if order.kind in (PlanKind.RESTART, PlanKind.CHANGE_SECRETS):
        # The spec is the same, so that a deployment would do nothing. Agents read secrets whenever
        # they launch a task.
        step = installation_phase(CHANGE, "restart", "restart_installation", installation)
        return KindPlan((step,), parameters=())
    if FILE not in change.target.files:
        reason = Reason(
            field=FILE,
            problem=f"the release {order.to.version} of {order.product} has no such file",
            fix=f"publish a release with --file {FILE}",
        )
        raise SpecError([reason])
    return KindPlan(
        (
            installation_phase(CHANGE, "deploy", "deploy_installation", installation),
            installation_phase(VERIFY, "wait", "await_installation", installation),
        ),
        parameters=(),
        health=Health.HEALTHY,  # it was waited for
    )


def installation_of(change: EntityChange) -> Installation:
    """Return what the activities about the service of an entity need to know of a change."""
    order = change.order
    return Installation(
        environment=order.environment,
        entity=order.entity,
        product=order.product,
        version=order.to.version,
        config=order.config,
        environment_config=order.environment_config,
        number=order.number,
        digest=change.target.digest,
    )


def installation_phase(
    phase: str, step: str, activity: str, installation: Installation
) -> PhaseSpec:
    """Return a phase of one step, an activity about the service of an entity."""
    work = ActivityWork(
        type=activity,
        input=escaped(installation.model_dump(mode="json")),
        timeout=WAIT_TIMEOUT,
        heartbeat_timeout=_HEARTBEAT_TIMEOUT,
    )
    return PhaseSpec(name=phase, steps=(StepSpec(name=step, work=work),))


def faults(files: Mapping[str, str]) -> Iterable[Reason]:
    """Yield the faults of the files of a release that need no values to be seen."""
    if not files.get(FILE, "").strip():
        yield Reason(field=FILE, problem="is empty")


SERVICE = EntityKind("service", plan, frozenset({FILE}), faults)
