"""The suppressions of an environment, by the entity that they stop."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.suppressions import Suppression


class Stops:
    """Suppressions; those in ``all`` are sorted by their start."""

    def __init__(self, suppressions: Iterable[Suppression]) -> None:
        self.all = tuple(sorted(suppressions, key=_order))
        self._whole = tuple(one for one in self.all if one.entity is None)
        self._own: dict[str, list[Suppression]] = defaultdict(list)
        for one in self.all:
            if one.entity is not None:
                self._own[one.entity].append(one)

    def of(self, entity: Entity) -> Sequence[Suppression]:
        """Return those of an entity and of the whole environment, by their start."""
        own = self._own.get(entity.name)
        if not own:
            return self._whole
        return sorted((*own, *self._whole), key=_order) if self._whole else own


def _order(one: Suppression) -> tuple[datetime, str]:
    return (one.start, one.id)
