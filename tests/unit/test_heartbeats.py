"""Which activities of workers send heartbeats.

Workflows give them a heartbeat timeout, so that the work of a worker that was killed is begun again
after seconds, and not when the timeout of the whole activity is over.
"""

import inspect

from temporalio.client import Client

from temporal_plans.worker.plugin import PlansPlugin
from unit.test_plugin_placement import activities_of

IN_A_COMMON_FUNCTION = {"release_reservation", "retire_task"}
A_MINUTE = {"start_scheduled_plan", "stop_scheduled_plan"}
"""Those that are begun again after a minute: nobody waits for them."""


async def test_activities_send_heartbeats() -> None:
    client = await Client.connect("localhost:1", lazy=True)
    silent = {
        name
        for name, entry in activities_of(PlansPlugin(), client).items()
        if "heartbeat" not in inspect.getsource(entry)
    }
    assert silent == IN_A_COMMON_FUNCTION | A_MINUTE, silent
