"""Pipelines over days: the timers of a product, with skipped time.

Each workflow has a clock of its own: that of the product is moved on, and most tests report in the
place of an environment, at its times.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest_asyncio
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from pauses import until
from temporal_plans.client.errors import WorkerUnreachable
from temporal_plans.domain.fleets.promotion.decisions import PromotionDecision
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.messages.fleets.product_views import ProductExport, ProductView
from temporal_plans.messages.fleets.products import FollowProduct, ProductInput
from temporal_plans.messages.promotions import (
    CanaryAnswer,
    CanaryReports,
    PromotionVerb,
    SetPipeline,
    SteerPromotion,
)
from workflows.fleet_kit import Environment, Product, entities, new_environment, new_product
from workflows.plan_kit import Kit, kit

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WEEK = 7 * DAY
MONDAY = datetime(2001, 1, 1, tzinfo=UTC)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(clocks: WorkflowEnvironment) -> AsyncIterator[Kit]:
    async with kit(clocks.client.service_client.config.target_host) as made:
        yield made


@dataclass
class Clocked:
    """A product whose clock is moved on; ``place`` reports canaries to it."""

    clocks: WorkflowEnvironment
    product: Product
    place: Environment
    number: int = 0

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.clocks.client.get_workflow_handle(self.product.id)

    async def now(self) -> datetime:
        return await self.clocks.get_current_time(self.handle)

    async def pass_time(self, length: timedelta) -> None:
        assert await self.clocks.fast_forward(self.handle, length)

    async def until_time(self, of_week: timedelta) -> None:
        """Move on to a time of a week: it begins on Monday."""
        now = await self.now()
        left = (MONDAY + (now - MONDAY) // WEEK * WEEK + of_week - now) % WEEK
        await self.pass_time(left)

    async def pipeline(self, *stages: dict[str, Any], **more: Any) -> None:
        given = {"product": self.product.name, "stages": stages, **more}
        request = SetPipeline(pipeline=PipelineOptions.model_validate(given))
        await self.place.apply({})
        await self.product.update("pipeline", request)
        await until(self.view, lambda view: view.pipeline is not None)
        follow = FollowProduct(environment=self.place.name)
        await self.product.gateway.update(self.product.id, "follow", follow, Outcome)

    async def publish(self, version: str = "1.0.0", *channels: str, **more: Any) -> None:
        await self.product.publish(version, channels=channels or ("beta",), **more)

    async def report(self, **entities: str | tuple[str, str]) -> None:
        """Report entities on beta, each with its version, or with version and condition."""
        self.number += 1
        known_at, states = await self.now(), []
        for name, one in entities.items():
            version, condition = (one, "healthy") if isinstance(one, str) else one
            state = {"entity": name, "channel": "beta", "version": version, "known_at": known_at}
            states.append({**state, "condition": condition})
        reports = CanaryReports.model_validate(
            {
                "environment": self.place.name,
                "epoch": MONDAY,
                "number": self.number,
                "complete": self.number == 1,
                "entities": states,
            }
        )
        answer = await self.product.gateway.update(
            self.product.id, "canaries", reports, CanaryAnswer
        )
        assert not answer.send_all

    async def view(self) -> ProductView:
        return await self.product.query("status", ProductView)

    async def answers(self) -> bool:
        try:
            await self.view()
        except WorkerUnreachable:
            return False
        return True

    async def channels(self, version: str = "1.0.0") -> set[str]:
        rows = {one.version: one for one in (await self.view()).releases}
        return set(rows[version].channels)

    async def until_code(self, code: str, version: str = "1.0.0") -> PromotionDecision:
        def found(view: ProductView) -> list[PromotionDecision]:
            return [one for one in view.promotions if (one.version, one.code) == (version, code)]

        return found(await until(self.view, found))[0]

    async def until_on(self, channel: str, version: str = "1.0.0") -> None:
        """Wait until a release is on a channel, by now."""

        async def on() -> bool:
            return channel in await self.channels(version)

        await until(on)

    async def admitted_at(self, channel: str, version: str = "1.0.0") -> datetime:
        export = await self.product.query("export", ProductExport)
        [found] = [
            one.at for one in export.admissions if (one.version, one.channel) == (version, channel)
        ]
        return found


@pytest_asyncio.fixture(loop_scope="session")
async def clocked(clocks: WorkflowEnvironment, plans: Kit) -> Clocked:
    product = new_product(plans)
    await product.apply()
    return Clocked(clocks, product, new_environment(plans))


def timed(soak: str) -> dict[str, Any]:
    return {"source": "beta", "target": "stable", "timed": {"soak": soak}}


def canary(soak: str = "1h", **more: Any) -> dict[str, Any]:
    given = {
        "promote": {"percent": 100, "soak": soak},
        "recall": {"count": 1, "soak": soak},
        **more,
    }
    return {"source": "beta", "target": "stable", "canary": given}


async def test_a_soak_of_a_day_from_friday_noon_ends_on_monday_noon(clocked: Clocked) -> None:
    """T175"""
    await clocked.pipeline(timed("24h"))
    await clocked.until_time(4 * DAY + 12 * HOUR)
    await clocked.publish()
    soaks = await clocked.until_code("SOAKING")
    begun = await clocked.now()
    await clocked.pass_time(3 * DAY - MINUTE)
    assert "stable" not in await clocked.channels()
    await clocked.pass_time(2 * MINUTE)
    await clocked.until_on("stable")
    at = await clocked.admitted_at("stable")
    assert timedelta() <= at - (begun + 3 * DAY) + MINUTE < 2 * MINUTE
    assert soaks.next_evaluation_at is not None
    assert timedelta() <= at - soaks.next_evaluation_at < timedelta(seconds=10)


async def test_a_window_holds_a_soaked_release_back_until_it_opens(clocked: Clocked) -> None:
    """T038"""
    window = {"time_zone_name": "UTC", "time_intervals": ["THURSDAY/08:00-THURSDAY/20:00"]}
    await clocked.product.apply(maintenance_window=window)
    await clocked.pipeline(timed("1h"))
    await clocked.until_time(1 * DAY)
    await clocked.publish()
    await clocked.until_code("SOAKING")
    await clocked.pass_time(2 * HOUR)
    held = await clocked.until_code("OUTSIDE_WINDOW")
    assert held.next_evaluation_at is not None
    assert held.next_evaluation_at.strftime("%A %H:%M") == "Thursday 08:00"
    await clocked.pass_time(2 * DAY + 8 * HOUR)
    await clocked.until_on("stable")
    assert (await clocked.admitted_at("stable")).strftime("%A %H:%M") == "Thursday 08:00"


async def test_canaries_soak_for_hours_and_a_restart_of_the_workflow_loses_none(
    clocks: WorkflowEnvironment, plans: Kit
) -> None:
    product = new_product(plans)
    input = ProductInput(name=product.name, history_limit=50)
    await plans.client.start_workflow("Product", input, id=product.id, task_queue=plans.queue)
    clocked = Clocked(clocks, product, new_environment(plans))
    await clocked.pipeline(canary("4h"))
    await clocked.until_time(9 * HOUR)
    await clocked.publish()
    await clocked.report(a="1.0.0", b="1.0.0")
    await clocked.until_code("CANARIES_SOAKING")
    await clocked.pass_time(3 * HOUR)
    run_id = (await clocked.handle.describe()).run_id
    while (await clocked.handle.describe()).run_id == run_id:  # its history becomes long
        await clocked.report(a=("1.0.0", "neither"))
        await clocked.report(a="1.0.0")
    await until(clocked.answers)  # the next run begins a second later, which is not skipped
    await clocked.pass_time(30 * MINUTE)
    await clocked.until_code("CANARIES_SOAKING")
    assert "stable" not in await clocked.channels()
    await clocked.pass_time(35 * MINUTE)
    await clocked.until_on("stable")


async def test_four_minutes_of_an_hour_in_error_are_too_many(clocked: Clocked) -> None:
    """T177: 4 of 60 minutes are more than 5 %."""
    await clocked.pipeline(canary())
    await clocked.until_time(9 * HOUR)
    await clocked.publish()
    await clocked.report(a="1.0.0")
    await clocked.pass_time(10 * MINUTE)
    await clocked.report(a=("1.0.0", "unhealthy"))
    await clocked.pass_time(4 * MINUTE)
    await clocked.report(a="1.0.0")
    await clocked.pass_time(40 * MINUTE)
    assert (await clocked.view()).recalls == ()
    await clocked.pass_time(10 * MINUTE)
    [recall] = (await until(clocked.view, lambda view: bool(view.recalls))).recalls
    assert (recall.id, recall.cause) == ("canary-stable-1.0.0", "promotion")


async def test_a_release_that_no_canary_gets_is_cancelled_after_a_week(clocked: Clocked) -> None:
    """T186, and T187 for one that is resumed and lacks a label for 30 days."""
    await clocked.pipeline(canary(labels={"audited": []}))
    await clocked.until_time(9 * HOUR)
    await clocked.report(a="0.9.0")
    await clocked.publish()
    await clocked.until_code("WAITING_FOR_CANARIES")
    await clocked.pass_time(7 * DAY - MINUTE)
    await clocked.until_code("WAITING_FOR_CANARIES")
    await clocked.pass_time(2 * MINUTE)
    assert (await clocked.until_code("CANARIES_NOT_REACHED")).outcome == "CANCELLED"
    steer = SteerPromotion(verb=PromotionVerb.RESUME, version="1.0.0", target="stable")
    await clocked.product.update("steer", steer)
    await clocked.until_code("WAITING_FOR_CANARIES")
    await clocked.report(a="1.0.0")
    await clocked.pass_time(2 * HOUR)
    await clocked.until_code("LABELS_MISSING")
    await clocked.pass_time(30 * DAY)
    assert (await clocked.until_code("PROMOTION_TIMEOUT")).outcome == "CANCELLED"
    verbs = [verb for verb, _, _ in await clocked.product.log()]
    assert verbs[-3:] == ["cancel 1.0.0", "resume 1.0.0 to stable", "cancel 1.0.0"]


async def test_nothing_polls_for_months_and_windows_are_read_again(clocked: Clocked) -> None:
    await clocked.pipeline(timed("24h"))
    await clocked.until_time(9 * HOUR)
    await clocked.pass_time(120 * DAY)
    history = await clocked.handle.fetch_history()
    fired = sum(one.HasField("timer_fired_event_attributes") for one in history.events)
    begun = sum(one.HasField("activity_task_scheduled_event_attributes") for one in history.events)
    assert fired <= 6, "its windows are read every two months, and nothing else is done"
    assert begun <= 10, begun
    await clocked.publish()
    await clocked.until_code("SOAKING")
    await clocked.pass_time(5 * DAY)
    await clocked.until_on("stable")


async def test_environments_of_their_own_clock_get_what_has_soaked(
    clocks: WorkflowEnvironment, plans: Kit
) -> None:
    """The whole way: canaries install, their environment reports, production hears of it."""
    product, beta, production = new_product(plans), new_environment(plans), new_environment(plans)
    clocked = Clocked(clocks, product, new_environment(plans))
    await product.apply()
    await clocked.pipeline(canary("4h"))
    await beta.apply({**entities(product), "settings": {"release_channel": "beta"}})
    await production.apply(entities(product))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")
    await clocked.until_code("CANARIES_SOAKING")
    await clocked.pass_time(4 * DAY)  # a weekend may be in them
    await production.entity().until_at("1.0.0")
