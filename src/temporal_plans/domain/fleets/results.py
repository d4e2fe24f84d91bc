"""What `temporal plan fleet decide --json` prints."""

from pydantic import Field

from temporal_plans.domain.fleets.decisions import FleetDecision, UnmetExpectation
from temporal_plans.domain.fleets.promotion.decisions import ProductDecision
from temporal_plans.domain.values.model import Value


class DecideResult(Value):
    """What `temporal plan fleet decide --json` prints."""

    environments: tuple[FleetDecision, ...] = Field(
        description="The decisions by environment and time."
    )
    products: tuple[ProductDecision, ...] = Field(
        default=(), description="The decisions about products with a pipeline, by product and time."
    )
    unmet: tuple[UnmetExpectation, ...] = Field(
        default=(), description="Expectations of the documents that were not met."
    )
