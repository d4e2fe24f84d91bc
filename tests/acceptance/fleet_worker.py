"""A worker whose plans write down what they do: run in place of ``temporal-plan worker``.

The activity ``note`` appends a line to the file that FLEET_LEDGER names before it does its work,
and one after it, so that the file tells what was carried out whatever became of the workflows.
"""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from temporal_plans.client import connect
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.mechanics.settings import EngineSettings

LEDGER = "FLEET_LEDGER"


@activity.defn
async def note(work: dict[str, Any]) -> None:
    """``file`` and ``version`` are written down; it takes ``seconds``, and fails if ``fails``."""
    _write(work, "begun")
    await asyncio.sleep(float(work.get("seconds", 0)))
    if work.get("fails"):
        raise ApplicationError("it is broken", type="Broken", non_retryable=True)
    _write(work, "done")


def _write(work: dict[str, Any], event: str) -> None:
    info = activity.info()
    line = {
        "event": event,
        "file": work["file"],
        "version": work["version"],
        "workflow": info.workflow_id,
        "run": info.workflow_run_id,
        "activity": info.activity_id,
        "attempt": info.attempt,
    }
    descriptor = os.open(Path(os.environ[LEDGER]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())  # one write: whole or not at all
    finally:
        os.close(descriptor)


def settings() -> EngineSettings:
    """Plans that were terminated are missed soon, and so are spokes."""
    return EngineSettings(check_interval=timedelta(seconds=3), spoke_timeout=timedelta(seconds=6))


async def main() -> None:
    client = await connect(plugins=[PlansPlugin(settings=settings())])
    with ThreadPoolExecutor() as executor:
        worker = Worker(client, task_queue="plans", activities=[note], activity_executor=executor)
        await worker.run()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
