"""The last answer about each entity of an environment, kept up to date while the environment
changes.

Deciding again costs what has changed: the entities concerned, their neighbours, and those whose
time has come. The answers are those of deciding about everything.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from heapq import heappop, heappush

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, ThresholdChange
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.standing import Pass
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.threshold import next_count_change, threshold_change
from temporal_plans.domain.fleets.world import World

_TIMES_KEPT = 1000


class Answers:
    """Whoever decides: ``decide``, carry the answer out, ``change_to`` the snapshot after it, and
    decide again until nothing is issued; then at the wakeup, or after the next event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.world = World(snapshot)
        self._decisions: dict[str, Decision] = {}
        self._again: dict[str, datetime] = {}
        """When the answer about an entity may be another by itself, by its name."""
        self._stale = set(self.world.entities)
        self._times: list[tuple[datetime, str]] = []
        """A heap of these times; entries that no longer hold stay in it."""

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The last decision about each entity, by its name."""
        return self._decisions

    @property
    def again(self) -> Mapping[str, datetime]:
        """When the answer about an entity may be another by itself, by its name; see ``take``."""
        return self._again

    def change_to(self, snapshot: Snapshot) -> None:
        """Change to a later snapshot. What is the same object in both is taken as unchanged."""
        self._stale |= self.world.change_to(snapshot)
        for kept in (self._decisions, self._again):
            if len(kept) > len(self.world.entities):
                for name in set(kept) - set(self.world.entities):
                    del kept[name]

    def change_entity(self, entity: Entity) -> None:
        """Change one entity, or add it."""
        self._stale |= self.world.change_entity(entity)

    def change_product(self, product: Product) -> None:
        """Change one product, or add it."""
        self._stale |= self.world.change_product(product)

    def concerned(self, now: datetime) -> AbstractSet[str]:
        """Return the names of the entities whose answers may be others than before."""
        if threshold_change(self.world.environment, now) != ThresholdChange():
            self._stale = set(self.world.entities)
        while self._times and self._times[0][0] <= now:
            time, name = heappop(self._times)
            if self._again.get(name) == time:
                self._stale.add(name)
        return self._stale

    def decide(self, now: datetime) -> FleetDecision:
        """Decide about the entities whose answers may be others than before, and about no others.
        ``next_wakeup`` is that of the whole environment."""
        answer = decide(self.world, now, only=self.concerned(now))
        self._stale = set[str]()
        for one in answer.decisions:
            name = one.entity.partition("/")[2]
            self._decisions[name] = one
            self._put(name, one.next_evaluation_at)
        return answer.but(next_wakeup=self._wakeup(now))

    def take(self, again: Mapping[str, datetime]) -> None:
        """Take it that everything was decided elsewhere: ``again`` says when an answer may be
        another by itself, by entity."""
        self._stale, self._times, self._again = set[str](), [], {}
        self._decisions.clear()
        for name in sorted(again):
            self._put(name, again[name])

    def without_changed(self, done: Pass, snapshot: Snapshot, now: datetime) -> Pass:
        """Change to a later snapshot than that of a pass over everything which was made elsewhere,
        and return what of the pass still holds: the rest is to be decided again.

        An entity that was judged beside a plan that is not issued after all is judged again, too.
        """
        self.change_to(snapshot)
        changed = self.concerned(now)
        dropped = changed & set(done.issued)
        counted = self.world.settings.max_active_plans is not None or done.ramps
        if dropped and counted:
            self._stale = set(self.world.entities)
        for name in dropped:
            entity = self.world.entities.get(name)
            self._stale |= self.world.neighbours_of(entity) if entity else set()
        gone = {*done.states, *done.standings, *done.issued} - self.world.entities.keys()
        return done.without(self._stale | gone)

    def _put(self, name: str, again: datetime | None) -> None:
        if again is None:
            self._again.pop(name, None)
        else:
            self._again[name] = again
            heappush(self._times, (again, name))
            if len(self._times) > _TIMES_KEPT + 2 * len(self._again):
                self._times = sorted((time, one) for one, time in self._again.items())

    def _wakeup(self, now: datetime) -> datetime | None:
        return first_time([self._next_time(), next_count_change(self.world.environment, now)])

    def _next_time(self) -> datetime | None:
        while self._times:
            time, name = self._times[0]
            if self._again.get(name) == time:
                return time
            heappop(self._times)
        return None
