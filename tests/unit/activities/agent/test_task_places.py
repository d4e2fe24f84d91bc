"""Launches of one task that wait for the end of an earlier one."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from temporal_plans.activities.agent.host.agent_task import AgentTask
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.host.status_reports import StatusReports
from temporal_plans.activities.agent.host.task_places import TaskPlaces


@dataclass
class Launch:
    """What is asked of an ``AgentTask``."""

    runs: bool = False
    holds_place: bool = False
    is_ending: bool = False
    has_ended: bool = False
    latest: Any = None
    record: Any = field(default_factory=lambda: SimpleNamespace(name="web-0", task_id="web-0__1"))

    @property
    def may_run(self) -> bool:
        return self.runs or self.holds_place

    def is_launch_of(self, other: object) -> bool:
        return other is not self


async def test_a_launch_that_waits_sees_another_that_was_ordered_later() -> None:
    """Both wait for the end of the one before, and the later one is first to see it."""
    before, first, later = Launch(runs=True, is_ending=True), Launch(), Launch()
    tasks = {"before": before, "first": first}
    places = TaskPlaces(
        cast(dict[str, AgentTask], tasks), cast(StatusReports, None), lambda task_id: None
    )
    taking = asyncio.create_task(places.take(cast(AgentTask, first)))
    await asyncio.sleep(0)  # it waits
    tasks["later"] = later
    before.runs, later.holds_place = False, True
    with pytest.raises(TaskRefused, match="runs already"):
        await taking
    assert not first.holds_place
