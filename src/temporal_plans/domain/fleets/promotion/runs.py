"""What is remembered of the promotion of a release in a stage."""

from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.fleets.names import ShortName, Text
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.model import Value


class RunStatus(StrEnum):
    EVALUATING = "evaluating"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class StageRun(Value):
    """The promotion of a release in a stage, as far as it can't be seen from elsewhere."""

    source: ShortName = Field(description="The source channel of the stage.")
    target: ShortName = Field(description="The target channel of the stage.")
    version: VersionText = Field(description="The release.")
    status: RunStatus = Field(default=RunStatus.EVALUATING, description="Whether it goes on.")
    code: PromotionCode | None = Field(
        default=None, description="Why it is paused or was cancelled, for programs."
    )
    reason: Text = Field(default="", description="Why a person paused or cancelled it.")
    since: Time | None = Field(
        default=None,
        description="When its times began to run again; without it when the release came to the "
        "source channel.",
    )
    started_at: Time | None = Field(
        default=None, description="When the first canary had the release."
    )

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.source, self.target, self.version)

    @property
    def says_something(self) -> bool:
        """Whether it differs from a run of which nothing is remembered."""
        return (
            self.status is not RunStatus.EVALUATING
            or self.since is not None
            or self.started_at is not None
        )
