"""A service's own plans beside its deployment (behaviour 5.5).

Which scenario of the followed system is where: docs/compatibility.md.
"""

import asyncio

from acceptance.cluster import Cluster, steps
from acceptance.life import LOOP, READY, PodVerb, living
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView

MANUAL = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 1
    tasks:
      server:
        {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32, readiness-check: {READY}}}
  custom-a:
    count: 1
    tasks: {{task: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}}}
  custom-b:
    count: 1
    tasks: {{task: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}}}
  custom-c:
    count: 1
    tasks: {{task: {{goal: RUNNING, cmd: "{LOOP}", cpus: 0.1, memory: 32}}}}
plans:
  deploy: {{phases: {{hello: {{pod: hello}}}}}}
  manual-a: {{phases: {{a: {{pod: custom-a}}}}}}
  manual-b: {{phases: {{b: {{pod: custom-b}}}}}}
  manual-c: {{phases: {{c: {{pod: custom-c}}}}}}
"""


async def test_plans_run_beside_a_deployment(cluster: Cluster) -> None:
    """Three, on pods of their own, while the deployment is still under way."""
    plans = ("manual-a", "manual-b", "manual-c")
    async with living(cluster, "beside", MANUAL) as life:
        await life.deploy()
        await life.until_step("hello-0:[server]", Status.STARTED)
        for plan in plans:
            await cluster.until_status(f"beside/{plan}", Status.WAITING)
        assert list(await life.records()) == ["hello-0-server"]  # no id for what never ran
        await asyncio.gather(*(life.command(Verb.START, plan) for plan in plans))
        for plan in plans:
            await life.until_complete(plan)
        assert await life.status("hello-0:[server]") is Status.STARTED
        custom = [f"custom-{letter}-0-task" for letter in "abc"]
        await life.until_running("hello-0-server", *custom)
        for record in (await life.records()).values():
            assert record.status is not None
            assert record.status.task_id == record.task_id
        await life.make_ready("hello-0-server")
        await life.until_complete()


SIDECARS = f"""
name: {{{{NAME}}}}
pods:
  hello:
    count: 2
    volume: {{path: data, type: ROOT, size: 16}}
    resource-sets:
      main: {{cpus: 0.1, memory: 32}}
      beside: {{cpus: 0.1, memory: 32}}
    tasks:
      server:
        {{goal: RUNNING, cmd: "{LOOP}", resource-set: main, env: {{SLEEP: "{{{{SLEEP}}}}"}}}}
      tell:
        {{goal: ONCE, cmd: "echo $GREETING $NAME >> data/told", resource-set: beside,
          env: {{GREETING: hello, NAME: nobody}}}}
      toxic: {{goal: ONCE, cmd: "exit 1", resource-set: beside}}
plans:
  deploy: {{phases: {{hello: {{strategy: parallel, pod: hello, steps: [default: [[server]]]}}}}}}
  tell: {{phases: {{tell: {{strategy: parallel, pod: hello, steps: [default: [[tell]]]}}}}}}
  toxic: {{phases: {{toxic: {{strategy: parallel, pod: hello, steps: [default: [[toxic]]]}}}}}}
"""
SERVERS = ("hello-0-server", "hello-1-server")


async def test_sidecars(cluster: Cluster) -> None:
    async with living(cluster, "sidecars", SIDECARS) as life:
        await life.deployed({"SLEEP": 1})
        await life.until_running(*SERVERS)
        ids = await life.ids()
        sandbox = await life.sandbox("hello-1-server")
        assert sandbox is not None
        told = (sandbox / "data").resolve() / "told"

        # Without parameters it says what its own environment says, with them what they say.
        await life.command(Verb.START, "tell")
        await life.until_complete("tell")
        assert told.read_text() == "hello nobody\n"
        await life.command(Verb.START, "tell", NAME="the operator; really")
        await cluster.until(
            "it is told again",
            lambda: asyncio.to_thread(told.read_text),
            lambda text: text == "hello nobody\nhello the operator; really\n",
        )
        await life.until_complete("tell")

        # One that can only fail is tried again and again, and is nobody else's trouble.
        await life.command(Verb.START, "toxic")
        await cluster.until_plan("sidecars/toxic", "fails", _fails)
        assert (await life.view("recovery")).phases == ()
        assert (await life.view()).status is Status.COMPLETE
        assert {name: (await life.ids())[name] for name in SERVERS} == {
            name: ids[name] for name in SERVERS
        }

        # It goes on over a change that does not concern its plan; what changed stays changed.
        await life.deployed({"SLEEP": 2})
        assert (await life.view("toxic")).status is not Status.WAITING
        before = await life.ids()
        await life.pod(PodVerb.RESTART, "hello-0")

        async def relaunched(_: object) -> bool:
            return (await life.ids())["hello-0-server"] != before["hello-0-server"]

        await life.until("hello-0 is restarted", relaunched)
        await life.command(Verb.STOP, "toxic")
        await cluster.until_status("sidecars/toxic", Status.WAITING)
        await life.until_running(*SERVERS)
        for server in SERVERS:
            assert (await life.environment(server))["SLEEP"] == "2"


def _fails(view: PlanView) -> bool:
    return all(step.attempt >= 2 for step in steps(view).values())
