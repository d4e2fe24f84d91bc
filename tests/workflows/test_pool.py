"""The workflow ``Pool`` on a real server, with agents that are there, hang, die and come back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Replayer, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from pauses import PATIENCE, Pauses
from temporal_plans.activities.pools.offers import OfferActivities, release_and_wait
from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.domain.cluster import pool as ledgers
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.refusals import in_short
from temporal_plans.messages.addresses import PLANS_QUEUE, pool_id
from temporal_plans.messages.pools import (
    DeregisterRequest,
    DeregisterResult,
    Holdings,
    OwnersInput,
    OwnersReport,
    PoolInput,
    PoolStatus,
    ReleaseInput,
    ReleaseResult,
    RequirementStatus,
    ReservationKey,
    ReserveInput,
    Withdrawal,
)
from temporal_plans.workflows.mechanics.guard import PlansInterceptor
from temporal_plans.workflows.pools.pool import PoolWorkflow
from workflows.pool_programs import BareAgent, Many, Once, Owner, want

QUICK = PoolInput(
    heartbeat=timedelta(seconds=1),
    give_up=timedelta(seconds=1),
    check_owners_every=timedelta(milliseconds=300),
    grace=timedelta(milliseconds=300),
)

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)

UNHURRIED = PoolInput(check_owners_every=timedelta(minutes=5), heartbeat=timedelta(seconds=30))
"""Where no agent falls silent: a machine under load stands still for longer than QUICK allows."""


STEADY = QUICK.but(heartbeat=UNHURRIED.heartbeat)


class World:
    """One pool of its own name with what stands around it; all of it ends with the test."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.placement = PoolPlacement(client)
        self.pool = f"test-{uuid4().hex[:8]}"
        self.agents: list[BareAgent] = []
        self.started: list[WorkflowHandle[Any, Any]] = []
        self.may_report = asyncio.Event()
        self.may_report.set()
        self.found_out: list[OwnersReport] = []

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(pool_id(self.pool))

    async def start_pool(self, settings: PoolInput = STEADY) -> None:
        await self.client.start_workflow(
            "Pool", settings, id=pool_id(self.pool), task_queue=PLANS_QUEUE
        )

    async def agent(self, name: str, cpus: float = 4) -> BareAgent:
        agent = BareAgent(self.client, self.pool, f"{self.pool}-{name}", cpus)
        self.agents.append(agent)
        await agent.start()
        await self.until(lambda status: agent.agent in {one.info.id for one in status.agents})
        return agent

    async def owner(self, name: str = "") -> str:
        owner = name or f"owner-{uuid4().hex[:8]}"
        self.started.append(
            await self.client.start_workflow(Owner.run, id=owner, task_queue=PLANS_QUEUE)
        )
        return owner

    async def reserve(
        self, owner: str, index: int = 0, *, cpus: float = 1, notify: str = ""
    ) -> str:
        """The agent that was found, "" when it waits."""
        requirement = want(owner, index, cpus, notify)
        result = await self.placement.reserve(ReserveInput(pool=self.pool, requirement=requirement))
        return result.reservation.agent if result.reservation else ""

    async def status(self) -> PoolStatus:
        status: PoolStatus = await self.handle.query("status", result_type=PoolStatus)
        return status

    async def until(self, holds: Callable[[PoolStatus], bool]) -> PoolStatus:
        status, pauses = await self.status(), Pauses()
        async with asyncio.timeout(PATIENCE):
            while not holds(status):
                await pauses.pause()
                status = await self.status()
        return status

    async def until_state(self, agent: BareAgent, state: AgentState) -> None:
        await self.until(
            lambda status: {one.info.id: one.state for one in status.agents}[agent.agent] is state
        )

    async def until_told(self, owner: str, query: str, expected: list[str]) -> None:
        handle = self.client.get_workflow_handle(owner)
        await until(lambda: handle.query(query, result_type=list[str]), expected)

    async def close(self) -> None:
        for agent in self.agents:
            await agent.stop()
        for handle in (self.handle, *self.started):
            try:
                await handle.terminate("the test is over")
            except Exception:  # it is over already
                continue


