"""What documents say of environments and products, as it is carried."""

import json
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from temporal_plans.domain.fleets.entities import ConfigRestart, EntityOptions, EntitySettings
from temporal_plans.domain.fleets.environment import EnvironmentOptions, EnvironmentSettings
from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, ProductName, ShortName
from temporal_plans.domain.fleets.products import Rollouts
from temporal_plans.domain.fleets.versions import OrderableVersion
from temporal_plans.domain.fleets.windows import ALL_TIME_NAME
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue

ENTITIES_LIMIT = 20_000


CONFIG_LIMIT = 100_000
"""Characters of one block of configuration, as JSON."""


DURATIONS = ("failure_suppression", "recompute_after", "agent_timeout", "scan_validity")
"""The settings of an environment that are durations."""


DURATION_LIMIT = timedelta(days=366)
"""Times are computed with durations of settings, and no time may be out of range."""


class Schedule(CompactValue):
    """A weekly schedule, which an activity makes absolute intervals of: data of time zones differs
    between machines. It also refuses unknown zones and malformed intervals."""

    time_zone_name: Annotated[str, StringConstraints(max_length=100)]
    time_intervals: tuple[Annotated[str, StringConstraints(max_length=100)], ...] = Field(
        max_length=100
    )


def _bounded_config(value: dict[str, Any]) -> dict[str, Any]:
    size = len(json.dumps(value, default=str))
    if size > CONFIG_LIMIT:
        raise ValueError(f"has more than {CONFIG_LIMIT} characters as JSON ({size})")
    return value


class ConfigDeclaration(CompactValue):
    """A block of configuration."""

    overrides: dict[str, Any] = {}
    restart: ConfigRestart = ConfigRestart.ROLLING

    @model_validator(mode="after")
    def _bounded(self) -> "ConfigDeclaration":
        _bounded_config(self.overrides)
        return self


class EntityDeclaration(EntityOptions):
    """How an entity is managed, with its blocks of configuration by version."""

    config: dict[OrderableVersion, ConfigDeclaration] = Field(default={}, max_length=1000)


class SettingsDeclaration(EnvironmentOptions):
    """The settings of an environment, with its weekly schedules by name."""

    maintenance_windows: dict[ShortName, Schedule] = Field(default={}, max_length=1000)
    downtime_window: ShortName = ALL_TIME_NAME
    no_downtime_window: ShortName = ALL_TIME_NAME

    @model_validator(mode="after")
    def _bounded(self) -> "SettingsDeclaration":
        for name in DURATIONS:
            if not timedelta() < getattr(self, name) <= DURATION_LIMIT:
                raise ValueError(
                    f"{name}: must be more than 0, and at most {DURATION_LIMIT.days} days"
                )
        return self


class EnvironmentDeclaration(CompressibleValue):
    """An environment as its document says."""

    name: EnvironmentName
    settings: SettingsDeclaration = SettingsDeclaration()
    config: dict[str, Any] | None = None
    entities: dict[EntityName, EntityDeclaration] = Field(default={}, max_length=ENTITIES_LIMIT)

    @model_validator(mode="after")
    def _bounded(self) -> "EnvironmentDeclaration":
        _bounded_config(self.config or {})
        return self

    @property
    def products(self) -> tuple[str, ...]:
        """The products of its entities."""
        return tuple(sorted({one.product for one in self.entities.values()}))


class ProductDeclaration(CompactValue):
    """A product as its document says, without its releases."""

    name: ProductName
    maintenance_window: Schedule | None = None
    rollouts: Rollouts = {}


class DeclaredEnvironment(CompressibleValue):
    """Result of the activity ``read_environment``: the declaration with absolute windows, which are
    known up to ``until``."""

    settings: EnvironmentSettings
    entities: dict[EntityName, EntitySettings] = {}
    until: AwareDatetime | None = None


class ReadEnvironment(CompressibleValue):
    """Input of the activity ``read_environment``."""

    declaration: EnvironmentDeclaration
    now: AwareDatetime
