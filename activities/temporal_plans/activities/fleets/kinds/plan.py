"""The entity kind ``plan``: a release carries plan files, one for each kind of change.

``install.yml``, ``upgrade.yml``, ``configure.yml``, ``uninstall.yml`` and ``rollback.yml``. An
upgrade without a file of its own is carried out by that of ``install``, a configuration by that of
``upgrade``. A rollback is carried out by the file ``rollback`` of the
release that is left, because that knows what it changed, else by what leads to the former state.
"""

from collections.abc import Iterable, Iterator, Mapping

from temporal_plans.activities.fleets.kinds.record import EntityChange, EntityKind, KindPlan
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.plans.parameters import NAME
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.plans import load_plan_text
from temporal_plans.messages.fleets.payloads import ReleasePayload

INSTALL, UPGRADE, CONFIGURE, UNINSTALL, ROLLBACK = (
    f"{name}.yml" for name in ("install", "upgrade", "configure", "uninstall", "rollback")
)
FILES = frozenset({INSTALL, UPGRADE, CONFIGURE, UNINSTALL, ROLLBACK})

_FORWARD: Mapping[PlanKind, tuple[str, ...]] = {
    PlanKind.INSTALL: (INSTALL,),
    PlanKind.CHANGE_VERSION: (UPGRADE, INSTALL),
    PlanKind.CHANGE_CONFIG: (CONFIGURE, UPGRADE, INSTALL),
    PlanKind.CHANGE_SECRETS: (CONFIGURE, UPGRADE, INSTALL),
    PlanKind.RESTART: (CONFIGURE, UPGRADE, INSTALL),
    PlanKind.UNINSTALL: (UNINSTALL,),
}


def plan(change: EntityChange) -> KindPlan:
    """Return the phases of the plan file for a change. Raises SpecError."""
    name, text = _file(change)
    spec = load_plan_text(text, source=name)
    return KindPlan(
        phases=spec.phases,
        strategy=spec.strategy,
        parameters=spec.parameters,
        arguments=_arguments(spec, change.values),
    )


def _file(change: EntityChange) -> tuple[str, str]:
    order = change.order
    for payload, name in _candidates(change):
        if name in payload.files:
            return name, payload.files[name]
    wanted = _FORWARD[order.kind][0]
    version = (order.before if order.kind is PlanKind.UNINSTALL else order.to).version
    reason = Reason(
        field=wanted,
        problem=f"the release {version} of {order.product} has no such plan file",
        fix=f"publish a release with {wanted}; the kind plan needs a file for each kind of change",
    )
    raise SpecError([reason])


def _candidates(change: EntityChange) -> Iterator[tuple[ReleasePayload, str]]:
    order = change.order
    if order.intent is Intent.ROLLBACK:
        yield change.current, ROLLBACK
    payload = change.current if order.kind is PlanKind.UNINSTALL else change.target
    for name in _FORWARD[order.kind]:
        yield payload, name


def _arguments(spec: PlanSpec, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that the plan has parameters for: without declared ones, all."""
    if spec.parameters is None:
        return {name: value for name, value in values.items() if NAME.fullmatch(name)}
    declared = {one.name for one in spec.parameters}
    return {name: value for name, value in values.items() if name in declared}


def faults(files: Mapping[str, str]) -> Iterable[Reason]:
    """Yield the faults of the plan files of a release."""
    for name in sorted(FILES & set(files)):
        try:
            load_plan_text(files[name], source=name)
        except SpecError as error:
            for reason in error.reasons:
                yield reason.but(field=f"{name}: {reason.field}".rstrip(": "))
    if INSTALL not in files:
        yield Reason(field=INSTALL, problem="is missing", fix="a release of plan files needs it")


PLAN = EntityKind("plan", plan, FILES, faults)
