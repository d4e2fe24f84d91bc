"""The workflow ``Pool`` (id ``pool/<name>``): agents, reservations, and who waits.

It lives for ever and continues as new. ``domain.pool`` decides; here is what needs Temporal:

- Registering. An agent registers by update, before it polls its queue: one that is not to run hears
  so. The signal of the same name is for who can't wait; what it may not do is logged.
- Liveness. Every agent has one activity ``watch`` running on its own queue, whose heartbeats cost
  no history. When they stop the agent is UNREACHABLE, and the watch is scheduled again; when nobody
  picks that up in ``give_up`` the agent is LOST, its owners are told, and a last watch waits on its
  queue without a limit: an agent that comes back, comes back by itself.
- Destroying. What is given up is destroyed by the agent's activity ``destroy``, now or when the
  agent is back; it is idempotent, and every run starts it again for what is still condemned.
- Telling. Those who waited get the signal ``offered``; if they are gone, it is released again
  unless somebody else has taken it. Others that asked for the same pod get it too, and ask again.
- Reconciling. Owners are asked from time to time, so that a terminated workflow leaks nothing.

Updates answer at once: the server allows ten in flight for one workflow, so ``release`` waits for
an agent for a moment only, and for a few callers only (``ReleaseResult.destroyed``).
"""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutType,
    is_cancelled_exception,
)
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

with workflow.unsafe.imports_passed_through():
    from temporal_plans.domain import pool
    from temporal_plans.domain.cluster import AgentInfo, AgentState, Requirement, Reservation
    from temporal_plans.domain.ledger import AgentRecord, Ledger
    from temporal_plans.domain.packing import pack, unpack
    from temporal_plans.domain.requirements import RequirementError, check_requirement
    from temporal_plans.messages.cluster import (
        AgentLostMessage,
        DeregisterRequest,
        DeregisterResult,
        DestroyInput,
        Explanation,
        HeardMessage,
        OfferedMessage,
        OwnersInput,
        OwnersReport,
        PoolInput,
        PoolStatus,
        ReleaseRequest,
        ReleaseResult,
        ReservationKey,
        ReserveResult,
        WatchInput,
        Withdrawal,
        agent_queue,
    )
    from temporal_plans.workflows import pool_view
    from temporal_plans.workflows.handlers import should_continue_as_new, tell

RELEASE_WAIT = timedelta(seconds=5)
"""How long an update ``release`` waits for the agent to destroy what was released."""

RELEASE_WAITERS = 4
"""How many updates may wait so at a time; of the ten in flight that the server allows."""

DESTROY_LIMIT = timedelta(minutes=15)
"""One attempt to destroy: it kills tasks, with their grace period, and deletes volumes."""

TELLING = 100
"""External signals in flight; the server's limit is 2,000 for one workflow."""

READABLE = 500
"""Up to so many reservations the next run's input is plain JSON; above that it is packed."""

AGENT_EVENTS = 20
"""History that each agent may take before the Pool continues as new, whatever its limit is."""


