"""Runs the engine's workflows so that they decide the same in every worker.

A worker hands a workflow its history in turns (the SDK says activations), and what code decides may
depend on where a turn ends: within one, signals and updates come before timers, activities and
children. Two gaps of Temporal move that boundary. What was decided then can't be replayed, and the
workflow fails its tasks from the next restart of its worker on. They are closed here.

1. A workflow task that came to no command, after another such, is no boundary for a worker that
   reads the history with an update waiting: it joins the two. Once that update is in the history,
   replays part them again. So a turn that took in more than messages, and came to nothing, leaves a
   command behind: it writes the length of the history into the memo ``turn``. Only workflows with
   updates need it. Those that began before there was this rule do without, as old histories must
   replay: a patch marker in the first turn tells.

2. A query that waited for a worker, because the one before was killed, brings the history as it is
   by then: with events that no workflow task has delivered yet. The SDK takes them in to answer, at
   the time of the workflow task before, and the workflow task that comes next has only the rest, or
   nothing: then it ends with the commands of that turn, and the workflow is not even asked. So such
   a run is forgotten as soon as it has answered, and its history is read anew. A turn is taken for
   such a one when it has the time of the turn before; or when it is the first with something new in
   a run that this worker has just taken up, because a workflow task without commands before it is
   joined with it, and then it has that one's time. The second guess may be wrong, and costs no more
   than a replay. A turn that comes all the same is refused, which has the SDK forget the run, too.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import (
    Interceptor,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowInterceptorClassInput,
)

from temporal_plans.worker import interruption

MEMO = "turn"
"""The memo that a turn leaves behind which came to nothing."""

PATCH = "temporal-plans-turns"
"""The patch marker of runs that keep to the first rule."""

EVICT = "temporal_plans_evict"
"""The function outside the sandbox that has the worker forget the run of an id."""

TAKEN_UP_ANEW = (
    "a query was answered with events that no workflow task had delivered yet;"
    " this task is failed once, so that the history is read anew"
)

Activate = Callable[[WorkflowActivation], WorkflowActivationCompletion]
Evict = Callable[[str], None]

_NO_TURN = frozenset({"query_workflow", "remove_from_cache"})
_NOTHING_DECIDED = frozenset(
    {
        *_NO_TURN,
        "do_update",  # comes with a command of its own, or is refused and leaves no trace
        "notify_has_patch",  # in replays only
        "signal_workflow",
        "update_random_seed",
    }
)
_DIRECT_QUERY = "legacy_query"
"""The SDK's id of a query that comes without a workflow task."""

_LEAVES_NO_EVENT = frozenset(
    {
        "cancel_signal_workflow",
        "cancel_timer",
        "request_cancel_local_activity",
        "respond_to_query",
    }
)


OURS: tuple[str, ...] = ("temporal_plans.",)
"""The modules of the workflows that are run so. Developers' own are left as they are: their
histories must replay without this, should they do without the plugin one day."""


class Evictions(Interceptor):
    """Lets turns have their run forgotten, by those workers that were made known."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    @contextmanager
    def of(self, worker: Worker) -> Generator[None]:
        """As long as this worker runs."""
        self._workers.append(worker)
        try:
            yield
        finally:
            self._workers.remove(worker)

    def evict(self, run_id: str) -> None:
        """Whoever has the run forgets it as soon as its turn is over; nobody else minds."""
        for worker in self._workers:
            bridge = worker._bridge_worker  # pyright: ignore[reportPrivateUsage]  # no public way
            bridge.request_workflow_eviction(run_id)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        input.unsafe_extern_functions[EVICT] = self.evict
        return None


class SteadyRunner(UnsandboxedWorkflowRunner):
    """Runs a workflow inside the sandbox, or without one."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        interruption.contain(instance)  # inside a sandbox it is the sandbox's that counts
        if not det.defn.cls.__module__.startswith(OURS):
            return instance
        evict = cast(Evict, det.extern_functions.get(EVICT, _nobody))
        turns = Turns(instance.activate, has_updates=bool(det.defn.updates), evict=evict)
        instance.activate = turns.activate  # type: ignore[method-assign]
        return instance


