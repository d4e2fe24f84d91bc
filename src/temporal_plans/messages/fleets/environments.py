"""The Environment workflow: its state, its input, and its decisions."""

from collections.abc import Iterator
from typing import Any

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, ProductName
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.spokes import SpokeStanding
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.catalogues import KnownProduct
from temporal_plans.messages.fleets.change_requests import ChangeRequest
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.plans import IssuedPlan, PlanRow
from temporal_plans.messages.fleets.requests import FleetRequest
from temporal_plans.messages.plans import CommandLog


class EnvironmentState(CompressibleValue):
    """What an Environment carries from run to run.

    ``products`` are the catalogues of its entities' products; ``following`` are those that know of
    it, ``stale`` those of which there is a newer revision. ``standings`` are the last decisions
    in short. ``numbers`` counts the ids that it gives.
    ``configs`` are the configurations, by revision, that are declared, in force or led to: a
    rollback may go back to one that is not declared any more.
    ``again``: when the answer about an entity may be another by itself, where nothing has changed
    since the last decision; else None, and everything is decided again.
    ``requests`` are the change requests: all that are open, and the last ones that are not.
    ``spoke`` is the registered one.
    """

    declaration: EnvironmentDeclaration
    environment: Environment
    until: AwareDatetime | None = None
    products: dict[ProductName, KnownProduct] = {}
    following: tuple[ProductName, ...] = ()
    stale: dict[ProductName, int] = {}
    issued: dict[EntityName, IssuedPlan] = {}
    standings: dict[EntityName, EntityStanding] = {}
    history: tuple[PlanRow, ...] = ()
    next_wakeup: AwareDatetime | None = None
    again: dict[EntityName, AwareDatetime] | None = None
    numbers: int = 0
    configs: dict[str, dict[str, Any]] = {}
    spoke: SpokeStanding | None = None
    requests: tuple[ChangeRequest, ...] = ()
    log: CommandLog = CommandLog()

    def without_catalogues(self) -> "EnvironmentState":
        """Return the state in which catalogues are fetched again, but for those with ramps: what
        has started in these is counted here alone."""
        kept = {name: one for name, one in self.products.items() if one.product.ramps}
        stale = {**dict.fromkeys(sorted(self.products.keys() - kept), 0), **self.stale}
        return self.but(products=kept, stale=stale, again=None)

    def shorter_forms(self) -> Iterator["EnvironmentState"]:
        fetching = self.without_catalogues()
        yield fetching
        closed = tuple(one if one.open else one.but(planned=()) for one in self.requests)
        history = tuple(one.but(errors=()) for one in self.history)
        yield fetching.but(requests=closed, history=history)
        opened = tuple(one for one in self.requests if one.open)
        yield fetching.but(requests=opened, history=(), log=CommandLog())

    @classmethod
    def of(cls, name: str) -> "EnvironmentState":
        """Return the state of an environment that was not applied yet."""
        return cls(
            declaration=EnvironmentDeclaration(name=name), environment=Environment(name=name)
        )


class EnvironmentInput(CompactValue):
    """Input of the Environment workflow. ``workflow_limit``: with more entities than this the
    activity ``decide`` decides."""

    name: EnvironmentName
    history_limit: int = Field(default=2000, ge=50)
    workflow_limit: int = Field(default=200, ge=0)
    state: EnvironmentState | None = None


class EnvironmentApply(FleetRequest, CompressibleValue):
    """Update ``apply``: the environment as its document says."""

    environment: EnvironmentDeclaration


class DecideEnvironment(CompressibleValue):
    """Input of the activity ``decide_environment``."""

    environment: Environment
    products: tuple[Product, ...]
    standings: dict[EntityName, EntityStanding] = {}
    now: AwareDatetime
