"""The entities of an environment by product, dependency group and namespace."""

from collections import defaultdict
from collections.abc import Sequence

from temporal_plans.domain.fleets.dependency_groups import groups_of, searched_by
from temporal_plans.domain.fleets.entities import ALL_GROUPS, Entity
from temporal_plans.domain.fleets.sorted_lists import insert, together


class EntityIndex:
    """Entities, in each list sorted by name."""

    def __init__(self) -> None:
        self._by_product: dict[str, list[Entity]] = defaultdict(list)
        self._by_group: dict[tuple[str, str], list[Entity]] = defaultdict(list)
        self._by_namespace: dict[str, set[str]] = defaultdict(set)

    def of(self, product: str) -> Sequence[Entity]:
        """Return the entities of a product."""
        return self._by_product.get(product, ())

    def names_in(self, namespace: str) -> set[str]:
        """Return the names of the entities of a namespace."""
        return self._by_namespace.get(namespace, set())

    def providers(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product that an entity sees, without itself."""
        searched = searched_by(entity, product)
        found = self.of(product) if ALL_GROUPS in searched else self._in(product, searched)
        return _others(found, entity)

    def neighbours(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product in the groups of an entity, without itself."""
        return _others(self._in(product, groups_of(entity)), entity)

    def _in(self, product: str, groups: Sequence[str]) -> Sequence[Entity]:
        return together([self._by_group.get((product, one), ()) for one in groups])

    def add(self, entity: Entity) -> None:
        for items in self._lists(entity):
            insert(items, entity, _name)
        if entity.settings is not None and entity.settings.namespace is not None:
            self._by_namespace[entity.settings.namespace].add(entity.name)

    def remove(self, entity: Entity) -> None:
        for items in self._lists(entity):
            items[:] = [one for one in items if one is not entity]
        if entity.settings is not None and entity.settings.namespace is not None:
            self._by_namespace[entity.settings.namespace].discard(entity.name)

    def swap(self, old: Entity, new: Entity) -> None:
        """Put an entity in the place of one of the same product, groups and namespace."""
        for items in self._lists(new):
            items[:] = [new if one is old else one for one in items]

    def _lists(self, entity: Entity) -> list[list[Entity]]:
        product = entity.product
        groups = [self._by_group[product, group] for group in groups_of(entity)]
        return [self._by_product[product], *groups]


def _name(entity: Entity) -> str:
    return entity.name


def _others(entities: Sequence[Entity], entity: Entity) -> Sequence[Entity]:
    return [one for one in entities if one.name != entity.name]
