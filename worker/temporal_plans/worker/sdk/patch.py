"""The base of all patches: a delegating workflow instance, and the run that it belongs to."""

from collections.abc import Callable
from dataclasses import dataclass

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import SerializationContext, StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._command_aware_visitor import CommandInfo
from temporalio.workflow import Info

Evict = Callable[[str], None]
"""Makes the worker evict the run with this run id from its cache after the current activation."""


@dataclass(frozen=True)
class Run:
    """One run of a workflow in this worker's cache.

    ``is_ours`` tells the engine's own workflows from the developers'. ``reads_contexts`` is false
    when nothing in the worker's data converter depends on the context of a payload.
    """

    details: WorkflowInstanceDetails
    evict: Evict
    is_ours: bool
    reads_contexts: bool


class Patch(WorkflowInstance):
    """A workflow instance that forwards everything to another one.

    Each patch overrides the methods whose behaviour it changes. ``inner`` is the SDK's instance, or
    the next patch around it (``runner.PATCHES``).
    """

    def __init__(self, inner: WorkflowInstance, run: Run) -> None:
        self._inner = inner
        self._run = run

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        """Return whether the run needs this patch."""
        return True

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._inner.activate(act)

    def get_serialization_context(
        self, command_info: CommandInfo | None
    ) -> SerializationContext | None:
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(
        self, command_info: CommandInfo | None
    ) -> StorageDriverStoreContext:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()
