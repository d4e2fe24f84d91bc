"""Service files from the field deploy on three agents (behaviour 2.6, 5.2).

The files are not part of this project; where they are not, these tests are skipped.
"""

import getpass
import json
import os
import resource
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from itertools import pairwise

import pytest

from acceptance.cluster import ROOT, Cluster, Machine, phase, statuses, steps
from temporal_plans.activities.agent.sandbox.rlimits import can_raise_rlimits
from temporal_plans.cli.inputs.deployment import deployment
from temporal_plans.cli.inputs.files import ServiceFileOptions
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.plan_views import PlanView

CORPUS = ROOT.parent / "shared" / "corpus" / "dcos"

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the service files of ../shared/corpus/dcos are not here"
)

Deployed = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture
def deployed(cluster: Cluster) -> Deployed:
    """``async with deployed("svc.yml", HELLO_COUNT=2) as service``: torn down afterwards.

    As ``temporal plan deploy`` does it, in this process: the command has tests of its own.
    """

    @asynccontextmanager
    async def deploying(file: str, *, wait: bool = True, **values: object) -> AsyncGenerator[str]:
        service = file.removesuffix(".yml").replace("_", "-")
        quick = {"FRAMEWORK_NAME": service, "FRAMEWORK_INITIAL_BACKOFF": 1}
        values = {**quick, **_what_the_machine_asks(), **values}
        given = [f"{name}={value}" for name, value in values.items()]
        try:
            what = deployment(
                ServiceFileOptions(CORPUS / file, given, [CORPUS / "helloworld.env"]), by="test"
            )
            result = await (await cluster.client()).deploy(what)
            assert not result.outcome.refused, result
            if wait:
                await cluster.until_status(f"{service}/deploy", Status.COMPLETE)
            yield service
        finally:
            await cluster.tear_down(service)

    return deploying


def _what_the_machine_asks() -> dict[str, object]:
    """Values other than the file's, where this machine would not let an agent do what they say:
    become another user, or open 128,000 files."""
    values: dict[str, object] = {}
    if os.geteuid() != 0:
        values["FRAMEWORK_USER"] = getpass.getuser()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if not can_raise_rlimits() and 0 <= hard < 128_000:
        for pod in ("HELLO", "WORLD"):
            for kind in ("SOFT", "HARD"):
                values[f"{pod}_RLIMIT_NOFILE_{kind}"] = hard
    return values


# --- every file ---------------------------------------------------------------------------------


PLAIN = [
    pytest.param("svc.yml", ["hello-0-server", "world-0-server", "world-1-server"], id="svc"),
    pytest.param(
        "nonessential_tasks.yml", ["hello-0-essential", "hello-0-nonessential"], id="nonessential"
    ),
    pytest.param("update_plan.yml", ["hello-0-server"], id="update-plan"),
    pytest.param("plan.yml", ["hello-0-server", "world-0-server", "world-1-server"], id="plan"),
    pytest.param(
        "multistep_plan.yml",
        ["hello-0-first", "hello-0-second", "world-0-server", "world-1-server"],
        id="multistep",
    ),
    pytest.param(
        "finish_state.yml", ["hello-0-server", "hello-1-server", "world-0-server"], id="finish"
    ),
    pytest.param("sidecar.yml", ["hello-0-server", "hello-1-server"], id="sidecar"),
]


@pytest.mark.parametrize(("file", "tasks"), PLAIN)
async def test_it_deploys(
    cluster: Cluster, deployed: Deployed, file: str, tasks: list[str]
) -> None:
    async with deployed(file) as service:
        view = await cluster.view(f"{service}/deploy")
        assert view.status is Status.COMPLETE
        await cluster.until_running(tasks)


def test_no_file_is_forgotten() -> None:
    named = {param.values[0] for param in PLAIN} | {"canary.yml", "custom_steps.yml"}
    assert named == {path.name for path in CORPUS.glob("*.yml")} - {"cassandra-svc.yml"}


async def test_unique_hosts(cluster: Cluster, deployed: Deployed) -> None:
    """``[["hostname", "UNIQUE"]]`` spreads three pods; a fourth waits and says why."""
    async with deployed("svc.yml", wait=False, WORLD_COUNT=4) as service:
        plan = f"{service}/deploy"
        await cluster.until_plan(
            plan,
            "waits for a host",
            lambda view: steps(view)["world-3:[server]"].status is Status.PREPARED,
        )
        pods = await (await cluster.client()).pods(service)
        hosts = sorted(pod.hostname for pod in pods if pod.type == "world" and pod.agent)
        assert hosts == sorted(machine.hostname for machine in cluster.machines.values())
        texts = ["may have 1, has 1 already", *(f"{one}: " for one in cluster.machines)]
        await cluster.until_said("explain", "deploy", "-s", service, texts=texts)


