"""What asks the Pool, when the Pool's answer is lost."""

from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.messages.pools import ReleaseInput, ReleaseResult


class Pool:
    """Gives its answers in turn; exceptions are raised."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)

    def get_workflow_handle(self, *_: object, **__: object) -> "Pool":
        return self

    async def execute_update(self, *_: object, **__: object) -> object:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("type", ["UnprocessedUpdate", "AcceptedUpdateCompletedWorkflow"])
async def test_an_update_that_the_pool_has_not_seen_is_sent_again(type: str) -> None:
    lost = WorkflowUpdateFailedError(ApplicationError("no worker processed it", type=type))
    pool = Pool(lost, ReleaseResult())
    placement = PoolPlacement(cast(Client, cast(Any, pool)))
    assert await placement.release(ReleaseInput(pool="default", key="k")) == ReleaseResult()
    assert not pool.left
