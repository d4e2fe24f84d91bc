"""What entities need and are incompatible with, by the product that is meant."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from temporal_plans.domain.fleets.dependency_groups import groups_of, searched_by
from temporal_plans.domain.fleets.entities import ALL_GROUPS, Entity
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.sorted_lists import insert, together

_Rule = TypeVar("_Rule", Dependency, Incompatibility)
_Place = tuple[str, str]
"""A product in a dependency group."""
_Need = tuple[Entity, Dependency]
_Ban = tuple[Entity, Incompatibility]


class RelationIndex:
    """The relations of entities with the releases that they have, or are being led to."""

    def __init__(self) -> None:
        self._needs: dict[_Place, list[_Need]] = defaultdict(list)
        self._bans: dict[_Place, list[_Ban]] = defaultdict(list)

    def dependents(self, entity: Entity) -> Sequence[_Need]:
        """Return who needs an entity's product and sees it, each with what it needs."""
        groups = (*groups_of(entity), ALL_GROUPS)
        return together([self._needs.get((entity.product, one), ()) for one in groups])

    def opponents(self, entity: Entity) -> Sequence[_Ban]:
        """Return who is incompatible with versions of an entity's product in its groups."""
        groups = groups_of(entity)
        return together([self._bans.get((entity.product, one), ()) for one in groups])

    def add(self, entity: Entity, release: Release | None) -> None:
        for needs, need in self._needs_of(entity, release):
            insert(needs, need, _holder)
        for bans, ban in self._bans_of(entity, release):
            insert(bans, ban, _holder)

    def add_for_now(
        self, entity: Entity, release: Release | None
    ) -> Iterator[Callable[[], object]]:
        """Add at the ends of the lists; yield what takes each back, the last one first."""
        for needs, need in self._needs_of(entity, release):
            needs.append(need)
            yield needs.pop
        for bans, ban in self._bans_of(entity, release):
            bans.append(ban)
            yield bans.pop

    def remove(self, entity: Entity, release: Release | None) -> None:
        for needs, _ in self._needs_of(entity, release):
            needs[:] = [one for one in needs if one[0] is not entity]
        for bans, _ in self._bans_of(entity, release):
            bans[:] = [one for one in bans if one[0] is not entity]

    def swap(self, old: Entity, new: Entity, release: Release | None) -> None:
        """Put an entity in the place of one that others see as the same."""
        for needs, need in self._needs_of(new, release):
            _renew(needs, old, need)
        for bans, ban in self._bans_of(new, release):
            _renew(bans, old, ban)

    def _needs_of(
        self, entity: Entity, release: Release | None
    ) -> Iterator[tuple[list[_Need], _Need]]:
        """Yield what an entity with a release needs, each with the list that it is in."""
        for dependency in release.dependencies if release else ():
            for group in searched_by(entity, dependency.product):
                yield self._needs[dependency.product, group], (entity, dependency)

    def _bans_of(
        self, entity: Entity, release: Release | None
    ) -> Iterator[tuple[list[_Ban], _Ban]]:
        """Yield what an entity with a release is incompatible with, each with its list."""
        for incompatibility in release.incompatibilities if release else ():
            for group in groups_of(entity):
                yield self._bans[incompatibility.product, group], (entity, incompatibility)


def _holder(item: tuple[Entity, object]) -> str:
    return item[0].name


def _renew(items: list[tuple[Entity, _Rule]], old: Entity, item: tuple[Entity, _Rule]) -> None:
    """Put an item in the place of the same rule of an entity that was exchanged."""
    for index, one in enumerate(items):
        if one[0] is old and one[1] is item[1]:
            items[index] = item
