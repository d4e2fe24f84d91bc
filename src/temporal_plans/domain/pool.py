"""How a Pool's ledger changes: (ledger, event, now) -> (ledger, effects).

The rules:

- One reservation per key. Asking again gives the one that is held, resized in place when the
  requirement changed; ``permanent`` asks for another place and gives the old one up once the new
  one is there.
- What fits nowhere waits, in order of arrival. After every event that may help, all that wait are
  tried in that order, and each that fits is offered. A small requirement may so overtake a large
  one that still does not fit: nothing is held back for those that wait, so a requirement that needs
  a whole agent gets one only when an agent is as good as free.
- Several workflows may ask for one pod, and some of them be over without anybody having said so.
  The last one's requirement is tried; when the pod has its place, or that requirement is given up,
  the others are told to ask again, if they are still there.
- A new pod goes to the agent with the smallest reserved share (``Offer.share``) that passes, ties
  by id: pods spread. A pod that moves tries its former agent last.
- What is given up on an agent is *condemned*: it counts as reserved until the agent has destroyed
  it. Only a successor of the same pod on the same agent takes its resources over at once, and is
  told when the old one is destroyed.
- Reservations on an agent that is lost are kept: their owner decides (permanent, or release).
- An agent is who has its work directory (``lineage``). A stranger under the id of one that is alive
  is refused; once that one is silent, the stranger takes its place, and what ran there is lost.
  Reservations are kept then too: if the stranger was a mistake, the first one's data is still good.
- An agent that is removed by force takes its reservations with it. If it comes back nevertheless,
  it comes as new, and first destroys what it has left of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from temporal_plans.domain.cluster import (
    AgentInfo,
    AgentState,
    Refusal,
    Requirement,
    Reservation,
)
from temporal_plans.domain.evaluation import (
    Outcome,
    evaluate_existing,
    evaluate_new,
    new_reservation_id,
)
from temporal_plans.domain.ledger import AgentRecord, Condemned, Departed, Ledger, Waiting
from temporal_plans.domain.offer import Offer, Used
from temporal_plans.domain.placement import Check, PlacementError, parse_placement
from temporal_plans.domain.requirements import check_requirement

DEPARTED_KEPT = 500
"""Reservations of removed agents that are remembered, in case such an agent comes back."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A requirement that waited has its reservation now; its ``notify`` is to be told. If nobody
    can be told, see ``unheard``."""

    requirement: Requirement
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class AskAgain:
    """A workflow that asked for a pod, and of whose requirement nothing is known any more."""

    notify: str


@dataclass(frozen=True, slots=True)
class AgentGone:
    """An agent was given up, or left; these owners of reservations on it, or of what was yet to be
    destroyed there, are to be told.
    ``by_operator``: somebody took it away for good, and its reservations are no more."""

    agent: str
    owners: tuple[str, ...]
    by_operator: bool = False


Effect = Offered | AskAgain | AgentGone


class Change(NamedTuple):
    """What an event made of the ledger, and what is now to be done."""

    ledger: Ledger
    effects: tuple[Effect, ...] = ()


class Answer(NamedTuple):
    """What ``reserve`` says: a reservation, or why there is none yet."""

    change: Change
    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()


class UnknownAgentError(LookupError):
    """No agent of that id is registered; the message lists those that are."""

    def __init__(self, agent: str, known: Collection[str]) -> None:
        listed = ", ".join(sorted(known)[:20]) or "none"
        super().__init__(f"agent {agent!r} is not registered; registered are: {listed}")
        self.agent = agent


class AgentInUseError(ValueError):
    """An agent can't leave while pods hold reservations on it; release them, or force it."""

    def __init__(self, agent: str, keys: Sequence[str]) -> None:
        super().__init__(
            f"agent {agent!r} holds {len(keys)} reservations ({', '.join(keys[:10])}); "
            "release or replace them first, or force it, which gives them up"
        )
        self.agent = agent
        self.keys = tuple(keys)


class AgentIdTakenError(ValueError):
    """Another agent, with a work directory of its own, is alive under this id."""

    def __init__(self, holder: AgentRecord) -> None:
        info = holder.info
        super().__init__(
            f"agent id {info.id!r} is taken: an agent with another work directory runs under it on "
            f"host {info.hostname}, alive since {holder.since:%Y-%m-%d %H:%M:%S} UTC "
            f"(boot {info.boot or 'unknown'}); stop that one, or give this one an id of its own"
        )
        self.agent = info.id


