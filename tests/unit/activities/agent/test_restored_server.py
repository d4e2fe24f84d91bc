"""The detection that the server was restored from a backup."""

from datetime import timedelta
from typing import cast

import pytest
from temporalio.client import Client

from builders.clock import NOW
from temporal_plans.activities.agent.host.restored_server import Age, RestoredServer

LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("ages", "times"),
    [
        pytest.param([(NOW, 5), (NOW, 5), (NOW, 9)], 0, id="it-grows"),
        pytest.param([(NOW, 4000), (LATER, 3)], 0, id="it-continued-as-new"),
        pytest.param([(NOW, 9), (NOW, 5), (NOW, 6)], 1, id="shorter"),
        pytest.param([(LATER, 3), (NOW, 4000), (NOW, 4001)], 1, id="an-earlier-run"),
        pytest.param([(NOW, 9), (NOW, 5), (NOW, 4)], 2, id="twice"),
    ],
)
def test_a_pool_that_became_younger(ages: list[Age], times: int) -> None:
    restored: list[None] = []
    asked_nothing = cast(Client, None)
    server = RestoredServer(asked_nothing, "p", lambda: restored.append(None))
    for age in ages:
        server.note(age)
    assert len(restored) == times
