"""The workflow ``Pool`` (id ``pool/<name>``): agents, reservations, and waiting requirements.

It never ends, and continues as new. ``domain.cluster.pool`` decides; this module does what needs
Temporal:

- Registration. An agent registers by update, before it polls its queue, so that a refused agent
  gets the refusal. The signal of the same name is for agents that can't wait; its refusals are
  logged.
- Liveness. Every agent runs one activity ``watch`` on its own queue; its heartbeats cost no
  history. When they stop the agent is UNREACHABLE, and the watch is scheduled again; when the agent
  does not pick it up within ``give_up`` the agent is LOST, the owners of its reservations are
  notified, and a last watch waits on its queue without a timeout: an agent that returns picks it
  up, and is ALIVE again.
- Destruction. The agent's activity ``destroy`` destroys released reservations, at once or when the
  agent is back. It is idempotent; every run of the Pool starts it again for pending ones.
- Notification. The requester of a waiting requirement gets the signal ``offered``; if the requester
  is gone, the reservation is released again unless another requester has taken it. Other requesters
  of the same pod get the signal too, and ask again.
- Reconciliation. Owners are asked periodically for their reservations, so that a terminated
  workflow leaks none.

Updates answer at once: the server allows ten in flight for one workflow, so ``release`` waits only
briefly for an agent, and only for a few callers (``ReleaseResult.destroyed``).
"""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta

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
    from temporal_plans.activities.mechanics.refusals import refusal_error
    from temporal_plans.domain.cluster import pool
    from temporal_plans.domain.cluster.agents import AgentInfo, AgentState
    from temporal_plans.domain.cluster.ledger import AgentRecord, Ledger
    from temporal_plans.domain.cluster.packing import pack, unpack
    from temporal_plans.domain.cluster.requirement_check import RequirementError, check_requirement
    from temporal_plans.domain.cluster.requirements import Requirement
    from temporal_plans.domain.cluster.reservations import Reservation
    from temporal_plans.domain.values.compressed import PAYLOAD_LIMIT
    from temporal_plans.domain.values.refusal import RefusedError
    from temporal_plans.messages import pool_views as pool_view
    from temporal_plans.messages.pools import (
        AgentLostMessage,
        DeregisterRequest,
        DeregisterResult,
        DestroyInput,
        HeardMessage,
        OfferedMessage,
        OwnersInput,
        OwnersReport,
        PoolInput,
        PoolStatus,
        Reconciled,
        ReleaseRequest,
        ReleaseResult,
        RequirementStatus,
        ReservationKey,
        ReserveResult,
        WatchInput,
        Withdrawal,
    )
    from temporal_plans.workflows.mechanics.externs import require_plugin
    from temporal_plans.workflows.mechanics.handlers import send_signal, should_continue_as_new
    from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT

RELEASE_TIMEOUT = timedelta(seconds=5)
"""How long an update ``release`` waits for the agent to destroy what was released."""

RELEASE_WAITERS_LIMIT = 4
"""How many updates may wait so at a time; the server allows ten in flight."""

DESTROY_TIMEOUT = timedelta(minutes=15)
"""The timeout of one ``destroy``: it kills tasks, with their grace period, and deletes volumes."""

SIGNALS_LIMIT = 100
"""External signals in flight; the server's limit is 2,000 for one workflow."""

PLAIN_JSON_LIMIT = 500
"""The number of reservations above which the next run's input is packed instead of plain JSON."""

AGENT_EVENTS_LIMIT = 20
"""History events for each agent before the Pool continues as new, even above its limit."""