class NamelessAgentError(ValueError):
    """An agent without an id can't register."""

    def __init__(self) -> None:
        super().__init__("id: '' names no agent; give it an id of its own")


# --- agents --------------------------------------------------------------------------------------


def register(ledger: Ledger, info: AgentInfo, now: datetime) -> Change:
    """An agent tells what it has: a new one, or one that came back, perhaps smaller than before.
    What it gave away stays reserved. Raises NamelessAgentError, AgentIdTakenError."""
    if not info.id:
        raise NamelessAgentError
    old = ledger.agents.get(info.id)
    stranger = old is not None and _strangers(old.info.lineage, info.lineage)
    if old is not None and stranger and old.state is AgentState.ALIVE:
        raise AgentIdTakenError(old)
    record = AgentRecord(
        info=info,
        registered=old.registered if old and not stranger else now,
        since=old.since if old and old.state is AgentState.ALIVE else now,
        used=old.used if old else Used(),
    )
    told_before = old is None or old.state is AgentState.LOST
    gone = _gone(info.id, list(_held_on(ledger, info.id))) if stranger and not told_before else ()
    settled = _settle(_with_leftovers(_with_agent(ledger, record), info), now)
    return Change(settled.ledger, gone + settled.effects)


def heard(ledger: Ledger, agent: str, boot: str, now: datetime) -> Change:
    """A sign of life. Ignored of an agent that never registered: nothing says what it has."""
    record = ledger.agents.get(agent)
    if record is None:
        return Change(ledger)
    if boot and boot != record.info.boot:
        record = record.but(info=record.info.but(boot=boot))
    if record.state is AgentState.ALIVE:
        return Change(_with_agent(ledger, record))
    alive = record.but(state=AgentState.ALIVE, since=now)
    return _settle(_with_agent(ledger, alive), now)


def unreachable(ledger: Ledger, agent: str, now: datetime) -> Change:
    """Heartbeats stopped. Nothing new goes there; what is held is kept."""
    record = ledger.agents.get(agent)
    if record is None or record.state is not AgentState.ALIVE:
        return Change(ledger)
    return Change(_with_agent(ledger, record.but(state=AgentState.UNREACHABLE, since=now)))


def lost(ledger: Ledger, agent: str, now: datetime) -> Change:
    """An agent is given up; owners of what is reserved or being destroyed on it are told, once: an
    owner that has given all back may still wait for its tasks there to end."""
    record = ledger.agents.get(agent)
    if record is None or record.state is AgentState.LOST:
        return Change(ledger)
    changed = _with_agent(ledger, record.but(state=AgentState.LOST, since=now))
    on_it = [*_held_on(ledger, agent), *_condemned_on(ledger, agent)]
    return Change(changed, _gone(agent, on_it))


def deregister(ledger: Ledger, agent: str, now: datetime, *, force: bool = False) -> Change:
    """An agent leaves for good, and what is reserved or being destroyed there leaves with it.
    Raises UnknownAgentError, or AgentInUseError unless ``force``."""
    if agent not in ledger.agents:
        raise UnknownAgentError(agent, ledger.agents)
    dropped = list(_held_on(ledger, agent))
    condemned = list(_condemned_on(ledger, agent))
    if not force and (dropped or condemned):
        raise AgentInUseError(
            agent,
            [one.key for one in dropped] + [f"{one.key} (being destroyed)" for one in condemned],
        )
    keys = {one.key for one in dropped}
    gone = {one.id for one in condemned}
    changed = ledger.but(
        offers={key: one for key, one in ledger.offers.items() if key not in keys},
        agents={key: one for key, one in ledger.agents.items() if key != agent},
        reservations={key: one for key, one in ledger.reservations.items() if key not in keys},
        notify={
            key: one
            for key, one in ledger.notify.items()
            if key not in keys or key in ledger.waiting
        },
        condemned={key: one for key, one in ledger.condemned.items() if key not in gone},
        departed=_departed(ledger, agent, dropped + condemned),
    )
    settled = _settle(changed, now)
    told = _gone(agent, dropped + condemned, by_operator=True)
    return Change(settled.ledger, told + settled.effects)


