"""Products: their releases, recalls and what paces their upgrades."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import ProductName, ShortName
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import OrderableVersion
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Duration, Value


class Ramp(Value):
    """A ramped rollout under way: how many entities may have started an upgrade, over time."""

    channel: ShortName = Field(description="The channel that it paces.")
    version: OrderableVersion = Field(description="The release that it paces.")
    started_at: AwareDatetime = Field(description="When the release came to the channel.")
    duration: Duration = Field(description="Over how long the upgrades are spread.")
    entities: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        description="How many entities the channel had then."
    )
    started: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        default=0, description="How many entities have started the upgrade."
    )


class Product(Value):
    """A deployable component with its releases."""

    id: ProductName
    window: Window | None = None
    releases: tuple[Release, ...] = ()
    recalls: tuple[Recall, ...] = ()
    ramps: tuple[Ramp, ...] = ()
