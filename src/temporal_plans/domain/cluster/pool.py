"""How a Pool's ledger changes: (ledger, event, now) -> (ledger, effects).

The rules:

- One reservation per key. A repeated request gets the reservation that is held, resized in place
  when the requirement changed; ``permanent`` requests another place and releases the old
  reservation once the new one is made.
- A requirement that fits nowhere waits, in order of arrival. After every event that may help, all
  waiting requirements are tried in that order, and each that fits is offered. A small requirement
  may so overtake a large one that still does not fit: nothing is held back for waiting
  requirements, so one that needs a whole agent is placed only when an agent is nearly empty.
- Several workflows may request one pod, and some of them may have ended without withdrawing. The
  last request is tried; when the pod has its place, or that request is withdrawn, the other
  workflows are notified to ask again.
- A new pod goes to the agent with the smallest reserved share (``Offer.share``) that passes, ties
  by id: pods spread. A pod that moves tries its former agent last.
- A released reservation is a *pending destroy*: it counts as reserved until the agent has
  destroyed it. Only a successor of the same pod on the same agent takes its resources over at
  once, and is notified when the old reservation is destroyed.
- Reservations on a lost agent are kept: their owner decides (permanent, or release).
- An agent is identified by its work directory (``lineage``). An agent with another work directory
  is refused under the id of an agent that is alive; once that agent is silent, the new agent takes
  its place, and the tasks that ran there are lost. Reservations are kept then too: if the new agent
  was a mistake, the first agent's data is still good.
- An agent keeps its task queue as long as it is registered, for reservations and task records name
  that queue.
- An agent that is removed by force takes its reservations with it. If it registers again, it
  registers as new, and first destroys what it has left of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from temporal_plans.domain.cluster.agent_errors import (
    AgentIdTakenError,
    AgentInUseError,
    AgentQueueChangedError,
    NamelessAgentError,
    PoolFullError,
    UnknownAgentError,
)
from temporal_plans.domain.cluster.agents import AgentInfo, AgentState
from temporal_plans.domain.cluster.attempt import attempt, moving_once
from temporal_plans.domain.cluster.ledger import (
    AgentRecord,
    DepartedAgent,
    Ledger,
    PendingDestroy,
    WaitingRequirement,
)
from temporal_plans.domain.cluster.ledger_edits import (
    held_on,
    pending_destroys_on,
    with_agent,
    with_pending_destroy,
    with_used,
    without,
)
from temporal_plans.domain.cluster.offer import Used
from temporal_plans.domain.cluster.requirement_check import check_requirement
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values.refusal import Refusal

AGENTS_LIMIT = 5000
"""Agents of a pool."""

ALL_ATTRIBUTES_LIMIT = 1_000_000
"""Characters of the attributes of all agents: what is carried from run to run must fit into one
payload."""

DEPARTED_LIMIT = 500
"""Reservations of removed agents that are kept, in case such an agent registers again."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A waiting requirement has its reservation now: notify its workflow (``notify``). When that
    workflow is gone, see ``cancel_offer``."""

    requirement: Requirement
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Notify a workflow that its earlier request for a pod is no longer stored: it has to ask
    again."""

    notify: str


@dataclass(frozen=True, slots=True)
class AgentGone:
    """An agent is lost or was removed: notify these owners of its reservations and pending
    destroys. ``by_operator``: an operator removed it, and its reservations are deleted."""

    agent: str
    owners: tuple[str, ...]
    by_operator: bool = False


Effect = Offered | AskAgain | AgentGone


class Change(NamedTuple):
    """The ledger after an event, and the effects to carry out."""

    ledger: Ledger
    effects: tuple[Effect, ...] = ()


class Answer(NamedTuple):
    """The answer of ``reserve``: a reservation, or why there is none yet."""

    change: Change
    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()


# --- agents --------------------------------------------------------------------------------------