class Turns:
    """The turns of one run in one worker. ``activate`` is the SDK's, of the workflow itself;
    ``evict`` has the worker forget the run of an id."""

    def __init__(self, activate: Activate, *, has_updates: bool, evict: Evict) -> None:
        self._activate = activate
        self._has_updates = has_updates
        self._evict = evict
        self._closes = False
        self._time: tuple[int, int] | None = None
        self._taken_up = False
        self._new_turns = 0
        self._without_task = False
        self._ahead = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Take a turn, or refuse it because the run is ahead of its workflow tasks."""
        kinds = {_kind(job) for job in act.jobs}
        if kinds <= _NO_TURN:
            if self._without_task and any(map(_is_direct_query, act.jobs)):
                self._ahead = True
                self._evict(act.run_id)
            return self._activate(act)
        if self._ahead:
            return _refusal()
        self._note(act, kinds)
        completion = self._activate(act)
        if "initialize_workflow" in kinds:
            self._closes = self._has_updates and _is_new(act)
            if self._closes:
                _mark(completion)
        if self._closes and kinds - _NOTHING_DECIDED:
            _leave_something(act, completion)
        return completion

    def _note(self, turn: WorkflowActivation, kinds: set[str]) -> None:
        """Whether a workflow task brought it, for certain. An update comes with one, and the end of
        a local activity comes within one."""
        if "initialize_workflow" in kinds:
            self._taken_up = turn.is_replaying
        self._new_turns += not turn.is_replaying
        first = self._taken_up and self._new_turns == 1
        time = turn.timestamp.seconds, turn.timestamp.nanos
        within = "do_update" in kinds or any(job.resolve_activity.is_local for job in turn.jobs)
        self._without_task = (time == self._time or first) and not within
        self._time = time


def _nobody(_: str) -> None:
    """Nobody asks a replayer anything."""


def _kind(job: WorkflowActivationJob) -> str:
    return job.WhichOneof("variant") or ""


def _is_direct_query(job: WorkflowActivationJob) -> bool:
    return job.query_workflow.query_id == _DIRECT_QUERY


def _is_new(first: WorkflowActivation) -> bool:
    """Whether the run begins now, or began under this rule."""
    return not first.is_replaying or any(
        job.notify_has_patch.patch_id == PATCH for job in first.jobs
    )


def _mark(completion: WorkflowActivationCompletion) -> None:
    if completion.HasField("successful"):
        marker = WorkflowCommand()
        marker.set_patch_marker.patch_id = PATCH
        completion.successful.commands.insert(0, marker)  # the last one may end the workflow


def _leave_something(turn: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
    if not completion.HasField("successful"):
        return
    commands = completion.successful.commands
    cancelled = {c.cancel_timer.seq for c in commands if c.HasField("cancel_timer")}
    if any(_leaves_an_event(command, cancelled) for command in commands):
        return
    length = Payload(
        metadata={"encoding": b"json/plain"}, data=str(turn.history_length).encode("ascii")
    )
    commands.add().modify_workflow_properties.upserted_memo.fields[MEMO].CopyFrom(length)


def _leaves_an_event(command: WorkflowCommand, cancelled: set[int]) -> bool:
    """Surely so; ``cancelled`` are the timers that end in the same turn."""
    kind = command.WhichOneof("variant") or ""
    if kind == "start_timer":
        return command.start_timer.seq not in cancelled
    if kind == "update_response":
        return not command.update_response.HasField("rejected")
    return kind not in _LEAVES_NO_EVENT


def _refusal() -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    failure = completion.failed.failure
    failure.message = TAKEN_UP_ANEW
    failure.application_failure_info.type = "TakenUpAnew"
    return completion