async def until(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    async with asyncio.timeout(PATIENCE):
        while await ask() != expected:
            await asyncio.sleep(0.05)


@pytest_asyncio.fixture
async def world(client: Client, sandbox: SandboxedWorkflowRunner) -> AsyncIterator[World]:
    world = World(client)
    offers = OfferActivities(client, world.placement)

    @activity.defn
    async def check_owners(request: OwnersInput) -> OwnersReport:
        world.found_out.append(await offers.check_owners(request))
        await world.may_report.wait()
        return world.found_out[-1]

    async with Worker(
        client,
        task_queue=PLANS_QUEUE,
        workflows=[PoolWorkflow, Owner, Many, Once],
        interceptors=[PlansInterceptor({})],
        activities=[offers.reserve, offers.release, check_owners],
        workflow_runner=sandbox,
    ):
        yield world
        await world.close()


async def test_reserving_starts_the_pool_and_an_agent_ends_the_wait(world: World) -> None:
    owner = await world.owner()
    assert await world.reserve(owner) == ""
    status = await world.status()
    assert status.name == world.pool
    [waiting] = status.waiting
    assert waiting.refusals[0].reasons[0].field == "agents"
    agent = await world.agent("a")
    await world.until_told(owner, "was_offered", [want(owner).key])
    assert await world.reserve(owner) == agent.agent
    [view] = (await world.status()).agents
    assert (view.free_cpus, view.reservations, view.state) == (3, 1, AgentState.ALIVE)


async def test_what_waits_is_explained_and_can_be_withdrawn(world: World) -> None:
    await world.start_pool()
    agent = await world.agent("a", cpus=1)
    owner = await world.owner()
    assert await world.reserve(owner, cpus=2) == ""
    key = ReservationKey(key=want(owner).key)
    explanation = await world.handle.query("explain", key, result_type=RequirementStatus)
    assert [in_short(one) for one in explanation.refusals] == [
        f"{agent.agent}: set s wants 2 cpus, 1 of 1 are free"
    ]
    await world.handle.signal("withdraw", Withdrawal(key=key.key, notify="another"))
    await world.handle.signal("withdraw", Withdrawal(key=key.key))
    await world.until(lambda status: not status.waiting)


async def test_a_silent_agent_is_unreachable_then_lost_then_back(world: World) -> None:
    await world.start_pool(QUICK)
    agent = await world.agent("a")
    owner = await world.owner()
    assert await world.reserve(owner) == agent.agent
    agent.mute()
    await world.until_state(agent, AgentState.UNREACHABLE)
    assert await world.reserve(owner, index=1) == ""  # nothing new goes there
    assert await world.reserve(owner) == ""  # nor is what is there used
    await agent.stop()
    await world.until_state(agent, AgentState.LOST)
    await world.until_told(owner, "lost_agents", [agent.agent])
    assert len((await world.status()).reservations) == 1
    await agent.start(register=False)  # it does not even have to register again
    await world.until_state(agent, AgentState.ALIVE)
    await world.until_told(owner, "was_offered", [want(owner).key, want(owner, 1).key])


async def test_an_agent_that_starts_anew_is_never_missed(world: World) -> None:
    await world.start_pool(UNHURRIED)
    agent = await world.agent("a")
    await until(lambda: _watches(world), 1)
    agent.mute()
    await agent.stop()
    await agent.start()  # long before the old watch's heartbeat times out
    await until(lambda: _watches(world), 1)
    await world.until(lambda status: status.agents[0].info.boot == "2")
    assert await world.reserve(await world.owner()) == agent.agent


async def _watches(world: World) -> int:
    """Watches that an agent has started."""
    description = await world.handle.describe()
    return sum(
        one.activity_type.name == "watch" and one.HasField("last_started_time")
        for one in description.raw_description.pending_activities
    )


async def test_what_is_released_is_destroyed_before_others_get_it(world: World) -> None:
    await world.start_pool()
    agent = await world.agent("a", cpus=1)
    first, second = await world.owner(), await world.owner()
    assert await world.reserve(first) == agent.agent
    [reservation] = (await world.status()).reservations
    assert await world.reserve(second) == ""
    agent.may_destroy.clear()
    release = asyncio.create_task(
        release_and_wait(world.placement, ReleaseInput(pool=world.pool, key=want(first).key))
    )
    await world.until(lambda status: not status.reservations)
    assert not release.done()
    agent.may_destroy.set()
    result = await release
    assert result == ReleaseResult(reservation=reservation)
    assert agent.destroyed == [reservation.id]
    await world.until_told(second, "was_offered", [want(second).key])


async def test_an_agent_that_hangs_destroying_does_not_keep_it_from_continuing(
    world: World,
) -> None:
    await world.start_pool(UNHURRIED.but(history_limit=60))
    agent = await world.agent("a")
    owner = await world.owner()
    assert await world.reserve(owner) == agent.agent
    [reservation] = (await world.status()).reservations
    agent.may_destroy.clear()
    release = asyncio.create_task(
        release_and_wait(world.placement, ReleaseInput(pool=world.pool, key=reservation.key))
    )
    await world.until(lambda status: not status.reservations)
    first_run = (await world.handle.describe()).run_id
    async with asyncio.timeout(PATIENCE):
        while (await world.handle.describe()).run_id == first_run:
            await agent.register()
    assert agent.destroyed == []
    agent.may_destroy.set()
    assert (await release).destroyed
    assert reservation.id in agent.destroyed
    assert (await world.status()).agents[0].free_cpus == 4


async def test_the_activity_release_takes_what_is_not_held(world: World) -> None:
    request = ReleaseInput(pool=world.pool, key="nobody:pod-0")
    await world.client.execute_workflow(
        Once.run, request, id=f"once-{uuid4().hex}", task_queue=PLANS_QUEUE
    )


async def test_a_release_does_not_wait_for_the_agent_that_the_pod_left_before(
    world: World,
) -> None:
    await world.start_pool(QUICK.but(check_owners_every=timedelta(minutes=5)))
    dead = await world.agent("a")
    owner = await world.owner()
    await world.reserve(owner)
    [before] = (await world.status()).reservations
    await dead.stop()
    await world.until_state(dead, AgentState.LOST)
    alive = await world.agent("b")
    moved = want(owner).but(permanent=True, replaces=before.id)
    answer = await world.placement.reserve(ReserveInput(pool=world.pool, requirement=moved))
    assert answer.reservation is not None
    assert answer.reservation.agent == alive.agent
    request = ReleaseInput(pool=world.pool, key=before.key, reservation=answer.reservation.id)
    await release_and_wait(world.placement, request)
    assert await world.placement.release(request) == ReleaseResult()
    assert (alive.destroyed, dead.destroyed) == ([answer.reservation.id], [])
    await dead.start()
    await until(lambda: _value(dead.destroyed), [before.id])


async def test_what_a_lost_agent_held_is_destroyed_when_it_is_back(world: World) -> None:
    await world.start_pool(QUICK.but(check_owners_every=timedelta(minutes=5)))
    agent = await world.agent("a")
    owner = await world.owner()
    await world.reserve(owner)
    [reservation] = (await world.status()).reservations
    await agent.stop()
    await world.until_state(agent, AgentState.LOST)
    request = ReleaseInput(pool=world.pool, key=reservation.key)
    for held in (reservation, None):
        result = await release_and_wait(world.placement, request)  # does not wait for who is gone
        assert result == ReleaseResult(
            reservation=held, destroyed=True, agent=agent.agent, agent_state=AgentState.LOST
        )
    assert agent.destroyed == []
    await agent.start()
    await until(lambda: _value(agent.destroyed), [reservation.id])
    await world.until(lambda status: status.agents[0].free_cpus == 4)
    assert await release_and_wait(world.placement, request) == ReleaseResult()


async def _value(value: object) -> object:
    return value


async def test_an_offer_that_nobody_can_be_told_of_is_taken_back(world: World) -> None:
    await world.start_pool(UNHURRIED)
    owner = await world.owner()
    assert await world.reserve(owner, notify="nobody") == ""
    agent = await world.agent("a")
    status = await world.until(lambda status: not status.waiting and not status.reservations)
    assert status.agents[0].free_cpus == 4
    assert agent.destroyed == []


async def test_a_terminated_owner_leaks_nothing(world: World) -> None:
    await world.start_pool()
    agent = await world.agent("a")
    staying, leaving = await world.owner(), await world.owner()
    await world.reserve(staying)
    await world.reserve(leaving)
    assert await world.reserve(leaving, index=1, cpus=9) == ""
    await world.client.get_workflow_handle(leaving).terminate()
    status = await world.until(lambda status: len(status.reservations) == 1 and not status.waiting)
    assert status.reservations[0].owner == staying
    await until(lambda: _value(len(agent.destroyed)), 1)


async def test_what_a_service_does_not_name_is_taken_from_it(world: World) -> None:
    await world.start_pool()
    await world.agent("a")
    service = await world.owner(f"service/{world.pool}")
    step = await world.owner()
    keys = [want(service, index).key for index in range(3)]
    await world.client.get_workflow_handle(service).signal("hold", Holdings(keys=(keys[0],)))
    await world.reserve(service, 0, notify="a step that is over")
    await world.reserve(service, 1, notify="a step that is over")
    await world.reserve(service, 2, notify=step)  # a step that has yet to tell the Service
    await world.until(lambda status: {one.key for one in status.reservations} == {keys[0], keys[2]})
    await world.client.get_workflow_handle(step).terminate()
    await world.until(lambda status: {one.key for one in status.reservations} == {keys[0]})


async def test_a_step_that_asks_while_its_former_run_is_found_to_be_over(world: World) -> None:
    await world.start_pool()
    owner, step = await world.owner(), f"step-{uuid4().hex[:8]}"
    world.may_report.clear()
    assert await world.reserve(owner, notify=step) == ""
    await until(lambda: _found_gone(world), [step])
    await world.owner(step)
    assert await world.reserve(owner, notify=step) == ""
    world.may_report.set()
    await until(lambda: _found_gone(world), [])
    await world.agent("a")
    await world.until_told(step, "was_offered", [want(owner).key])


async def _found_gone(world: World) -> list[str] | None:
    """What the last look for workflows that are over has found."""
    return list(world.found_out[-1].gone) if world.found_out else None


@pytest.mark.cached("hundreds of updates would each replay all before")
async def test_two_hundred_at_once_over_runs_that_continue_as_new(world: World) -> None:
    await world.start_pool(UNHURRIED.but(history_limit=150))
    agents = [await world.agent(name, cpus=60) for name in "abc"]
    owner = await world.owner()
    first_run = (await world.handle.describe()).run_id
    requests = [
        ReserveInput(pool=world.pool, requirement=want(owner, index)) for index in range(200)
    ]
    results = await world.client.execute_workflow(
        Many.run, requests, id=f"many-{world.pool}", task_queue=PLANS_QUEUE
    )
    granted = [one.reservation for one in results if one.reservation is not None]
    assert len(granted) == 180
    assert len({one.id for one in granted}) == 180
    status = await world.status()
    assert (len(status.reservations), len(status.waiting)) == (180, 20)
    assert all(one.free_cpus == 0 for one in status.agents)
    assert all(one.state is AgentState.ALIVE for one in status.agents)
    assert (await world.handle.describe()).run_id != first_run
    # Whatever run it is, agents are watched and destroy what is given up.
    gone = granted[0]
    request = ReleaseInput(pool=world.pool, key=gone.key)
    assert (await release_and_wait(world.placement, request)).destroyed
    assert gone.id in [one for agent in agents for one in agent.destroyed]
    await world.until(lambda status: len(status.waiting) == 19)


async def test_bad_input_is_refused_and_harms_nothing(world: World) -> None:
    await world.client.start_workflow("Pool", id=pool_id(world.pool), task_queue=PLANS_QUEUE)
    agent = await world.agent("a")
    owner = await world.owner()
    bad = ReserveInput(
        pool=world.pool, requirement=want(owner, cpus=-1).but(placement="hostname:NEAR")
    )
    with pytest.raises(WorkflowFailureError) as caught:
        await world.client.execute_workflow(
            Once.run, bad, id=f"once-{uuid4().hex}", task_queue=PLANS_QUEUE
        )
    failure = caught.value.cause
    assert isinstance(failure, ActivityError)
    assert isinstance(failure.cause, ApplicationError)
    assert failure.cause.type == "Refused"
    assert "'NEAR' is unknown" in failure.cause.message
    assert "sets.s.cpus: must be a number of 0 or more (found -1" in failure.cause.message
    for signal in ("register", "heard", "withdraw"):
        await world.handle.signal(signal, {"nonsense": True})
    bad_agent = {"id": "x", "queue": "q", "hostname": "h", "resources": {"cpus": 1, "memory": 1}}
    for bad_field in ({"id": "x" * 2000}, {"queue": "/_sys/x"}, {"queue": ""}):
        await world.handle.signal("register", bad_agent | bad_field)  # no watch can be scheduled
    assert await world.reserve(owner) == agent.agent


async def test_an_agent_leaves_for_good(world: World) -> None:
    await world.start_pool()
    agent = await world.agent("a")
    owner = await world.owner()
    await world.reserve(owner)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await world.handle.execute_update("deregister", DeregisterRequest(agent=agent.agent))
    assert "replace their pods first" in str(refused.value.cause)
    with pytest.raises(WorkflowUpdateFailedError) as unknown:
        await world.handle.execute_update("deregister", DeregisterRequest(agent="nobody"))
    assert f"registered are: {agent.agent}" in str(unknown.value.cause)
    result = await world.handle.execute_update(
        "deregister",
        DeregisterRequest(agent=agent.agent, force=True),
        result_type=DeregisterResult,
    )
    assert result == DeregisterResult(dropped=(want(owner).key,), alive=True)
    await world.until_told(owner, "lost_agents", [f"{agent.agent} removed"])
    status = await world.status()
    assert (status.agents, status.reservations) == ((), ())
    await until(lambda: _watches(world), 0)


async def test_an_agent_removed_with_all_it_had_destroys_it_should_it_come_back(
    world: World,
) -> None:
    await world.start_pool(QUICK.but(check_owners_every=timedelta(minutes=5)))
    agent = await world.agent("a")
    owner = await world.owner()
    await world.reserve(owner, 0)
    await world.reserve(owner, 1)
    held = {one.id for one in (await world.status()).reservations}
    await agent.stop()
    await world.until_state(agent, AgentState.LOST)
    given_up = ReleaseInput(pool=world.pool, key=want(owner, 1).key)
    await release_and_wait(world.placement, given_up)
    result = await world.handle.execute_update(
        "deregister",
        DeregisterRequest(agent=agent.agent, force=True),
        result_type=DeregisterResult,
    )
    assert result == DeregisterResult(dropped=(want(owner).key,))
    assert await release_and_wait(world.placement, given_up) == ReleaseResult()
    await agent.start()
    await until(lambda: _value(set(agent.destroyed)), held)
    status = await world.until(lambda status: len(status.agents) == 1)
    assert (status.agents[0].reservations, status.agents[0].free_cpus) == (0, 4)


async def test_the_id_of_a_live_agent_is_refused_to_another(world: World) -> None:
    await world.start_pool(QUICK)
    agent = await world.agent("a")
    agent.lineage = "first"
    await world.handle.execute_update("register", agent.info)  # again, as after a restart
    stranger = agent.info.but(lineage="second", hostname="elsewhere", boot="x")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await world.handle.execute_update("register", stranger)
    assert f"on host host-{agent.agent}, alive since" in str(refused.value.cause)
    await world.handle.signal("register", stranger)
    [view] = (await world.status()).agents
    assert (view.info, view.state) == (agent.info, AgentState.ALIVE)
    owner = await world.owner()
    await world.reserve(owner)
    agent.mute()
    await world.until_state(agent, AgentState.UNREACHABLE)
    await world.handle.execute_update("register", stranger)
    [view] = (await world.status()).agents
    assert (view.info, view.reservations) == (stranger, 1)
    await world.until_told(owner, "lost_agents", [agent.agent])


@pytest.mark.parametrize("young", [True, False])
async def test_a_run_that_does_not_know_what_was_asked_before_it_takes_nothing(
    world: World, young: bool
) -> None:
    """It has just continued as new: a report that is older than that may be about an owner that has
    asked again meanwhile."""
    agent = BareAgent(world.client, world.pool, f"{world.pool}-a")
    registered = ledgers.register(Ledger(pool=world.pool), agent.info, LONG_AGO).ledger
    held = ledgers.reserve(registered, want("gone"), LONG_AGO)
    grace = timedelta(minutes=5) if young else timedelta(milliseconds=100)
    await world.start_pool(UNHURRIED.but(ledger=held.change.ledger, grace=grace))
    report = OwnersReport(gone=("gone",))

    async def reconciled() -> tuple[str, ...]:
        return (await world.placement.reconcile(world.pool, report)).keys

    if young:
        assert await reconciled() == ()
        assert len((await world.status()).reservations) == 1
    else:
        await until(reconciled, (want("gone").key,))
        assert not (await world.status()).reservations


async def test_its_table_is_shown_and_its_history_replays(
    world: World, sandbox: SandboxedWorkflowRunner
) -> None:
    await world.start_pool()
    agent = await world.agent("a")
    owner = await world.owner()
    await world.reserve(owner)
    await release_and_wait(world.placement, ReleaseInput(pool=world.pool, key=want(owner).key))
    details = await world.handle.query("__temporal_workflow_metadata")
    assert f"| {agent.agent} | ALIVE | 4 | 1000 MB |" in str(details)
    history = await world.handle.fetch_history()
    replayer = Replayer(
        workflows=[PoolWorkflow],
        interceptors=[PlansInterceptor({})],
        data_converter=world.client.data_converter,
        workflow_runner=sandbox,
    )
    await replayer.replay_workflow(history)
