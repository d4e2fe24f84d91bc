"""The dependency groups of entities: who sees whom."""

from temporal_plans.domain.fleets.entities import ALL_GROUPS, DEFAULT_GROUPS, Entity


def groups_of(entity: Entity) -> tuple[str, ...]:
    return (entity.settings.dependency_groups if entity.settings else ()) or DEFAULT_GROUPS


def searched_by(entity: Entity, product: str) -> tuple[str, ...]:
    """Return the groups in which an entity looks for a product."""
    overrides = entity.settings.dependency_group_overrides if entity.settings else {}
    return overrides.get(product) or groups_of(entity)


def ignores(entity: Entity, product: str) -> bool:
    return entity.settings is not None and product in entity.settings.ignored_dependencies


def see_each_other(one: Entity, other: Entity) -> bool:
    """Return whether either finds the other among its providers, or they share a group."""
    here, there = set(groups_of(one)), set(groups_of(other))
    if here & there:
        return True
    sought = {*searched_by(one, other.product)}
    seeking = {*searched_by(other, one.product)}
    return ALL_GROUPS in sought | seeking or bool(sought & there) or bool(seeking & here)