# --- custom steps -------------------------------------------------------------------------------


Pair = tuple[str, str]
"""The first step is complete before the second begins."""

CUSTOM_STEPS = [
    pytest.param(
        "serial",
        "[[first],[second],[third]]",
        [
            *("hello-0:[first]", "hello-0:[second]", "hello-0:[third]"),
            *("hello-1:[first]", "hello-1:[second]", "hello-1:[third]"),
        ],
        id="serial-1-1-1",
    ),
    pytest.param(
        "serial",
        "[[first],[second,third]]",
        [
            "hello-0:[first]",
            "hello-0:[second, third]",
            "hello-1:[first]",
            "hello-1:[second, third]",
        ],
        id="serial-1-2",
    ),
    pytest.param(
        "parallel",
        "[[first],[second,third]]",
        [
            "hello-0:[first]",
            "hello-0:[second, third]",
            "hello-1:[first]",
            "hello-1:[second, third]",
        ],
        id="parallel-1-2",
    ),
    pytest.param(
        "parallel",
        "[[first,second,third]]",
        ["hello-0:[first, second, third]", "hello-1:[first, second, third]"],
        id="parallel-3",
    ),
]


@pytest.mark.parametrize(("strategy", "order", "names"), CUSTOM_STEPS)
async def test_custom_steps(
    cluster: Cluster, deployed: Deployed, strategy: str, order: str, names: list[str]
) -> None:
    """The table of behaviour 5.2; tasks that end at once are started again by the plan."""
    async with deployed(
        "custom_steps.yml", DEPLOY_STRATEGY=strategy, DEPLOY_STEPS=order
    ) as service:
        view = await cluster.view(f"{service}/deploy")
        assert list(steps(view)) == names
        for before, after in pairwise(names):
            if strategy == "serial" or before.split(":")[0] == after.split(":")[0]:
                assert _finished(view, before) <= _started(view, after)


def _finished(view: PlanView, step: str) -> datetime:
    moment = steps(view)[step].finished
    assert moment is not None
    return moment


def _started(view: PlanView, step: str) -> datetime:
    moment = steps(view)[step].started
    assert moment is not None
    return moment


# --- canaries -----------------------------------------------------------------------------------


async def test_canary(cluster: Cluster, deployed: Deployed) -> None:
    """Compatibility 14.5, test_canary_strategy (1) to (6)."""
    # The file gives every hello pod the port 9999, so four of them need four machines.
    await cluster.add(Machine("four", "four.example"))
    try:
        async with deployed("canary.yml", wait=False, HELLO_COUNT=4, WORLD_COUNT=4) as service:
            await _canary(cluster, f"{service}/deploy", service)
    finally:
        await cluster.remove("four")


async def _canary(cluster: Cluster, plan: str, service: str) -> None:
    def shows(text: str) -> Callable[[PlanView], bool]:
        """``hello W,W,P,P WAITING; world W,W,P,P WAITING; WAITING``"""

        def compare(view: PlanView) -> bool:
            return _canary_text(view) == text

        return compare

    async def becomes(text: str, running: list[str]) -> None:
        await cluster.until_plan(plan, f"shows {text}", shows(text))
        await cluster.until_running(running)
        await cluster.stays(plan, f"shows {text}", shows(text))
        assert cluster.running_names() == sorted(running)

    async def go_on(phase: str) -> None:
        await cluster.command(plan, Verb.CONTINUE, phase)

    hello = [f"hello-{i}-server" for i in range(4)]
    world = [f"world-{i}-server" for i in range(4)]

    before = "hello W,W,P,P WAITING; world W,W,P,P WAITING; WAITING"
    await becomes(before, [])  # (1)

    await go_on("hello-deploy")
    first = "hello C,W,P,P WAITING; world W,W,P,P WAITING; WAITING"
    await becomes(first, hello[:1])  # (2)

    said = await cluster.plan("continue", "deploy", "-s", service, code=1)
    assert "nothing changed" in said.both  # (3), and it says so (design 8)
    assert "hello-deploy" in said.both
    await becomes(first, hello[:1])

    await go_on("world-deploy")
    await becomes("hello C,W,P,P WAITING; world P,W,P,P PENDING; WAITING", hello[:1])  # (4)

    await go_on("hello-deploy")
    await becomes(
        "hello C,C,C,C COMPLETE; world C,W,P,P WAITING; WAITING", [*hello, *world[:1]]
    )  # (5)

    await go_on("world-deploy")
    done = "hello C,C,C,C COMPLETE; world C,C,C,C COMPLETE; COMPLETE"
    await cluster.until_plan(plan, f"shows {done}", shows(done))  # (6)
    await cluster.until_running([*hello, *world])
    view = await cluster.view(plan)
    for one, next_one in pairwise(f"world-{i}:[server]" for i in range(1, 4)):
        assert _finished(view, one) <= _started(view, next_one)