# --- reservations --------------------------------------------------------------------------------


def reserve(ledger: Ledger, requirement: Requirement, now: datetime) -> Answer:
    """Give a requirement its reservation, or let it wait and say why, agent by agent.

    Raises RequirementError for one that is impossible by itself.
    """
    check_requirement(requirement)
    requirement = _moving_once(ledger, requirement)
    key = requirement.key
    before = ledger.waiting.get(key)
    others = _others(before, requirement.notify)
    asked = ledger.but(
        notify={**ledger.notify, key: requirement.notify}, waiting=_without(ledger.waiting, key)
    )
    attempt = _attempt(asked, requirement, now)
    if attempt.told:
        taken = attempt.ledger.but(offers=_without(attempt.ledger.offers, key))
        told = Change(taken, tuple(map(AskAgain, others)))
        return Answer(_then(told, _settle(taken, now)), attempt.reservation)
    since = before.since if before else now
    waiting = Waiting(requirement=requirement, since=since, others=others)
    changed = attempt.ledger.but(waiting={**ledger.waiting, key: waiting})
    # Nothing was given and nothing came free, so whoever waited before still has to.
    settled = Change(changed) if attempt.ledger is asked else _settle(changed, now)
    return Answer(settled, None, attempt.refusals)


def withdraw(ledger: Ledger, key: str, notify: str = "") -> Change:
    """The workflow ``notify`` no longer waits; nobody does, when that is empty. What the key holds
    is kept."""
    one = ledger.waiting.get(key)
    if one is None:
        return Change(ledger)
    if notify not in ("", one.requirement.notify):
        left = one.but(others=tuple(who for who in one.others if who != notify))
        return Change(ledger.but(waiting={**ledger.waiting, key: left}))
    changed = _asked_no_more(ledger.but(waiting=_without(ledger.waiting, key)), key)
    return Change(changed, tuple(map(AskAgain, one.others)) if notify else ())


def unheard(ledger: Ledger, offered: Offered, now: datetime) -> Change:
    """Nobody could be told of an offer. If nobody has taken it either, it is given up; nothing was
    launched on it, so there is nothing to destroy."""
    key = offered.reservation.key
    if ledger.offers.get(key) != offered.reservation.id:
        return Change(ledger)
    return _give_up(ledger, ledger.reservations[key], now, destroy=False)


def release(
    ledger: Ledger, key: str, now: datetime, *, destroy: bool = True, reservation: str = ""
) -> Change:
    """Give up what a key holds and waits for; nothing held is fine. With the id of a reservation,
    that alone: who waits may be its successor.

    With ``destroy`` the resources stay reserved until ``destroyed`` says that the agent is done.
    """
    held = ledger.reservations.get(key)
    if reservation:
        if held is None or held.id != reservation:
            return Change(ledger)
        return _give_up(ledger, held, now, destroy=destroy)
    changed = _asked_no_more(ledger.but(waiting=_without(ledger.waiting, key)), key)
    return Change(changed) if held is None else _give_up(changed, held, now, destroy=destroy)


def _give_up(ledger: Ledger, held: Reservation, now: datetime, *, destroy: bool) -> Change:
    """Take a reservation back. Who waits for more, or for another place, waits on."""
    changed = ledger.but(
        reservations=_without(ledger.reservations, held.key),
        offers=_without(ledger.offers, held.key),
    )
    changed = _asked_no_more(changed, held.key)
    if destroy:
        changed = _condemn(changed, held, counted=True)
    else:
        changed = _with_used(changed, held.agent, lambda used: used.minus(held.resources))
    return _settle(changed, now)


def destroyed(ledger: Ledger, reservation_id: str, now: datetime) -> Change:
    """The agent has destroyed a condemned reservation: its resources are free."""
    done = ledger.condemned.get(reservation_id)
    if done is None:
        return Change(ledger)
    changed = ledger.but(condemned=_without(ledger.condemned, reservation_id))
    if done.counted:
        resources = done.reservation.resources
        changed = _with_used(changed, done.reservation.agent, lambda used: used.minus(resources))
    return _settle(changed, now)


