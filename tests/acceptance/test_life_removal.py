"""Pods and services that go, and those that stay (behaviour 7, 8, 13).

Which scenario of the followed system is where: docs/compatibility.md.
"""

import asyncio

import pytest

from acceptance.cluster import Cluster, phase
from acceptance.life import LOOP, Life, PlansError, living, shown
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.plans.commands import Result, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.plan_views import PlanView

LEAVES_LATE = (
    "trap 'until test -e leave; do sleep 0.1; done; exit 0' TERM; while true; do sleep 0.5; done"
)
"""A task that, asked to end, does so when its test lets it."""

SHRINKING = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
  world:
    count: {{{{WORLD}}}}
    allow-decommission: true
    tasks:
      server:
        goal: RUNNING
        cmd: "{LEAVES_LATE}"
        kill-grace-period: 30
        cpus: 0.1
        memory: 32
        volume: {{path: data, type: ROOT, size: 16}}
        ports: {{web: {{port: 0}}}}
plans:
  deploy: {{phases: {{hello: {{pod: hello}}, world: {{pod: world, strategy: parallel}}}}}}
  backup: {{phases: {{hello: {{pod: hello}}}}}}
"""
HELLO = "hello-0-server"
WORLD = tuple(f"world-{index}-server" for index in range(3))


async def test_pods_go_one_after_the_other_and_may_be_wanted_again(cluster: Cluster) -> None:
    """Behaviour 7.3: the last one first, one kill, an unreserve for each resource, one erase; what
    has not begun is left alone."""
    async with living(cluster, "fewer", SHRINKING) as life:
        await life.deployed({"WORLD": 3})
        await life.until_running(HELLO, *WORLD)
        before = await life.ids()
        await life.deployed({"WORLD": 1})
        assert shown(await life.view()) == "hello C COMPLETE; world C COMPLETE; COMPLETE"
        view = await cluster.until_plan(
            "fewer/decommission", "kills", lambda view: _kills(view, "world-2")
        )
        assert [one.name for one in view.phases] == ["world-2", "world-1"]
        kinds = [step.name.split("-")[0] for step in phase(view, "world-2").steps]
        assert kinds == ["kill", *["unreserve"] * (len(kinds) - 2), "erase"]
        held = (await life.pods())["world-2"].reservation
        assert held is not None
        assert len(kinds) == 2 + len(held.resources)  # cpus, memory, disk, port
        assert {step.status for step in phase(view, "world-1").steps} == {Status.PENDING}
        await life.until_running(HELLO, *WORLD)  # it takes its time to leave

        await life.touch("world-2-server", "leave")
        await cluster.until_plan(
            "fewer/decommission", "goes on", lambda view: _kills(view, "world-1")
        )
        assert list(await life.pods()) == ["hello-0", "world-0", "world-1"]
        pool = await cluster.pool()
        kept = [f"{r.pod}-{r.index}" for r in pool.reservations if r.owner == "service/fewer"]
        assert sorted(kept) == ["hello-0", "world-0", "world-1"]

        # Wanted again while it is being killed: it comes back, where it was.
        place = await life.held("world-1")
        await life.deploy({"WORLD": 3})
        await life.touch("world-1-server", "leave")
        await life.until_complete()
        await life.until_running(HELLO, *WORLD)
        after = await life.ids()
        assert {name: after[name] == before[name] for name in after} == {
            HELLO: True,
            WORLD[0]: True,
            WORLD[1]: False,
            WORLD[2]: False,
        }
        assert (await life.held("world-1")).id == place.id
        plans = await (await life.client()).plans("fewer")
        assert "decommission" not in [plan.name for plan in plans]
        await _let_go(life)


def _kills(view: PlanView, instance: str) -> bool:
    """Whether the first step of that pod's phase is under way."""
    return phase(view, instance).steps[0].status not in (Status.PENDING, Status.COMPLETE)


