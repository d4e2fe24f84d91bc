"""Recalls: ranges of releases that are bad, and how entities leave them."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.fleets.names import EnvironmentName, ShortName, Text
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, parse_version
from temporal_plans.domain.values.model import Value


class RecallStatus(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    REVERTED = "reverted"


class RecallCause(StrEnum):
    MANUAL = "manual"
    PROMOTION = "promotion"
    VULNERABILITY = "vulnerability"


class RollOff(Value):
    """How entities leave a recalled release: forward to a newer one, unless more is allowed."""

    minimum_release: OrderableVersion | None = Field(
        default=None, description="The oldest release to go to."
    )
    allow_downgrade: bool = Field(
        default=False,
        description="Allow an older release where no newer one can be used.",
    )
    freeze_until: Time | None = Field(
        default=None, description="Change no version before this time."
    )
    test_environments: tuple[EnvironmentName, ...] = Field(
        default=(),
        max_length=1000,
        description="Only these environments roll off; entities elsewhere stay, and are not "
        "upgraded.",
    )


class Recall(Value):
    """A range of releases that may not be used."""

    id: ShortName = Field(description="The id of the recall.")
    start: OrderableVersion = Field(description="The oldest recalled version, inclusive.")
    end: OrderableVersion | None = Field(
        default=None,
        description="The first version after the range; it need not be published. Without it the "
        "range is open, and later releases are recalled when they are published.",
    )
    single: bool = Field(default=False, description="Only the version `start` is recalled.")
    except_versions: tuple[OrderableVersion, ...] = Field(
        default=(), max_length=1000, description="Versions in the range that may be used."
    )
    reason: Text = Field(default="", description="Why, for people.")
    by: Text = Field(default="", description="Who issued it.")
    cause: RecallCause = Field(default=RecallCause.MANUAL, description="What issued it.")
    roll_off: RollOff = Field(default=RollOff(), description="How entities leave the releases.")
    status: RecallStatus = Field(
        default=RecallStatus.ACTIVE, description="Only active recalls have an effect."
    )

    def covers(self, version: str) -> bool:
        """Return whether the recall is active and its range has the version."""
        found, start = parse_version(version), parse_version(self.start)
        if self.status is not RecallStatus.ACTIVE or found is None or found.key is None:
            return False
        assert start is not None
        assert start.key is not None
        if version in self.except_versions or found.key < start.key:
            return False
        if self.single:
            return found.key == start.key
        end = parse_version(self.end) if self.end else None
        return end is None or end.key is None or found.key < end.key

    def frozen_until(self, environment: str, now: datetime) -> datetime | None:
        """Return up to when the recall freezes versions in an environment; None when it does not.
        A list of test environments without a time freezes the others without an end, which is
        ``datetime.max`` in the time zone of ``now``."""
        tests = self.roll_off.test_environments
        if tests and environment in tests:
            return None
        until = self.roll_off.freeze_until
        if until is not None:
            return until if now < until else None
        return datetime.max.replace(tzinfo=now.tzinfo) if tests else None


def covering(recalls: Iterable[Recall], version: str) -> tuple[Recall, ...]:
    """Return the active recalls that cover a version, in the order of their ids."""
    return tuple(sorted((r for r in recalls if r.covers(version)), key=lambda recall: recall.id))
