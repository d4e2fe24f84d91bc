"""How environments hear of products, and fetch their catalogues."""

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import EnvironmentName, ProductName, ShortName
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion.decisions import EntityUnderTest
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.declarations import Schedule
from temporal_plans.messages.malformed import SignalArgument


class Catalogue(CompressibleValue):
    """Answer of the query ``catalogue``. ``tests``: the entities that promotions test.
    ``canary_channels``: the product wants reports of entities that follow these channels.
    ``life``: tells the product from one of the same name that was terminated before."""

    revision: int
    life: str = Field(default="", max_length=100)
    product: Product
    maintenance_window: Schedule | None = None
    tests: tuple[EntityUnderTest, ...] = ()
    canary_channels: tuple[ShortName, ...] = ()


class Announcement(SignalArgument):
    """Signal ``announced`` from a Product to an Environment: there is a new revision, or it was
    deleted, or a new ``life`` of it has begun, after it was terminated."""

    product: ProductName = ""
    revision: int = Field(default=0, ge=0)
    deleted: bool = False
    life: str = Field(default="", max_length=100)


class Announce(CompactValue):
    """Input of the activity ``announce``."""

    announcement: Announcement
    environments: tuple[EnvironmentName, ...]


class Announced(CompactValue):
    """Result of the activity ``announce``: environments that do not exist any more."""

    gone: tuple[EnvironmentName, ...] = ()


class KnownProduct(CompressibleValue):
    """What an environment knows of a product: its releases as of ``revision``, its window up to
    ``until``, and which of its entities promotions test. The product wants reports of entities that
    follow ``canary_channels``. ``size``: bytes of the product, compressed."""

    revision: int
    life: str = Field(default="", max_length=100)
    product: Product
    until: AwareDatetime | None = None
    tests: tuple[EntityUnderTest, ...] = ()
    canary_channels: tuple[ShortName, ...] = ()
    size: int = 0


class AnnounceBeginning(CompactValue):
    """Input of the activity ``announce_beginning``: a product begins, perhaps again."""

    product: ProductName
    life: str = Field(max_length=100)


class FetchCatalogue(CompactValue):
    """Input of the activity ``fetch_catalogue``. ``follow``: the product must hear of the
    environment first."""

    product: ProductName
    environment: EnvironmentName
    now: AwareDatetime
    follow: bool = True


class StopFollowing(CompactValue):
    """Input of the activity ``stop_following``."""

    products: tuple[ProductName, ...]
    environment: EnvironmentName