def left_to_destroy(ledger: Ledger, key: str, given_up: Reservation | None) -> Reservation | None:
    """What is still to be destroyed of ``given_up``, or when that is None of anything that the key
    ever held, the newest first."""
    left = [one.reservation for one in ledger.condemned.values() if one.reservation.key == key]
    if given_up is not None:
        left = [one for one in left if one.id == given_up.id]
    return max(left, key=lambda one: one.created, default=None)


def reconcile(
    ledger: Ledger,
    gone: Collection[str],
    holdings: Mapping[str, Collection[str]],
    now: datetime,
    grace: timedelta,
    *,
    asked: Collection[str] = (),
) -> Change:
    """Take from workflows that are no more what they still have here, so that nothing leaks.

    ``gone``: closed or unknown workflows; ``holdings``: by owner, the keys that it says it keeps.
    A reservation goes when its owner is gone, or when its owner does not name it and whoever asked
    for it is gone too (it may just not have told the owner yet). Nothing younger than ``grace``,
    and nothing of the keys in ``asked``: somebody has asked for them since ``gone`` was looked for,
    maybe the next run of a workflow that was gone then.
    """
    change = Change(ledger)
    for key, held in ledger.reservations.items():
        if key in asked:
            continue
        if now - held.created > grace and _abandoned(ledger, held, gone, holdings):
            held = change.ledger.reservations[key]  # it may have been resized for who waits
            change = _then(change, _give_up(change.ledger, held, now, destroy=True))
    for key, one in ledger.waiting.items():
        if key in asked:
            continue
        asker = one.requirement
        if now - one.since > grace and (asker.notify in gone or asker.owner in gone):
            who = "" if asker.owner in gone else asker.notify
            change = _then(change, withdraw(change.ledger, key, who))
    return change


def workflows(ledger: Ledger) -> tuple[str, ...]:
    """Every workflow that owns a reservation, asked for one, or waits."""
    owners = {one.owner for one in ledger.reservations.values()}
    waiting = {one.requirement.owner for one in ledger.waiting.values()}
    return tuple(sorted(owners | waiting | set(ledger.notify.values())))


def explain(ledger: Ledger, requirement: Requirement, now: datetime) -> tuple[Refusal, ...]:
    """Why a requirement has no reservation, agent by agent; empty when it would get one."""
    attempt = _attempt(ledger, requirement, now)
    return () if attempt.told else attempt.refusals


def likeness(ledger: Ledger, requirement: Requirement) -> object | None:
    """Equal for requirements that fit, or not, in the same places; None: like no other."""
    if requirement.key in ledger.reservations:
        return None
    counted = (requirement.owner, requirement.pod) if requirement.placement else None
    return requirement.sets, requirement.placement, counted


# --- one attempt ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Attempt:
    """``reservation``: what the key holds after it, when it passed; ``told``: and may have now."""

    ledger: Ledger
    reservation: Reservation | None = None
    fresh: bool = False
    told: bool = False
    refusals: tuple[Refusal, ...] = ()


def _attempt(ledger: Ledger, requirement: Requirement, now: datetime) -> _Attempt:
    held = ledger.reservations.get(requirement.key)
    if held is not None and not _moves(requirement, held):
        attempt = _existing(ledger, requirement, held)
    else:
        attempt = _new(ledger, requirement, held, now)
    if attempt.reservation is None:
        return attempt
    former = _predecessor(attempt.ledger, attempt.reservation)
    if former is None:
        return _Attempt(attempt.ledger, attempt.reservation, attempt.fresh, told=True)
    reason = (
        "destroy",
        f"reserved; first the agent destroys the pod's former reservation {former.id}",
    )
    place = attempt.reservation
    refusal = Refusal(agent=place.agent, hostname=place.hostname, reasons=(reason,))
    return _Attempt(attempt.ledger, place, attempt.fresh, refusals=(refusal,))


def _moves(requirement: Requirement, held: Reservation) -> bool:
    return requirement.permanent and requirement.replaces == held.id


