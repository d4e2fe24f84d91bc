"""How the watch of a spoke ends."""

import asyncio
from typing import cast

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.fleets.spoke.orders import OrderActivities
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.messages.spokes import WatchSpoke

SPOKE = Spoke("prod", SpokeInfo(lineage="l", record="r", boot="b"))


@pytest.mark.parametrize(
    ("details", "fails"),
    [({"not_found": True}, False), ({"cancel_requested": True}, True)],
    ids=["the environment continued as new", "the environment does not wait"],
)
async def test_a_watch_that_is_over_at_the_hub_is_no_failure(
    details: dict[str, bool], fails: bool
) -> None:
    orders = OrderActivities(
        SPOKE, cast(Client, None), cast(Releases, None), cast(ContentStore, None)
    )
    environment = ActivityEnvironment()
    beating = asyncio.Event()
    environment.on_heartbeat = lambda *_: beating.set()
    watch = WatchSpoke.model_validate({"boot": "b", "heartbeat": "1s"})
    running = asyncio.ensure_future(environment.run(orders.watch_spoke, watch))
    async with asyncio.timeout(20):
        await beating.wait()
        environment.cancel(ActivityCancellationDetails(**details))
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        await orders.watches.wait_until_lost(0)
    assert isinstance(ended, asyncio.CancelledError) is fails, ended
