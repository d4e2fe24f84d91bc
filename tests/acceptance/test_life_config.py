"""Changes of a service's configuration, on real agents (behaviour 5.4 to 5.9).

Which scenario of the followed system is where: docs/compatibility.md.
"""

import pytest

from acceptance.cluster import Cluster, steps
from acceptance.life import LOOP, READY, PodVerb, living
from temporal_plans.api.dialect import http_code
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.worker.ports import free_port

UPDATE = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      server:
        {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{CPUS}}}}, memory: 32, readiness-check: {READY}}}
plans:
  deploy: {{strategy: parallel, phases: {{hello-deploy: {{strategy: parallel, pod: hello}}}}}}
  update: {{strategy: serial, phases: {{hello-update: {{strategy: serial, pod: hello}}}}}}
"""


async def test_the_plan_update_is_for_what_was_deployed_once(cluster: Cluster) -> None:
    async with living(cluster, "updated", UPDATE) as life:
        await life.deploy({"CPUS": 0.1})
        await life.until_step("hello-0:[server]", Status.STARTED)
        first = await life.ids()
        # Not ready yet, so this is still the first deployment.
        await life.deploy({"CPUS": 0.2})
        second = await life.until_relaunched(first, "hello-0-server")
        assert [phase.name for phase in (await life.view()).phases] == ["hello-deploy"]
        await life.make_ready("hello-0-server")
        await life.until_complete()
        await life.deploy({"CPUS": 0.1})
        await life.until_relaunched(second, "hello-0-server")
        assert [phase.name for phase in (await life.view()).phases] == ["hello-update"]
        await life.make_ready("hello-0-server")
        await life.until_complete()
        plans = await (await life.client()).plans("updated")
        assert [plan.name for plan in plans] == ["deploy", "recovery"]


MOVING = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      server:
        goal: RUNNING
        cmd: "{LOOP}"
        env: {{SLEEP: "{{{{SLEEP}}}}"}}
        cpus: 0.1
        memory: 32
        readiness-check: {READY}
  world:
    count: 2
    tasks:
      server:
        goal: RUNNING
        cmd: "{LOOP}"
        env: {{SLEEP: "{{{{SLEEP}}}}"}}
        cpus: 0.1
        memory: 32
        volume: {{path: data, type: ROOT, size: 16}}
"""
SERVERS = ("hello-0-server", "world-0-server", "world-1-server")


async def test_what_fails_in_the_middle_of_a_change(cluster: Cluster) -> None:
    """Recovery brings it back as it was, the deployment then makes it new."""
    async with living(cluster, "failing-change", MOVING) as life:
        await life.deploy({"SLEEP": 1000})
        await life.make_ready("hello-0-server")
        await life.until_complete()
        await life.until_running(*SERVERS)
        before, place = await life.ids(), await life.held("world-0")

        await life.deploy({"SLEEP": 2000})
        moving = await life.until_relaunched(before, "hello-0-server")
        await life.until_step("hello-0:[server]", Status.STARTED)
        await life.kill("world-1-server")
        await life.until_relaunched(moving, "world-1-server")
        await life.pod(PodVerb.REPLACE, "world-0")
        failed = await life.until_relaunched(moving, "world-0-server", "world-1-server")
        await life.until_running(*SERVERS)
        await life.until_complete("recovery")
        assert sorted(steps(await life.view("recovery"))) == [
            "world-0:[server]",
            "world-1:[server]",
        ]
        assert (await life.held("world-0")).id != place.id
        for world in SERVERS[1:]:
            assert (await life.environment(world))["SLEEP"] == "1000"
        assert await life.status("world-0:[server]") is Status.PENDING

        # The pod that the deployment works on is its own to bring back.
        await life.kill("hello-0-server")
        await life.until_relaunched(failed, "hello-0-server")
        await life.make_ready("hello-0-server")
        await life.until_complete()
        await life.until_running(*SERVERS)
        for server in SERVERS:
            assert (await life.environment(server))["SLEEP"] == "2000"
        recovered = await life.until_complete("recovery")
        assert sorted(steps(recovered)) == ["world-0:[server]", "world-1:[server]"]


