"""What environments report of the entities of a product."""

from collections.abc import Iterator
from datetime import datetime

from temporal_plans.domain.fleets.entities import EntityState, Health
from temporal_plans.domain.fleets.environment import Connection, Environment
from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, ShortName
from temporal_plans.domain.fleets.promotion.labels import LabelValues
from temporal_plans.domain.fleets.promotion.soak import Condition, Soak
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Value


class EntityReport(Value):
    """What the promotion of a product needs to know of one entity. ``soak`` without a value: it is
    not known since when it has the version."""

    environment: EnvironmentName
    entity: EntityName
    environment_labels: LabelValues = {}
    connection: Connection = Connection.CONNECTED
    channel: ShortName
    version: VersionText | None = None
    condition: Condition = Condition.HEALTHY
    soak: Soak | None = None
    reported_at: Time | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.environment, self.entity)

    def says(self, other: "EntityReport") -> bool:
        """Return whether another report of the entity has nothing new."""
        return other.but(soak=self.soak, reported_at=self.reported_at) == self

    def following(self, before: "EntityReport | None", weekdays: Window) -> "EntityReport":
        """Return the report with its soak, which goes on from the report before where the version
        is the same, and begins where it is another."""
        if self.reported_at is None or self.version is None:
            return self
        if self.soak is not None:
            return self
        if before is None or before.version != self.version:
            return self.but(soak=Soak(since=self.reported_at))
        if before.soak is None:
            return self.but(soak=Soak(since=before.reported_at or self.reported_at))
        counted = before.soak.counted(before.condition, self.reported_at, weekdays)
        return self.but(soak=counted)


def condition_of(state: EntityState) -> Condition:
    """Return how an entity is. One without a health endpoint is healthy when all its replicas are
    live, and never unhealthy."""
    if state.health is Health.ERROR:
        return Condition.UNHEALTHY
    if state.all_live and state.health in (None, Health.HEALTHY, Health.DEFERRING):
        return Condition.HEALTHY
    return Condition.NEITHER


def reports_of(
    environment: Environment, at: datetime | None = None
) -> Iterator[tuple[str, EntityReport]]:
    """Yield the reports of the managed entities of an environment, each with its product. ``at``:
    they are made then, and their soaks go on from the reports before; without it they are made when
    and with the soak that the states say."""
    for entity in environment.entities:
        if entity.settings is None:
            continue
        state = entity.state
        yield (
            entity.product,
            EntityReport.model_construct(
                environment=environment.name,
                entity=entity.name,
                environment_labels=environment.settings.labels,
                connection=environment.facts.connection,
                channel=entity.settings.release_channel or environment.settings.release_channel,
                version=state.version,
                condition=condition_of(state),
                soak=state.soak if at is None else None,
                reported_at=state.reported_at if at is None else at,
            ),
        )
