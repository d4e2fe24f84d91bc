"""What a service lives through when processes and machines die, and with a developer's own code
(behaviour 5.6, 6.2 to 6.10, 7.3, 8.2).

Which scenario of the followed system is where: docs/compatibility.md.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from acceptance import real_tasks
from acceptance.cluster import Cluster, Machine, phase, running_cluster, steps
from acceptance.life import LOOP, READY, Life, PodVerb, living, shown
from acceptance.programs import Program
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.plan_views import PhaseView, PlanView
from temporal_plans.messages.pools import PoolStatus

POOL = '{"check-owners-every": "5s", "grace": "1s", "heartbeat": "4s", "give-up": "8s"}'
WORKER = Path(__file__).with_name("developers_worker.py")


@pytest.fixture(scope="module")
async def machines() -> AsyncIterator[Cluster]:
    """A cluster whose processes may be killed, with a worker of a developer's own."""
    async with running_cluster((_machine("one"),), pool=POOL) as cluster:
        await cluster.worker.stop()
        cluster.worker = Program(
            Path(sys.executable),
            [str(WORKER)],
            env=cluster.env,
            log=cluster.directory / "developers-worker.log",
        )
        await cluster.worker.start()
        await cluster.until("the worker answers", cluster.pool, bool)
        yield cluster


@asynccontextmanager
async def having(cluster: Cluster, *names: str) -> AsyncGenerator[None]:
    """With these machines for a while; others of these names may come and go meanwhile."""
    for name in names:
        await cluster.add(_machine(name))
    try:
        yield
    finally:
        for name in [name for name in cluster.agents if name != "one"]:
            await cluster.remove(name)


def _machine(name: str) -> Machine:
    return Machine(name, f"{name}.example")


# --- processes ------------------------------------------------------------------------------------


GATED = f"""
name: {{{{NAME}}}}
pods:
  world:
    count: 2
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
  hello:
    count: 1
    tasks:
      server:
        {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32, readiness-check: {READY}}}
"""
SERVERS = ("hello-0-server", "world-0-server", "world-1-server")


async def test_nothing_is_restarted_when_our_processes_are(machines: Cluster) -> None:
    """Neither what runs, nor what is not ready yet; what died meanwhile is brought back, once."""
    async with living(machines, "steady", GATED) as life:
        await life.deploy()
        await life.until_step("hello-0:[server]", Status.STARTED)
        await life.until_running(*SERVERS)
        ids = await life.ids()

        await machines.worker.kill()
        real_tasks.kill(ids["world-1-server"], machines.work_dirs)
        await machines.worker.start()
        ids = await life.until_relaunched(ids, "world-1-server")
        await life.until_running(*SERVERS)
        assert shown(await life.view()) == "world C,C COMPLETE; hello SD STARTED; IN_PROGRESS"
        await life.until_complete("recovery")

        await machines.agents["one"].kill()
        real_tasks.kill(ids["world-0-server"], machines.work_dirs)
        await machines.agents["one"].start()
        ids = await life.until_relaunched(ids, "world-0-server")
        await life.until_running(*SERVERS)
        await life.make_ready("hello-0-server")
        await life.until_complete()
        await life.until_complete("recovery")
        assert await life.ids() == ids


# --- machines -------------------------------------------------------------------------------------


ON_FOUR = f"""
name: {{{{NAME}}}}
pods:
  data:
    count: 1
    placement: '[["hostname", "LIKE", "(four|five).example"]]'
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
  extra:
    count: {{{{EXTRA}}}}
    placement: '[["hostname", "IS", "four.example"]]'
    allow-decommission: true
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
"""


