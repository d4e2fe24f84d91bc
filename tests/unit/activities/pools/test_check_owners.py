"""How the Pool finds out who still holds what."""

import asyncio
from dataclasses import dataclass
from unittest.mock import Mock

from temporal_plans.activities.pools.offers import OfferActivities
from temporal_plans.messages.pools import Holdings, OwnersInput


@dataclass(frozen=True)
class Told(OfferActivities):
    """Answers of a world in which a step has told its service all, and is over."""

    asked: list[str]

    async def _is_running(self, workflow_id: str) -> bool | None:
        await asyncio.sleep(0.01 if workflow_id.startswith("service/") else 0.02)
        self.asked.append(workflow_id)
        return workflow_id != "step"

    async def _holdings(self, service: str) -> Holdings | None:
        self.asked.append("holdings")
        return Holdings(keys=("k",))


def test_services_are_asked_what_they_hold_when_it_is_known_who_is_over() -> None:
    """A service asked before may not have heard yet of what a step has that is over by now."""
    activities = Told(Mock(), Mock(), [])
    question = OwnersInput(workflows=("service/a", "step"))
    report = asyncio.run(activities.check_owners(question))
    assert activities.asked == ["service/a", "step", "holdings"]
    assert (report.gone, report.holdings) == (("step",), {"service/a": Holdings(keys=("k",))})
