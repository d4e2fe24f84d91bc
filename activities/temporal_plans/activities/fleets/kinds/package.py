"""The entity kind ``package``: a release carries an operator package.

The service of an entity is ``<environment>.<entity>``, and the name of the instance, in templates
and labels, is the entity. Its cluster and namespace are those of the environment's settings; an
entity may have a namespace of its own.
"""

from temporal_plans.activities.fleets.kinds.record import (
    CHANGE,
    PREPARE,
    VERIFY,
    EntityChange,
    EntityKind,
    KindPlan,
)
from temporal_plans.activities.fleets.kinds.service import installation_of, installation_phase
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.messages.fleets.payloads import PACKAGE_FILE

_BY_HAND = "start a plan of the package: temporal plan start -s SERVICE PLAN"


def plan(change: EntityChange) -> KindPlan:
    """Return the steps of a change of a package. Raises SpecError."""
    order = change.order
    installation = installation_of(change).but(
        cluster=order.cluster,
        namespace=order.namespace,
        downgrade=order.intent is not Intent.UPGRADE,
    )
    if order.kind is PlanKind.UNINSTALL:
        step = installation_phase(CHANGE, "uninstall", "remove_installation", installation)
        return KindPlan((step,), parameters=())
    if order.kind is PlanKind.RESTART:
        text = "a package has no restart of its own"
        raise SpecError([Reason(field="command", problem=text, value="restart", fix=_BY_HAND)])
    if order.kind is PlanKind.CHANGE_SECRETS:
        text = "a package whose parameters are the same does not read secrets again by itself"
        fix = f"{_BY_HAND}; then report that no secrets wait"
        raise SpecError([Reason(field="pending_secrets", problem=text, fix=fix)])
    if change.target.package is None:
        reason = Reason(
            field=PACKAGE_FILE,
            problem=f"the release {order.to.version} of {order.product} carries no package",
            fix="publish a release with --file FOLDER, the folder of an operator package",
        )
        raise SpecError([reason])
    return KindPlan(
        (
            installation_phase(PREPARE, "check", "check_package", installation),
            installation_phase(CHANGE, "deploy", "deploy_package", installation),
            installation_phase(VERIFY, "wait", "await_package", installation),
        ),
        parameters=(),
        health=Health.HEALTHY,  # it was waited for
    )


PACKAGE = EntityKind("package", plan, frozenset({PACKAGE_FILE}))
