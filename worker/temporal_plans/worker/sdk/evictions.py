"""Evictions of runs from the caches of this process's workers."""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio.worker import Worker


class Evictions:
    """Lets patches evict runs from the workers that are registered here.

    What the SDK does: only the core decides when a run is evicted from a worker's cache. The
    bridge to it can ask for an eviction, but neither ``Worker`` nor a workflow instance offers it.

    What ours does: asks the bridge of each registered worker; a worker without the run ignores it.

    Upstream: no upstream thread known.
    """

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    @contextmanager
    def of(self, worker: Worker) -> Generator[None]:
        """Register the worker while it runs."""
        self._workers.append(worker)
        try:
            yield
        finally:
            self._workers.remove(worker)

    def evict(self, run_id: str) -> None:
        """Evict the run with this run id after its current activation."""
        for worker in self._workers:
            bridge = worker._bridge_worker  # pyright: ignore[reportPrivateUsage]  # no public way
            bridge.request_workflow_eviction(run_id)
