"""Changes of a service on real agents: what restarts, what stays, what is taken away."""

import asyncio

from acceptance.cluster import Cluster, steps
from acceptance.life import Life, PodVerb, living
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.plans.status import Status

TWO_PODS = """
name: {{NAME}}
pods:
  hello:
    count: {{HELLO_COUNT}}
    allow-decommission: true
    tasks:
      server:
        goal: RUNNING
        cmd: "echo $TASK_NAME >> data/log; while true; do sleep 1; done"
        cpus: {{HELLO_CPUS}}
        memory: 32
        volume: {path: data, type: ROOT, size: 16}
  world:
    count: {{WORLD_COUNT}}
    allow-decommission: true
    tasks:
      server:
        goal: RUNNING
        cmd: "while true; do sleep 1; done"
        cpus: {{WORLD_CPUS}}
        memory: 32
"""

FIRST = {"HELLO_COUNT": 1, "HELLO_CPUS": 0.1, "WORLD_COUNT": 2, "WORLD_CPUS": 0.1}
ALL = ("hello-0-server", "world-0-server", "world-1-server")


async def test_a_change_restarts_what_it_concerns(cluster: Cluster) -> None:
    async with living(cluster, "change", TWO_PODS) as life:
        await life.deployed(FIRST)
        await life.until_running(*ALL)
        before, places = await life.ids(), await life.pods()
        result = await life.deployed({**FIRST, "WORLD_CPUS": 0.2, "HELLO_COUNT": 2})
        assert result.number == 2
        after = await life.until_relaunched(
            before, "hello-1-server", "world-0-server", "world-1-server"
        )
        assert after["hello-0-server"] == before["hello-0-server"]
        await life.until_running(*ALL, "hello-1-server")
        for name in ("world-0", "world-1"):
            pod = (await life.pods())[name]
            assert pod.reservation is not None
            was = places[name].reservation
            assert was is not None
            assert (pod.agent, pod.reservation.id) == (places[name].agent, was.id)
            assert [r.value for r in pod.reservation.resources if r.kind == "cpus"] == [0.2]


async def test_the_same_again_changes_nothing(cluster: Cluster) -> None:
    async with living(cluster, "same", TWO_PODS) as life:
        await life.deployed(FIRST)
        before = await life.ids()
        result = await life.deploy(FIRST)
        assert not result.outcome.changed
        assert await life.ids() == before


async def test_a_failed_task_comes_back_in_place(cluster: Cluster) -> None:
    async with living(cluster, "failing", TWO_PODS) as life:
        await life.deployed(FIRST)
        await life.until_running(*ALL)
        before, places = await life.ids(), await life.pods()
        await life.kill("hello-0-server")
        await life.until_relaunched(before, "hello-0-server")
        await life.until_running(*ALL)
        assert (await life.pods())["hello-0"].agent == places["hello-0"].agent
        view = await life.until_complete("recovery")
        assert list(steps(view)) == ["hello-0:[server]"]


async def test_restart_and_replace(cluster: Cluster) -> None:
    async with living(cluster, "pods", TWO_PODS) as life:
        await life.deployed(FIRST)
        await life.until_running(*ALL)
        before, places = await life.ids(), await life.pods()
        await life.pod(PodVerb.RESTART, "hello-0")
        again = await life.until_relaunched(before, "hello-0-server")
        await life.until_running(*ALL)
        same = (await life.pods())["hello-0"]
        assert same.reservation is not None
        assert places["hello-0"].reservation is not None
        assert same.reservation.id == places["hello-0"].reservation.id
        await life.pod(PodVerb.REPLACE, "hello-0")
        await life.until_relaunched(again, "hello-0-server")
        await life.until_running(*ALL)
        moved = (await life.pods())["hello-0"]
        assert moved.reservation is not None
        assert moved.reservation.id != same.reservation.id


async def test_pause_and_resume(cluster: Cluster) -> None:
    async with living(cluster, "paused", TWO_PODS) as life:
        await life.deployed(FIRST)
        await life.until_running(*ALL)
        before = await life.ids()
        await life.pod(PodVerb.PAUSE, "world-1")

        async def shown(life: Life) -> dict[str, str]:
            return (await life.pods())["world-1"].shown

        async def paused(life: Life) -> bool:
            return await shown(life) == {"world-1-server": "PAUSED"}

        await life.until("world-1 is paused", paused)
        again = await life.until_relaunched(before, "world-1-server")
        await life.pod(PodVerb.RESUME, "world-1")
        await life.until_relaunched(again, "world-1-server")
        await life.until_running(*ALL)
        assert await shown(life) == {"world-1-server": "RUNNING"}