def register(ledger: Ledger, info: AgentInfo, now: datetime) -> Change:
    """Register an agent with its resources: a new agent, or an agent that came back, perhaps
    smaller than before. Its reservations are kept. Raises NamelessAgentError, AgentIdTakenError,
    AgentQueueChangedError, PoolFullError."""
    if not info.id:
        raise NamelessAgentError
    old = ledger.agents.get(info.id)
    replaced = old is not None and _different_agents(old.info.lineage, info.lineage)
    if old is not None and replaced and old.state is AgentState.ALIVE:
        raise AgentIdTakenError(old)
    if old is not None and old.info.queue != info.queue:
        raise AgentQueueChangedError(old.info, info.queue)
    others = (one.info for name, one in ledger.agents.items() if name != info.id)
    if len(ledger.agents) - (old is not None) >= AGENTS_LIMIT or (
        info.attribute_size + sum(one.attribute_size for one in others) > ALL_ATTRIBUTES_LIMIT
    ):
        raise PoolFullError(ledger.pool, AGENTS_LIMIT, ALL_ATTRIBUTES_LIMIT)
    record = AgentRecord(
        info=info,
        registered=old.registered if old and not replaced else now,
        since=old.since if old and old.state is AgentState.ALIVE else now,
        used=old.used if old else Used(),
    )
    notified = old is None or old.state is AgentState.LOST
    gone = _gone(info.id, list(held_on(ledger, info.id))) if replaced and not notified else ()
    settled = _settle(_with_leftovers(with_agent(ledger, record), info), now)
    return Change(settled.ledger, gone + settled.effects)


def heartbeat(ledger: Ledger, agent: str, boot: str, now: datetime) -> Change:
    """Take an agent's heartbeat. Ignored for an agent that is not registered: its resources are not
    known."""
    record = ledger.agents.get(agent)
    if record is None:
        return Change(ledger)
    if boot and boot != record.info.boot:
        record = record.but(info=record.info.but(boot=boot))
    if record.state is AgentState.ALIVE:
        return Change(with_agent(ledger, record))
    alive = record.but(state=AgentState.ALIVE, since=now)
    return _settle(with_agent(ledger, alive), now)


def unreachable(ledger: Ledger, agent: str, now: datetime) -> Change:
    """Mark an agent whose heartbeats stopped: it gets no new reservations and keeps the old."""
    record = ledger.agents.get(agent)
    if record is None or record.state is not AgentState.ALIVE:
        return Change(ledger)
    return Change(with_agent(ledger, record.but(state=AgentState.UNREACHABLE, since=now)))


def lost(ledger: Ledger, agent: str, now: datetime) -> Change:
    """Mark an agent as lost, and notify the owners of its reservations and pending destroys, once:
    an owner that has released all may still wait for its tasks there to end."""
    record = ledger.agents.get(agent)
    if record is None or record.state is AgentState.LOST:
        return Change(ledger)
    changed = with_agent(ledger, record.but(state=AgentState.LOST, since=now))
    affected = [*held_on(ledger, agent), *pending_destroys_on(ledger, agent)]
    return Change(changed, _gone(agent, affected))


def deregister(ledger: Ledger, agent: str, now: datetime, *, force: bool = False) -> Change:
    """Remove an agent with its reservations and pending destroys. Raises UnknownAgentError, or
    AgentInUseError unless ``force`` or nothing is left there."""
    if agent not in ledger.agents:
        raise UnknownAgentError(agent, ledger.agents)
    dropped = list(held_on(ledger, agent))
    to_destroy = list(pending_destroys_on(ledger, agent))
    if not force and (dropped or to_destroy):
        raise AgentInUseError(
            agent,
            [held.key for held in dropped]
            + [f"{held.key} (being destroyed)" for held in to_destroy],
        )
    keys = {held.key for held in dropped}
    ids = {held.id for held in to_destroy}
    changed = ledger.but(
        offers={key: offer for key, offer in ledger.offers.items() if key not in keys},
        agents=without(ledger.agents, agent),
        reservations={key: held for key, held in ledger.reservations.items() if key not in keys},
        notify={
            key: workflow
            for key, workflow in ledger.notify.items()
            if key not in keys or key in ledger.waiting
        },
        to_destroy={key: pending for key, pending in ledger.to_destroy.items() if key not in ids},
        departed=_departed(ledger, agent, dropped + to_destroy),
    )
    settled = _settle(changed, now)
    gone = _gone(agent, dropped + to_destroy, by_operator=True)
    return Change(settled.ledger, gone + settled.effects)


