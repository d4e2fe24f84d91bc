"""Payloads without contexts, where nothing reads them."""

from temporalio.converter import DataConverter, SerializationContext, StorageDriverStoreContext
from temporalio.worker._command_aware_visitor import CommandInfo

from temporal_plans.worker.sdk.patch import Patch, Run

_NO_TARGET = StorageDriverStoreContext(target=None)


def reads_contexts(converter: DataConverter) -> bool:
    """Return whether what the converter does to a payload may depend on the payload's context.

    The contexts of payloads outside an activation's codec step (those of payload converters) are
    made inside the workflow and do not count here.
    """
    return converter.payload_codec is not None or converter.external_storage is not None


class NoPayloadContexts(Patch):
    """Answers for the instance that no payload has a context.

    What the SDK does: for every payload of an activation and of its completion the worker asks the
    instance twice for the payload's context (the workflow, activity or child that it belongs to),
    so that a codec or an external storage can use it. A sandboxed instance enters the sandbox for
    each answer. That takes a fifth of a worker's CPU time, more than the workflows' own code.

    Reproduction: profile a worker without ``payload_codec`` whose sandboxed workflow starts 500
    activities; most samples are in ``_Instance.get_serialization_context`` of the sandbox's runner.

    What ours does: answers "no context" outside the sandbox, in workers that have neither a codec
    nor an external storage, where the answer is not used.

    Upstream: no upstream thread known. Contexts came with
    https://github.com/temporalio/sdk-python/pull/1102.
    """

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        return not run.reads_contexts

    def get_serialization_context(
        self, command_info: CommandInfo | None
    ) -> SerializationContext | None:
        return None

    def get_external_store_context(
        self, command_info: CommandInfo | None
    ) -> StorageDriverStoreContext:
        return _NO_TARGET
