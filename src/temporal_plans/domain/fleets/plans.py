"""Plans of entities: their kinds, and those that were proposed, run and ended."""

from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.fleets.names import Revision, ShortName, Text
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.values.model import Value


class PlanKind(StrEnum):
    """What a plan changes."""

    INSTALL = "INSTALL"
    CHANGE_VERSION = "CHANGE_VERSION"
    CHANGE_CONFIG = "CHANGE_CONFIG"
    CHANGE_SECRETS = "CHANGE_SECRETS"
    UNINSTALL = "UNINSTALL"
    RESTART = "RESTART"


class Intent(StrEnum):
    """Why a plan is made. In the order of precedence."""

    BREAK_GLASS = "BREAK_GLASS"
    RECALL_ROLL_OFF = "RECALL_ROLL_OFF"
    ROLLBACK = "ROLLBACK"
    UNINSTALL = "UNINSTALL"
    INSTALL = "INSTALL"
    UPGRADE = "UPGRADE"
    CONFIG = "CONFIG"
    SECRET = "SECRET"


PRECEDENCE = {
    Intent.BREAK_GLASS: 0,
    Intent.RECALL_ROLL_OFF: 1,
    Intent.ROLLBACK: 2,
    Intent.UNINSTALL: 3,
    Intent.INSTALL: 4,
    Intent.UPGRADE: 5,
    Intent.CONFIG: 6,
    Intent.SECRET: 6,
}
"""Lower numbers are issued first."""


class EntityConfig(Value):
    """A configuration in force: the key of its block, the revision of the block, and the revision
    of the environment's configuration. None is unknown, and compares as equal to anything."""

    key: OrderableVersion | None = Field(
        default=None, description="The version that the block in force has as its key."
    )
    revision: Revision | None = Field(
        default=None, description="The revision of the block; without it unknown."
    )
    environment_revision: Revision | None = Field(
        default=None,
        description="The revision of the environment's configuration; without it unknown.",
    )

    def differs(self, other: "EntityConfig") -> bool:
        return _differs(self.revision, other.revision) or _differs(
            self.environment_revision, other.environment_revision
        )


UNKNOWN_CONFIG = EntityConfig()


def _differs(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


class EntityVersion(Value):
    """What is installed: a version with its configuration; no version is not installed."""

    version: VersionText | None = Field(
        default=None, description="The installed version; without it nothing is installed."
    )
    config: EntityConfig = Field(default=EntityConfig(), description="Its configuration.")

    def differs(self, other: "EntityVersion") -> bool:
        return self.version != other.version or self.config.differs(other.config)


class ActiveStatus(StrEnum):
    ISSUED = "ISSUED"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    UNKNOWN = "UNKNOWN"


class EndStatus(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class PlanContent(Value):
    """What every plan of an entity says."""

    number: int = Field(default=1, ge=1, le=2**31, description="Its number, from 1, per entity.")
    kind: PlanKind = Field(description="What it changes.")
    intent: Intent = Field(description="Why it was made.")
    to: EntityVersion = Field(
        default=EntityVersion(), description="What it leads to; no version is uninstalled."
    )


class ProposedPlan(PlanContent):
    """A plan that waits for its constraints."""

    proposed_at: Time = Field(description="When it was first proposed.")
    blocked_since: Time | None = Field(
        default=None, description="Since when constraints hold it back, or since it was recomputed."
    )
    skipped: tuple[OrderableVersion, ...] = Field(
        default=(),
        max_length=1000,
        description="Newer versions that it passed over after 4 hours, for lack of artifacts.",
    )


class ActivePlan(PlanContent):
    """A plan that was issued and has not ended."""

    status: ActiveStatus = Field(default=ActiveStatus.RUNNING, description="How far it is.")
    issued_at: Time | None = Field(default=None, description="When it was issued.")
    before: EntityVersion = Field(
        default=EntityVersion(), description="What was installed when it was issued."
    )
    secrets: tuple[ShortName, ...] | None = Field(
        default=None,
        max_length=100,
        description="The edited secrets that it applies; without it unknown, and all that wait "
        "when it succeeds are taken for applied.",
    )


class EndedPlan(PlanContent):
    """The last plan that ended."""

    status: EndStatus = Field(description="How it ended.")
    ended_at: Time | None = Field(default=None, description="When it ended.")
    before: EntityVersion = Field(
        default=EntityVersion(), description="What was installed before it."
    )
    errors: tuple[Text, ...] = Field(
        default=(), max_length=20, description="The errors of its tasks."
    )


class CommandType(StrEnum):
    INSTALL = "install"
    UNINSTALL = "uninstall"
    ENFORCE_CONFIG = "enforce-config"
    ENFORCE_VERSION = "enforce-version"
    RESTART = "restart"


class Command(Value):
    """A break-glass command: it is carried out whatever the constraints say."""

    id: ShortName = Field(description="The id of the command.")
    type: CommandType = Field(description="What it does.")
    version: VersionText | None = Field(
        default=None, description="The version, of `install` and `enforce-version`."
    )
    reason: Text = Field(min_length=1, description="Why; it must be given.")
    by: Text = Field(default="", description="Who gave it.")
    at: Time | None = Field(default=None, description="When it was given.")


class FailureCount(Value):
    """How often in a row plans to one version and configuration failed."""

    version: VersionText | None = Field(default=None, description="The version.")
    config: Revision | None = Field(default=None, description="The revision of configuration.")
    count: int = Field(ge=1, le=1000, description="How often in a row.")