# --- reservations --------------------------------------------------------------------------------


def reserve(ledger: Ledger, requirement: Requirement, now: datetime) -> Answer:
    """Give a requirement its reservation, or let it wait and say why, agent by agent.

    Raises RequirementError for a requirement that no agent could ever satisfy.
    """
    check_requirement(requirement)
    requirement = moving_once(ledger, requirement)
    key = requirement.key
    before = ledger.waiting.get(key)
    others = _others(before, requirement.notify)
    requested = ledger.but(
        notify={**ledger.notify, key: requirement.notify}, waiting=without(ledger.waiting, key)
    )
    result = attempt(requested, requirement, now)
    if result.usable:
        taken = result.ledger.but(offers=without(result.ledger.offers, key))
        notified = Change(taken, tuple(map(AskAgain, others)))
        return Answer(_then(notified, _settle(taken, now)), result.reservation)
    since = before.since if before else now
    waiting = WaitingRequirement(requirement=requirement, since=since, others=others)
    changed = result.ledger.but(waiting={**ledger.waiting, key: waiting})
    # Nothing was reserved and nothing came free, so no other waiting requirement fits either.
    settled = Change(changed) if result.ledger is requested else _settle(changed, now)
    return Answer(settled, None, result.refusals)


def withdraw(ledger: Ledger, key: str, notify: str = "") -> Change:
    """Withdraw the request of the workflow ``notify``, or all requests for the key when that is
    empty. The reservation of the key is kept."""
    waiting = ledger.waiting.get(key)
    if waiting is None:
        return Change(ledger)
    if notify not in ("", waiting.requirement.notify):
        left = waiting.but(others=tuple(other for other in waiting.others if other != notify))
        return Change(ledger.but(waiting={**ledger.waiting, key: left}))
    changed = _drop_notify(ledger.but(waiting=without(ledger.waiting, key)), key)
    return Change(changed, tuple(map(AskAgain, waiting.others)) if notify else ())


def cancel_offer(ledger: Ledger, offered: Offered, now: datetime) -> Change:
    """Cancel an offer whose workflow could not be notified. Unless another workflow has taken the
    reservation, it is released; nothing was launched on it, so there is nothing to destroy."""
    key = offered.reservation.key
    if ledger.offers.get(key) != offered.reservation.id:
        return Change(ledger)
    return _release(ledger, ledger.reservations[key], now, destroy=False)


def release(
    ledger: Ledger, key: str, now: datetime, *, destroy: bool = True, reservation: str = ""
) -> Change:
    """Release the reservation of a key and withdraw its requests; neither need exist. With the id
    of a reservation, release that only: a waiting request may be for its successor.

    With ``destroy`` the resources stay reserved until ``destroyed`` is called.
    """
    held = ledger.reservations.get(key)
    if reservation:
        if held is None or held.id != reservation:
            return Change(ledger)
        return _release(ledger, held, now, destroy=destroy)
    changed = _drop_notify(ledger.but(waiting=without(ledger.waiting, key)), key)
    return Change(changed) if held is None else _release(changed, held, now, destroy=destroy)


def _release(ledger: Ledger, held: Reservation, now: datetime, *, destroy: bool) -> Change:
    """Release a reservation. A request for more resources, or for another place, keeps waiting."""
    changed = ledger.but(
        reservations=without(ledger.reservations, held.key),
        offers=without(ledger.offers, held.key),
    )
    changed = _drop_notify(changed, held.key)
    if destroy:
        changed = with_pending_destroy(changed, held, counted=True)
    else:
        changed = with_used(changed, held.agent, lambda used: used.minus(held.resources))
    return _settle(changed, now)