PAIR = f"""
name: {{{{NAME}}}}
pods:
  pair:
    count: 1
    tasks:
      first:
        {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{CPUS}}}}, memory: 32, readiness-check: {READY}}}
      second:
        {{goal: RUNNING, essential: false, cmd: "{LOOP}", cpus: {{{{CPUS}}}}, memory: 32}}
plans:
  deploy:
    phases: {{pair: {{strategy: serial, pod: pair, steps: [default: [[first], [second]]]}}}}
"""


async def test_a_task_keeps_its_resources_while_another_of_its_pod_is_relaunched(
    cluster: Cluster,
) -> None:
    """Also when that one comes back in its old configuration, which has other amounts for both."""

    async with living(cluster, "pair", PAIR) as life:

        async def cpus() -> list[float]:
            return [
                one.value for one in (await life.held("pair-0")).resources if one.kind == "cpus"
            ]

        await life.deploy({"CPUS": 0.1})
        await life.make_ready("pair-0-first")
        await life.until_complete()
        for before, after in ((0.1, 0.3), (0.3, 0.1)):
            launched = await life.ids()
            await life.deploy({"CPUS": after})
            changed = await life.until_relaunched(launched, "pair-0-first")
            await life.until_step("pair-0:[first]", Status.STARTED)
            assert await cpus() == [after, before]
            await life.kill("pair-0-second")
            await life.until_relaunched(changed, "pair-0-second")
            await life.until_complete("recovery")
            assert await cpus() == [after, before]
            await life.make_ready("pair-0-first")
            await life.until_complete()
            assert await cpus() == [after, after]


LETS_GO = f"""
name: {{{{NAME}}}}
pods:
  pair:
    count: 1
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32, ports: {{{{SERVER}}}}}}
      copy:
        goal: FINISH
        cmd: "while ! test -e done; do sleep 0.05; done"
        cpus: 0.1
        memory: 32
        ports: {{{{COPY}}}}
plans:
  deploy:
    strategy: parallel
    phases: {{pair: {{strategy: parallel, pod: pair, steps: [default: [[server], [copy]]]}}}}
  update:
    phases: {{pair: {{strategy: serial, pod: pair, steps: [default: [[server], [copy]]]}}}}
"""


async def test_what_a_task_used_that_ended_by_itself_is_free_for_its_pod(cluster: Cluster) -> None:
    port = f"{{web: {{port: {free_port()}}}}}"
    async with living(cluster, "lets-go", LETS_GO) as life:
        await life.deploy({"SERVER": "{}", "COPY": port})
        await life.until_running("pair-0-server", "pair-0-copy")
        await life.deploy({"SERVER": port, "COPY": "{}"})
        await life.until_step("pair-0:[server]", Status.PREPARED, saying="in use by tasks")
        await life.touch("pair-0-copy", "done")
        await life.until_step("pair-0:[server]", Status.COMPLETE)


async def test_placement_that_nobody_can_read(cluster: Cluster) -> None:
    """A file with it does not load; a program that sends it is refused, at first and later."""
    nowhere = '[["hostname", "NEAR", "here"]]'
    values = {"SLEEP": 1000}
    async with living(cluster, "lost-place", MOVING.replace("test -e ready", "true")) as life:
        placed = life.text.replace("count: 2", f"count: 2\n    placement: '{nowhere}'")
        with pytest.raises(SpecError, match=r"pods\.world\.placement"):
            life.spec(values, text=placed)
        good = life.spec(values)
        bad = good.but(pods=tuple(pod.but(placement=nowhere) for pod in good.pods))
        client = await life.client()
        refused = await client.deploy(Deployment(spec=bad))
        assert http_code(refused.outcome) == 417
        assert refused.change is not None
        paths = [problem.field for problem in refused.change.problems]
        assert paths == ["pods.hello.placement", "pods.world.placement"]
        await cluster.until(
            "it is not there", client.services, lambda services: "lost-place" not in services
        )

        await life.deployed(values)
        await life.until_running(*SERVERS)
        before = await life.ids()
        assert http_code((await client.deploy(Deployment(spec=bad))).outcome) == 417
        view = await cluster.until_status("lost-place/deploy", Status.ERROR)
        assert all("NEAR" in error for error in view.errors)
        assert await life.ids() == before
        await life.deploy(values)  # the one in force, again
        await life.until_complete()


