"""How plans of packages are executed: the cases of the system whose packages these are, with the
statuses that its users know, and what plans here can do beyond them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowUpdateFailedError

from builders.packages import package_files
from pauses import until
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.client.reading.operator_dialect import NewestRun, status_body
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.owners import UninstallRequest
from temporal_plans.messages.packages import PackageConfigurations, TasksOutcome, TasksResult
from workflows.instance_kit import Store
from workflows.package_programs import ScriptedCluster, scripted_cluster
from workflows.plan_kit import Kit

TASKS = ("a", "b", "c", "d")
FAST = Backoff(initial=timedelta(milliseconds=300), factor=1)
PARAMETERS = """\
parameters:
  - {name: SIZE, default: "3", trigger: deploy}
  - {name: RESTORE, default: "", trigger: restore}
  - {name: BACKUP, default: "", trigger: backup}
"""


def package(**plans: Any) -> dict[str, bytes]:
    """A package with the tasks a to d, and these plans; ``backup`` and ``restore`` are two of them
    in any case."""
    other = plan("serial", ["d"])
    operator = {
        "name": "store",
        "operatorVersion": "1.0.0",
        "kubernetesVersion": "1.25",
        "tasks": [
            {"name": name, "kind": "Apply", "spec": {"resources": ["app.yaml"]}} for name in TASKS
        ],
        "plans": {"backup": other, "restore": other, **plans},
    }
    return package_files(json.dumps(operator) + "\n", PARAMETERS)


def plan(strategy: Any, *phases: Sequence[Any], of_phases: Any = "serial", **keys: Any) -> Any:
    """A plan whose phases p0, p1, … have these steps: a task by its name, or a whole step."""
    made = [
        {
            "name": f"p{number}",
            "strategy": of_phases,
            "steps": [
                {"name": step, "tasks": [step]} if isinstance(step, str) else step for step in steps
            ],
        }
        for number, steps in enumerate(phases)
    ]
    return {"strategy": strategy, "phases": made, **keys}


class Stores:
    """Makes installed packages, and removes them at the end of the test."""

    def __init__(self, plans: Kit, cluster: ScriptedCluster) -> None:
        self._plans, self.cluster = plans, cluster
        self.made: list[Store] = []

    def of(self, **plans: Any) -> Store:
        self.made.append(Store(self._plans, self.cluster, package(**plans)))
        return self.made[-1]


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(client: Client) -> AsyncIterator[ScriptedCluster]:
    async with scripted_cluster(client) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def stores(plans: Kit, cluster: ScriptedCluster) -> AsyncIterator[Stores]:
    made = Stores(plans, cluster)
    yield made
    for store in made.made:
        await store.remove()


DONE = TasksResult(outcome=TasksOutcome.DONE)
NOT_DONE = TasksResult(outcome=TasksOutcome.WAITING, reason="Pod a: not ready")
PASSES = TasksResult(outcome=TasksOutcome.RETRY, reason="deploy.p0.a.a: no answer")
FATAL = TasksResult(outcome=TasksOutcome.FAILED, reason="deploy.p0.a.a: is wrong")

Statuses = Mapping[str, str]


class Case(NamedTuple):
    """``answers`` are what executions of tasks give, by task: every time. ``expected`` are the
    statuses of the plan, its phases and steps by name, in the words of the original; ``messages``
    are parts of those of steps. ``begun`` are tasks that were executed once or more."""

    name: str
    plan: Any
    answers: Mapping[str, TasksResult]
    expected: Statuses
    messages: Statuses = {}
    begun: frozenset[str] = frozenset({"a"})


ONE = plan("serial", ["a"])
TWO_STEPS = plan("serial", ["a", "b"])
TWO_BESIDE = plan("serial", ["a", "b"], of_phases="parallel")
TWO_PHASES = plan("serial", ["a"], ["b"])
PHASES_BESIDE = plan("parallel", ["a"], ["b"])
BOTH = frozenset({"a", "b"})


def of(plan: str, **elements: str) -> Statuses:
    return {"deploy": plan, **elements}


GOING, FAILED, ENDED = "IN_PROGRESS", "FATAL_ERROR", "COMPLETE"

CASES = (
    Case("a finished plan", ONE, {}, of(ENDED, p0=ENDED, a=ENDED)),
    Case(
        "a step that is not done",
        ONE,
        {"a": NOT_DONE},
        of(GOING, p0=GOING, a=GOING),
        {"a": "Pod a: not ready"},
    ),
    Case(
        "a task that fails",
        ONE,
        {"a": PASSES},
        of(GOING, p0=GOING, a="ERROR"),
        {"a": "deploy.p0.a.a: no answer"},
    ),
    Case(
        "a fatal task",
        ONE,
        {"a": FATAL},
        of(FAILED, p0=FAILED, a=FAILED),
        {"a": "deploy.p0.a.a: is wrong"},
    ),
    Case(
        "serial steps, the first fails",
        TWO_STEPS,
        {"a": PASSES},
        of(GOING, p0=GOING, a="ERROR", b="PENDING"),
    ),
    Case(
        "serial steps, the first is fatal",
        TWO_STEPS,
        {"a": FATAL},
        of(FAILED, p0=FAILED, a=FAILED, b="PENDING"),
    ),
    Case(
        "parallel steps, the first fails",
        TWO_BESIDE,
        {"a": PASSES},
        of(GOING, p0=GOING, a="ERROR", b=ENDED),
        begun=BOTH,
    ),
    Case(
        "parallel steps, the first is fatal",
        TWO_BESIDE,
        {"a": FATAL, "b": NOT_DONE},
        of(FAILED, p0=FAILED, a=FAILED, b="PENDING"),
        {"b": "halted: step a of phase p0 is in error"},
        begun=BOTH,
    ),
    Case(
        "serial phases, the first fails",
        TWO_PHASES,
        {"a": PASSES},
        of(GOING, p0=GOING, a="ERROR", p1="PENDING", b="PENDING"),
    ),
    Case(
        "parallel phases, the first fails",
        PHASES_BESIDE,
        {"a": PASSES},
        of(GOING, p0=GOING, a="ERROR", p1=ENDED, b=ENDED),
        begun=BOTH,
    ),
    Case(
        "parallel phases, the first is fatal",
        PHASES_BESIDE,
        {"a": FATAL, "b": NOT_DONE},
        of(FAILED, p0=FAILED, a=FAILED, p1="PENDING", b="PENDING"),
        {"b": "halted: step a of phase p0 is in error"},
        begun=BOTH,
    ),
    Case(
        "parallel steps and phases that do not stop at an error",
        plan("parallel", ["a", "b"], ["c"], of_phases="parallel", onError="continue"),
        {"a": FATAL},
        of(FAILED, p0=FAILED, a=FAILED, b=ENDED, p1=ENDED, c=ENDED),
        begun=frozenset({"a", "b", "c"}),
    ),
)


class Seen(NamedTuple):
    statuses: Statuses
    messages: Statuses


async def seen(store: Store) -> Seen:
    """The plan ``deploy`` in the words of the original."""
    kept: PackageConfigurations = await store.handle.query(
        "configurations", result_type=PackageConfigurations
    )
    run = NewestRun(await store.view("deploy"))
    body = status_body(kept.configurations[-1].installation, [run])
    found = body["status"]["planStatus"]["deploy"]
    steps = [step for phase in found["phases"] for step in phase["steps"]]
    return Seen(
        {one["name"]: one["status"] for one in (found, *found["phases"], *steps)},
        {
            one["name"]: one["message"]
            for one in (found, *found["phases"], *steps)
            if "message" in one
        },
    )


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_the_cases_of_the_original(
    stores: Stores, cluster: ScriptedCluster, case: Case
) -> None:
    store = stores.of(deploy=case.plan)
    cluster.always.update(case.answers)
    gate = cluster.held["a"] = asyncio.Event()
    await store.install(backoff=FAST)
    await executed(cluster, case.begun)  # all of them are at work before one fails
    gate.set()

    async def look() -> Seen:
        return await seen(store)

    found = await until(look, lambda one: one.statuses == case.expected)
    assert found.messages.keys() - case.answers.keys() <= set(), "only steps have messages"
    for name, text in case.messages.items():

        def has_message(one: Seen, name: str = name, text: str = text) -> bool:
            return text in one.messages.get(name, "")

        await until(look, has_message)
    if case.answers.get("a") == PASSES:
        await until(lambda: asyncio.sleep(0, attempts(cluster, "a")), lambda count: count > 2)
        await until(look, lambda one: one.statuses == case.expected)
    assert {task for one in cluster.begun for task in one.tasks} == case.begun
    if case.expected["deploy"] == ENDED:
        await store.deploy()  # the answer to the installation
        assert (await store.deploy()).outcome.result is Result.NOTHING
        assert attempts(cluster, "a") == 1


def attempts(cluster: ScriptedCluster, task: str) -> int:
    return sum(task in one.tasks for one in cluster.begun)


async def executed(cluster: ScriptedCluster, tasks: frozenset[str]) -> None:
    """Wait until these have been begun."""

    async def begun() -> set[str]:
        return {task for one in cluster.begun for task in one.tasks}

    await until(begun, lambda found: tasks <= found)


async def test_what_fails_is_tried_again_until_it_is_done(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    store = stores.of(deploy=ONE)
    cluster.answers["a"] = [PASSES, PASSES]
    await store.install(backoff=FAST)
    await store.reached("deploy", Status.COMPLETE)
    assert attempts(cluster, "a") == 3
    assert (await seen(store)).statuses == of(ENDED, p0=ENDED, a=ENDED)
    assert (await seen(store)).messages == {}


# --- gates, questions and pauses ------------------------------------------------------------------


async def refused(of_update: Any) -> Any:
    """The refusal of an update."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await of_update
    return refusal_of(caught.value.cause)