def destroyed(ledger: Ledger, reservation_id: str, now: datetime) -> Change:
    """Free the resources of a reservation that its agent has destroyed."""
    done = ledger.to_destroy.get(reservation_id)
    if done is None:
        return Change(ledger)
    changed = ledger.but(to_destroy=without(ledger.to_destroy, reservation_id))
    if done.counted:
        resources = done.reservation.resources
        changed = with_used(changed, done.reservation.agent, lambda used: used.minus(resources))
    return _settle(changed, now)


def left_to_destroy(
    ledger: Ledger, key: str, released: Reservation | None, reservation: str = ""
) -> Reservation | None:
    """Return ``released`` if its agent has yet to destroy it; with None, the newest reservation of
    the key that is yet to be destroyed.

    With the id of a reservation, only that one counts: a pod that was replaced off a lost agent has
    another reservation of its key there, which waits for the agent and for nothing else.
    """
    if reservation:
        named = ledger.to_destroy.get(reservation)
        return named.reservation if named else None
    pending = (one.reservation for one in ledger.to_destroy.values())
    left = [reservation for reservation in pending if reservation.key == key]
    if released is not None:
        left = [reservation for reservation in left if reservation.id == released.id]
    return max(left, key=lambda reservation: reservation.created, default=None)


def reconcile(
    ledger: Ledger,
    gone: Collection[str],
    holdings: Mapping[str, Collection[str]],
    now: datetime,
    grace: timedelta,
    *,
    asked: Collection[str] = (),
) -> Change:
    """Release what workflows that no longer exist have left here, so that nothing leaks.

    ``gone``: closed or unknown workflows; ``holdings``: by owner, the keys that the owner keeps.
    A reservation is released when its owner is gone, or when its owner does not list it and the
    workflow that requested it is gone too (it may just not have reported it to the owner yet).
    Excluded are reservations and requests younger than ``grace``, and the keys in ``asked``: they
    were requested after ``gone`` was looked up, maybe by the next run of a workflow that was gone.
    """
    change = Change(ledger)
    for key, held in ledger.reservations.items():
        if key in asked:
            continue
        if now - held.created > grace and _abandoned(ledger, held, gone, holdings):
            held = change.ledger.reservations[key]  # may have been resized for a waiting request
            change = _then(change, _release(change.ledger, held, now, destroy=True))
    for key, waiting in ledger.waiting.items():
        if key in asked:
            continue
        requirement = waiting.requirement
        owner_gone = requirement.owner in gone
        if now - waiting.since > grace and (requirement.notify in gone or owner_gone):
            workflow = "" if owner_gone else requirement.notify
            change = _then(change, withdraw(change.ledger, key, workflow))
    return change


def workflows(ledger: Ledger) -> tuple[str, ...]:
    """The ids of all workflows that own or requested a reservation, or wait for one."""
    owners = {held.owner for held in ledger.reservations.values()}
    waiting = {waiting.requirement.owner for waiting in ledger.waiting.values()}
    return tuple(sorted(owners | waiting | set(ledger.notify.values())))


def explain(ledger: Ledger, requirement: Requirement, now: datetime) -> tuple[Refusal, ...]:
    """Return why a requirement has no reservation, agent by agent; empty when it would get one."""
    result = attempt(ledger, requirement, now)
    return () if result.usable else result.refusals


def fit_key(ledger: Ledger, requirement: Requirement) -> object | None:
    """Return a value that is equal for requirements that fit on the same agents; None when the
    requirement has to be evaluated by itself."""
    if requirement.key in ledger.reservations:
        return None
    counted = (requirement.owner, requirement.pod) if requirement.placement else None
    return requirement.sets, requirement.placement, counted


