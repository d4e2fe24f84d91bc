"""The worker process for plans."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from temporal_plans.messages.addresses import PLANS_QUEUE, cluster_queue

SHUTDOWN_TIMEOUT = timedelta(seconds=10)
"""How long running activities may continue after the worker is asked to stop."""

FAILOVER_TIMEOUT = timedelta(seconds=3)
"""How long a workflow task waits for the worker that has its workflow in memory."""

CACHE_SIZE = 5000
"""Workflows kept in memory; one costs about 15 KiB (design 10)."""


CANCELLATION_INTERVAL = timedelta(seconds=1)
"""Within this time activities on a cluster notice that they were cancelled. Their heartbeats are
sent as often: the SDK holds them back for most of the heartbeat timeout otherwise."""


async def run_worker(
    client: Client,
    *,
    stop: asyncio.Event,
    task_queue: str | None = PLANS_QUEUE,
    clusters: Sequence[str] = (),
    max_cached_workflows: int = CACHE_SIZE,
) -> None:
    """Run a worker until ``stop`` is set: for plans, if there is a ``task_queue``, and for the
    clusters of these names. ``client`` must be connected with ``PlansPlugin``, which has the
    clusters' credentials."""
    workers = [_cluster_worker(client, name) for name in clusters]
    if task_queue is not None:
        workers.append(_plans_worker(client, task_queue, max_cached_workflows))
    async with AsyncExitStack() as running:
        for worker in workers:
            await running.enter_async_context(worker)
        await stop.wait()


def _plans_worker(client: Client, task_queue: str, max_cached_workflows: int) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        graceful_shutdown_timeout=SHUTDOWN_TIMEOUT,
        max_cached_workflows=max_cached_workflows,
        sticky_queue_schedule_to_start_timeout=FAILOVER_TIMEOUT,
    )


def _cluster_worker(client: Client, name: str) -> Worker:
    """What it has begun is begun again by another worker: it stops at once."""
    return Worker(
        client,
        task_queue=cluster_queue(name),
        max_heartbeat_throttle_interval=CANCELLATION_INTERVAL,
        default_heartbeat_throttle_interval=CANCELLATION_INTERVAL,
    )