async def test_a_lost_machine(machines: Cluster) -> None:
    """What was on it waits for it, or for somebody to replace it; what is taken away waits too,
    and says for what. When it is back, what was given up there ends."""
    async with having(machines, "four"), living(machines, "bereft", ON_FOUR) as life:
        await life.deployed({"EXTRA": 2})
        await life.until_running("data-0-server", "extra-0-server", "extra-1-server")
        ids, place = await life.ids(), await life.held("data-0")
        await machines.agents["four"].kill()

        async def lost(life: Life) -> bool:
            states = [r.status.state for r in (await life.records()).values() if r.status]
            return states == [TaskState.LOST] * 3

        await life.until("its tasks are LOST", lost)
        await life.until_step("data-0:[server]", Status.PREPARED, "recovery", saying="four")
        assert await life.ids() == ids  # in their place only

        await life.pod(PodVerb.REPLACE, "data-0")
        await life.until_step(
            "data-0:[server]", Status.PREPARED, "recovery", saying="one"
        )  # which is no place for it
        await machines.add(_machine("five"))
        await life.until_step("data-0:[server]", Status.COMPLETE, "recovery")
        moved = await life.held("data-0")
        assert moved.agent == "five"
        assert moved.id != place.id

        await life.deploy({"EXTRA": 1})
        view = await machines.until_plan("bereft/decommission", "waits for four", _unreserves)
        # A task that is LOST with its machine needs no killing; what it held is another matter.
        kill, *unreserve, erase = phase(view, "extra-1").steps
        assert (kill.status, erase.status) == (Status.COMPLETE, Status.PENDING)
        said = await machines.plan("explain", "decommission", "-s", "bereft")
        assert "agent four (four.example) is LOST: start the agent" in " ".join(said.out.split())
        for step in unreserve:
            await life.command(Verb.FORCE_COMPLETE, "decommission", "extra-1", step.name)
        await life.until_complete("decommission")
        assert sorted(await life.pods()) == ["data-0", "extra-0"]

        await machines.agents["four"].start()
        await life.until_running("data-0-server", "extra-0-server")
        await life.until_complete("recovery")
        assert (await life.held("extra-0")).agent == "four"
        await machines.until(
            "four holds no more than it should",
            machines.pool,
            lambda pool: [r.pod for r in pool.reservations if r.agent == "four"] == ["extra"],
        )
        alive = [agent.info.id for agent in (await machines.pool()).agents]
        assert sorted(alive) == ["five", "four", "one"]


def _unreserves(view: PlanView) -> bool:
    return any(
        step.name.startswith("unreserve-") and "LOST" in step.message
        for step in phase(view, "extra-1").steps
    )


