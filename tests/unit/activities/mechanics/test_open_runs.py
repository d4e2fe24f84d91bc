"""A query to an open workflow, whatever its run is doing."""

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowQueryRejectedError

from temporal_plans.activities.mechanics.open_runs import query_open

SOON = timedelta(seconds=1)


class Handle:
    """Rejects queries with these statuses, and answers the next one."""

    def __init__(self, *statuses: WorkflowExecutionStatus) -> None:
        self._statuses = list(statuses)

    async def query(self, name: str, **_: Any) -> str:
        if self._statuses:
            raise WorkflowQueryRejectedError(self._statuses.pop(0))
        return f"answer to {name}"


def asked(*statuses: WorkflowExecutionStatus) -> str:
    handle = cast("WorkflowHandle[Any, Any]", Handle(*statuses))
    return asyncio.run(query_open(handle, "wanted", str, timeout=SOON))


def test_a_run_that_has_just_continued_as_new_is_no_end() -> None:
    new = WorkflowExecutionStatus.CONTINUED_AS_NEW
    assert asked(new, new) == "answer to wanted"


@pytest.mark.parametrize(
    "status", [WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.TERMINATED]
)
def test_a_closed_workflow_is_told(status: WorkflowExecutionStatus) -> None:
    with pytest.raises(WorkflowQueryRejectedError):
        asked(status)
