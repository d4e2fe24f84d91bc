"""Reads releases from their product's workflow."""

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.messages.fleets import (
    ReleasePayload,
    ReleaseQuery,
    ReleaseRecord,
    product_id,
)


async def payload_of(client: Client, product: str, version: str | None) -> ReleasePayload:
    """Return the files of a release; none for no version, or one that there is not. Raises RPCError
    while nobody answers."""
    if version is None:
        return ReleasePayload()
    handle = client.get_workflow_handle(product_id(product))
    try:
        record: ReleaseRecord = await handle.query(
            "release", ReleaseQuery(version=version), result_type=ReleaseRecord
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ReleasePayload()
        raise
    except WorkflowQueryFailedError:
        return ReleasePayload()
    return record.payload
