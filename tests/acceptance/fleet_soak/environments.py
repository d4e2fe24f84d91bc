"""The environments of a fleet under test, as their documents say them."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from acceptance.fleet_soak.catalogue import NEEDS
from temporal_plans.domain.fleets.windows import ALL_TIME_NAME
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentInput

COPIES = 2
"""Entities of each product in an environment."""

HISTORY = 60
"""Events after which an environment continues as new, which records its state."""

SUPPRESSION = timedelta(seconds=2)
"""The first after a failure; then twice and six times as long, then until the target changes."""


def entity_names() -> list[str]:
    return [f"{product[-1]}{copy}" for product in NEEDS for copy in range(COPIES)]


def product_of(entity: str) -> str:
    return f"shop:{entity[0]}"


@dataclass
class Wanted:
    """An environment. What the drill changes of it are its fields; ``more`` are settings."""

    name: str
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    open: bool = True
    colours: dict[str, str] = field(default_factory=dict[str, str])
    leaving: set[str] = field(default_factory=set[str])

    def request(self, reason: str) -> EnvironmentApply:
        """The document as it is to be now."""
        window = ALL_TIME_NAME if self.open else "never"
        settings: dict[str, Any] = {
            "release_channel": "stable",
            "failure_suppression": SUPPRESSION,
            "maintenance_windows": {"never": {"time_zone_name": "UTC", "time_intervals": []}},
            "downtime_window": window,
            "no_downtime_window": window,
            **self.more,
        }
        entities = {name: self._entity(name) for name in entity_names()}
        document: dict[str, Any] = {"name": self.name, "settings": settings, "entities": entities}
        declaration = EnvironmentDeclaration.model_validate(document)
        return EnvironmentApply(environment=declaration, by="soak", reason=reason)

    def _entity(self, name: str) -> dict[str, Any]:
        return {
            "product": product_of(name),
            "kind": "plan",
            "config": {"1.0.0": {"overrides": {"COLOUR": self.colours.get(name, "red")}}},
            "uninstall": name in self.leaving,
        }

    @property
    def begin(self) -> EnvironmentInput:
        limit = DECIDED_HERE.get(self.name, 200)
        return EnvironmentInput(name=self.name, history_limit=HISTORY, workflow_limit=limit)


DECIDED_HERE = {"south": 2, "west": 4}
"""How many entities a workflow itself decides about at most; about more an activity does, so that
its snapshot and its answer are in the history."""

SPOKE = "west"
"""The environment with a server of its own."""

AGENT_TIMEOUT = timedelta(seconds=4)
"""How long a spoke may be away before its plans read UNKNOWN."""


def three() -> dict[str, Wanted]:
    """One without limits, one with few plans at a time that stops after failures, and one that has
    a spoke."""
    careful = {"max_active_plans": 3, "suppress_deployment_after_num_autosuppressions": 3}
    found = (
        Wanted("north"),
        Wanted("south", more=careful),
        Wanted(SPOKE, more={"spoke": True, "agent_timeout": AGENT_TIMEOUT}),
    )
    return {one.name: one for one in found}