@workflow.defn(name="Pool")
class PoolWorkflow:
    """A named set of agents whose resources are offered together."""

    @workflow.init
    def __init__(self, settings: PoolInput | None = None) -> None:
        given = settings or PoolInput()
        name = given.name or workflow.info().workflow_id.removeprefix("pool/")
        self._settings = given.but(name=name, ledger=None, packed="")
        self._ledger = _initial_ledger(given) or Ledger(pool=name)
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, workflow.ActivityHandle[None]] = {}
        self._restarted_watches: set[str] = set()
        self._destroying: dict[str, workflow.ActivityHandle[None] | None] = {}
        self._notifications: set[asyncio.Task[None]] = set()
        self._signal_slots = asyncio.Semaphore(SIGNALS_LIMIT)
        self._release_waiters = 0
        self._last_requested: dict[str, datetime] = {}
        self._activities = 0

    @workflow.run
    async def run(self, settings: PoolInput | None = None) -> None:
        require_plugin()
        self._follow()
        while not self._should_continue_as_new():
            await workflow.wait_condition(lambda: self._should_continue_as_new() or self._busy())
            try:
                await workflow.wait_condition(
                    self._should_continue_as_new,
                    timeout=self._settings.check_owners_every,
                    timeout_summary="until owners are asked for their reservations",
                )
            except TimeoutError:
                await self._check_owners()
        while not self._drained():  # other tasks may run between a condition and its waiter
            await workflow.wait_condition(self._drained)
        workflow.continue_as_new(self._next_input())

    # --- messages ---------------------------------------------------------------------------------

    @workflow.update(name="reserve", description="Reserve for one pod, or wait until it fits.")
    def reserve(self, requirement: Requirement) -> ReserveResult:
        self._last_requested[requirement.key] = workflow.now()
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
            raise refusal_error(error.refusal) from None

    @workflow.update(
        name="release", description="Release a reservation, or withdraw a waiting requirement."
    )
    async def release(self, request: ReleaseRequest) -> ReleaseResult:
        held = self._ledger.reservations.get(request.key)
        if held is not None and request.reservation not in ("", held.id):
            return ReleaseResult()  # released before; this one is its successor
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
        left = pool.left_to_destroy(self._ledger, request.key, held, request.reservation)
        return ReleaseResult(
            reservation=held,
            destroyed=not self._being_destroyed(request.key),
            agent=left.agent if left else "",
            agent_state=self._ledger.agents[left.agent].state if left else None,
        )

    @workflow.update(name="deregister", description="Remove an agent that does not return.")
    def deregister(self, request: DeregisterRequest) -> DeregisterResult:
        before = self._ledger.reservations
        try:
            change = pool.deregister(
                self._ledger, request.agent, workflow.now(), force=request.force
            )
        except RefusedError as error:
            raise refusal_error(error.refusal) from None
        dropped = [key for key, held in before.items() if held.agent == request.agent]
        alive = self._alive(request.agent)
        self._apply(change)
        self._restart_watch(request.agent)
        return DeregisterResult(dropped=tuple(dropped), alive=alive)

    @deregister.validator
    def _check_deregister(self, request: DeregisterRequest) -> None:
        try:
            pool.deregister(self._ledger, request.agent, workflow.now(), force=request.force)
        except RefusedError as error:
            raise refusal_error(error.refusal) from None

    @workflow.update(
        name="register", description="From an agent: its resources, and its task queue."
    )
    def register(self, info: AgentInfo) -> None:
        try:
            self._register(info)
        except RefusedError as error:
            raise refusal_error(error.refusal) from None

    @register.validator
    def _check_register(self, info: AgentInfo) -> None:
        try:
            pool.register(self._ledger, info, workflow.now())
        except RefusedError as error:
            raise refusal_error(error.refusal) from None

    @workflow.signal(
        name="register", description="From an agent: its resources, and its task queue."
    )
    def on_register(self, info: AgentInfo) -> None:
        try:
            self._register(info)
        except RefusedError as error:
            workflow.logger.warning("not registered: %s", error)

    def _register(self, info: AgentInfo) -> None:
        known = self._ledger.agents.get(info.id)
        self._apply(pool.register(self._ledger, info, workflow.now()))
        if known is not None and (
            known.info.boot != info.boot or known.state is not AgentState.ALIVE
        ):
            self._restart_watch(info.id)

    @workflow.update(
        name="reconcile", description="The reservations that owners hold; others are released."
    )
    def reconcile(self, report: OwnersReport) -> Reconciled:
        """Release the reservations that no owner holds, and return their keys.

        The report may be as old as ``grace``: reservations requested since then are kept. When this
        run is younger than ``grace`` all are kept, as the previous run's requests are unknown.
        """
        since = workflow.now() - self._settings.grace
        if since < workflow.info().start_time:
            return Reconciled()
        return Reconciled(keys=self._reconcile(report, since))

    @workflow.signal(name="heard", description="From an agent: its watch has started, it is alive.")
    def heard(self, message: HeardMessage) -> None:
        self._apply(pool.heartbeat(self._ledger, message.agent, message.boot, workflow.now()))

    @workflow.signal(name="withdraw", description="A requirement no longer waits.")
    def withdraw(self, request: Withdrawal) -> None:
        self._apply(pool.withdraw(self._ledger, request.key, request.notify))

    @workflow.query(
        name="status", description="Agents, reservations, and waiting requirements with reasons."
    )
    def status(self) -> PoolStatus:
        return pool_view.status(self._ledger, workflow.now())

    @workflow.query(name="explain", description="Why one requirement waits, agent by agent.")
    def explain(self, request: ReservationKey) -> RequirementStatus:
        return pool_view.explanation(self._ledger, request.key, workflow.now())

    # --- effects of a change ----------------------------------------------------------------------

    def _apply(self, change: pool.Change) -> None:
        self._ledger = change.ledger
        for effect in change.effects:
            match effect:
                case pool.Offered():
                    self._notify(self._notify_offered(effect))
                case pool.AskAgain():
                    self._notify(self._notify_retry(effect.notify))
                case pool.AgentGone():
                    for owner in effect.owners:
                        self._notify(self._notify_lost(effect, owner))
        self._follow()

    def _follow(self) -> None:
        """Start missing watches, and the pending destroys on agents that are alive."""
        for agent in self._ledger.agents:
            if agent not in self._watchers:
                self._watchers[agent] = asyncio.create_task(self._watch(agent))
        for reservation_id, pending in self._ledger.to_destroy.items():
            if reservation_id not in self._destroying and self._alive(pending.reservation.agent):
                self._destroying[reservation_id] = None
                asyncio.create_task(self._destroy(pending.reservation))  # noqa: RUF006  # in _destroying
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
            if agent in self._restarted_watches:
                self._restarted_watches.discard(agent)
                continue
            self._mark_silent(agent, timeout)
            if timeout is None:  # it ended, or failed: retry after a pause
                await workflow.sleep(
                    timedelta(seconds=1), summary=f"before {agent} is watched again"
                )
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
            task_queue=record.info.queue,
            schedule_to_start_timeout=self._pickup_timeout(record),
            start_to_close_timeout=timedelta(days=365),
            heartbeat_timeout=settings.heartbeat,
            retry_policy=RetryPolicy(maximum_attempts=1),
            summary=f"liveness of {record.info.id}",
        )
        return handle

    def _pickup_timeout(self, record: AgentRecord) -> timedelta | None:
        """Return the time in which the agent must pick up its watch; then its state changes."""
        match record.state:
            case AgentState.ALIVE:
                return self._settings.heartbeat
            case AgentState.UNREACHABLE:
                left = record.since + self._settings.give_up - workflow.now()
                return max(left, timedelta(seconds=1))
            case AgentState.LOST:
                return None

    def _mark_silent(self, agent: str, timeout: TimeoutType | None) -> None:
        record = self._ledger.agents.get(agent)
        if record is None:
            return
        not_picked_up = timeout is TimeoutType.SCHEDULE_TO_START
        if not_picked_up and record.state is AgentState.UNREACHABLE:
            self._apply(pool.lost(self._ledger, agent, workflow.now()))
        else:
            self._apply(pool.unreachable(self._ledger, agent, workflow.now()))
        self._abandon_destroying(agent)

    def _restart_watch(self, agent: str) -> None:
        """Cancel the watch of an agent that has restarted, so that a new watch reaches its process
        at once instead of after a heartbeat timeout."""
        watch = self._watches.get(agent)
        if watch is not None and not watch.done():
            self._restarted_watches.add(agent)
            watch.cancel()
        self._abandon_destroying(agent)

    # --- destruction ------------------------------------------------------------------------------

    async def _destroy(self, reservation: Reservation) -> None:
        handle: workflow.ActivityHandle[None] = workflow.start_activity(
            "destroy",
            DestroyInput(reservation_id=reservation.id),
            activity_id=self._activity_id(f"destroy/{reservation.key}"),
            task_queue=reservation.queue,
            schedule_to_start_timeout=self._settings.give_up,
            start_to_close_timeout=DESTROY_TIMEOUT,
            summary=f"{reservation.key} on {reservation.agent}",
        )
        self._destroying[reservation.id] = handle
        try:
            await handle
        except ActivityError as error:
            if not is_cancelled_exception(error):
                workflow.logger.warning("destroying %s failed: %s", reservation.id, error.cause)
                await workflow.sleep(timedelta(seconds=5), summary="before the retry")
            self._destroying.pop(reservation.id, None)
            self._follow()
            return
        self._destroying.pop(reservation.id, None)
        self._apply(pool.destroyed(self._ledger, reservation.id, workflow.now()))

    def _abandon_destroying(self, agent: str) -> None:
        """Cancel the destroys of an agent whose process is gone; ``_follow`` starts them again."""
        for reservation_id, handle in self._destroying.items():
            pending = self._ledger.to_destroy.get(reservation_id)
            if handle is not None and (pending is None or pending.reservation.agent == agent):
                handle.cancel()

    def _being_destroyed(self, key: str) -> bool:
        return any(
            pending.reservation.key == key and self._alive(pending.reservation.agent)
            for pending in self._ledger.to_destroy.values()
        )

    async def _wait_for_destroyed(self, key: str) -> None:
        if not self._being_destroyed(key) or self._release_waiters >= RELEASE_WAITERS_LIMIT:
            return
        self._release_waiters += 1
        try:
            await workflow.wait_condition(
                lambda: not self._being_destroyed(key),
                timeout=RELEASE_TIMEOUT,
                timeout_summary=f"until {key} is destroyed",
            )
        except TimeoutError:
            pass  # the caller gets ``destroyed=False``, and asks again
        finally:
            self._release_waiters -= 1

    # --- notification -----------------------------------------------------------------------------

    def _notify(self, notification: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(notification)
        self._notifications.add(task)
        task.add_done_callback(self._notifications.discard)

    async def _notify_offered(self, offered: pool.Offered) -> None:
        message = OfferedMessage(reservation=offered.reservation)
        if await self._signal(offered.requirement.notify, "offered", message):
            return
        self._apply(pool.cancel_offer(self._ledger, offered, workflow.now()))

    async def _notify_retry(self, notify: str) -> None:
        await self._signal(notify, "offered", OfferedMessage())

    async def _notify_lost(self, gone: pool.AgentGone, owner: str) -> None:
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
            return await send_signal(workflow_id, name, message)

    # --- reconciliation and continue-as-new -------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._ledger.reservations or self._ledger.waiting)

    async def _check_owners(self) -> None:
        if not self._busy():
            return
        began = workflow.now()
        try:
            report: OwnersReport = await workflow.execute_activity(
                "check_owners",
                OwnersInput(workflows=pool.workflows(self._ledger)),
                result_type=OwnersReport,
                activity_id=self._activity_id("check_owners"),
                start_to_close_timeout=timedelta(minutes=2),
                schedule_to_close_timeout=timedelta(minutes=5),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                summary="which reservations owners hold",
            )
        except ActivityError as error:
            workflow.logger.warning(
                "owners could not be asked for their reservations: %s", error.cause
            )
            return
        self._reconcile(report, began)
        oldest = min(began, workflow.now() - self._settings.grace)
        self._last_requested = {key: at for key, at in self._last_requested.items() if at >= oldest}

    def _reconcile(self, report: OwnersReport, since: datetime) -> tuple[str, ...]:
        """Release reservations that no owner holds, except those asked ``since``. Return keys."""
        before = self._ledger.reservations
        change = pool.reconcile(
            self._ledger,
            report.gone,
            {owner: holdings.keys for owner, holdings in report.holdings.items()},
            workflow.now(),
            self._settings.grace,
            asked={key for key, at in self._last_requested.items() if at >= since},
        )
        self._apply(change)
        return tuple(key for key in before if key not in self._ledger.reservations)

    def _should_continue_as_new(self) -> bool:
        # A run starts with some events per agent: a lower limit would continue as new forever.
        limit = max(self._settings.history_limit, AGENT_EVENTS_LIMIT * len(self._ledger.agents))
        return should_continue_as_new(limit)

    def _next_input(self) -> PoolInput:
        if len(self._ledger.reservations) <= PLAIN_JSON_LIMIT:
            return self._settings.but(ledger=self._ledger)
        packed = pack(self._ledger)
        if len(packed) > PAYLOAD_LIMIT:  # requirements that wait are requested again
            packed = pack(self._ledger.but(waiting={}))
        return self._settings.but(packed=packed)

    def _drained(self) -> bool:
        """Whether a continue-as-new loses nothing. A pending destroy stays in the ledger until it
        is done, and the next run starts it again: an agent that hangs delays nothing."""
        return workflow.all_handlers_finished() and not self._notifications


def _initial_ledger(settings: PoolInput) -> Ledger | None:
    """Return the previous run's ledger. Raises ApplicationError when a first run has a malformed
    one. A run that continues another never ends for it: its reservations would be lost."""
    try:
        return unpack(settings.packed) if settings.packed else settings.ledger
    except ValueError as error:
        if workflow.info().continued_run_id:
            raise RuntimeError(f"packed: {error}") from error
        raise _refused(error) from error


def _refused(error: Exception) -> ApplicationError:
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)
