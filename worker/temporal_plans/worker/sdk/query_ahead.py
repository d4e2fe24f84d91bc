"""Queries that bring events which no workflow task has delivered yet."""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance

from temporal_plans.worker.sdk.jobs import WITHOUT_EVENTS, kinds_of
from temporal_plans.worker.sdk.patch import Patch, Run

AHEAD_OF_TASKS = (
    "a query was answered with events that no workflow task had delivered yet;"
    " this task fails once, so that the history is replayed"
)

_DIRECT_QUERY = "legacy_query"
"""The core's id of a query that comes without a workflow task."""


class QueryAhead(Patch):
    """Evicts a run that answered a query with events which no workflow task has delivered yet.

    What the SDK does: a query that waited for a worker, because the one before was killed, brings
    the history as it is by then. The core applies all of it to answer, the newest events at the
    time of the workflow task before. The next workflow task has only the rest of the events, or
    none: it completes with the commands of that earlier activation, and the workflow is not even
    activated. Its history can't be replayed.

    Reproduction: stop the worker of a workflow that waits for signals; query it, and send signals
    while the query waits; start a worker and replay the history
    (tests/workflows/test_query_ahead.py).

    What ours does: evicts such a run as soon as it has answered, and fails a workflow task that
    comes before the eviction, so that the history is replayed. An activation is taken for such a
    one when it has the time of the activation before; or when it is the first new one of a run that
    this worker has just replayed, since a workflow task without commands is joined with the next
    (``empty_activation``) and then has its time. The second guess may be wrong, which costs one
    replay.

    Upstream: no upstream thread known for the core. The Go SDK has one about the same histories:
    https://github.com/temporalio/sdk-go/issues/755.
    """

    def __init__(self, inner: WorkflowInstance, run: Run) -> None:
        super().__init__(inner, run)
        self._time: tuple[int, int] | None = None
        self._replayed = False
        self._new_activations = 0
        self._may_be_ahead = False
        self._is_ahead = False

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        return run.is_ours

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, or refuse it because the run is ahead of its workflow tasks."""
        kinds = kinds_of(act)
        if kinds <= WITHOUT_EVENTS:
            if self._may_be_ahead and any(map(_is_direct_query, act.jobs)):
                self._is_ahead = True
                self._run.evict(act.run_id)
            return self._inner.activate(act)
        if self._is_ahead:
            return _refusal()
        self._note(act, kinds)
        return self._inner.activate(act)

    def _note(self, act: WorkflowActivation, kinds: set[str]) -> None:
        """Note whether a workflow task may be missing. An update certainly comes with one, and the
        end of a local activity within one."""
        if "initialize_workflow" in kinds:
            self._replayed = act.is_replaying
        self._new_activations += not act.is_replaying
        first_new = self._replayed and self._new_activations == 1
        time = act.timestamp.seconds, act.timestamp.nanos
        has_task = "do_update" in kinds or any(job.resolve_activity.is_local for job in act.jobs)
        self._may_be_ahead = (time == self._time or first_new) and not has_task
        self._time = time


def _is_direct_query(job: WorkflowActivationJob) -> bool:
    return job.query_workflow.query_id == _DIRECT_QUERY


def _refusal() -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    failure = completion.failed.failure
    failure.message = AHEAD_OF_TASKS
    failure.application_failure_info.type = "AheadOfTasks"
    return completion