GOALS = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: {{{{HELLO}}}}
    tasks:
      first: {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{HELLO_CPUS}}}}, memory: 32}}
      second: {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{HELLO_CPUS}}}}, memory: 32}}
  world:
    count: 1
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{WORLD_CPUS}}}}, memory: 32}}
      finish: {{goal: FINISH, cmd: "echo $TASK_NAME", cpus: {{{{WORLD_CPUS}}}}, memory: 32}}
      once: {{goal: ONCE, cmd: "echo $TASK_NAME", cpus: {{{{WORLD_CPUS}}}}, memory: 32}}
plans:
  deploy:
    strategy: parallel
    phases:
      hello: {{strategy: parallel, pod: hello, steps: [default: [[first], [second]]]}}
      server: {{pod: world, steps: [default: [[server]]]}}
      finish: {{pod: world, steps: [default: [[finish]]]}}
      once: {{pod: world, steps: [default: [[once]]]}}
"""


async def test_goals_and_steps(cluster: Cluster) -> None:
    """More of everything for one pod type concerns that type only: all of its steps; a task that
    is to FINISH runs again, one that ran ONCE does not."""
    values = {"HELLO": 1, "HELLO_CPUS": 0.1, "WORLD_CPUS": 0.1}
    async with living(cluster, "goals", GOALS) as life:
        await life.deployed(values)
        await life.until_running("hello-0-first", "hello-0-second", "world-0-server")
        before = await life.ids()
        view = await life.view()
        assert [step.name for step in view.phases[0].steps] == [
            "hello-0:[first]",
            "hello-0:[second]",
        ]
        client = await life.client()
        more = life.spec({**values, "HELLO": 2})
        expected = (await client.preview(Deployment(spec=more))).deploy
        assert expected is not None
        assert [step.status for step in expected.phases[0].steps] == [
            *(Status.COMPLETE, Status.COMPLETE),
            *(Status.PENDING, Status.PENDING),
        ]
        assert await life.ids() == before

        await life.deployed({**values, "HELLO": 2, "HELLO_CPUS": 0.2})
        hello = [f"hello-{pod}-{task}" for pod in (0, 1) for task in ("first", "second")]
        middle = await life.until_relaunched(before, *hello)
        for pod in ("hello-0", "hello-1"):
            cpus = [one.value for one in (await life.held(pod)).resources if one.kind == "cpus"]
            assert cpus == [0.2, 0.2]

        await life.deployed({"HELLO": 2, "HELLO_CPUS": 0.2, "WORLD_CPUS": 0.2})
        await life.until_relaunched(middle, "world-0-finish", "world-0-server")
        await life.until_running(*hello, "world-0-server")


async def test_configurations_are_kept_and_rolled_back_to(cluster: Cluster) -> None:
    values = {"HELLO": 1, "HELLO_CPUS": 0.1, "WORLD_CPUS": 0.1}
    async with living(cluster, "kept", GOALS) as life:
        await life.deployed(values)
        before = await life.ids()
        await life.deployed({**values, "HELLO_CPUS": 0.2}, reason="more for hello")
        middle = await life.until_relaunched(before, "hello-0-first", "hello-0-second")
        client = await life.client()
        kept = await client.configurations("kept")
        assert [(one.number, one.by, one.reason) for one in kept.configurations] == [
            (1, "test", ""),
            (2, "test", "more for hello"),
        ]
        assert kept.target == kept.configurations[1].id
        result = await client.rollback("kept", by="test")
        assert result.number == 3
        await life.until_relaunched(middle, "hello-0-first", "hello-0-second")
        await life.until_complete()
        assert await client.config("kept") == life.spec(values)
        # By the command line, too.
        said = await cluster.plan("configs", "-s", "kept")
        assert "more for hello" in said.out


CANARY = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: {{{{HELLO}}}}
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: {{{{CPUS}}}}, memory: 32}}
  world:
    count: 2
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
plans:
  deploy:
    strategy: serial
    phases:
      hello: {{strategy: parallel-canary, pod: hello}}
      world: {{strategy: serial-canary, pod: world}}
"""