def _canary_text(view: PlanView) -> str:
    told = [
        f"{name.removesuffix('-deploy')} {statuses(one)} {one.status}"
        for name in ("hello-deploy", "world-deploy")
        if (one := phase(view, name))
    ]
    return "; ".join([*told, str(view.status)])


# --- plans that wait to be started --------------------------------------------------------------


async def test_sidecars(cluster: Cluster, deployed: Deployed) -> None:
    """Custom plans run when they are started, with parameters, and a bad one harms nobody."""
    async with deployed("sidecar.yml") as service:
        plans = ("sidecar", "sidecar-parameterized", "sidecar-toxic")
        for plan in plans:
            await cluster.until_status(f"{service}/{plan}", Status.WAITING)
        records = await (await cluster.client()).tasks(service)
        assert not [record for record in records if record.task.startswith("sidecar")]

        await cluster.command(f"{service}/sidecar", Verb.START)
        await cluster.until_status(f"{service}/sidecar", Status.COMPLETE)

        text = "parameterized by an operator"
        parameterized = f"{service}/sidecar-parameterized"
        await cluster.command(parameterized, Verb.START, PLAN_PARAMETER=text)
        await cluster.until_status(parameterized, Status.COMPLETE)
        said = await cluster.plan("logs", "hello-1-sidecar-parameterized", "-s", service)
        assert text in said.out  # which its grep found on the pod's volume

        toxic = f"{service}/sidecar-toxic"
        await cluster.command(toxic, Verb.START)
        await cluster.until_plan(
            toxic,
            "has failed twice in both pods",
            lambda view: all(step.attempt >= 2 for step in steps(view).values()),
        )
        assert (await cluster.view(toxic)).status is not Status.COMPLETE
        # It wedges nobody: other plans of the same pods run.
        await cluster.command(f"{service}/sidecar", Verb.START)
        await cluster.until_status(f"{service}/sidecar", Status.COMPLETE)
        await cluster.command(toxic, Verb.STOP)
        await cluster.until_status(toxic, Status.WAITING)
        log = json.loads((await cluster.plan("log", "sidecar-toxic", "-s", service, "--json")).out)
        assert [entry["verb"] for entry in log["entries"]] == ["start", "stop"]

        assert (await cluster.view(f"{service}/deploy")).status is Status.COMPLETE
        await cluster.until_running(["hello-0-server", "hello-1-server"])


async def test_manual_plans(cluster: Cluster, deployed: Deployed) -> None:
    """Three plans on pods of their own, started at the same time (compatibility 14.5,
    test_parallel_plans)."""
    async with deployed("plan.yml") as service:
        plans = [f"manual-plan-{i}" for i in range(3)]
        for plan in plans:
            await cluster.until_status(f"{service}/{plan}", Status.WAITING)
        before = ["hello-0-server", "world-0-server", "world-1-server"]
        await cluster.until_running(before)

        for plan in plans:
            await cluster.command(f"{service}/{plan}", Verb.START)
        for plan in plans:
            await cluster.until_status(f"{service}/{plan}", Status.COMPLETE)
        pods = [f"custom-pod-{letter}-0-simple-task" for letter in "ABC"]
        await cluster.until_running([*before, *pods])

        async def tasks() -> dict[str, TaskState | None]:
            records = await (await cluster.client()).tasks(service)
            return {r.name: r.status.state if r.status else None for r in records}

        running = dict.fromkeys([*before, *pods], TaskState.RUNNING)
        await cluster.until("the service knows of all", tasks, lambda known: known == running)
