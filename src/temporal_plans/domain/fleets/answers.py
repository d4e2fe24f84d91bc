"""The last answer about each entity of an environment, kept up to date while the environment
changes.

Deciding again costs what has changed: the entities concerned, their neighbours, and those whose
time has come. The answers are those of deciding about everything.
"""

from collections.abc import Mapping
from datetime import datetime
from heapq import heappop, heappush

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, ThresholdChange
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.threshold import next_count_change, threshold_change
from temporal_plans.domain.fleets.world import World


class Answers:
    """Whoever decides: ``decide``, carry the answer out, ``change_to`` the snapshot after it, and
    decide again until nothing is issued; then at the wakeup, or after the next event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.world = World(snapshot)
        self._decisions: dict[str, Decision] = {}
        self._stale = set(self.world.entities)
        self._times: list[tuple[datetime, str]] = []
        """A heap of when to decide about entities; entries that no longer hold stay in it."""

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The last decision about each entity, by its name."""
        return self._decisions

    def change_to(self, snapshot: Snapshot) -> None:
        """Change to a later snapshot. What is the same object in both is taken as unchanged."""
        self._stale |= self.world.change_to(snapshot)
        if len(self._decisions) > len(self.world.entities):
            for name in set(self._decisions) - set(self.world.entities):
                del self._decisions[name]

    def change_entity(self, entity: Entity) -> None:
        """Change one entity, or add it."""
        self._stale |= self.world.change_entity(entity)

    def change_product(self, product: Product) -> None:
        """Change one product, or add it."""
        self._stale |= self.world.change_product(product)

    def decide(self, now: datetime) -> FleetDecision:
        """Decide about the entities whose answers may be others than before, and about no others.
        ``next_wakeup`` is that of the whole environment."""
        environment = self.world.environment
        if threshold_change(environment, now) != ThresholdChange():
            self._stale = set(self.world.entities)
        while self._times and self._times[0][0] <= now:
            self._stale.add(heappop(self._times)[1])
        answer = decide(self.world, now, only=self._stale)
        self._stale = set[str]()
        for one in answer.decisions:
            name = one.entity.partition("/")[2]
            self._decisions[name] = one
            if one.next_evaluation_at is not None:
                heappush(self._times, (one.next_evaluation_at, name))
        wakeup = first_time([self._next_time(), next_count_change(environment, now)])
        return answer.but(next_wakeup=wakeup)

    def _next_time(self) -> datetime | None:
        while self._times:
            time, name = self._times[0]
            known = self._decisions.get(name)
            if known is not None and known.next_evaluation_at == time:
                return time
            heappop(self._times)
        return None