async def test_an_uninstall_is_for_good(cluster: Cluster) -> None:
    """Everything goes at once but the last phase; nothing else is done meanwhile, and nothing stops
    it. Then the service can be installed as if it had never been there."""
    async with living(cluster, "gone", SHRINKING) as life:
        await life.deployed({"WORLD": 1})
        await life.until_running(HELLO, WORLD[0])
        before, client = await life.ids(), await life.client()
        sandbox = await life.sandbox(WORLD[0])
        assert sandbox is not None
        volume = (sandbox / "data").resolve()
        await client.uninstall("gone", by="test")
        view = await cluster.until_plan("gone/deploy", "kills", _kills_all)
        hosts = sorted({pod.hostname for pod in (await life.pods()).values() if pod.hostname})
        names = [one.name for one in view.phases]
        assert names[0] == "kill-tasks"
        assert names[-1] == "deregister-service"
        assert all(name.startswith("unreserve-resources-") for name in names[1:-1])
        assert {f"unreserve-resources-{host}" for host in hosts} <= set(names)
        assert [step.name for step in view.phases[0].steps] == [
            f"kill-task-{before[HELLO]}",
            f"kill-task-{before[WORLD[0]]}",
        ]
        assert view.phases[-1].status is Status.PENDING

        with pytest.raises(PlansError, match="being uninstalled"):
            await life.deploy({"WORLD": 1})
        with pytest.raises(PlansError):
            await life.command(Verb.START, "backup")
        again = await client.uninstall("gone", by="test")
        assert (again.result, again.changed) == (Result.ALREADY, False)

        await life.touch(WORLD[0], "leave")
        await life.until_complete("deploy")
        await life.until_gone()
        await cluster.until("no volume", lambda: asyncio.to_thread(volume.exists), _not)

        result = await life.deployed({"WORLD": 1})
        assert result.number == 1
        await life.until_running(HELLO, WORLD[0])
        assert before[HELLO] != (await life.ids())[HELLO]
        await _let_go(life)


async def _let_go(life: Life) -> None:
    """Of what runs now, so that tearing down need not wait."""
    for task in life.processes():
        await life.touch(task, "leave")


def _kills_all(view: PlanView) -> bool:
    return view.phases[0].name == "kill-tasks" and view.phases[0].status is not Status.PENDING


def _not(value: object) -> bool:
    return not value


FINISHING = """
name: {{NAME}}
pods:
  job:
    count: 2
    tasks:
      run: {goal: FINISH, cmd: "echo done", cpus: 0.1, memory: 32}
"""


async def test_a_service_whose_goal_is_to_finish_goes_when_it_has(cluster: Cluster) -> None:
    """Files have no goal for services; programs do."""
    async with living(cluster, "finishing", FINISHING) as life:
        client = await life.client()
        await client.deploy(Deployment(spec=life.spec().but(goal=Goal.FINISH)))
        await life.until_gone()
        result = await client.deploy(Deployment(spec=life.spec().but(goal=Goal.FINISH)))
        assert result.number == 1
        await life.until_gone()


NEIGHBOUR = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 2
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{CPUS}}}}, memory: 32}}
"""
SERVERS = ("hello-0-server", "hello-1-server")


async def test_services_side_by_side(cluster: Cluster) -> None:
    """With pods of the same names, one of them in a folder: none sees another's tasks, changes,
    recoveries or end."""
    names = ("neighbour", "other", "path/to/neighbour")
    async with (
        living(cluster, names[0], NEIGHBOUR) as first,
        living(cluster, names[1], NEIGHBOUR) as second,
        living(cluster, names[2], NEIGHBOUR) as third,
    ):
        lives = (first, second, third)
        await asyncio.gather(*(life.deployed({"CPUS": 0.1}) for life in lives))
        for life in lives:
            await life.until_running(*SERVERS)
        ids = {life.name: await life.ids() for life in lives}
        assert len({task for tasks in ids.values() for task in tasks.values()}) == 6
        assert all(task.startswith("path.to.neighbour__") for task in ids[names[2]].values())
        assert {*names} <= {*await (await first.client()).services()}

        await first.deployed({"CPUS": 0.2})
        await first.until_relaunched(ids[names[0]], *SERVERS)
        await third.kill("hello-1-server")
        ids[names[2]] = await third.until_relaunched(ids[names[2]], "hello-1-server")
        assert (await second.view("recovery")).phases == ()
        assert await second.ids() == ids[names[1]]

        await (await first.client()).uninstall(names[0], by="test")
        await first.until_gone()
        for life in (second, third):
            await life.until_running(*SERVERS)
            assert await life.ids() == ids[life.name]
            assert len(await _reserved(life)) == 2

        await first.deployed({"CPUS": 0.1})  # the name is free
        await first.until_running(*SERVERS)


async def _reserved(life: Life) -> list[str]:
    pool = await life.cluster.pool()
    return [r.id for r in pool.reservations if r.owner == f"service/{life.name}"]
