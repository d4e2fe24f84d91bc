"""One attempt to give a requirement its reservation."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from temporal_plans.domain.cluster.evaluation import (
    Evaluation,
    evaluate_existing,
    evaluate_new,
    new_reservation_id,
)
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.ledger_edits import with_pending_destroy, with_used, without
from temporal_plans.domain.cluster.offer import Offer
from temporal_plans.domain.cluster.placement import Check, PlacementError, parse_placement
from temporal_plans.domain.cluster.refusals import ALL_AGENTS, does_not_fit
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt.

    ``reservation`` is what the key holds after it, when the requirement fits; ``new``: it was made
    by this attempt; ``usable``: the workflow may use it now, which it may not while the agent has
    yet to destroy the pod's former reservation.
    """

    ledger: Ledger
    reservation: Reservation | None = None
    new: bool = False
    usable: bool = False
    refusals: tuple[Refusal, ...] = ()


def attempt(ledger: Ledger, requirement: Requirement, now: datetime) -> Attempt:
    """Evaluate a requirement: resize what its key holds, or reserve on the best agent."""
    held = ledger.reservations.get(requirement.key)
    if held is not None and not _moves(requirement, held):
        result = _existing(ledger, requirement, held)
    else:
        result = _new(ledger, requirement, held, now)
    if result.reservation is None:
        return result
    former = _predecessor(result.ledger, result.reservation)
    if former is None:
        return Attempt(result.ledger, result.reservation, result.new, usable=True)
    reason = (
        "destroy",
        f"reserved; first the agent destroys the pod's former reservation {former.id}",
    )
    refusal = does_not_fit(result.reservation.agent, [reason])
    return Attempt(result.ledger, result.reservation, result.new, refusals=(refusal,))


def moving_once(ledger: Ledger, requirement: Requirement) -> Requirement:
    """Return the requirement with the reservation that it moves from: the one held when the move
    was first requested. Without it, every retry would move the pod again, from its new place."""
    if not requirement.permanent or requirement.replaces:
        return requirement
    held = ledger.reservations.get(requirement.key)
    if held is None:
        return requirement.but(permanent=False)
    waiting = ledger.waiting.get(requirement.key)
    if waiting is not None and waiting.requirement.permanent:
        return requirement.but(replaces=waiting.requirement.replaces)
    return requirement.but(replaces=held.id)


def _moves(requirement: Requirement, held: Reservation) -> bool:
    return requirement.permanent and requirement.replaces == held.id


def _existing(ledger: Ledger, requirement: Requirement, held: Reservation) -> Attempt:
    outcome = evaluate_existing(requirement, ledger.agents[held.agent].offer, held)
    if not outcome.passed:
        return Attempt(ledger, refusals=(outcome.refusal,))
    if outcome.resources == held.resources:
        return Attempt(ledger, held)
    resized = held.but(resources=outcome.resources)
    changed = with_used(
        ledger,
        held.agent,
        lambda used: used.minus(held.resources).plus(resized.resources),
    )
    return Attempt(changed.but(reservations={**ledger.reservations, held.key: resized}), resized)


def _new(
    ledger: Ledger, requirement: Requirement, held: Reservation | None, now: datetime
) -> Attempt:
    if not ledger.agents:
        reason = ("agents", f"pool {ledger.pool} has no agents")
        return Attempt(ledger, refusals=(does_not_fit(ALL_AGENTS, [reason]),))
    try:
        place = _place(ledger, requirement)
    except PlacementError as error:
        refusal = does_not_fit(ALL_AGENTS, [("placement", str(error))])
        return Attempt(ledger, refusals=(refusal,))
    reservation_id = new_reservation_id(ledger.pool, requirement.key, ledger.serial, now)
    refusals: list[Refusal] = []
    for offer in _offers(ledger, held):
        outcome = evaluate_new(requirement, offer, reservation_id, place)
        if outcome.passed:
            return _granted(ledger, requirement, held, outcome, reservation_id, now)
        refusals.append(outcome.refusal)
    refusals.sort(key=lambda refusal: refusal.subject)
    return Attempt(ledger, refusals=tuple(refusals))


def _place(ledger: Ledger, requirement: Requirement) -> Check | None:
    rule = parse_placement(requirement.placement)
    if rule is None:
        return None
    return rule.checker(tuple(ledger.reservations.values()), requirement)


def _offers(ledger: Ledger, held: Reservation | None) -> Iterator[Offer]:
    """All offers, the emptiest first. The offer of a moving pod's own agent comes last, without
    what the pod holds there, since the pod gives that up."""
    former = held.agent if held is not None else ""
    order = sorted((name == former, agent.share, name) for name, agent in ledger.agents.items())
    for _, _, name in order:
        offer = ledger.agents[name].offer
        yield offer.without(held.resources) if held is not None and name == former else offer


def _granted(
    ledger: Ledger,
    requirement: Requirement,
    held: Reservation | None,
    outcome: Evaluation,
    reservation_id: str,
    now: datetime,
) -> Attempt:
    made = outcome.reservation(requirement, reservation_id, now)
    changed = ledger.but(
        serial=ledger.serial + 1,
        reservations={**ledger.reservations, made.key: made},
        offers=without(ledger.offers, made.key),
    )
    if held is not None:
        changed = with_pending_destroy(changed, held, counted=held.agent != made.agent)
    changed = with_used(changed, made.agent, lambda used: used.plus(made.resources))
    return Attempt(changed, made, new=True)


def _predecessor(ledger: Ledger, reservation: Reservation) -> Reservation | None:
    """A former reservation of the same pod that the same agent has yet to destroy."""
    for pending in ledger.to_destroy.values():
        former = pending.reservation
        if former.agent == reservation.agent and former.key == reservation.key:
            return former
    return None
