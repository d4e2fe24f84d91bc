"""What becomes of a run whose turn takes longer than the SDK gives it.

After two seconds the SDK fails the workflow task, raises an exception in the turn's thread so that
an endless loop ends, and forgets the run, to read it anew from its history. A process that stood
still for as long (a machine under load or moved, a container that has used up its share) gets the
same, without having done anything wrong, and it does harm:

- The exception may hit between any two instructions, also of the SDK: hit where a task is about to
  be woken, that task sleeps for ever, and the run can't be forgotten.
- The SDK means to wait for the end of the turn before it forgets the run, but what it waits for was
  called off with the waiting. So the run is torn down in one thread while it runs in another.

Such a run can neither go on in this worker nor be forgotten by it, and whatever is asked of it
fails until the worker is started anew. Therefore: only a turn that has worked is interrupted; a run
is forgotten between its turns; and one that was interrupted is forgotten even with tasks that sleep
for ever.
"""

import logging
import time
from threading import Lock

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance

WORKED = 0.5
"""Seconds of the processor that a turn has used when it may be interrupted: turns of workflows take
milliseconds, and a loop gets more than that in the SDK's two seconds."""

IN_A_TURN = 1.0
"""Seconds that forgetting a run waits for the end of its turn. The SDK tries again and again, each
time in one thread more if the one before still waits after two seconds."""

_clock_of = getattr(time, "pthread_getcpuclockid", None)
"""A thread's own clock. macOS has none; no turn is interrupted there."""

_torn: list["_Turns"] = []
"""What is left of runs that were interrupted. Collected as garbage, their tasks would run once
more, in whichever thread that happens."""

_log = logging.getLogger(__name__)


class InATurnError(RuntimeError):
    """The run can't be forgotten yet."""


def contain(instance: WorkflowInstance) -> None:
    """Have interruptions do no harm to this run."""
    turns = _Turns(instance)
    instance.activate = turns.activate  # type: ignore[method-assign]
    instance.get_thread_id = turns.get_thread_id  # type: ignore[method-assign]


class _Turns:
    """The turns of a run, one at a time."""

    def __init__(self, instance: WorkflowInstance) -> None:
        self._activate = instance.activate
        self._get_thread_id = instance.get_thread_id
        self._under_way = Lock()
        self._before = 0.0
        self._interrupted = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Take a turn, or forget the run."""
        if any(job.HasField("remove_from_cache") for job in act.jobs):
            return self._forget(act)
        with self._under_way:
            self._before = time.thread_time()
            return self._activate(act)

    def get_thread_id(self) -> int | None:
        """The thread of the turn, for the SDK to interrupt; None when it must not."""
        thread = self._get_thread_id()
        if thread is None or _clock_of is None:
            return None
        if time.clock_gettime(_clock_of(thread)) - self._before < WORKED:
            return None
        self._interrupted = True
        return thread

    def _forget(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if not self._under_way.acquire(timeout=IN_A_TURN):
            raise InATurnError(f"run {act.run_id} is in a turn that has not ended yet")
        try:
            return self._activate(act)
        except RuntimeError as error:
            if not self._interrupted:
                raise
            _log.warning("run %s was interrupted, and is forgotten as it is: %s", act.run_id, error)
            _torn.append(self)
            return WorkflowActivationCompletion()
        finally:
            self._under_way.release()
