"""Suppressions, which stop plans, and overrides, which open a maintenance window once."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.fleets.names import EntityName, Revision, ShortName, Text
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.model import Value


class Origin(StrEnum):
    """What made a suppression."""

    MANUAL = "manual"
    FAILED_PLAN = "failed-plan"
    ENVIRONMENT_THRESHOLD = "environment-threshold"
    PROMOTION = "promotion"


class Suppression(Value):
    """A time in which an entity, or the whole environment, gets no plans."""

    id: ShortName = Field(description="The id of the suppression.")
    origin: Origin = Field(default=Origin.MANUAL, description="What made it.")
    entity: EntityName | None = Field(
        default=None, description="The entity; without it the whole environment."
    )
    start: Time = Field(description="From when it has effect.")
    end: Time | None = Field(
        default=None, description="Up to when; without it until it is removed."
    )
    reason: Text = Field(default="", description="Why, for people.")
    by: Text = Field(default="", description="Who made it.")
    cancel_active: bool = Field(
        default=False, description="Cancel the plans that run when it takes effect."
    )
    target_version: VersionText | None = Field(
        default=None, description="Only plans to this version are stopped."
    )
    target_config: Revision | None = Field(
        default=None, description="With `target-version`: only with this revision of configuration."
    )

    def active(self, now: datetime) -> bool:
        return self.start <= now and (self.end is None or now < self.end)

    def concerns(self, entity: str) -> bool:
        return self.entity is None or self.entity == entity

    def next_edge(self, now: datetime) -> datetime | None:
        """Return the next time after ``now`` at which it takes or loses effect."""
        return next_time(now, self.start, self.end)


class WindowClass(StrEnum):
    """Whether the users of an entity may notice a change."""

    DOWNTIME = "downtime"
    NO_DOWNTIME = "no-downtime"


class WindowOverride(Value):
    """A time in which changes may begin beside the maintenance windows. One for downtime admits
    both classes of changes."""

    id: ShortName = Field(description="The id of the override.")
    entity: EntityName | None = Field(
        default=None, description="The entity; without it the whole environment."
    )
    admits: WindowClass = Field(description="The class of changes that it admits.")
    start: Time = Field(description="From when it has effect.")
    end: Time = Field(description="Up to when it has effect.")
    reason: Text = Field(default="", description="Why, for people.")
    by: Text = Field(default="", description="Who made it.")

    def concerns(self, entity: str) -> bool:
        return self.entity is None or self.entity == entity

    def admits_class(self, wanted: WindowClass) -> bool:
        return self.admits is WindowClass.DOWNTIME or wanted is WindowClass.NO_DOWNTIME

    def active(self, now: datetime) -> bool:
        return self.start <= now < self.end


def next_time(now: datetime, *times: datetime | None) -> datetime | None:
    """Return the first of some times after ``now``; None when there is none."""
    return min((time for time in times if time is not None and time > now), default=None)


def first_time(times: Iterable[datetime | None]) -> datetime | None:
    """Return the first of the times that are known; None when none is."""
    return min((time for time in times if time is not None), default=None)
