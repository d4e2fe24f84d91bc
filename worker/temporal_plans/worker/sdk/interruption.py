"""Activations that take longer than the SDK's deadlock timeout."""

import logging
import time
from threading import Lock

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import Worker, WorkflowInstance

from temporal_plans.worker.sdk.patch import Patch, Run

CPU_LIMIT = 0.5
"""Seconds of CPU time after which an activation may be interrupted. Activations take milliseconds;
an endless loop uses more than this within ``ACTIVATION_TIMEOUT``."""

ACTIVATION_TIMEOUT = 5.0
"""Seconds that an activation may take. The server gives a workflow task ten."""

EVICTION_TIMEOUT = 1.0
"""Seconds that an eviction waits for the end of the current activation. The SDK retries evictions
forever, and uses one more thread each time the one before still waits after two seconds."""

_thread_clock = getattr(time, "pthread_getcpuclockid", None)
"""A thread's CPU clock. macOS has none: activations are never interrupted there."""

_abandoned: list["Interruption"] = []
"""Interrupted runs that were evicted with tasks left. If they were garbage collected, Python would
resume their tasks once more, in an arbitrary thread."""

_log = logging.getLogger(__name__)


def raise_activation_timeout(worker: Worker) -> None:
    """Give the worker's activations ``ACTIVATION_TIMEOUT``; in debug mode they have no timeout."""
    workflows = worker._workflow_worker  # pyright: ignore[reportPrivateUsage]  # no public way
    if workflows is None:
        return
    if workflows._deadlock_timeout_seconds is not None:  # pyright: ignore[reportPrivateUsage]
        vars(workflows)["_deadlock_timeout_seconds"] = ACTIVATION_TIMEOUT


class ActivationRunningError(RuntimeError):
    """The run can't be evicted during an activation."""


class Interruption(Patch):
    """Interrupts only activations that use the CPU, and evicts only between activations.

    What the SDK does: after two seconds of wall-clock time in one activation it fails the workflow
    task ([TMPRL1101]), raises an exception in the activation's thread so that an endless loop ends,
    and evicts the run. A process that was stopped or starved for two seconds (an overloaded or
    migrated machine, a container out of CPU quota) gets the same treatment, and it does harm:

    - The exception may hit between any two instructions, the SDK's own included. Where it hits the
      code that is about to wake a task, that task sleeps forever, and the eviction never succeeds
      ("1 tasks remain").
    - The SDK means to wait for the activation's end before the eviction, but ``asyncio.wait_for``
      has cancelled the future that it waits on. The run is torn down in one thread while another
      still executes it.

    The worker can then neither continue nor evict the run: every query and update of it fails until
    the process is restarted.

    Reproduction: ``time.sleep(2.5)`` in ``_WorkflowInstanceImpl.call_soon``, once, while a workflow
    handles a signal. The workflow answers no further update (tests/workflows/test_interruption.py).

    What ours does: raises the timeout to ``ACTIVATION_TIMEOUT``, since a plan of 20,000 steps takes
    a second to begin, and more on a busy machine; gives the SDK no thread to interrupt before the
    activation has used ``CPU_LIMIT`` of CPU time; delays evictions to the activation's end, and
    lets the eviction of an interrupted run succeed with tasks left.

    Upstream: no upstream thread known. The interruption came with
    https://github.com/temporalio/sdk-python/pull/806.
    """

    def __init__(
        self, inner: WorkflowInstance, run: Run, *, eviction_timeout: float = EVICTION_TIMEOUT
    ) -> None:
        super().__init__(inner, run)
        self._eviction_timeout = eviction_timeout
        self._running = Lock()
        self._cpu_time_at_start = 0.0
        self._interrupted = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, or evict the run."""
        if any(job.HasField("remove_from_cache") for job in act.jobs):
            return self._evict(act)
        with self._running:
            self._cpu_time_at_start = time.thread_time()
            return self._inner.activate(act)

    def get_thread_id(self) -> int | None:
        """Return the activation's thread for the SDK to interrupt; None when it must not."""
        thread = self._inner.get_thread_id()
        if thread is None or _thread_clock is None:
            return None
        if time.clock_gettime(_thread_clock(thread)) - self._cpu_time_at_start < CPU_LIMIT:
            return None
        self._interrupted = True
        return thread

    def _evict(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if not self._running.acquire(timeout=self._eviction_timeout):
            raise ActivationRunningError(f"run {act.run_id} is in an activation; evict it later")
        try:
            return self._inner.activate(act)
        except RuntimeError as error:
            if not self._interrupted:
                raise
            _log.warning("run %s was interrupted; evicted with tasks left: %s", act.run_id, error)
            _abandoned.append(self)
            return WorkflowActivationCompletion()
        finally:
            self._running.release()
