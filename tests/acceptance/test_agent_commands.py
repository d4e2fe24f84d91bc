"""Commands as steps of plans, on a real agent: their output, and the end of their agent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acceptance.cluster import Cluster, Machine, running_cluster, steps
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView


@pytest.fixture(scope="module")
async def one_agent() -> AsyncIterator[Cluster]:
    async with running_cluster((Machine("one", "one.example"),)) as cluster:
        yield cluster


def plan_file(cluster: Cluster, name: str, command: str) -> Path:
    path = cluster.directory / f"{name}.yml"
    path.write_text(
        f"name: {name}\nphases:\n  look:\n    steps:\n      disk: {{command: {command}}}\n"
    )
    return path


def task(view: PlanView) -> str:
    return steps(view)["disk"].task


async def test_the_output_of_a_command_is_read_while_it_runs_and_afterwards(
    one_agent: Cluster,
) -> None:
    cluster = one_agent
    path = plan_file(cluster, "check", "echo works; while ! test -e go; do sleep 0.1; done")
    await cluster.plan("run", str(path), "--id", "check")
    view = await cluster.until_plan("check", "has a task", task)
    assert steps(view)["disk"].message == f"runs as {task(view)} on agent one"
    said = await cluster.until_said("logs", "--plan", "check", "look/disk", texts=["works"])
    assert said.out == "works\n"
    assert (await cluster.plan("logs", task(view))).out == "works\n"
    [sandbox] = cluster.work_dir("one").glob("tasks/*/sandbox")
    (sandbox / "go").touch()
    done = await cluster.until_status("check", Status.COMPLETE)
    assert task(done) == task(view)
    assert (await cluster.plan("logs", "--plan", "check", "look/disk")).out == "works\n"
    said = await cluster.plan("logs", "--plan", "check", "look/dusk", code=1)
    assert "look/disk" in said.err
    assert (await cluster.pool()).reserved == 0


async def test_an_agent_removed_with_its_tasks_leaks_nothing_when_it_comes_back(
    one_agent: Cluster,
) -> None:
    cluster = one_agent
    await cluster.plan("run", str(plan_file(cluster, "nap", "sleep 1000")), "--id", "nap")
    first = task(await cluster.until_plan("nap", "has a task", task))
    await cluster.until_running([first.split("__")[1]])
    await cluster.agents["one"].kill()
    said = await cluster.plan("remove-agent", "one", code=1)
    assert "holds 1 reservation (" in said.err
    said = await cluster.plan("remove-agent", "one", "--force")
    assert "agent one has been removed from pool default\n1 reservations were released" in said.out
    await cluster.until("nothing is left of it", cluster.pool, lambda pool: not pool.agents)
    assert list(cluster.running()) == [first], "nobody is there to end it yet"
    await cluster.agents["one"].start()
    again = await cluster.until_plan("nap", "has a new task", lambda view: task(view) != first)

    async def running() -> list[str]:
        return list(cluster.running())

    await cluster.until("only the new one runs", running, lambda now: now == [task(again)])
    assert (await cluster.pool()).reserved == 1


async def test_a_command_that_takes_too_long_is_killed_for_that(one_agent: Cluster) -> None:
    cluster = one_agent
    command = "{cmd: sleep 1000, timeout: 1s, retries: 0}"
    await cluster.plan("run", str(plan_file(cluster, "slow", command)), "--id", "slow")
    view = await cluster.until_status("slow", Status.ERROR)
    assert "timed out after 1 s" in steps(view)["disk"].message
    assert "was cancelled" not in steps(view)["disk"].message
