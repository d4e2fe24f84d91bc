"""Runs a worker for plans until it is told to stop."""

import asyncio
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from temporal_plans.messages.cluster import PLANS_QUEUE

GRACE = timedelta(seconds=10)
"""How long activities that run may go on after the worker is told to stop."""

FAILOVER = timedelta(seconds=3)
"""How long a workflow waits for the worker that has it in memory, should that one be dead."""

CACHED_WORKFLOWS = 5000
"""Workflows kept in memory; one costs about 15 KiB (temporal.md 3.7)."""


async def run_worker(
    client: Client,
    *,
    stop: asyncio.Event,
    task_queue: str = PLANS_QUEUE,
    max_cached_workflows: int = CACHED_WORKFLOWS,
) -> None:
    """Run the worker of a client that was connected with ``PlansPlugin``, until ``stop`` is set."""
    async with Worker(
        client,
        task_queue=task_queue,
        graceful_shutdown_timeout=GRACE,
        max_cached_workflows=max_cached_workflows,
        sticky_queue_schedule_to_start_timeout=FAILOVER,
    ):
        await stop.wait()