async def test_a_canary_of_steps_waits_for_its_continues(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    store = stores.of(deploy=plan("serial", ["a", "b", "c"], of_phases="canary"))
    await store.install()
    await store.reached("deploy", Status.WAITING)
    assert cluster.begun == []
    refusal = await refused(store.start("backup"))
    assert (refusal.code, "deploy" in str(refusal)) == (Code.IN_USE, True), "a gate is no end"
    for gate, begun in ((1, ["a"]), (2, ["a", "b", "c"])):
        outcome = await store.command("deploy", "continue", phase="p0")
        assert outcome.result is Result.DONE, gate
        await executed(cluster, frozenset(begun))
        status = Status.WAITING if gate == 1 else Status.COMPLETE
        await store.reached("deploy", status)
        assert [task for one in cluster.begun for task in one.tasks] == begun


async def test_a_canary_of_phases_stands_before_each_run(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    canary = {"name": "canary", "proceeds": 1}
    store = stores.of(deploy=plan(canary, ["a"], ["b"]))
    await store.install()
    await store.reached("deploy", Status.WAITING)
    await store.command("deploy", "continue")
    await store.reached("deploy", Status.COMPLETE)
    await store.deploy(SIZE="4")
    await store.reached("deploy", Status.WAITING, run=2)
    assert len(cluster.begun) == 2
    await store.deploy(SIZE="5")  # the plan that waits begins again, with the new value
    await store.reached("deploy", Status.WAITING, run=3)
    await store.command("deploy", "continue")
    await store.reached("deploy", Status.COMPLETE, run=3)
    assert [one.run.package.given for one in cluster.begun[2:]] == [{"SIZE": "5"}] * 2


async def test_an_approval_asks_between_tasks(stores: Stores, cluster: ScriptedCluster) -> None:
    question = {"name": "ask", "approval": "is the dump complete?"}
    store = stores.of(deploy=plan("serial", ["a", question, "b"]))
    await store.install()
    await store.reached("deploy", Status.WAITING)
    step = (await store.view("deploy")).phases[0].steps[1]
    assert (step.status, step.message) == (
        Status.WAITING,
        "waits for approval: is the dump complete?",
    )
    assert (await seen(store)).statuses == of(GOING, p0=GOING, a=ENDED, ask=GOING, b="PENDING")
    assert (await refused(store.start("backup"))).code == Code.IN_USE
    await store.command("deploy", "continue", phase="p0", step="ask", by="ann")
    await store.reached("deploy", Status.COMPLETE)
    assert [one.tasks for one in cluster.begun] == [("a",), ("b",)]


async def test_a_stopped_question_is_no_obstacle(stores: Stores, cluster: ScriptedCluster) -> None:
    store = stores.of(deploy=plan("serial", [{"name": "ask", "approval": True}, "a"]))
    await store.install()
    await store.reached("deploy", Status.WAITING)
    await store.command("deploy", "stop")
    await rests(store, "deploy")
    await store.start("backup")
    await store.reached("backup", Status.COMPLETE)
    assert [one.tasks for one in cluster.begun] == [("d",)]


async def rests(store: Store, plan: str) -> None:
    """Wait until the instance knows that nothing of a stopped plan is at work."""

    async def look() -> bool:
        plans = (await store.status()).plans
        return any(one.name == plan and one.stopped and one.resting for one in plans)

    await until(look)


async def test_steps_sleep_and_depend_on_each_other(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    steps = [
        {"name": "last", "tasks": ["c"], "dependsOn": ["pause", "b"]},
        {"name": "pause", "sleep": "100ms", "depends-on": ["a"]},
        "a",
        "b",
    ]
    store = stores.of(deploy=plan("serial", steps, of_phases="parallel"))
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    order = [task for one in cluster.begun for task in one.tasks]
    assert (sorted(order), order[-1]) == (["a", "b", "c"], "c")


@pytest.mark.parametrize("strategy", ["canary", "parallel-canary", "max-parallel", "random"])
async def test_the_objects_go_after_the_packages_own_cleanup(
    stores: Stores, cluster: ScriptedCluster, strategy: str
) -> None:
    settings = {"name": strategy, **({"limit": 2} if strategy == "max-parallel" else {})}
    store = stores.of(deploy=plan("serial"), cleanup=plan(settings, ["a"], ["b"]))
    cluster.held["b"] = asyncio.Event()
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    await store.handle.execute_update("uninstall", UninstallRequest())
    if "canary" in strategy:
        await store.reached("cleanup", Status.WAITING)
        assert cluster.begun == []
        for _ in range(2):
            await store.command("cleanup", "continue")
    await executed(cluster, BOTH)
    assert cluster.removed == []
    cluster.held["b"].set()
    await store.handle.result()
    assert len(cluster.removed) == 1


# --- a plan that must not be repeated half-way ----------------------------------------------------

RESTORE = plan("serial", ["a", "b"], reentrant=False)


@pytest_asyncio.fixture(loop_scope="session")
async def restoring(stores: Stores, cluster: ScriptedCluster) -> Store:
    """An instance whose plan ``restore`` has done its first step, and is at its second."""
    store = stores.of(deploy=plan("serial"), restore=RESTORE)
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    cluster.held["b"] = asyncio.Event()
    await store.start("restore")
    await executed(cluster, BOTH)
    return store


@pytest.mark.parametrize(
    ("verb", "where"),
    [
        ("stop", {}),
        ("restart", {}),
        ("restart", {"phase": "p0"}),
        ("restart", {"phase": "p0", "step": "a"}),
        ("restart", {"phase": "p0", "step": "b"}),
    ],
    ids=["stop", "restart", "restart-phase", "restart-done-step", "restart-step"],
)
async def test_half_a_restore_is_neither_stopped_nor_repeated(
    restoring: Store, cluster: ScriptedCluster, verb: str, where: dict[str, str]
) -> None:
    refusal = await refused(restoring.command("restore", verb, **where))
    assert refusal.code == Code.NOT_REENTRANT
    assert f"plan restore is not reentrant and has begun, so {verb} is refused" in str(refusal)
    assert "--force" in str(refusal)
    cluster.held["b"].set()
    await restoring.reached("restore", Status.COMPLETE)
    assert [one.tasks for one in cluster.begun] == [("a",), ("b",)]


async def test_what_may_begin_beside_half_a_restore(
    restoring: Store, cluster: ScriptedCluster
) -> None:
    again = await refused(restoring.start("restore"))
    assert (again.code, "it is not begun again while it runs" in str(again)) == (
        Code.NOT_REENTRANT,
        True,
    )
    same = await refused(restoring.deploy(RESTORE="x"))
    assert same.code == Code.NOT_REENTRANT
    for other in (
        restoring.start("backup"),
        restoring.deploy(BACKUP="x"),
        restoring.deploy(SIZE="4"),
    ):
        refusal = await refused(other)
        assert refusal.code == Code.IN_USE
        assert "stop plan restore by force (--force): it is not reentrant" in str(refusal)
    assert (await restoring.deploy()).change is None
    assert (await restoring.status()).number == 1
    cluster.held["b"].set()
    await restoring.reached("restore", Status.COMPLETE)
    await restoring.start("restore")  # a complete one may be repeated
    await restoring.reached("restore", Status.COMPLETE, run=2)


async def test_half_a_restore_is_stopped_by_force(
    restoring: Store, cluster: ScriptedCluster
) -> None:
    outcome = await restoring.command("restore", "stop", force=True, by="ann")
    assert outcome.result is Result.DONE
    await rests(restoring, "restore")
    cluster.held.clear()
    await restoring.deploy(BACKUP="x")
    await restoring.reached("backup", Status.COMPLETE)


async def test_half_a_restore_begins_again_by_force(
    restoring: Store, cluster: ScriptedCluster
) -> None:
    cluster.held.clear()
    assert (await restoring.start("restore", force=True)).result is Result.DONE
    await restoring.reached("restore", Status.COMPLETE, run=2)
    assert [one.tasks for one in cluster.begun] == [("a",), ("b",), ("a",), ("b",)]
    assert len({one.run.uid for one in cluster.begun}) == 2


async def test_a_start_of_a_running_plan_begins_it_again(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    store = stores.of(deploy=plan("serial", ["a", "b"]))
    cluster.held["b"] = asyncio.Event()
    await store.install()
    await executed(cluster, BOTH)
    cluster.held.clear()
    assert (await store.start("deploy", parameters={"SIZE": "7"})).result is Result.DONE
    await store.reached("deploy", Status.COMPLETE, run=2)
    assert [one.tasks for one in cluster.begun] == [("a",), ("b",), ("a",), ("b",)]
    assert [one.arguments for one in cluster.begun] == [{}, {}, {"SIZE": "7"}, {"SIZE": "7"}]


async def test_a_schedule_does_not_begin_over_what_runs(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    store = stores.of(deploy=plan("serial", ["a"]))
    cluster.held["a"] = asyncio.Event()
    await store.install()
    await executed(cluster, frozenset({"a"}))
    assert (await store.start("deploy", mark="run of a schedule")).result is Result.ALREADY


async def test_a_start_after_an_error_is_a_run_of_its_own(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    store = stores.of(deploy=TWO_STEPS)
    cluster.answers["b"] = [FATAL]
    await store.install()
    await store.reached("deploy", Status.ERROR)
    await store.start("deploy")
    await store.reached("deploy", Status.COMPLETE, run=2)
    assert attempts(cluster, "a") == 2


async def test_an_uninstall_does_not_wait_for_a_restore(
    restoring: Store, cluster: ScriptedCluster
) -> None:
    await restoring.handle.execute_update("uninstall", UninstallRequest())
    await restoring.handle.result()
    assert len(cluster.removed) == 1


async def test_a_restore_that_has_not_begun_may_be_stopped(
    stores: Stores, cluster: ScriptedCluster
) -> None:
    canary = {**RESTORE, "strategy": "canary"}
    store = stores.of(deploy=plan("serial"), restore=canary)
    await store.install()
    await store.reached("deploy", Status.COMPLETE)
    await store.start("restore")
    await store.reached("restore", Status.WAITING)
    assert (await store.command("restore", "stop")).result is Result.DONE
    assert cluster.begun == []
