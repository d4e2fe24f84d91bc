"""Tasks that fail, and pods that operators restart, replace and pause (behaviour 3.9, 6).

Which scenario of the followed system is where: docs/compatibility.md.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from acceptance.cluster import Cluster, steps
from acceptance.life import LOOP, READY, Life, PlansError, PodVerb, living
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.tasks import TaskStatuses

TWO_TASKS = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 2
    volume: {{path: data, type: ROOT, size: 16}}
    tasks:
      main: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
      aside: {{goal: RUNNING, essential: false, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
      init: {{goal: ONCE, cmd: "true", cpus: 0.1, memory: 32}}
plans:
  deploy:
    phases:
      hello: {{strategy: parallel, pod: hello, steps: [default: [[init], [main, aside]]]}}
"""
HELLO = ("hello-0-aside", "hello-0-main", "hello-1-aside", "hello-1-main")
ENDING = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      main: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
      job: {{goal: FINISH, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
"""


async def test_essential_tasks_take_their_pod_along(cluster: Cluster) -> None:
    """Every time in the place that the pod has; what ran ONCE never runs again."""
    async with living(cluster, "essential", TWO_TASKS) as life:
        await life.deployed()
        await life.until_running(*HELLO)
        ids, place = await life.ids(), await life.held("hello-0")

        await life.kill("hello-0-aside")
        ids = await life.until_relaunched(ids, "hello-0-aside")
        await life.until_running(*HELLO)
        await life.until_complete("recovery")
        assert list(steps(await life.view("recovery"))) == ["hello-0:[aside]"]

        await life.kill("hello-0-main")
        ids = await life.until_relaunched(ids, "hello-0-aside", "hello-0-main")
        await life.until_running(*HELLO)
        # The newer recovery has taken the place of the one that had a task of it.
        await life.until_complete("recovery")
        assert list(steps(await life.view("recovery"))) == ["hello-0:[main, aside]"]

        await life.pod(PodVerb.RESTART, "hello-0")
        ids = await life.until_relaunched(ids, "hello-0-aside", "hello-0-main")
        await life.until_running(*HELLO)
        after = await life.held("hello-0")
        assert after.id == place.id
        assert [one.id for one in after.resources] == [one.id for one in place.resources]

        client = await life.client()
        with pytest.raises(PlansError, match="hello-2"):
            await client.command_pod("essential", PodVerb.RESTART, "hello-2")


async def test_what_is_to_end_is_not_waited_for(cluster: Cluster) -> None:
    """It is enough that it runs again in the plan that has it, or stays killed without one."""
    restart = ("pod", "restart", "hello-0", "-s", "ending", "--wait")
    async with living(cluster, "ending", ENDING) as life:
        await life.deploy()
        await life.until_running("hello-0-job", "hello-0-main")
        said = await cluster.plan(*restart)
        assert said.out.endswith('Pod "hello-0" runs.\n')
        await life.until_running("hello-0-job", "hello-0-main")

        await life.command(Verb.FORCE_COMPLETE, "deploy", "hello")
        await life.until_complete()
        said = await cluster.plan(*restart)
        last = "Launched again only by a plan that has them: hello-0-job."
        assert said.out.endswith(f'Pod "hello-0" runs.\n{last}\n')
        await life.until_running("hello-0-main")


async def test_a_task_and_a_pod_are_paused(cluster: Cluster) -> None:
    """A paused task runs a placeholder, its sibling its own command; no other pod is touched."""
    async with living(cluster, "pausing", TWO_TASKS) as life:
        await life.deployed()
        await life.until_running(*HELLO)
        ids, place = await life.ids(), await life.held("hello-0")

        await life.pod(PodVerb.PAUSE, "hello-0", "main")
        ids = await life.until_relaunched(ids, "hello-0-aside", "hello-0-main")
        await _reads(life, {"aside": "RUNNING", "main": "PAUSED"})
        assert LOOP in await _command(life, "hello-0-aside")
        assert LOOP not in await _command(life, "hello-0-main")

        await life.pod(PodVerb.RESUME, "hello-0", "hello-0-main")
        ids = await life.until_relaunched(ids, "hello-0-aside", "hello-0-main")
        await _reads(life, {"aside": "RUNNING", "main": "RUNNING"})
        assert LOOP in await _command(life, "hello-0-main")

        await life.pod(PodVerb.PAUSE, "hello-0", "aside")
        ids = await life.until_relaunched(ids, "hello-0-aside")
        await _reads(life, {"aside": "PAUSED", "main": "RUNNING"})

        await life.pod(PodVerb.PAUSE, "hello-0")  # all of it
        await _reads(life, {"aside": "PAUSED", "main": "PAUSED"})
        # A pod stays paused where it is brought back.
        await life.pod(PodVerb.REPLACE, "hello-0")
        await life.until("it has moved", lambda life: _elsewhere(life, place.id))
        await _reads(life, {"aside": "PAUSED", "main": "PAUSED"})

        await life.pod(PodVerb.RESUME, "hello-0")
        await _reads(life, {"aside": "RUNNING", "main": "RUNNING"})
        await life.until_running(*HELLO)
        assert (await life.ids())["hello-1-main"] == ids["hello-1-main"]
        assert (await life.ids())["hello-1-aside"] == ids["hello-1-aside"]


async def _reads(life: Life, wanted: dict[str, str]) -> None:
    """Until the tasks of hello-0 that run are shown so."""

    async def look(life: Life) -> bool:
        shown = (await life.pods())["hello-0"].shown
        return {name: shown[f"hello-0-{name}"] for name in wanted} == wanted

    await life.until(f"hello-0 reads {wanted}", look)


async def _command(life: Life, task: str) -> str:
    """The command lines of a task's processes."""
    record = (await life.records())[task]
    paths = [Path(f"/proc/{pid}/cmdline") for pid in life.cluster.running()[record.task_id]]
    texts = [path.read_bytes() for path in paths if await asyncio.to_thread(path.exists)]
    return b" ".join(texts).replace(b"\0", b" ").decode()


async def _elsewhere(life: Life, place: str) -> bool:
    reservation = (await life.pods())["hello-0"].reservation
    return reservation is not None and reservation.id != place


LOOPING = f"""
name: {{{{NAME}}}}
pods:
  bad:
    count: 1
    tasks:
      server:
        {{goal: RUNNING, cmd: "{{{{CMD}}}}", cpus: 0.1, memory: 32, readiness-check: {READY}}}
  good:
    count: 1
    tasks:
      server: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}
plans:
  deploy:
    strategy: parallel
    phases: {{bad: {{pod: bad}}, good: {{pod: good}}}}
"""


async def test_a_crash_loop_at_deployment_ends_with_a_better_configuration(
    cluster: Cluster,
) -> None:
    """Meanwhile it backs off, belongs to the deployment alone, and harms no other pod."""
    slow = Backoff(initial=timedelta(seconds=0.3), factor=3)
    async with living(cluster, "crashing", LOOPING) as life:
        await life.deploy({"CMD": "exit 3"}, backoff=slow)
        await life.until_running("good-0-server")
        good = (await life.ids())["good-0-server"]

        def backs_off(view: PlanView) -> bool:
            step = steps(view)["bad-0:[server]"]
            return step.attempt >= 3 and step.status is Status.DELAYED

        view = await cluster.until_plan("crashing/deploy", "backs off", backs_off)
        assert steps(view)["good-0:[server]"].status is Status.COMPLETE
        assert view.status is Status.IN_PROGRESS  # and not ERROR (design 8)
        assert (await life.view("recovery")).phases == ()
        await life.deployed({"CMD": f"touch ready; {LOOP}"}, backoff=slow)
        await life.until_running("bad-0-server", "good-0-server")
        assert (await life.ids())["good-0-server"] == good


POISONED = """
name: {{NAME}}
pods:
  hello:
    count: 1
    volume: {path: data, type: ROOT, size: 16}
    tasks:
      server:
        goal: RUNNING
        cmd: "test ! -e data/poison && while true; do sleep 0.5; done"
        cpus: 0.1
        memory: 32
"""


async def test_a_crash_loop_in_recovery(cluster: Cluster) -> None:
    """It backs off longer and longer, in one and the same phase, until the cause is gone; then an
    operator need not wait for the back-off."""
    backoff = Backoff(initial=timedelta(seconds=0.3), factor=1000)
    async with living(cluster, "looping", POISONED) as life:
        await life.deployed(backoff=backoff)
        before, poison = await life.ids(), await _poisoned(life)
        await life.kill("hello-0-server")
        # 0.3 s for the first failure, five minutes for the second.
        await life.until_relaunched(before, "hello-0-server")
        await life.until_step("hello-0:[server]", Status.DELAYED, "recovery", saying="exit code 1")
        view = await life.view("recovery")
        assert [phase.name for phase in view.phases] == ["hello-0:[server]"]
        assert (await life.view()).status is Status.COMPLETE
        ids = await life.ids()
        poison.unlink()
        await life.pod(PodVerb.RESTART, "hello-0")
        await life.until_relaunched(ids, "hello-0-server")
        await life.until_running("hello-0-server")
        view = await life.until_complete("recovery")
        assert [phase.name for phase in view.phases] == ["hello-0:[server]"]


async def test_what_is_down_for_too_long_is_replaced(cluster: Cluster) -> None:
    """Its volume is what makes it fail, so only another place mends it (behaviour 6.5)."""
    async with living(cluster, "replaced", POISONED) as life:
        policy = RecoveryPolicy(
            permanent_failure_timeout=timedelta(seconds=1), min_replace_delay=timedelta(0)
        )
        slow = Backoff(initial=timedelta(seconds=2), factor=1)
        await life.deployed(recovery=policy, backoff=slow)
        place, poison = await life.held("hello-0"), await _poisoned(life)
        await life.kill("hello-0-server")
        await life.until("it has moved", lambda life: _elsewhere(life, place.id))
        await life.until_running("hello-0-server")
        await life.until_complete("recovery")
        await cluster.until(
            "its old volume is destroyed", lambda: asyncio.to_thread(poison.exists), _not
        )


def _not(value: object) -> bool:
    return not value


async def _poisoned(life: Life) -> Path:
    """Put the file into the pod's volume that keeps its task from starting again."""
    await life.until_running("hello-0-server")
    sandbox = await life.sandbox("hello-0-server")
    assert sandbox is not None
    poison = (sandbox / "data").resolve() / "poison"
    poison.touch()
    return poison


async def test_a_false_report_of_an_end_never_makes_two_of_a_task(cluster: Cluster) -> None:
    """The agent refuses the launch beside it and reports again, and the service kills the first."""
    async with living(cluster, "misled", TWO_TASKS) as life:
        await life.deployed()
        await life.until_running(*HELLO)
        ids, record = await life.ids(), (await life.records())["hello-0-aside"]
        assert record.status is not None
        false = record.status.but(state=TaskState.FAILED, sequence=1_000_000)
        service = (await cluster.bare_client()).get_workflow_handle("service/misled")
        await service.signal("task_statuses", TaskStatuses(statuses=(false,)))
        seen: set[int] = set()

        async def relaunched(life: Life) -> bool:
            seen.add(life.processes().count("hello-0-aside"))
            now = (await life.records())["hello-0-aside"]
            if now.task_id == ids["hello-0-aside"] or now.status is None:
                return False
            return now.status.state is TaskState.RUNNING

        await life.until("it is launched again", relaunched)
        assert max(seen) == 1