ANYWHERE = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 2
    placement: '[["hostname", "UNIQUE"]]'
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
"""


async def test_what_a_terminated_service_held_is_free_again(machines: Cluster) -> None:
    """Nobody gave it up; the pool finds out that its owner is no more."""
    async with living(machines, "terminated", ANYWHERE.replace("count: 2", "count: 1")) as life:
        await life.deployed()
        await machines.terminate("terminated")
        await life.until_gone()


async def test_a_machine_that_an_operator_takes_away(machines: Cluster) -> None:
    """Its pods are replaced at once, without being told to; others stay."""
    async with having(machines, "six"), living(machines, "moving-out", ANYWHERE) as life:
        await life.deployed()
        await life.until_running("hello-0-server", "hello-1-server")
        ids = await life.ids()
        gone, stays = sorted((await life.pods()).values(), key=lambda pod: pod.agent == "one")
        assert (gone.agent, stays.agent) == ("six", "one")
        await machines.add(_machine("seven"))
        await machines.remove("six")
        await life.until_relaunched(ids, f"{gone.name}-server")
        await life.until_running("hello-0-server", "hello-1-server")
        pods = await life.pods()
        assert pods[gone.name].agent == "seven"
        assert pods[stays.name] == stays
        await life.until_complete("recovery")


async def test_an_uninstall_does_not_wait_for_a_dead_machine_without_a_word(
    machines: Cluster,
) -> None:
    async with having(machines, "four"), living(machines, "dying", ON_FOUR) as life:
        await life.deployed({"EXTRA": 0})
        await machines.agents["four"].kill()

        await machines.until("four is missed", machines.pool, _misses_four)
        await (await life.client()).uninstall("dying", by="test")
        host = "unreserve-resources-four.example"
        await machines.until_plan(
            "dying/deploy",
            "says what it waits for",
            lambda view: view.phases[1].name == host and _all_wait(view.phases[1]),
        )
        await life.command(Verb.FORCE_COMPLETE, "deploy", host)
        await life.until_complete("deploy")
        client = await life.client()
        assert await client.wait_until_gone("dying")
        await machines.agents["four"].start()  # and it ends what it was left with
        await life.until_gone()


def _all_wait(unreserve: PhaseView) -> bool:
    return all("agent four" in step.message for step in unreserve.steps)


def _misses_four(pool: PoolStatus) -> bool:
    return any(a.info.id == "four" and a.state is not AgentState.ALIVE for a in pool.agents)


# --- a developer's own ----------------------------------------------------------------------------


OWN = f"""
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
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
"""


async def test_plans_as_the_developer_has_them(machines: Cluster) -> None:
    """Reversed world pods, a step of one's own before each pod is taken away, and an uninstall in
    another order (compatibility 14.4, 14.5)."""
    async with living(machines, "own-plans", OWN) as life:
        await life.deployed({"WORLD": 2})
        world = phase(await life.view(), "world")
        assert [step.name for step in world.steps] == ["world-1:[server]", "world-0:[server]"]
        last, first = world.steps[1].started, world.steps[0].finished
        assert first is not None
        assert last is not None
        assert first <= last
        await life.until_running(*SERVERS)

        await life.deployed({"WORLD": 1})
        own = "custom_decommission_step"
        await life.until_step(own, Status.WAITING, "decommission")
        view = await life.view("decommission")
        assert [step.name for step in view.phases[0].steps][:2] == [own, "kill-world-1-server"]
        await life.until_running(*SERVERS)
        await life.command(Verb.CONTINUE, "decommission", "world-1", own)
        await life.until_complete("decommission")
        await life.until_running(*SERVERS[:2])

        await (await life.client()).uninstall("own-plans", by="test")
        view = await life.until_complete("deploy")
        assert view.phases[0].name == "deregister-service"
        assert view.phases[-1].name == "kill-tasks"
        await life.until_gone()


async def test_recovery_as_the_developer_has_it(machines: Cluster) -> None:
    """A transient recovery that waits for its place becomes the developer's permanent one; a pod
    that the developer leaves alone has the default (behaviour 6.10)."""
    text = OWN.replace(
        "count: 1", 'count: 1\n    placement: \'[["hostname", "LIKE", "(four|five).*"]]\''
    )
    async with having(machines, "four"), living(machines, "own-recovery", text) as life:
        await life.deployed({"WORLD": 1})
        await life.until_running(*SERVERS[:2])
        await machines.agents["four"].kill()
        await life.until_step("hello-0:[server]", Status.PREPARED, "recovery")
        await life.pod(PodVerb.REPLACE, "hello-0")
        await life.until_step("hello-0", Status.PREPARED, "recovery")
        view = await life.view("recovery")
        names = [one.name for one in view.phases if "hello" in one.name]
        assert names == ["custom-hello-recovery"]
        await machines.add(_machine("five"))
        await life.until_step("hello-0", Status.COMPLETE, "recovery")
        assert (await life.held("hello-0")).agent == "five"

        world = await life.held("world-0")
        await life.pod(PodVerb.REPLACE, "world-0")
        await life.until("world-0 has moved", lambda life: _moved(life, world.id))
        await life.until_complete("recovery")
        assert "world-0:[server]" in steps(await life.view("recovery"))
        await machines.agents["four"].start()
        await life.until_running(*SERVERS[:2])


async def _moved(life: Life, place: str) -> bool:
    reservation = (await life.pods())["world-0"].reservation
    return reservation is not None and reservation.id != place
