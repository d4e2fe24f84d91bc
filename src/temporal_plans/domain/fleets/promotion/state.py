"""The state of a product: all that its promotions depend on."""

from datetime import datetime

from pydantic import Field

from temporal_plans.domain.fleets.names import ProductName
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.promotion.soak import utc_weekdays
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Value


class ProductState(Value):
    """A product with its pipeline. ``channels`` are those with rules; others have none. ``runs``
    and ``reports`` have one entry for each release in a stage, and for each entity."""

    product: Product
    channels: tuple[Channel, ...] = ()
    pipeline: Pipeline | None = None
    runs: tuple[StageRun, ...] = Field(default=())
    reports: tuple[EntityReport, ...] = ()

    @property
    def id(self) -> ProductName:
        return self.product.id

    def channel(self, name: str) -> Channel:
        """Return a channel; one that is not known has no rules."""
        return next((one for one in self.channels if one.name == name), Channel(name=name))

    def weekdays(self, now: datetime) -> Window:
        return self.product.weekdays or utc_weekdays(now)
