"""Steps that take a service away, and launches of pods as recovery asks for them: on a real server,
with a real Pool and agents that run no tasks."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from pauses import PATIENCE, Pauses, until
from temporal_plans.activities.services.upkeep import UpkeepIntervals
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus
from temporal_plans.messages.addresses import pool_id
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import Supersede
from temporal_plans.messages.pools import PoolStatus, ReserveResult
from temporal_plans.messages.tasks import TaskStatuses
from temporal_plans.worker.plugin import ActivityIntervals, PlansPlugin
from workflows.plan_kit import Kit, kit, statuses
from workflows.pool_programs import BareAgent, want
from workflows.service_programs import POD, ServiceKit, TaskAgent, pool_of


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    intervals = UpkeepIntervals(report_interval=0.2, check_interval_limit=0.5)
    plugin = PlansPlugin(intervals=ActivityIntervals(upkeep=intervals))
    async with kit(env.client.service_client.config.target_host, plugin) as made:
        yield made


class Cluster:
    """A Pool with agents."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._handle = client.get_workflow_handle(pool_id(name))
        self._agents: list[BareAgent] = []

    async def agent(self, name: str = "") -> BareAgent:
        agent = BareAgent(self._client, self.name, name or f"agent-{uuid4()}")
        self._agents.append(agent)
        await agent.start()
        return agent

    async def task_agent(self) -> TaskAgent:
        agent = TaskAgent(self._client, self.name, f"agent-{uuid4()}")
        self._agents.append(agent)
        await agent.start()
        return agent

    async def reserved(self, owner: str) -> tuple[BareAgent, str]:
        """A new agent that is alive, and the key of what the owner holds there."""
        agent = await self.agent()
        await self.until(agent, AgentState.ALIVE)
        return agent, await self.reserve(owner)

    async def status(self) -> PoolStatus:
        status: PoolStatus = await self._handle.query("status", result_type=PoolStatus)
        return status

    async def until(self, agent: BareAgent, state: AgentState) -> None:
        pauses = Pauses()
        async with asyncio.timeout(PATIENCE):
            while state not in [
                one.state for one in (await self.status()).agents if one.info.id == agent.agent
            ]:
                await pauses.pause()

    async def reserve(self, owner: str, index: int = 0) -> str:
        """The key of what is reserved."""
        requirement = want(owner, index).but(pod=POD)
        answer: ReserveResult = await self._handle.execute_update(
            "reserve", requirement, result_type=ReserveResult
        )
        assert answer.reservation is not None
        return answer.reservation.key

    async def stop(self) -> None:
        for agent in self._agents:
            await agent.stop()
        await self._handle.terminate()


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(plans: Kit) -> AsyncIterator[Cluster]:
    made = Cluster(plans.client, await pool_of(plans.client, plans.queue, give_up=4))
    yield made
    await made.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def attentive(plans: Kit) -> AsyncIterator[Cluster]:
    """One that soon notices that an agent is silent."""
    made = Cluster(plans.client, await pool_of(plans.client, plans.queue, give_up=4, heartbeat=1))
    yield made
    await made.stop()


def phases(**works: Any) -> dict[str, Any]:
    return {"phases": {"p": {"steps": {name: {"work": work} for name, work in works.items()}}}}


def kill(task: str) -> dict[str, Any]:
    return {"kind": "kill", "task": task}


def unreserve(key: str) -> dict[str, Any]:
    return {"kind": "unreserve", "resource": f"{key}/cpus", "key": key}


def message(view: PlanView, step: int = 0) -> str:
    return view.phases[0].steps[step].message


async def test_kill_and_erase(plans: Kit, service: ServiceKit, cluster: Cluster) -> None:
    agent = await cluster.agent()
    await service.set(agents={"web-0-server": agent.agent})
    run = await plans.start(
        phases(kill=kill("web-0-server"), erase={"kind": "erase", "task": "web-0-server"}),
        context=service.context(pool=cluster.name),
    )
    view = await run.until(lambda view: "is being killed" in message(view))
    assert (statuses(view), view.status) == (["IN_PROGRESS", "PENDING"], Status.IN_PROGRESS)
    assert (await run.explain()).explanations[0].cause is Cause.AGENT
    await service.set(dead=("web-0-server",))
    assert (await run.result()).status is Status.COMPLETE
    told = await service.told()
    assert set(told.retired) == {"web-0-server"}
    assert told.erased == ("web-0-server",)
    assert not told.asked_for, "who takes away needs no lease"


