"""Products: their releases, recalls and what paces their upgrades."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import ProductName, ShortName
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
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


class Admission(Value):
    """When a release came to a channel."""

    version: VersionText = Field(description="The release.")
    channel: ShortName = Field(description="The channel.")
    at: AwareDatetime = Field(description="When it came there.")


Rollouts = Annotated[dict[ShortName, Duration], Field(max_length=50)]


class Product(Value):
    """A deployable component with its releases. ``weekdays``: Monday to Friday in the time zone of
    the window, without it in UTC. ``rollouts``: over how long upgrades to a new release are spread,
    by channel."""

    id: ProductName
    window: Window | None = None
    weekdays: Window | None = None
    releases: tuple[Release, ...] = ()
    recalls: tuple[Recall, ...] = ()
    ramps: tuple[Ramp, ...] = ()
    admissions: tuple[Admission, ...] = ()
    rollouts: Rollouts = {}
