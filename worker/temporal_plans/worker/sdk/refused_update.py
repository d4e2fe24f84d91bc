"""Refused updates that come with other jobs."""

from collections.abc import Iterable

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.sdk.jobs import kind_of, kinds_of
from temporal_plans.worker.sdk.patch import Patch

_UPDATES = frozenset({"do_update", "notify_has_patch"})
"""Jobs that may stand before the others of an activation; the second kind comes in replays only."""

_MUST_COME_FIRST = frozenset({"initialize_workflow", "signal_workflow"})
"""The start makes the workflow; a signal has conditions checked in replays, too."""


class RefusedUpdate(Patch):
    """Runs the updates of an activation in one of their own, before its timers and activities.

    What the SDK does: after the updates of an activation it checks what ``wait_condition`` waits
    for, unless the activation has nothing else and no update was accepted. A refused one leaves no
    event. So beside a timer it has conditions checked once more often than in replays, before the
    timer fires. What holds already then, as each activation brings it (the length of the history,
    the time), wakes its coroutine earlier than in replays. The commands differ, and the workflow
    fails its tasks from the next restart of its worker on.

    Reproduction: a workflow that waits for a length of its history and then asks whether a timer
    has fired; have the timer and an update that is refused wait for its worker, and replay the
    history (tests/workflows/test_refused_update.py).

    What ours does: divides such an activation, so that the SDK sees that the updates have nothing
    beside them. Replays are not changed: their updates were all accepted.

    Upstream: no upstream thread known. The SDK's flag
    ``PROCESS_WORKFLOW_ACTIVATION_JOBS_AS_SINGLE_BATCH`` is another cure; no release sets it yet.
    """

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, in two when it has updates beside what needs no message."""
        kinds = kinds_of(act)
        others = kinds - _UPDATES
        if "do_update" not in kinds or not others or others & _MUST_COME_FIRST:
            return self._inner.activate(act)
        updates = self._inner.activate(_part(act, (j for j in act.jobs if kind_of(j) in _UPDATES)))
        if updates.HasField("failed"):
            return updates
        rest = self._inner.activate(_part(act, (j for j in act.jobs if kind_of(j) in others)))
        if rest.HasField("successful"):
            updates.successful.MergeFrom(rest.successful)
            return updates
        return rest


def _part(act: WorkflowActivation, jobs: Iterable[WorkflowActivationJob]) -> WorkflowActivation:
    """Return an activation with some of its jobs."""
    part = WorkflowActivation()
    part.CopyFrom(act)
    del part.jobs[:]
    part.jobs.extend(jobs)
    return part
