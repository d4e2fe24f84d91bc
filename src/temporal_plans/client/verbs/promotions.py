"""Verbs for promotions: pipelines, rules of channels, and releases in the stages of a pipeline.

Their values are imported where a verb needs them, as in ``fleets``.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from temporal_plans.client.verbs.fleets import FleetVerbs
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.values.refusal import Code, RefusedError

if TYPE_CHECKING:
    from temporal_plans.messages.promotions import (
        PromoteRelease,
        ReleaseExplanation,
        SetChannel,
        SetPipeline,
        SteerPromotion,
    )


class PromotionVerbs(FleetVerbs):
    """The verbs for promotions. They raise Refused: with ``not-found`` for a product that there is
    not, else with its reason."""

    async def set_pipeline(self, product: str, request: SetPipeline) -> Outcome:
        """Give a product a pipeline, or take it away. A product that there is not begins."""
        from temporal_plans.messages.fleets.names import product_id
        from temporal_plans.messages.fleets.products import ProductInput

        input = ProductInput(name=product)
        return await self._start("Product", product_id(product), input, "pipeline", request)

    async def set_channel(self, request: SetChannel) -> dict[str, Outcome]:
        """Give a channel its rules, in all products that there are; by their names."""
        done: dict[str, Outcome] = {}
        for name in await self.products():
            try:
                done[name] = await self._update_fleet("product", name, "channel", request)
            except RefusedError as error:
                if error.refusal.code != Code.NOT_FOUND:  # deleted meanwhile
                    raise
        return done

    async def promote(self, product: str, request: PromoteRelease) -> Outcome:
        """Bring a release to channels by hand."""
        return await self._update_fleet("product", product, "promote", request)

    async def steer_promotion(self, product: str, request: SteerPromotion) -> Outcome:
        """Pause, resume or cancel the promotion of a release in a stage."""
        return await self._update_fleet("product", product, "steer", request)

    async def explain_release(self, product: str, version: str, at: datetime) -> ReleaseExplanation:
        """Return where a release is in the pipeline of its product at a time, and why."""
        from temporal_plans.messages.promotions import ExplainRelease, ReleaseExplanation

        query = ExplainRelease(version=version, at=at)
        return await self._query_fleet("product", product, "explain", ReleaseExplanation, query)
