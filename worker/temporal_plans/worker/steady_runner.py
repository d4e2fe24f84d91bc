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
   by then: with events that no workflow task has delivered yet. The SDK takes them in to answer,
   and the workflow task that comes next has only the rest, although a replay finds all of them in
   it. Such a turn is known by its time, which is that of the workflow task before. After it, the
   next workflow task is failed once: the SDK then forgets the run, and reads its history anew.
"""

from collections.abc import Callable

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails

MEMO = "turn"
"""The memo that a turn leaves behind which came to nothing."""

PATCH = "temporal-plans-turns"
"""The patch marker of runs that keep to the first rule."""

TAKEN_UP_ANEW = (
    "a query was answered with events that no workflow task had delivered yet;"
    " this task is failed once, so that the history is read anew"
)

Activate = Callable[[WorkflowActivation], WorkflowActivationCompletion]

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


class SteadyRunner(UnsandboxedWorkflowRunner):
    """Runs a workflow inside the sandbox, or without one."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        if not det.defn.cls.__module__.startswith(OURS):
            return instance
        turns = Turns(instance.activate, has_updates=bool(det.defn.updates))
        instance.activate = turns.activate  # type: ignore[method-assign]
        return instance


class Turns:
    """The turns of one run in one worker. ``activate`` is the SDK's, of the workflow itself."""

    def __init__(self, activate: Activate, *, has_updates: bool) -> None:
        self._activate = activate
        self._has_updates = has_updates
        self._closes = False
        self._time: tuple[int, int] | None = None
        self._without_task = False
        self._ahead = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Take a turn, or refuse it because the run is ahead of its workflow tasks."""
        kinds = {_kind(job) for job in act.jobs}
        if kinds <= _NO_TURN:
            self._ahead |= self._without_task and any(map(_is_direct_query, act.jobs))
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
        """Whether a workflow task brought it. An update comes with one, and the end of a local
        activity comes within one."""
        time = turn.timestamp.seconds, turn.timestamp.nanos
        within = "do_update" in kinds or any(job.resolve_activity.is_local for job in turn.jobs)
        self._without_task = time == self._time and not within
        self._time = time


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
