"""The process of a spoke: between its hub and the Temporal server beside it."""

import asyncio
import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from uuid import uuid4

from temporalio.client import Client
from temporalio.worker import Worker

from temporal_plans.activities.contents.choice import VARIABLE, content_store
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.fleets.spoke.orders import OrderActivities, Watches
from temporal_plans.activities.fleets.spoke.pace import RegistrationPace
from temporal_plans.activities.fleets.spoke.registration import (
    SpokeRegistration,
    identity_of_record,
)
from temporal_plans.activities.fleets.spoke.reports import ReportActivities
from temporal_plans.activities.fleets.spoke.work_dir import lineage_of
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.spokes import environment_queue, spoke_id

HUB_CONTENTS = "TEMPORAL_PLANS_HUB_CONTENTS"
"""The content store of the hub, as TEMPORAL_PLANS_CONTENTS is that of this place."""

_WATCH_TIMEOUT = 20.0
"""Seconds after a registration in which the hub must watch this process."""

_STOP_TIMEOUT = timedelta(seconds=2)
"""In which the hub hears that this process stops."""

_HEARTBEAT_INTERVAL = timedelta(seconds=2)
"""The SDK holds heartbeats back for so long; by default for most of their timeout."""

_NOT_BEGUN = "Worker validation failed"
"""How the SDK's error begins when a server does not answer as a worker starts."""


class SpokeNotBegun(UserFacingError):
    """The hub, or the server beside the spoke, went away while its workers were starting."""


@dataclass(frozen=True)
class SpokeSettings:
    """``task_queue`` is that of the workers beside it."""

    environment: str
    work_dir: Path
    task_queue: str = PLANS_QUEUE


async def run_spoke(
    hub: Client, client: Client, settings: SpokeSettings, *, stop: asyncio.Event
) -> None:
    """Run a spoke until ``stop`` is set. ``client`` reaches the server beside it. Both must convert
    pydantic values.

    Raises SpokeRefused (another spoke acts for the environment, or has replaced this one),
    SpokeNotBegun and SpokeWorkDirError.
    """
    with lineage_of(settings.work_dir) as lineage:
        running = asyncio.create_task(_run(hub, client, settings, lineage, stop))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
        finally:
            for job in (running, stopping):
                job.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)


async def _run(
    hub: Client, client: Client, settings: SpokeSettings, lineage: str, stop: asyncio.Event
) -> None:
    name = settings.environment
    record = await identity_of_record(client, name, settings.task_queue)
    spoke = Spoke(name, _info(lineage, record))
    registration = SpokeRegistration(spoke, hub, client)
    await registration.register()
    store = {VARIABLE: os.environ.get(HUB_CONTENTS, "")}
    orders = OrderActivities(
        spoke,
        client,
        Releases(hub, content_store(hub, store)),
        content_store(client, task_queue=settings.task_queue),
    )
    reports = ReportActivities(spoke, hub, client)
    at_hub = Worker(
        hub,
        task_queue=environment_queue(name),
        activities=[orders.take_order, orders.end_order, orders.watch_spoke],
        identity=f"{spoke_id(name)}@{spoke.info.hostname}",
        graceful_shutdown_timeout=_STOP_TIMEOUT,
        max_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
        default_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
    )
    here = Worker(client, task_queue=spoke_id(name), activities=[reports.report_to_hub])
    try:
        async with at_hub, here:
            try:
                await _stay_registered(registration, orders.watches)
            finally:
                orders.stopping.set()
    except RuntimeError as problem:  # the SDK's only error; it makes no second worker of the kind
        if str(problem).startswith(_NOT_BEGUN):
            raise SpokeNotBegun(f"a server does not answer; start it again: {problem}") from None
        raise


async def _stay_registered(registration: SpokeRegistration, watches: Watches) -> None:
    """Register again whenever the hub does not watch this process."""
    pace = RegistrationPace()
    while True:
        began = time.monotonic()
        await watches.wait_until_lost(_WATCH_TIMEOUT)
        await asyncio.sleep(pace.pause_after(time.monotonic() - began))
        await registration.register()


def _info(lineage: str, record: str) -> SpokeInfo:
    try:
        ours = version("temporal-plans")
    except PackageNotFoundError:  # a bare checkout
        ours = ""
    return SpokeInfo(
        lineage=lineage,
        record=record,
        boot=uuid4().hex,
        hostname=socket.gethostname()[:255],
        version=ours,
    )
