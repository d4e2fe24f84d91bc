"""What is decided of the releases of a product."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decisions import Verdict
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.values.model import Value


class PromotionOutcome(StrEnum):
    """The first three are to be carried out, and then it is decided again."""

    PROMOTE = "PROMOTE"
    RECALL = "RECALL"
    CANCEL = "CANCEL"
    EVALUATING = "EVALUATING"
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    RECALLED = "RECALLED"


ACTIONS = frozenset({PromotionOutcome.PROMOTE, PromotionOutcome.RECALL, PromotionOutcome.CANCEL})


class CanaryCount(Value):
    """How many canaries there are, and how they are."""

    canaries: int = Field(description="How many there are.")
    reached: int = Field(description="How many have the release.")
    healthy: int = Field(description="How many have soaked and are healthy.")
    unhealthy: int = Field(description="How many have soaked and were in error for too long.")
    needed: int = Field(description="How many must be healthy.")


class PromotionDecision(Value):
    """What is decided of one release in one stage."""

    version: str = Field(description="The release.")
    source: str = Field(description="The channel that has it.")
    target: str = Field(description="The channel to which the stage leads.")
    outcome: PromotionOutcome = Field(
        description="`PROMOTE`: it comes to the target channel now; `RECALL`: canaries are so bad "
        "that it is recalled now; `CANCEL`: its time is over; `EVALUATING`: conditions do not hold "
        "yet; `PAUSED`: it is not judged now; `CANCELLED`, `RECALLED`: it was before."
    )
    code: str = Field(default="", description="The first reason, for programs.")
    message: str = Field(default="", description="The first reason, for people.")
    conditions: tuple[Verdict, ...] = Field(
        default=(), description="What every condition of the stage says of it."
    )
    canaries: CanaryCount | None = Field(default=None, description="Of a stage with canaries.")
    run: StageRun | None = Field(default=None, description="What is remembered of it.")
    next_evaluation_at: AwareDatetime | None = Field(
        default=None, description="When it is decided again, if nothing else happens."
    )


class EntityUnderTest(Value):
    """A canary that keeps its version while a promotion tests it."""

    environment: str = Field(description="Its environment.")
    entity: str = Field(description="Its name.")
    version: str = Field(description="The version under test.")


class ProductDecision(Value):
    """What is decided of the releases of a product at a time."""

    product: str = Field(description="The product.")
    at: AwareDatetime = Field(description="The time of the decision.")
    promotions: tuple[PromotionDecision, ...] = Field(
        default=(),
        description="The releases of source channels that are not on the target channel, by stage, "
        "newest first.",
    )
    recalls: tuple[Recall, ...] = Field(default=(), description="The recalls to issue now.")
    tests: tuple[EntityUnderTest, ...] = Field(
        default=(), description="The entities that promotions suppress: all of them."
    )
    next_wakeup: AwareDatetime | None = Field(
        default=None, description="When to decide again, if nothing happens before."
    )

    @property
    def acts(self) -> bool:
        """Whether there is something to carry out, after which to decide again."""
        return any(one.outcome in ACTIONS for one in self.promotions)