def _moving_once(ledger: Ledger, requirement: Requirement) -> Requirement:
    """A requirement that moves says from where: the reservation held when it was first asked.
    Without that it would move again, from its new place, whenever it is tried again."""
    if not requirement.permanent or requirement.replaces:
        return requirement
    held = ledger.reservations.get(requirement.key)
    if held is None:
        return requirement.but(permanent=False)
    asked = ledger.waiting.get(requirement.key)
    if asked is not None and asked.requirement.permanent:
        return requirement.but(replaces=asked.requirement.replaces)
    return requirement.but(replaces=held.id)


def _existing(ledger: Ledger, requirement: Requirement, held: Reservation) -> _Attempt:
    outcome = evaluate_existing(requirement, ledger.agents[held.agent].offer, held)
    if not outcome.passed:
        return _Attempt(ledger, refusals=(outcome.refusal,))
    if outcome.resources == held.resources:
        return _Attempt(ledger, held)
    resized = held.but(resources=outcome.resources)
    changed = _with_used(
        ledger,
        held.agent,
        lambda used: used.minus(held.resources).plus(resized.resources),
    )
    return _Attempt(changed.but(reservations={**ledger.reservations, held.key: resized}), resized)


def _new(
    ledger: Ledger, requirement: Requirement, held: Reservation | None, now: datetime
) -> _Attempt:
    if not ledger.agents:
        reason = ("agents", f"pool {ledger.pool} has no agents")
        return _Attempt(ledger, refusals=(Refusal(agent="*", reasons=(reason,)),))
    try:
        place = _place(ledger, requirement)
    except PlacementError as error:
        refusal = Refusal(agent="*", reasons=(("placement", str(error)),))
        return _Attempt(ledger, refusals=(refusal,))
    reservation_id = new_reservation_id(ledger.pool, requirement.key, ledger.serial, now)
    refusals: list[Refusal] = []
    for offer in _offers(ledger, held):
        outcome = evaluate_new(requirement, offer, reservation_id, place)
        if outcome.passed:
            return _granted(ledger, requirement, held, outcome, reservation_id, now)
        refusals.append(outcome.refusal)
    refusals.sort(key=lambda refusal: refusal.agent)
    return _Attempt(ledger, refusals=tuple(refusals))


def _place(ledger: Ledger, requirement: Requirement) -> Check | None:
    rule = parse_placement(requirement.placement)
    if rule is None:
        return None
    return rule.checker(tuple(ledger.reservations.values()), requirement)


def _offers(ledger: Ledger, held: Reservation | None) -> Iterator[Offer]:
    """All offers, the emptiest first. The one of a pod that moves comes last, without what the pod
    holds there, since it gives that up."""
    former = held.agent if held is not None else ""
    order = sorted((name == former, one.share, name) for name, one in ledger.agents.items())
    for _, _, name in order:
        offer = ledger.agents[name].offer
        yield offer.without(held.resources) if held is not None and name == former else offer


def _granted(
    ledger: Ledger,
    requirement: Requirement,
    held: Reservation | None,
    outcome: Outcome,
    reservation_id: str,
    now: datetime,
) -> _Attempt:
    made = outcome.reservation(requirement, reservation_id, now)
    changed = ledger.but(
        serial=ledger.serial + 1,
        reservations={**ledger.reservations, made.key: made},
        offers=_without(ledger.offers, made.key),
    )
    if held is not None:
        changed = _condemn(changed, held, counted=held.agent != made.agent)
    changed = _with_used(changed, made.agent, lambda used: used.plus(made.resources))
    return _Attempt(changed, made, fresh=True)


def _predecessor(ledger: Ledger, reservation: Reservation) -> Reservation | None:
    """A former reservation of the same pod that its agent, the same one, has yet to destroy."""
    for one in ledger.condemned.values():
        if one.reservation.agent == reservation.agent and one.reservation.key == reservation.key:
            return one.reservation
    return None


