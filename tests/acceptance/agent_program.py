"""An agent as a process of its own: ``python agent_program.py <address> <settings as JSON>``."""

import asyncio
import os
import signal
import sys

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from temporal_plans.activities.agent.host.main import run_agent
from temporal_plans.activities.agent.host.registration import AgentCannotRun
from temporal_plans.activities.agent.host.settings import AgentSettings


async def main(address: str, settings: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    await run_agent(client, AgentSettings.model_validate_json(settings), stop=stop)


if __name__ == "__main__":
    code = 0
    try:
        asyncio.run(main(*sys.argv[1:]))
    except AgentCannotRun as problem:
        print(problem, file=sys.stderr, flush=True)
        code = 1
    os._exit(code)  # threads of Temporal's SDK abort a process that takes itself down, now and then
