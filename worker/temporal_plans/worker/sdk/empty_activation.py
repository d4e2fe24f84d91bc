"""Activations that lead to no command."""

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.sdk.jobs import WITHOUT_EVENTS, kind_of, kinds_of
from temporal_plans.worker.sdk.patch import Patch, Run

MEMO = "history_length"
"""The memo that an activation without commands writes."""

_NO_BOUNDARY_NEEDED = frozenset(
    {
        *WITHOUT_EVENTS,
        "do_update",  # an accepted one is an event; a rejected one is not in the history
        "notify_has_patch",  # in replays only
        "signal_workflow",
        "update_random_seed",
    }
)

_LEAVES_NO_EVENT = frozenset(
    {
        "cancel_signal_workflow",
        "cancel_timer",
        "request_cancel_local_activity",
        "respond_to_query",
    }
)


class EmptyActivation(Patch):
    """Ends an activation without commands with a memo, so that replays end it in the same place.

    What the SDK does: the core divides a history into activations, and what code decides may depend
    on the division: within one activation signals and updates come before timers, activities and
    children. A workflow task that led to no command, followed by another one, is taken for a
    heartbeat and joined with it by a worker that reads the history while an update waits. Once that
    update is in the history, replays divide the two. The commands differ, and the workflow fails
    its tasks from the next restart of its worker on.

    Reproduction: a workflow without cache whose timers fire in two workflow tasks, the second of
    which changes what an update does, neither with a command; send the update and replay the
    history (tests/workflows/test_empty_activation.py).

    What ours does: an activation that took in more than messages, and led to no command that leaves
    an event, writes the length of the history into a memo. Only workflows with updates need it, and
    only the engine's own get it, for it is in their histories.

    Upstream: https://github.com/temporalio/sdk-rust/issues/1146, which
    https://github.com/temporalio/sdk-rust/pull/1509 is to close for new runs.
    """

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        return run.is_ours and bool(run.details.defn.updates)

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, and add the memo if it needs one."""
        completion = self._inner.activate(act)
        if kinds_of(act) - _NO_BOUNDARY_NEEDED and completion.HasField("successful"):
            _leave_an_event(act, completion)
        return completion


def _leave_an_event(act: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
    commands = completion.successful.commands
    cancelled = {c.cancel_timer.seq for c in commands if c.HasField("cancel_timer")}
    if any(_leaves_an_event(command, cancelled) for command in commands):
        return
    length = Payload(
        metadata={"encoding": b"json/plain"}, data=str(act.history_length).encode("ascii")
    )
    commands.add().modify_workflow_properties.upserted_memo.fields[MEMO].CopyFrom(length)


def _leaves_an_event(command: WorkflowCommand, cancelled: set[int]) -> bool:
    """Return whether it certainly does. ``cancelled`` are timers that this activation cancels."""
    kind = kind_of(command)
    if kind == "start_timer":
        return command.start_timer.seq not in cancelled
    if kind == "update_response":
        return not command.update_response.HasField("rejected")
    return kind not in _LEAVES_NO_EVENT
