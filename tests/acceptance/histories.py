"""Whether what really happened replays in a worker that has never seen it.

A worker that is started anew knows of its workflows only what their histories say. Code that
decides differently the second time fails the workflow's tasks from then on, and the plan stands
still. So drills end with a replay of everything that they made. Where the workers were processes of
their own, they had another seed for the hashes of strings than this one, which tells when the order
of a set decided.
"""

from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Replayer

from temporal_plans.worker.plugin import PlansPlugin


async def assert_all_replays(
    address: str, query: str = "", *, plugin: PlansPlugin | None = None
) -> None:
    """Replay all workflows that a visibility query finds, open ones included."""
    client = await Client.connect(address)
    # Without a deadlock timeout: plans of 20,000 steps take seconds on a busy machine.
    replayer = Replayer(workflows=[], plugins=[plugin or PlansPlugin()], debug_mode=True)
    histories = client.list_workflows(query).map_histories()
    replayed, faults = 0, list[str]()
    async with replayer.workflow_replay_iterator(histories) as results:
        async for result in results:
            replayed += 1
            if result.replay_failure is not None:
                faults.append(f"{result.history.workflow_id}: {result.replay_failure}")
    assert replayed, f"no workflow is found by {query!r}"
    assert not faults, f"{len(faults)} of {replayed} don't replay:\n" + "\n".join(faults)


async def keep_histories(address: str, directory: Path) -> int:
    """Write all histories that the server has, as JSON, one file a run; how many."""
    client = await Client.connect(address)
    kept = 0
    async for one in client.list_workflows():
        handle = client.get_workflow_handle(one.id, run_id=one.run_id)
        name = f"{one.id}.{one.run_id}.json".replace("/", "_")
        (directory / name).write_text((await handle.fetch_history()).to_json())
        kept += 1
    return kept