@workflow.defn(name="Pool")
class PoolWorkflow:
    """A named set of agents whose resources are offered together."""

    @workflow.init
    def __init__(self, settings: PoolInput | None = None) -> None:
        given = settings or PoolInput()
        name = given.name or workflow.info().workflow_id.removeprefix("pool/")
        self._settings = given.but(name=name, ledger=None, packed="")
        self._ledger = _carried(given) or Ledger(pool=name)
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, workflow.ActivityHandle[None]] = {}
        self._superseded: set[str] = set()
        self._destroying: dict[str, workflow.ActivityHandle[None] | None] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._signal_slots = asyncio.Semaphore(TELLING)
        self._release_waiters = 0
        self._asked: set[str] = set()
        self._activities = 0

    @workflow.run
    async def run(self, settings: PoolInput | None = None) -> None:
        self._follow()
        while not self._should_roll():
            await workflow.wait_condition(lambda: self._should_roll() or self._busy())
            try:
                await workflow.wait_condition(
                    self._should_roll,
                    timeout=self._settings.check_owners_every,
                    timeout_summary="until owners are asked whether they hold on",
                )
            except TimeoutError:
                await self._check_owners()
        while not self._drained():  # others may run between a condition and who waits for it
            await workflow.wait_condition(self._drained)
        workflow.continue_as_new(self._handed_on())

    # --- messages ---------------------------------------------------------------------------------

    @workflow.update(name="reserve", description="Reserve for one pod, or wait until it fits.")
    def reserve(self, requirement: Requirement) -> ReserveResult:
        self._asked.add(requirement.key)
        answer = pool.reserve(self._ledger, requirement, workflow.now())
        self._apply(answer.change)
        return ReserveResult(
            reservation=answer.reservation,
            refusals=pool_view.shortened(answer.refusals),
            at=workflow.now(),
        )

    @reserve.validator
    def _check_reserve(self, requirement: Requirement) -> None:
        try:
            check_requirement(requirement)
        except RequirementError as error:
            raise _refused(error) from error

    @workflow.update(name="release", description="Give a reservation or a waiting request up.")
    async def release(self, request: ReleaseRequest) -> ReleaseResult:
        held = self._ledger.reservations.get(request.key)
        if held is not None and request.reservation not in ("", held.id):
            return ReleaseResult()  # what was meant was given up before; this is its successor
        self._apply(
            pool.release(
                self._ledger,
                request.key,
                workflow.now(),
                destroy=request.destroy,
                reservation=request.reservation,
            )
        )
        await self._wait_for_destroyed(request.key)
        left = pool.left_to_destroy(self._ledger, request.key, held)
        return ReleaseResult(
            reservation=held,
            destroyed=not self._being_destroyed(request.key),
            agent=left.agent if left else "",
            agent_state=self._ledger.agents[left.agent].state if left else None,
        )

    @workflow.update(name="deregister", description="Remove an agent that leaves for good.")
    def deregister(self, request: DeregisterRequest) -> DeregisterResult:
        before = self._ledger.reservations
        try:
            change = pool.deregister(
                self._ledger, request.agent, workflow.now(), force=request.force
            )
        except (pool.UnknownAgentError, pool.AgentInUseError) as error:
            raise _refused(error) from error
        dropped = [key for key, one in before.items() if one.agent == request.agent]
        alive = self._alive(request.agent)
        self._apply(change)
        self._supersede(request.agent)
        return DeregisterResult(dropped=tuple(dropped), alive=alive)

    @deregister.validator
    def _check_deregister(self, request: DeregisterRequest) -> None:
        try:
            pool.deregister(self._ledger, request.agent, workflow.now(), force=request.force)
        except (pool.UnknownAgentError, pool.AgentInUseError) as error:
            raise _refused(error) from error

    @workflow.update(name="register", description="An agent tells what it has to offer.")
    def register(self, info: AgentInfo) -> None:
        try:
            self._register(info)
        except (pool.AgentIdTakenError, pool.NamelessAgentError) as error:
            raise _refused(error) from error

    @register.validator
    def _check_register(self, info: AgentInfo) -> None:
        try:
            pool.register(self._ledger, info, workflow.now())
        except (pool.AgentIdTakenError, pool.NamelessAgentError) as error:
            raise _refused(error) from error

    @workflow.signal(name="register", description="An agent tells what it has to offer.")
    def register_unheard(self, info: AgentInfo) -> None:
        try:
            self._register(info)
        except (pool.AgentIdTakenError, pool.NamelessAgentError) as error:
            workflow.logger.warning("not registered: %s", error)

    def _register(self, info: AgentInfo) -> None:
        known = self._ledger.agents.get(info.id)
        self._apply(pool.register(self._ledger, info, workflow.now()))
        if known is not None and (
            known.info.boot != info.boot or known.state is not AgentState.ALIVE
        ):
            self._supersede(info.id)

    @workflow.signal(name="heard", description="An agent has started its watch: it is alive.")
    def heard(self, message: HeardMessage) -> None:
        self._apply(pool.heard(self._ledger, message.agent, message.boot, workflow.now()))

    @workflow.signal(name="withdraw", description="A requirement no longer waits.")
    def withdraw(self, request: Withdrawal) -> None:
        self._apply(pool.withdraw(self._ledger, request.key, request.notify))

    @workflow.query(name="status", description="Agents, reservations, and who waits and why.")
    def status(self) -> PoolStatus:
        return pool_view.status(self._ledger, workflow.now())

    @workflow.query(name="explain", description="Why one requirement waits, agent by agent.")
    def explain(self, request: ReservationKey) -> Explanation:
        return pool_view.explanation(self._ledger, request.key, workflow.now())

    # --- what follows from a change ---------------------------------------------------------------

    def _apply(self, change: pool.Change) -> None:
        self._ledger = change.ledger
        for effect in change.effects:
            match effect:
                case pool.Offered():
                    self._tell(self._tell_offered(effect))
                case pool.AskAgain():
                    self._tell(self._tell_to_ask(effect.notify))
                case pool.AgentGone():
                    for owner in effect.owners:
                        self._tell(self._tell_lost(effect, owner))
        self._follow()

    def _follow(self) -> None:
        """Have a watch for every agent, and a destroy for everything condemned on one alive."""
        for agent in self._ledger.agents:
            if agent not in self._watchers:
                self._watchers[agent] = asyncio.create_task(self._watch(agent))
        for reservation_id, one in self._ledger.condemned.items():
            if reservation_id not in self._destroying and self._alive(one.reservation.agent):
                self._destroying[reservation_id] = None
                asyncio.create_task(self._destroy(one.reservation))  # noqa: RUF006  # in _destroying
        workflow.set_current_details(pool_view.table(self._ledger))

    def _alive(self, agent: str) -> bool:
        record = self._ledger.agents.get(agent)
        return record is not None and record.state is AgentState.ALIVE

    def _activity_id(self, name: str) -> str:
        self._activities += 1
        return f"{name}/{self._activities}"

    # --- liveness ---------------------------------------------------------------------------------

    async def _watch(self, agent: str) -> None:
        while (record := self._ledger.agents.get(agent)) is not None:
            watch = self._start_watch(record)
            self._watches[agent] = watch
            timeout: TimeoutType | None = None
            try:
                await watch
            except ActivityError as error:
                timeout = (
                    error.cause.type if isinstance(error.cause, ActivityTimeoutError) else None
                )
            if agent in self._superseded:
                self._superseded.discard(agent)
                continue
            self._silent(agent, timeout)
            if timeout is None:  # it stopped, or failed: do not ask again at full speed
                await workflow.sleep(timedelta(seconds=1), summary=f"before {agent} is asked again")
        self._watches.pop(agent, None)
        self._watchers.pop(agent, None)

    def _start_watch(self, record: AgentRecord) -> workflow.ActivityHandle[None]:
        settings = self._settings
        handle: workflow.ActivityHandle[None] = workflow.start_activity(
            "watch",
            WatchInput(
                agent=record.info.id,
                pool=settings.name,
                heartbeat=settings.heartbeat,
                boot=record.info.boot,
            ),
            activity_id=self._activity_id(f"watch/{record.info.id}"),
            task_queue=agent_queue(record.info.id),
            schedule_to_start_timeout=self._patience(record),
            start_to_close_timeout=timedelta(days=365),
            heartbeat_timeout=settings.heartbeat,
            retry_policy=RetryPolicy(maximum_attempts=1),
            summary=f"life of {record.info.id}",
        )
        return handle

    def _patience(self, record: AgentRecord) -> timedelta | None:
        """How long a watch may stay unclaimed: what is left until the agent's next state."""
        match record.state:
            case AgentState.ALIVE:
                return self._settings.heartbeat
            case AgentState.UNREACHABLE:
                left = record.since + self._settings.give_up - workflow.now()
                return max(left, timedelta(seconds=1))
            case AgentState.LOST:
                return None

    def _silent(self, agent: str, timeout: TimeoutType | None) -> None:
        record = self._ledger.agents.get(agent)
        if record is None:
            return
        unclaimed = timeout is TimeoutType.SCHEDULE_TO_START
        if unclaimed and record.state is AgentState.UNREACHABLE:
            self._apply(pool.lost(self._ledger, agent, workflow.now()))
        else:
            self._apply(pool.unreachable(self._ledger, agent, workflow.now()))
        self._abandon_destroying(agent)

    def _supersede(self, agent: str) -> None:
        """End the watch of an agent that started anew, so that the next one finds the new process
        at once instead of after a heartbeat's timeout."""
        watch = self._watches.get(agent)
        if watch is not None and not watch.done():
            self._superseded.add(agent)
            watch.cancel()
        self._abandon_destroying(agent)

    # --- destroying -------------------------------------------------------------------------------

    async def _destroy(self, reservation: Reservation) -> None:
        handle: workflow.ActivityHandle[None] = workflow.start_activity(
            "destroy",
            DestroyInput(reservation_id=reservation.id),
            activity_id=self._activity_id(f"destroy/{reservation.key}"),
            task_queue=agent_queue(reservation.agent),
            schedule_to_start_timeout=self._settings.give_up,
            start_to_close_timeout=DESTROY_LIMIT,
            summary=f"{reservation.key} on {reservation.agent}",
        )
        self._destroying[reservation.id] = handle
        try:
            await handle
        except ActivityError as error:
            if not is_cancelled_exception(error):
                workflow.logger.warning("destroying %s failed: %s", reservation.id, error.cause)
                await workflow.sleep(timedelta(seconds=5), summary="before destroying again")
            self._destroying.pop(reservation.id, None)
            self._follow()
            return
        self._destroying.pop(reservation.id, None)
        self._apply(pool.destroyed(self._ledger, reservation.id, workflow.now()))

    def _abandon_destroying(self, agent: str) -> None:
        """Its process is gone, and with it what it was doing; ``_follow`` starts that again."""
        for reservation_id, handle in self._destroying.items():
            one = self._ledger.condemned.get(reservation_id)
            if handle is not None and (one is None or one.reservation.agent == agent):
                handle.cancel()

    def _being_destroyed(self, key: str) -> bool:
        return any(
            one.reservation.key == key and self._alive(one.reservation.agent)
            for one in self._ledger.condemned.values()
        )

    async def _wait_for_destroyed(self, key: str) -> None:
        if not self._being_destroyed(key) or self._release_waiters >= RELEASE_WAITERS:
            return
        self._release_waiters += 1
        try:
            await workflow.wait_condition(
                lambda: not self._being_destroyed(key),
                timeout=RELEASE_WAIT,
                timeout_summary=f"until {key} is destroyed",
            )
        except TimeoutError:
            pass  # the caller sees that it is not destroyed yet, and asks again
        finally:
            self._release_waiters -= 1

    # --- telling ----------------------------------------------------------------------------------

    def _tell(self, telling: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell_offered(self, offered: pool.Offered) -> None:
        message = OfferedMessage(reservation=offered.reservation)
        if await self._signal(offered.requirement.notify, "offered", message):
            return
        self._apply(pool.unheard(self._ledger, offered, workflow.now()))

    async def _tell_to_ask(self, notify: str) -> None:
        await self._signal(notify, "offered", OfferedMessage())

    async def _tell_lost(self, gone: pool.AgentGone, owner: str) -> None:
        message = AgentLostMessage(
            agent=gone.agent,
            pool=self._settings.name,
            at=workflow.now(),
            by_operator=gone.by_operator,
        )
        await self._signal(owner, "agent_lost", message)

    async def _signal(
        self, workflow_id: str, name: str, message: OfferedMessage | AgentLostMessage
    ) -> bool:
        async with self._signal_slots:
            return await tell(workflow_id, name, message)

    # --- reconciling, continuing ------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._ledger.reservations or self._ledger.waiting)

    async def _check_owners(self) -> None:
        if not self._busy():
            return
        self._asked.clear()
        try:
            report: OwnersReport = await workflow.execute_activity(
                "check_owners",
                OwnersInput(workflows=pool.workflows(self._ledger)),
                result_type=OwnersReport,
                activity_id=self._activity_id("check_owners"),
                start_to_close_timeout=timedelta(minutes=2),
                schedule_to_close_timeout=timedelta(minutes=5),
                summary="who still holds what",
            )
        except ActivityError as error:
            workflow.logger.warning("owners could not be asked: %s", error.cause)
            return
        holdings = {owner: one.keys for owner, one in report.holdings.items()}
        self._apply(
            pool.reconcile(
                self._ledger,
                report.gone,
                holdings,
                workflow.now(),
                self._settings.grace,
                asked=self._asked,
            )
        )

    def _should_roll(self) -> bool:
        # A run starts with an event or two per agent: a limit below that would roll for ever.
        limit = max(self._settings.history_limit, AGENT_EVENTS * len(self._ledger.agents))
        return should_continue_as_new(limit)

    def _handed_on(self) -> PoolInput:
        if len(self._ledger.reservations) > READABLE:
            return self._settings.but(packed=pack(self._ledger))
        return self._settings.but(ledger=self._ledger)

    def _drained(self) -> bool:
        """Whether nothing would be lost. What is being destroyed stays condemned until it is, so
        the next run starts that again, and an agent that hangs holds nothing up."""
        return workflow.all_handlers_finished() and not self._telling


def _carried(settings: PoolInput) -> Ledger | None:
    """What the run before handed on. Raises ApplicationError for what no run can have."""
    try:
        return unpack(settings.packed) if settings.packed else settings.ledger
    except ValueError as error:
        raise _refused(error) from error


def _refused(error: Exception) -> ApplicationError:
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)
