"""The worker process for plans."""

import asyncio
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from temporal_plans.messages.addresses import PLANS_QUEUE

SHUTDOWN_TIMEOUT = timedelta(seconds=10)
"""How long running activities may continue after the worker is asked to stop."""

FAILOVER_TIMEOUT = timedelta(seconds=3)
"""How long a workflow task waits for the worker that has its workflow in memory."""

CACHE_SIZE = 5000
"""Workflows kept in memory; one costs about 15 KiB (design 10)."""


async def run_worker(
    client: Client,
    *,
    stop: asyncio.Event,
    task_queue: str = PLANS_QUEUE,
    max_cached_workflows: int = CACHE_SIZE,
) -> None:
    """Run a worker until ``stop`` is set. ``client`` must be connected with ``PlansPlugin``."""
    async with Worker(
        client,
        task_queue=task_queue,
        graceful_shutdown_timeout=SHUTDOWN_TIMEOUT,
        max_cached_workflows=max_cached_workflows,
        sticky_queue_schedule_to_start_timeout=FAILOVER_TIMEOUT,
    ):
        await stop.wait()
