"""The SDK's workflow sandbox, but for two things.

Interruptions do no harm to its runs (``interruption``).

And without a codec it doesn't do what the SDK does for one. For every payload that a workflow takes
in or gives out, a worker asks its run twice, and each time inside the sandbox, for whom the payload
is: a codec or an external storage may want to know. To enter the sandbox so often takes a fifth of
a worker's time, more than the workflows' own code.
"""

from dataclasses import dataclass

from temporalio.converter import DataConverter, SerializationContext, StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from temporal_plans.worker import interruption

_NOBODY = StorageDriverStoreContext(target=None)


def looks_at_contexts(converter: DataConverter) -> bool:
    """Whether what the converter does to a payload may depend on for whom it is."""
    return converter.payload_codec is not None or converter.external_storage is not None


@dataclass(frozen=True)
class PlansSandbox(SandboxedWorkflowRunner):
    """``contexts`` is whether the worker's converter looks at the contexts of payloads."""

    contexts: bool = True

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        interruption.contain(instance)
        if self.contexts:
            return instance
        instance.get_serialization_context = _no_context  # type: ignore[method-assign]
        instance.get_external_store_context = _no_target  # type: ignore[method-assign]
        return instance


def _no_context(command_info: object) -> SerializationContext | None:
    return None


def _no_target(command_info: object) -> StorageDriverStoreContext:
    return _NOBODY
