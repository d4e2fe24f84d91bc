"""What every request of a person carries, and the deletion of anything."""

from pydantic import Field

from temporal_plans.domain.values.model import CompactValue


class FleetRequest(CompactValue):
    """Who asks for something, and why; kept in the command log."""

    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class DeleteRequest(FleetRequest):
    """Update ``delete``. ``force``: also a product that environments have entities of, or an
    environment with running plans, which go on."""

    force: bool = False
