"""Products: their releases, recalls and what paces their upgrades."""

from typing import Annotated

from pydantic import Field

from temporal_plans.domain.fleets.names import ProductName, ShortName
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.times import Length, Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Value

ONE_UPGRADE = 1_000_000


class Ramp(Value):
    """A ramped rollout under way: how many entities may have started an upgrade, over time."""

    channel: ShortName = Field(description="The channel that it paces.")
    version: OrderableVersion = Field(description="The release that it paces.")
    started_at: Time = Field(description="When the release came to the channel.")
    duration: Length = Field(description="Over how long the upgrades are spread.")
    entities: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        description="How many entities the channel had then."
    )
    started: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        default=0, description="How many entities have started the upgrade."
    )
    head_start: Annotated[int, Field(ge=0, le=ONE_UPGRADE)] = Field(
        default=ONE_UPGRADE,
        description="How much of an upgrade may start at once, in millionths. An environment of a "
        "fleet has a part by its name: else the first upgrade of each would start at once.",
    )


class Admission(Value):
    """When a release came to a channel."""

    version: VersionText = Field(description="The release.")
    channel: ShortName = Field(description="The channel.")
    at: Time = Field(description="When it came there.")


Rollouts = Annotated[dict[ShortName, Length], Field(max_length=50)]


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