async def test_fewer_instances_are_taken_away(cluster: Cluster) -> None:
    async with living(cluster, "shrinking", TWO_PODS) as life:
        await life.deployed(FIRST)
        before = await life.ids()
        await life.deployed({**FIRST, "WORLD_COUNT": 0})
        view = await life.until_complete("decommission")
        assert [phase.name for phase in view.phases] == ["world-1", "world-0"]
        await life.until_running("hello-0-server")
        assert await life.ids() == {"hello-0-server": before["hello-0-server"]}
        assert list(await life.pods()) == ["hello-0"]
        pool = await cluster.pool()
        assert [r.pod for r in pool.reservations if r.owner == "service/shrinking"] == ["hello"]


async def test_uninstall_leaves_nothing(cluster: Cluster) -> None:
    async with living(cluster, "leaving", TWO_PODS) as life:
        await life.deployed(FIRST)
        client = await life.client()
        await client.uninstall("leaving", by="test", reason="no longer needed")
        view = await life.until_complete("deploy")
        assert view.phases[-1].name == "deregister-service"
        await life.until_gone()


async def test_a_refused_change_shows_in_the_plan(cluster: Cluster) -> None:
    strict = TWO_PODS.replace("    allow-decommission: true\n", "")
    async with living(cluster, "refusing", strict) as life:
        await life.deployed(FIRST)
        before = await life.ids()
        result = await life.deploy({**FIRST, "HELLO_COUNT": 0})
        assert http_code(result.outcome) == 417
        view = await cluster.until_status("refusing/deploy", Status.ERROR)
        text = "New config's PodSpec named 'hello' has 0 tasks, expected >=1 tasks"
        assert any(text in error for error in view.errors)
        assert await life.ids() == before
        await life.deployed({**FIRST, "HELLO_COUNT": 2})
        await life.until_running(*ALL, "hello-1-server")


async def test_a_change_in_the_middle_of_a_change(cluster: Cluster) -> None:
    """1 to 2 hello pods and more for the world pods; then another amount while only world-0 has
    been moved: both go to it, each from where it is."""
    slow = TWO_PODS.replace(
        "        cpus: {{WORLD_CPUS}}\n",
        "        cpus: {{WORLD_CPUS}}\n        readiness-check: {cmd: 'test -e ready',"
        " interval: 1, timeout: 5}\n",
    )
    async with living(cluster, "twice", slow) as life:
        await life.deploy(FIRST)
        await _make_ready(life, "world-0-server")
        await _make_ready(life, "world-1-server")
        await life.until_complete()
        await life.deploy({**FIRST, "HELLO_COUNT": 2, "WORLD_CPUS": 0.3})
        await life.cluster.until_plan(
            "twice/deploy",
            "has moved world-0",
            lambda view: (
                "world-0:[server]" in steps(view)
                and steps(view)["hello-1:[server]"].status is Status.COMPLETE
                and steps(view)["world-0:[server]"].status is Status.STARTED
            ),
        )
        middle = await life.ids()
        await life.deploy({**FIRST, "HELLO_COUNT": 2, "WORLD_CPUS": 0.2})
        await life.until_relaunched(middle, "world-0-server")
        await _make_ready(life, "world-0-server")
        await life.until_relaunched(middle, "world-0-server", "world-1-server")
        await _make_ready(life, "world-1-server")
        await life.until_complete()
        for name in ("world-0", "world-1"):
            reservation = (await life.pods())[name].reservation
            assert reservation is not None
            assert [r.value for r in reservation.resources if r.kind == "cpus"] == [0.2]
        after = await life.ids()
        assert after["hello-1-server"] == middle["hello-1-server"]


async def _make_ready(life: Life, task: str) -> None:
    """Let a task's readiness check pass."""

    async def sandbox(life: Life) -> object:
        record = (await life.records()).get(task)
        if record is None or record.task_id not in life.cluster.running():
            return None
        path = life.cluster.work_dir(record.agent) / "tasks"
        return next((p for p in path.glob(f"{record.task_id}*/sandbox")), None)

    directory = await life.until(f"{task} runs", sandbox)
    await asyncio.to_thread((directory / "ready").touch)
