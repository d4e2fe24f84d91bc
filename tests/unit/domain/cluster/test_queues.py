"""Names of agents' task queues: those on which Temporal schedules nothing would stop a Pool."""

import pytest
from pydantic import ValidationError

from temporal_plans.domain.cluster.agents import AgentInfo, AgentResources
from temporal_plans.domain.tasks.statuses import TaskRef


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        pytest.param("", "at least 1 character", id="none"),
        pytest.param("x" * 201, "at most 200 characters", id="too long"),
        pytest.param("/_sys/a/1", "must not begin with /_sys/", id="of the server"),
        pytest.param("temporal-sys-per-ns-tq", "must not begin with", id="of the namespace"),
        pytest.param("agent\n", "control characters", id="control character"),
    ],
)
def test_a_machine_must_name_a_queue_that_it_can_have(queue: str, problem: str) -> None:
    resources = AgentResources(cpus=1, memory=1)
    with pytest.raises(ValidationError, match=problem):
        AgentInfo(id="a", queue=queue, hostname="h", resources=resources)


def test_a_task_may_have_no_queue_but_no_impossible_one() -> None:
    assert TaskRef(task_id="t", agent="a").queue == ""
    with pytest.raises(ValidationError, match="must not begin with"):
        TaskRef(task_id="t", agent="a", queue="/_sys/x")