async def test_canaries_stand_before_what_changes(cluster: Cluster) -> None:
    """Compatibility 14.5, test_canary_strategy (7) and (8)."""
    world = ("world-0-server", "world-1-server")
    hello = [f"hello-{i}-server" for i in range(4)]
    async with living(cluster, "canaries", CANARY) as life:
        await life.deploy({"HELLO": 3, "CPUS": 0.1})
        for _ in range(2):  # it begins when hello is COMPLETE
            assert (await life.command(Verb.CONTINUE, "deploy", "world")).changed
        assert (await life.command(Verb.CONTINUE, "deploy", "hello")).changed
        await life.until_shown("hello C,W,P WAITING; world P,P PENDING; WAITING")
        assert (await life.command(Verb.CONTINUE, "deploy", "hello")).changed
        await life.until_complete()
        await life.until_running(*hello[:3], *world)
        before = await life.ids()

        await life.deploy({"HELLO": 4, "CPUS": 0.1})  # (7)
        await life.until_shown("hello C,C,C,W WAITING; world C,C COMPLETE; WAITING")
        assert await life.ids() == before
        await life.command(Verb.CONTINUE, "deploy", "hello")
        await life.until_complete()
        four = await life.until_relaunched(before, hello[3])

        await life.deploy({"HELLO": 4, "CPUS": 0.2})  # (8)
        await life.until_shown("hello W,W,P,P WAITING; world C,C COMPLETE; WAITING")
        assert await life.ids() == four
        await life.command(Verb.CONTINUE, "deploy", "hello")
        await life.until_shown("hello C,W,P,P WAITING; world C,C COMPLETE; WAITING")
        await life.until_relaunched(four, hello[0])
        await life.command(Verb.CONTINUE, "deploy", "hello")
        await life.until_complete()
        await life.until_relaunched(four, *hello)
        await life.until_running(*hello, *world)


SWITCHED = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      a: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
      b: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
plans:
  deploy:
    phases:
      hello: {{pod: hello, steps: [default: {{{{STEPS}}}}]}}
"""


async def test_a_task_that_no_plan_has_is_off(cluster: Cluster) -> None:
    """Behaviour 4.4: it is killed, and it comes back where it was."""
    async with living(cluster, "switched", SWITCHED) as life:
        await life.deployed({"STEPS": "[[a], [b]]"})
        await life.until_running("hello-0-a", "hello-0-b")
        before, place = await life.ids(), await life.held("hello-0")
        await life.deployed({"STEPS": "[[b]]"})
        await life.until_running("hello-0-b")
        assert (await life.held("hello-0")).id == place.id
        assert (await life.ids())["hello-0-b"] == before["hello-0-b"]
        assert (await life.view("recovery")).phases == ()
        await life.deployed({"STEPS": "[[a], [b]]"})
        await life.until_relaunched(before, "hello-0-a")
        await life.until_running("hello-0-a", "hello-0-b")
        assert (await life.held("hello-0")).id == place.id


async def test_a_deployment_takes_up_what_is_on_its_way(cluster: Cluster) -> None:
    """A pod that is not ready yet is waited for, not launched again; one that is stays."""
    async with living(
        cluster, "on-its-way", MOVING.replace("count: 2", "count: {{WORLD}}")
    ) as life:
        values = {"SLEEP": 1000}
        await life.deploy({**values, "WORLD": 1})
        await life.until_step("hello-0:[server]", Status.STARTED)
        before = await life.ids()
        await life.deploy({**values, "WORLD": 2})
        await life.until_step("hello-0:[server]", Status.STARTED)
        await life.until_shown("hello SD STARTED; world P,P PENDING; STARTED")
        assert await life.ids() == before
        await life.make_ready("hello-0-server")
        await life.until_complete()
        await life.until_running(*SERVERS)
        assert (await life.ids())["hello-0-server"] == before["hello-0-server"]
