"""Whether an entity may be of another product than before: not while anything of it is there."""

from collections.abc import Iterator, Mapping

from temporal_plans.domain.fleets.entities import Entity, EntityOptions
from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.values.refusal import Code, Reason, Refusal

_FIX = "choose another name, or uninstall the entity, remove it from the document, and apply that"


def product_refusal(
    environment: Environment, declared: Mapping[str, EntityOptions]
) -> Refusal | None:
    """Return why entities can't be declared under their names; None when they can."""
    reasons = tuple(_reasons(environment, declared))
    return Refusal(code=Code.NAME_TAKEN, reasons=reasons) if reasons else None


def _reasons(environment: Environment, declared: Mapping[str, EntityOptions]) -> Iterator[Reason]:
    for entity in environment.entities:
        wanted = declared.get(entity.name)
        if wanted is None or wanted.product == entity.product or not entity.product:
            continue
        if why := _why_taken(entity):
            yield Reason(
                field=f"entities.{entity.name}.product",
                problem=f"can't change from {entity.product}: {why}",
                value=wanted.product,
                fix=_FIX,
            )


def _why_taken(entity: Entity) -> str:
    if entity.state.active_plan is not None:
        return "a plan of it runs"
    if entity.state.installed:
        return f"{entity.state.version} of that is installed"
    if entity.settings is not None and entity.settings.uninstall:
        return "it is uninstalled, and still managed"
    return ""