def _settle(ledger: Ledger, now: datetime) -> Change:
    """Offer to waiting requirements, in order of arrival, until none of them fits any more.

    A pod can make room for another by its placement (a pod that joins the smallest group), so a
    round with a success is followed by another. Requirements with the same ``fit_key`` fail alike:
    of those only the first is evaluated in a round.
    """
    effects: list[Effect] = []
    progress = bool(ledger.waiting)
    while progress:
        progress = False
        failed: set[object] = set()
        for key, waiting in tuple(ledger.waiting.items()):
            fit = fit_key(ledger, waiting.requirement)
            if fit is not None and fit in failed:
                continue
            result = attempt(ledger, waiting.requirement, now)
            if result.reservation is None:
                failed.add(fit)
                continue
            progress = progress or result.ledger is not ledger or result.usable
            ledger = result.ledger
            if result.usable:
                ledger = ledger.but(waiting=without(ledger.waiting, key))
                if result.new:
                    ledger = ledger.but(offers={**ledger.offers, key: result.reservation.id})
                effects.append(Offered(waiting.requirement, result.reservation))
                effects += map(AskAgain, waiting.others)
    return Change(ledger, tuple(effects))


def _others(waiting: WaitingRequirement | None, notify: str) -> tuple[str, ...]:
    """All workflows that requested the pod, but for ``notify``."""
    if waiting is None:
        return ()
    requested = dict.fromkeys((*waiting.others, waiting.requirement.notify))
    return tuple(workflow for workflow in requested if workflow != notify)


def _drop_notify(ledger: Ledger, key: str) -> Ledger:
    """Drop the workflow to notify, if the key neither holds anything nor waits."""
    if key in ledger.reservations or key in ledger.waiting:
        return ledger
    return ledger.but(notify=without(ledger.notify, key))


def _gone(
    agent: str, held: Sequence[Reservation], *, by_operator: bool = False
) -> tuple[Effect, ...]:
    owners = tuple(sorted({reservation.owner for reservation in held}))
    return (AgentGone(agent, owners, by_operator),) if owners else ()


def _different_agents(lineage: str, other: str) -> bool:
    """Whether two lineages differ; an unknown lineage matches any."""
    return bool(lineage and other and lineage != other)


def _departed(
    ledger: Ledger, agent: str, dropped: Sequence[Reservation]
) -> dict[str, DepartedAgent]:
    """Return the departed agents with one more; the oldest are dropped above the limit."""
    if not dropped:
        return ledger.departed
    departed = DepartedAgent(
        lineage=ledger.agents[agent].info.lineage,
        reservations=tuple(held.but(resources=(), attributes={}) for held in dropped),
    )
    kept = {**without(ledger.departed, agent), agent: departed}
    while len(kept) > 1 and sum(len(left.reservations) for left in kept.values()) > DEPARTED_LIMIT:
        kept.pop(next(iter(kept)))
    return kept


def _with_leftovers(ledger: Ledger, info: AgentInfo) -> Ledger:
    """Have an agent that was removed and registers again destroy what it may still have."""
    left = ledger.departed.get(info.id)
    if left is None or _different_agents(left.lineage, info.lineage):
        return ledger
    to_destroy = {
        held.id: PendingDestroy(reservation=held.but(queue=info.queue), counted=False)
        for held in left.reservations
    }
    return ledger.but(
        departed=without(ledger.departed, info.id),
        to_destroy={**ledger.to_destroy, **to_destroy},
    )


def _abandoned(
    ledger: Ledger,
    held: Reservation,
    gone: Collection[str],
    holdings: Mapping[str, Collection[str]],
) -> bool:
    if held.owner in gone:
        return True
    kept = holdings.get(held.owner)
    if kept is None or held.key in kept:
        return False
    requester = ledger.notify.get(held.key, held.owner)
    return requester == held.owner or requester in gone


def _then(first: Change, second: Change) -> Change:
    return Change(second.ledger, first.effects + second.effects)
