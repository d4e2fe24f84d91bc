"""Queries to workflows that must be open."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryRejectedError,
)
from temporalio.common import QueryRejectCondition

Answer = TypeVar("Answer")


async def query_open(
    handle: WorkflowHandle[Any, Any],
    query: str,
    result: type[Answer],
    arguments: Sequence[Any] = (),
    *,
    timeout: timedelta,
) -> Answer:
    """Return the answer of the newest run. Raises WorkflowQueryRejectedError when it is closed.

    The server rejects also a query that meets the moment at which a run continues as new: that one
    is for the next run, and says nothing of the workflow's end.
    """
    while True:
        try:
            answer: Answer = await handle.query(
                query,
                args=arguments,
                result_type=result,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=timeout,
            )
            return answer
        except WorkflowQueryRejectedError as error:
            if error.status is not WorkflowExecutionStatus.CONTINUED_AS_NEW:
                raise