def _settle(ledger: Ledger, now: datetime) -> Change:
    """Offer to those that wait, in order of arrival, until none of them fits any more.

    A pod can make room for another by its placement (one that joins the smallest group), so a round
    with a success is followed by another. Requirements that are alike fail alike: of those only the
    first is evaluated in a round.
    """
    effects: list[Effect] = []
    progress = bool(ledger.waiting)
    while progress:
        progress = False
        hopeless: set[object] = set()
        for key, waiting in tuple(ledger.waiting.items()):
            like = likeness(ledger, waiting.requirement)
            if like is not None and like in hopeless:
                continue
            attempt = _attempt(ledger, waiting.requirement, now)
            if attempt.reservation is None:
                hopeless.add(like)
                continue
            progress = progress or attempt.ledger is not ledger or attempt.told
            ledger = attempt.ledger
            if attempt.told:
                ledger = ledger.but(waiting=_without(ledger.waiting, key))
                if attempt.fresh:
                    ledger = ledger.but(offers={**ledger.offers, key: attempt.reservation.id})
                effects.append(Offered(waiting.requirement, attempt.reservation))
                effects += map(AskAgain, waiting.others)
    return Change(ledger, tuple(effects))


def _others(waiting: Waiting | None, notify: str) -> tuple[str, ...]:
    """All that asked for the pod but this one."""
    if waiting is None:
        return ()
    asked = dict.fromkeys((*waiting.others, waiting.requirement.notify))
    return tuple(who for who in asked if who != notify)


def _asked_no_more(ledger: Ledger, key: str) -> Ledger:
    """Forget who asked last, if the key neither holds anything nor waits."""
    if key in ledger.reservations or key in ledger.waiting:
        return ledger
    return ledger.but(notify=_without(ledger.notify, key))


# --- small changes -------------------------------------------------------------------------------

_T = TypeVar("_T")


def _without(mapping: Mapping[str, _T], key: str) -> dict[str, _T]:
    return {name: one for name, one in mapping.items() if name != key}


def _with_agent(ledger: Ledger, record: AgentRecord) -> Ledger:
    record = record.but(share=record.offer.share)
    return ledger.but(agents={**ledger.agents, record.info.id: record})


def _with_used(ledger: Ledger, agent: str, change: Callable[[Used], Used]) -> Ledger:
    record = ledger.agents[agent]
    return _with_agent(ledger, record.but(used=change(record.used)))


def _condemn(ledger: Ledger, held: Reservation, *, counted: bool) -> Ledger:
    if not counted:
        ledger = _with_used(ledger, held.agent, lambda used: used.minus(held.resources))
    one = Condemned(reservation=held, counted=counted)
    return ledger.but(condemned={**ledger.condemned, held.id: one})


def _held_on(ledger: Ledger, agent: str) -> Iterator[Reservation]:
    return (one for one in ledger.reservations.values() if one.agent == agent)


def _condemned_on(ledger: Ledger, agent: str) -> Iterator[Reservation]:
    held = (one.reservation for one in ledger.condemned.values())
    return (one for one in held if one.agent == agent)


def _gone(
    agent: str, held: Sequence[Reservation], *, by_operator: bool = False
) -> tuple[Effect, ...]:
    owners = tuple(sorted({one.owner for one in held}))
    return (AgentGone(agent, owners, by_operator),) if owners else ()


def _strangers(one: str, other: str) -> bool:
    """Whether two lineages differ; one that is not known may be any."""
    return bool(one and other and one != other)


def _departed(ledger: Ledger, agent: str, dropped: Sequence[Reservation]) -> dict[str, Departed]:
    """With what an agent that leaves takes along; the oldest are forgotten when it is too much."""
    if not dropped:
        return ledger.departed
    leaves = Departed(
        lineage=ledger.agents[agent].info.lineage,
        reservations=tuple(one.but(resources=(), attributes={}) for one in dropped),
    )
    kept = {**_without(ledger.departed, agent), agent: leaves}
    while len(kept) > 1 and sum(len(one.reservations) for one in kept.values()) > DEPARTED_KEPT:
        kept.pop(next(iter(kept)))
    return kept


def _with_leftovers(ledger: Ledger, info: AgentInfo) -> Ledger:
    """Has an agent that was removed, and is back, destroy what it may still have."""
    left = ledger.departed.get(info.id)
    if left is None or _strangers(left.lineage, info.lineage):
        return ledger
    condemned = {one.id: Condemned(reservation=one, counted=False) for one in left.reservations}
    return ledger.but(
        departed=_without(ledger.departed, info.id),
        condemned={**ledger.condemned, **condemned},
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
    asker = ledger.notify.get(held.key, held.owner)
    return asker == held.owner or asker in gone


def _then(first: Change, second: Change) -> Change:
    return Change(second.ledger, first.effects + second.effects)
