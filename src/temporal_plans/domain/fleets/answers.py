"""The last answer about each entity of an environment, kept up to date while the environment
changes.

Deciding again costs what has changed: the entities concerned, their neighbours, and those whose
time has come. The answers are those of deciding about everything.
"""

from collections.abc import Mapping
from datetime import datetime

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, FleetDecision, ThresholdChange
from temporal_plans.domain.fleets.environment import Snapshot
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

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The last decision about each entity, by its name."""
        return self._decisions

    def change_to(self, snapshot: Snapshot) -> None:
        """Change to a later snapshot. What is the same object in both is taken as unchanged."""
        self._stale |= self.world.change_to(snapshot)
        for name in set(self._decisions) - set(self.world.entities):
            del self._decisions[name]

    def decide(self, now: datetime) -> FleetDecision:
        """Decide about the entities whose answers may be others than before, and about no others.
        ``next_wakeup`` is that of the whole environment."""
        if threshold_change(self.world.environment, now) != ThresholdChange():
            self._stale = set(self.world.entities)
        answer = decide(self.world, now, only=self._stale | self._due(now))
        for one in answer.decisions:
            self._decisions[one.entity.partition("/")[2]] = one
        self._stale = set()
        times = [one.next_evaluation_at for one in self._decisions.values()]
        wakeup = first_time([*times, next_count_change(self.world.environment, now)])
        return answer.but(next_wakeup=wakeup)

    def _due(self, now: datetime) -> set[str]:
        return {
            name
            for name, one in self._decisions.items()
            if one.next_evaluation_at is not None and one.next_evaluation_at <= now
        }
