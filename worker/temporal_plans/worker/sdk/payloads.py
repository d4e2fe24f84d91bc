"""The payload converter of a run, as the SDK's own instance uses it."""

from temporalio.converter import (
    PayloadConverter,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.worker import WorkflowInstanceDetails


def converter_of(details: WorkflowInstanceDetails) -> PayloadConverter:
    converter = details.payload_converter_factory()
    if not isinstance(converter, WithSerializationContext):
        return converter
    info = details.info
    return converter.with_context(WorkflowSerializationContext(info.namespace, info.workflow_id))
