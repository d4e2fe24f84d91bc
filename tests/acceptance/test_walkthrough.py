"""The walk-through of README.md: twenty pods are changed through a canary, and one crash-loops.

Its commands are those that the text prints, and print what it says (``readme``); the test looks at
what became of the pods.
"""

import shutil
from collections import Counter

import pytest

from acceptance.cluster import ROOT, Cluster
from acceptance.readme import README, WALKTHROUGH, commands, run_all, section
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskState

SHOPS = 20


def test_three_continues_lead_through_the_canary() -> None:
    """Between the faulty release and the one that mends it."""
    texts = [command.text for command in commands(section(README.read_text(), WALKTHROUGH))]
    deployed = [n for n, text in enumerate(texts) if " deploy examples/shop/" in text]
    _, faulty, mended = deployed
    continued = [text for text in texts[faulty:mended] if text.startswith("temporal plan continue")]
    assert len(continued) == 3


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_the_walk_through(fresh_cluster: Cluster) -> None:
    directory = fresh_cluster.directory / "project"
    directory.mkdir()
    shutil.copytree(ROOT / "examples", directory / "examples")
    await run_all(section(README.read_text(), WALKTHROUGH), fresh_cluster.env, directory)

    client = await fresh_cluster.client()
    records = await client.tasks("shop")
    history = await client.history("shop", "deploy")
    target = (await client.configurations("shop")).target
    assert [(run.config, run.status, run.superseded) for run in history.runs] == [
        (1, Status.COMPLETE, False),
        (2, Status.IN_PROGRESS, True),
        (3, Status.COMPLETE, False),
    ]
    assert len(records) == SHOPS
    assert {record.config_id for record in records} == {target}
    assert {record.status.state for record in records if record.status} == {TaskState.RUNNING}
    assert Counter(fresh_cluster.running_names()) == {
        f"web-{index}-server": 1 for index in range(SHOPS)
    }
    pages = {_page(fresh_cluster, record.agent, record.task_id) for record in records}
    assert pages == {"Welcome"}


def _page(cluster: Cluster, agent: str, task_id: str) -> str:
    """What a shop greets its customers with."""
    [page] = cluster.work_dir(agent).glob(f"tasks/{task_id}*/sandbox/page")
    return page.read_text().partition("!")[0]