async def test_a_kill_on_a_silent_agent_says_so_and_may_be_interrupted_and_forced(
    plans: Kit, service: ServiceKit, attentive: Cluster
) -> None:
    agent = await attentive.agent()
    await attentive.until(agent, AgentState.ALIVE)
    agent.mute()
    await attentive.until(agent, AgentState.UNREACHABLE)
    await service.set(agents={"web-0-server": agent.agent})
    run = await plans.start(
        phases(kill=kill("web-0-server")), context=service.context(pool=attentive.name)
    )
    view = await run.until(lambda view: f"agent {agent.agent}" in message(view))
    assert f"(host-{agent.agent}) is " in message(view)
    assert "force-complete" in message(view)
    assert (await run.update(Verb.INTERRUPT, "p")).changed
    asked = len((await service.told()).retired)
    await run.update(Verb.CONTINUE, "p")
    await service.until(lambda told: len(told.retired) > asked)
    await run.update(Verb.RESTART, "p", "kill")
    await run.until(lambda view: f"agent {agent.agent}" in message(view))
    assert (await run.update(Verb.FORCE_COMPLETE, "p", "kill")).changed
    assert (await run.result()).status is Status.COMPLETE


async def test_unreserve_waits_until_all_is_destroyed(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    agent, key = await cluster.reserved(service.id)
    agent.may_destroy.clear()
    run = await plans.start(
        phases(cpus=unreserve(key), memory=unreserve(key)),
        context=service.context(pool=cluster.name),
    )
    view = await run.until(lambda view: statuses(view)[0] == "PREPARED")
    assert view.status is Status.IN_PROGRESS
    await run.until(lambda view: "is destroying" in message(view))
    assert not (await service.told()).released
    agent.may_destroy.set()
    assert (await run.result()).status is Status.COMPLETE
    assert len(agent.destroyed) == 1
    assert set((await service.told()).released) == {key}
    assert (await cluster.status()).reserved == 0


async def test_unreserve_on_a_dead_agent_names_it_and_ends_when_it_is_back(
    plans: Kit, service: ServiceKit, attentive: Cluster
) -> None:
    agent, key = await attentive.reserved(service.id)
    await agent.stop()
    await attentive.until(agent, AgentState.UNREACHABLE)
    run = await plans.start(
        phases(cpus=unreserve(key), memory=unreserve(key), last=unreserve(key)),
        context=service.context(pool=attentive.name),
    )
    view = await run.until(lambda view: "is LOST" in message(view))
    assert (statuses(view)[0], view.status) == ("PREPARED", Status.IN_PROGRESS)
    assert f"agent {agent.agent} (host-{agent.agent})" in message(view)
    explained = (await run.explain()).explanations[0]
    assert (explained.cause, explained.step) == (Cause.AGENT, "cpus")
    assert (await run.update(Verb.FORCE_COMPLETE, "p", "cpus", reason="it burnt")).changed
    await run.until(lambda view: "is LOST" in message(view, 1))
    await agent.start()
    assert (await run.result()).status is Status.COMPLETE
    assert len(agent.destroyed) == 1
    assert set((await service.told()).released) == {key}


async def test_what_is_wanted_again_is_not_given_back(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """The pod is deployed anew, and the decommission has not heard yet that it is called off."""
    agent, key = await cluster.reserved(service.id)
    await service.set(wanted=(key,))
    run = await plans.start(phases(cpus=unreserve(key)), context=service.context(pool=cluster.name))
    view = await run.until_status(Status.ERROR)
    assert "is needed again by" in str(view.errors)
    assert (agent.destroyed, (await cluster.status()).reserved) == ([], 1)
    await service.set(wanted=())
    await run.update(Verb.RESTART)
    assert (await run.result()).status is Status.COMPLETE
    assert len(agent.destroyed) == 1


async def test_a_service_that_was_deployed_anew_is_not_deregistered(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    _agent, key = await cluster.reserved(service.id)
    await service.set(wanted=(key,))
    run = await plans.start(
        phases(last={"kind": "deregister"}), context=service.context(pool=cluster.name)
    )
    view = await run.until_status(Status.ERROR)
    assert "is not being uninstalled" in str(view.errors)
    assert (await cluster.status()).reserved == 1
    await run.handle.terminate()


async def test_a_step_that_leaves_waits_for_nothing(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """What it wanted would change what the pod holds, when nobody wants that any more."""
    run = await plans.start(phases(s=pod()), context=service.context(pool=cluster.name))
    await run.until(lambda view: statuses(view) == ["PREPARED"])
    assert (await cluster.status()).queued == 1
    await run.handle.signal("supersede", Supersede())
    assert (await run.result()).superseded
    await until(cluster.status, lambda pool: pool.queued == 0)


async def test_deregister_gives_up_what_was_forgotten(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    agent = await cluster.agent()
    await cluster.until(agent, AgentState.ALIVE)
    await cluster.reserve(service.id)
    other = await cluster.reserve("somebody else")
    run = await plans.start(
        phases(deregister={"kind": "deregister"}), context=service.context(pool=cluster.name)
    )
    assert (await run.result()).status is Status.COMPLETE
    assert [one.key for one in (await cluster.status()).reservations] == [other]


async def test_a_step_that_waits_is_taken_along(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """The plan continues as new under a kill that waits; what it waits for is known already."""
    agent = await cluster.agent()
    await service.set(agents={"web-0-server": agent.agent})
    run = await plans.start(
        phases(kill=kill("web-0-server")),
        context=service.context(pool=cluster.name),
        history_limit=50,
    )
    await run.until(lambda view: "is being killed" in message(view))
    for number in range(60):
        await run.handle.signal("continue", {"reason": f"signal {number}"})
    view = await run.until(lambda view: statuses(view) == ["IN_PROGRESS"])
    assert view.phases[0].steps[0].attempt == 1
    await service.set(dead=("web-0-server",))
    assert (await run.result()).status is Status.COMPLETE
    assert len((await run.log()).entries) == 60


async def test_a_plan_of_no_service_has_no_such_steps(plans: Kit) -> None:
    run = await plans.start(phases(kill=kill("web-0-server")))
    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    assert "phases.p.steps.kill.kill: removes something of a service" in str(failed.value.cause)


# --- launches -------------------------------------------------------------------------------------


def pod(**more: Any) -> dict[str, Any]:
    return {"kind": "pod", "pod": POD, "index": 0, "tasks": ["server"], **more}


def recovery(config: str = "") -> dict[str, Any]:
    return pod(recovery="permanent", config_id=config)


async def test_a_launch_has_one_configuration_throughout(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """What the step says, else the context, else the target by then."""
    agent = await cluster.task_agent()
    await service.set(target="newest")
    contexts = {"said": "old", "context": "", "target": ""}
    for expected, config in contexts.items():
        run = await plans.start(
            phases(s=pod(config_id="said" if config else "")),
            context=service.context(
                pool=cluster.name, config_id="context" if expected == "context" else ""
            ),
        )
        assert (await run.result()).status is Status.COMPLETE
        wanted = "newest" if expected == "target" else expected
        assert agent.launched[-1].config_id == wanted
        assert (await service.told()).intents[-1].config_id == wanted


@pytest.mark.parametrize(
    ("paused", "expected"),
    [
        pytest.param("server", Status.COMPLETE, id="it-is-to-run"),
        pytest.param("job", Status.STARTED, id="it-is-to-finish"),
    ],
)
async def test_a_paused_task_that_runs(
    plans: Kit, service: ServiceKit, cluster: Cluster, paused: str, expected: Status
) -> None:
    """Its placeholder is as good as the task, unless that has something to do (behaviour 6.8)."""
    agent = await cluster.task_agent()
    await service.set(paused=(paused,))
    context = service.context(pool=cluster.name)
    run = await plans.start(phases(s=pod(tasks=[paused])), context=context)
    await run.until(lambda view: view.phases[0].steps[0].status is expected)
    assert [(task.task, task.paused) for task in agent.launched[-1].tasks] == [(paused, True)]


@pytest.mark.parametrize("steps", ["child", "inline"])
async def test_an_agent_that_is_given_up_before_the_step_knows_of_its_launch(
    plans: Kit, service: ServiceKit, cluster: Cluster, steps: str
) -> None:
    """The word that the tasks are gone comes before the answer to what is to be launched."""
    agent = await cluster.task_agent()
    await service.set(lost=(agent.agent,))
    run = await plans.start(
        phases(s=pod()), context=service.context(pool=cluster.name), steps=steps
    )
    lost = (await service.until(lambda told: len(told.intents) > 1)).intents[0]
    await service.set()
    assert (await run.result()).status is Status.COMPLETE
    assert lost.tasks not in [launch.tasks for launch in agent.launched]


@pytest.mark.parametrize("steps", ["child", "inline"])
async def test_a_step_that_is_held_back_before_it_launches_gives_its_pod_back(
    plans: Kit, service: ServiceKit, cluster: Cluster, steps: str
) -> None:
    """Others may work on the pod while the plan is interrupted."""
    context = service.context(pool=cluster.name)
    run = await plans.start(phases(s=pod()), context=context, steps=steps)
    await run.until(lambda view: statuses(view) == ["PREPARED"])
    await run.update(Verb.INTERRUPT, "p")
    await service.until(lambda told: not told.leases.held)
    assert (await run.view()).status is Status.WAITING
    await cluster.task_agent()
    await run.update(Verb.CONTINUE, "p")
    assert (await run.result()).status is Status.COMPLETE


async def test_the_next_pod_is_asked_for_with_the_word_that_gives_one_back(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """Every signal costs both workflows a workflow task."""
    await cluster.task_agent()
    run = await plans.start(
        phases(a=pod(), b=pod(index=1)), context=service.context(pool=cluster.name)
    )
    assert (await run.result()).status is Status.COMPLETE
    requests = (await service.told()).requests
    assert [([want.step for want in one.wants], one.returns, one.ended) for one in requests] == [
        ([0], (), False),
        ([1], (0,), False),
        ([], (), True),
    ]


@pytest.mark.parametrize("steps", ["child", "inline"])
async def test_a_launch_that_is_being_recorded_is_not_held_back(
    plans: Kit, service: ServiceKit, cluster: Cluster, steps: str
) -> None:
    """Once it is on record, what ran before is not to live on: it is too late for an interrupt."""
    agent = await cluster.task_agent()
    await service.set(slow=True)
    context = service.context(pool=cluster.name)
    run = await plans.start(phases(s=pod()), context=context, steps=steps)
    await service.until(lambda told: bool(told.intents))
    await run.update(Verb.INTERRUPT, "p")
    await service.set()
    assert (await run.result()).status is Status.COMPLETE
    assert [launch.tasks for launch in agent.launched] == [
        intent.tasks for intent in (await service.told()).intents
    ]


async def test_what_is_in_the_way_is_killed_on_the_task_queues_that_it_names(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """What names none can't be killed, and the launch does not wait for it."""
    agents = [await cluster.task_agent(), await cluster.task_agent()]
    named = [
        TaskRef(task_id=f"{number}-{agent.agent}", agent="any", queue=agent.queue)
        for number in range(2)
        for agent in agents
    ]
    await service.set(in_the_way=(*named, TaskRef(task_id="mute", agent=agents[0].agent)))
    run = await plans.start(phases(s=pod()), context=service.context(pool=cluster.name))
    assert (await run.result()).status is Status.COMPLETE
    for agent in agents:
        assert agent.killed == [f"0-{agent.agent}", f"1-{agent.agent}"]


async def test_a_pod_that_is_given_up_moves_once(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    first, second = await cluster.task_agent(), await cluster.task_agent()
    await cluster.until(first, AgentState.ALIVE)
    await cluster.until(second, AgentState.ALIVE)
    key = await cluster.reserve(service.id)
    held = (await cluster.status()).reservations[0]
    former, target = (first, second) if held.agent == first.agent else (second, first)
    target.failing = 2
    await service.set(replaces=held.id)
    run = await plans.start(
        phases(s=recovery()),
        context=service.context(pool=cluster.name),
        backoff={"enabled": False},
    )
    view = await run.until(lambda view: len(target.launched) >= 2)
    assert view.phases[0].steps[0].name == "s"
    assert (await run.result()).status is Status.COMPLETE
    reservations = {launch.reservation.id for launch in target.launched}
    assert len(reservations) == 1, "tried again, it stays where it moved to"
    assert held.id not in reservations
    assert not former.launched
    async with asyncio.timeout(PATIENCE):
        while held.id not in former.destroyed:
            await asyncio.sleep(0.05)
    assert [one.key for one in (await cluster.status()).reservations] == [key]
    told = await service.told()
    assert not told.leases.held
    assert told.asked_for.count(f"{run.handle.id}/p/0") == 3, "it gave its pod back in between"


@pytest.mark.parametrize("interrupted", [False, True], ids=["going", "interrupted"])
async def test_a_launch_is_left_and_taken_up_by_the_next_plan(
    plans: Kit, service: ServiceKit, cluster: Cluster, interrupted: bool
) -> None:
    """A plan that may begin nothing follows what runs all the same."""
    agent = await cluster.task_agent()
    plan, context = phases(s=pod(tasks=["job"])), service.context(pool=cluster.name)
    first = await plans.start(plan, context=context)
    await first.until(lambda view: statuses(view) == ["STARTED"])
    await first.handle.signal("supersede", Supersede())
    result = await first.result()
    assert (result.superseded, statuses(result.view)) == (True, ["STARTED"])
    next_one = await plans.start(plan, context=context, state=result.state, interrupted=interrupted)
    (subscription,) = (await service.until(lambda told: bool(told.subscriptions))).subscriptions
    assert subscription.task_ids == tuple(task.task_id for task in agent.launched[0].tasks)
    status = TaskStatus(
        task_id=subscription.task_ids[0],
        name="web-0-job",
        state=TaskState.FINISHED,
        sequence=2,
        at=datetime.now(UTC),
    )
    follower = plans.client.get_workflow_handle(subscription.owner)
    await follower.signal("task_statuses", TaskStatuses(statuses=(status,)))
    assert (await next_one.result()).status is Status.COMPLETE
    assert len(agent.launched) == 1


async def test_a_pod_reads_prepared_until_its_resources_are_reserved(
    plans: Kit, service: ServiceKit, cluster: Cluster
) -> None:
    """It reads STARTING once its tasks are being launched, and never before."""
    agent = await cluster.task_agent()
    agent.gate.clear()
    await service.set(slow=True)
    run = await plans.start(phases(s=pod()), context=service.context(pool=cluster.name))
    view = await run.until(lambda view: statuses(view) != ["PENDING"])
    assert statuses(view) == ["PREPARED"]
    assert view.phases[0].steps[0].attempt == 0
    explained = (await run.explain("p", "s")).explanations[0]
    assert (explained.cause, explained.text) == (Cause.RUNNING, "step s asks for resources")
    await service.set()
    await run.until(lambda view: statuses(view) == ["STARTING"])
    agent.gate.set()
    assert (await run.result()).status is Status.COMPLETE


@pytest.mark.engine(launch_report_delay=timedelta(minutes=1))
async def test_a_launch_that_is_soon_done_costs_its_phase_no_signal(
    own_plans: Kit, service: ServiceKit
) -> None:
    cluster = Cluster(own_plans.client, await pool_of(own_plans.client, own_plans.queue))
    await cluster.task_agent()
    run = await own_plans.start(phases(s=pod()), context=service.context(pool=cluster.name))
    assert (await run.result()).status is Status.COMPLETE
    await cluster.stop()
    phase = own_plans.client.get_workflow_handle(f"{run.handle.id}/p")
    signals = [
        event.workflow_execution_signaled_event_attributes.signal_name
        async for event in phase.fetch_history_events()
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    # Its plan may send orders: whether the phase may begin work changes with what the plan hears.
    assert [name for name in signals if name != "orders"] == ["leased"]
