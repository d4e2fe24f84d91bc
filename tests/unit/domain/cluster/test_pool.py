"""The Pool's ledger: what each event makes of it."""

from collections.abc import Iterable

import pytest

from builders.clock import NOW
from temporal_plans.domain.cluster import pool
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.pool import AskAgain, Change, Offered
from temporal_plans.domain.cluster.refusals import does_not_fit
from temporal_plans.domain.cluster.requirement_check import RequirementError
from temporal_plans.domain.cluster.requirements import PortWant, SetWant
from temporal_plans.domain.values.refusal import Refusal
from unit.domain.cluster.ledgers import GRACE, LATER, held, info, reserved, want, with_agents


def places(ledger: Ledger) -> dict[int, str]:
    return {one.index: one.agent for one in ledger.reservations.values()}


def offered(change: Change) -> list[int]:
    return [one.requirement.index for one in change.effects if isinstance(one, Offered)]


def stages(refusals: Iterable[Refusal]) -> list[tuple[str, str]]:
    return [(one.subject, reason.field) for one in refusals for reason in one.reasons]


# --- reserving -----------------------------------------------------------------------------------


def test_pods_spread_over_the_emptiest_agents() -> None:
    ledger = with_agents(info("b"), info("a"), info("big", cpus=8))
    ledger = reserved(ledger, *(want(index) for index in range(5)))
    assert places(ledger) == {0: "a", 1: "b", 2: "big", 3: "big", 4: "a"}


def test_asking_twice_reserves_once() -> None:
    first = pool.reserve(with_agents(info("a")), want(), NOW)
    second = pool.reserve(first.change.ledger, want(), LATER)
    assert first.reservation is not None
    assert second.reservation == first.reservation
    assert second.change.ledger == first.change.ledger


def test_what_fits_nowhere_waits_with_the_reasons_of_every_agent() -> None:
    ledger = with_agents(info("b"), info("a", cpus=1))
    ledger = pool.unreachable(ledger, "a", NOW).ledger
    answer = pool.reserve(ledger, want(cpus=5), NOW)
    assert answer.reservation is None
    assert stages(answer.refusals) == [("a", "agent"), ("a", "cpus"), ("b", "cpus")]
    assert list(answer.change.ledger.waiting) == [want().key]


def test_without_agents_the_reason_is_that() -> None:
    answer = pool.reserve(Ledger(pool="gpu"), want(), NOW)
    assert answer.refusals == (does_not_fit("*", [("agents", "pool gpu has no agents")]),)


def test_an_impossible_requirement_is_refused() -> None:
    with pytest.raises(RequirementError, match=r"sets\.s\.cpus: must be .* \(found -1"):
        pool.reserve(with_agents(info("a")), want(cpus=-1), NOW)


def test_the_order_of_arrival_is_kept_when_asked_again() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1), want(2), want(1))
    assert [one.requirement.index for one in ledger.waiting.values()] == [1, 2]
    change = pool.release(ledger, want(0).key, NOW, destroy=False)
    assert offered(change) == [1]
    assert places(change.ledger) == {1: "a"}


def test_a_small_one_may_overtake_a_large_one_that_does_not_fit() -> None:
    ledger = reserved(with_agents(info("a", cpus=2)), want(0, 2), want(1, 4), want(2, 1))
    change = pool.release(ledger, want(0).key, NOW, destroy=False)
    assert offered(change) == [2]
    assert [one.requirement.index for one in change.ledger.waiting.values()] == [1]


def test_a_new_agent_is_offered_to_those_that_wait() -> None:
    ledger = reserved(Ledger(), want(0), want(1))
    change = pool.register(ledger, info("a"), NOW)
    assert offered(change) == [0, 1]
    assert change.ledger.offers == {key: one.id for key, one in change.ledger.reservations.items()}


def test_placement_counts_pods_and_the_place_is_free_again_after_a_release() -> None:
    unique = [want(index, placement="hostname:UNIQUE") for index in range(3)]
    ledger = reserved(with_agents(info("a"), info("b")), *unique)
    assert places(ledger) == {0: "a", 1: "b"}
    change = pool.release(ledger, unique[1].key, NOW)
    assert offered(change) == [2]
    assert places(change.ledger) == {0: "a", 2: "b"}


def test_a_pod_that_joins_a_group_makes_room_for_the_next() -> None:
    grouped = [want(index, 0.1, placement="hostname:GROUP_BY:2") for index in range(3)]
    ledger = reserved(with_agents(info("a")), *grouped)
    assert places(ledger) == {0: "a"}
    change = pool.register(ledger, info("b"), NOW)
    assert offered(change) == [1, 2]


def test_one_that_came_later_can_make_room_for_one_that_came_before() -> None:
    second_host_first = (
        '{"kind":"and","rules":[{"kind":"on-agents","agents":["a"]},'
        '{"kind":"group-by","field":"hostname","distinct":2}]}'
    )
    ledger = reserved(
        with_agents(info("a")), want(0), want(1, placement=second_host_first), want(2, 10)
    )
    assert places(ledger) == {0: "a"}
    change = pool.register(ledger, info("b", cpus=10), NOW)
    assert offered(change) == [2, 1]
    assert places(change.ledger) == {0: "a", 1: "a", 2: "b"}


# --- a pod that has its place --------------------------------------------------------------------


def test_growing_in_place_does_not_look_at_placement_again() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    grown = want(0, 3, placement="hostname:IS:elsewhere")
    answer = pool.reserve(ledger, grown, LATER)
    assert answer.reservation is not None
    assert (answer.reservation.agent, answer.reservation.queue) == ("a", "queue-a")
    assert answer.reservation.id == held(ledger).id
    assert answer.change.ledger.agents["a"].used.cpus == 3000
    assert answer.change.ledger.agents["a"].used.reservations == 1


def test_growth_that_does_not_fit_waits_and_keeps_what_is_held() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0), want(1), want(2))
    answer = pool.reserve(ledger, want(0, 4), NOW)
    assert stages(answer.refusals) == [("a", "cpus")]
    assert held(answer.change.ledger) == held(ledger)
    change = pool.release(answer.change.ledger, want(2).key, NOW, destroy=False)
    assert (offered(change), change.ledger.offers) == ([0], {})  # not made for it: never taken back
    assert held(change.ledger).id == held(ledger).id
    assert held(change.ledger).resources[0].value == 4


def test_on_an_unreachable_agent_it_waits_until_that_is_back() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    ledger = pool.unreachable(ledger, "a", NOW).ledger
    answer = pool.reserve(ledger, want(0), NOW)
    assert stages(answer.refusals) == [("a", "agent")]
    change = pool.heartbeat(answer.change.ledger, "a", "1", LATER)
    assert offered(change) == [0]
    assert held(change.ledger) == held(ledger)


def test_a_smaller_agent_keeps_what_it_gave() -> None:
    ledger = reserved(with_agents(info("a")), want(0), want(1))
    ledger = pool.register(ledger, info("a", cpus=1), LATER).ledger
    assert ledger.agents["a"].offer.cpus == -1000
    assert pool.reserve(ledger, want(0), LATER).reservation == held(ledger)
    assert pool.reserve(ledger, want(2), LATER).reservation is None


# --- a pod that moves ----------------------------------------------------------------------------


def test_a_permanent_requirement_moves_the_pod_and_condemns_the_old_place() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    answer = pool.reserve(ledger, want(0, permanent=True), LATER)
    assert answer.reservation is not None
    assert answer.reservation.agent == "b"
    after = answer.change.ledger
    assert list(after.to_destroy) == [held(ledger).id]
    assert after.agents["a"].used.cpus == 1000  # until it is destroyed
    assert pool.destroyed(after, held(ledger).id, LATER).ledger.agents["a"].used.cpus == 0


def test_a_move_repeated_is_made_once() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    move = want(0, permanent=True, replaces=held(ledger).id)
    first = pool.reserve(ledger, move, NOW)
    second = pool.reserve(first.change.ledger, move, LATER)
    assert second.reservation == first.reservation is not None
    destroyed = pool.destroyed(first.change.ledger, held(ledger).id, LATER).ledger
    third = pool.reserve(destroyed, move.but(replaces=held(destroyed).id), LATER)
    assert third.reservation is not None
    assert third.reservation.agent == "a"


def test_a_move_that_finds_no_place_keeps_the_old_one() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    answer = pool.reserve(ledger, want(0, 5, permanent=True), NOW)
    assert answer.reservation is None
    assert held(answer.change.ledger) == held(ledger)
    assert offered(pool.register(answer.change.ledger, info("b", cpus=5), NOW)) == [0]


def test_a_move_onto_the_same_agent_is_told_when_the_old_place_is_destroyed() -> None:
    port = (SetWant(id="s", cpus=4, ports=(PortWant(name="p", port=2000),)),)
    ledger = reserved(with_agents(info("a")), want(0, sets=port))
    move = want(0, sets=port, permanent=True, replaces=held(ledger).id)
    answer = pool.reserve(ledger, move, NOW)
    assert answer.reservation is None
    assert stages(answer.refusals) == [("a", "destroy")]
    assert held(answer.change.ledger).id != held(ledger).id
    again = pool.reserve(answer.change.ledger, move, NOW)
    assert stages(again.refusals) == [("a", "destroy")]
    change = pool.destroyed(again.change.ledger, held(ledger).id, LATER)
    assert offered(change) == [0]
    assert change.ledger.agents["a"].used == ledger.agents["a"].used


def test_a_move_that_waits_to_be_told_does_not_move_again() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    first = pool.reserve(ledger, want(0, permanent=True), NOW).change.ledger
    for later in (
        pool.reserve(first, want(0, permanent=True), LATER).change.ledger,
        pool.register(first, info("b"), LATER).ledger,
    ):
        assert held(later) == held(first)
        assert offered(pool.destroyed(later, held(ledger).id, LATER)) == [0]


def test_a_move_of_what_was_released_is_a_first_placement() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    released = pool.release(ledger, want(0).key, NOW).ledger
    again = pool.reserve(released, want(0, permanent=True), NOW).change.ledger
    assert held(pool.register(again, info("b"), NOW).ledger) == held(again)


def test_off_a_lost_agent() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    ledger = pool.lost(ledger, "a", NOW).ledger
    assert pool.reserve(ledger, want(0), NOW).reservation is None
    moved = pool.reserve(ledger, want(0, permanent=True), NOW)
    assert moved.reservation is not None
    assert moved.reservation.agent == "b"


# --- giving up -----------------------------------------------------------------------------------


def test_what_is_released_is_offered_only_when_it_is_destroyed() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1))
    change = pool.release(ledger, want(0).key, NOW)
    assert offered(change) == []
    assert places(change.ledger) == {}
    done = pool.destroyed(change.ledger, held(ledger).id, LATER)
    assert offered(done) == [1]
    assert done.ledger.to_destroy == {}


def test_releasing_what_is_not_held_changes_nothing() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    assert pool.release(ledger, "nobody:x-0", NOW) == Change(ledger)
    assert pool.destroyed(ledger, "nothing", NOW) == Change(ledger)
    assert pool.withdraw(ledger, want(0).key) == Change(ledger)


def test_withdrawing_ends_the_wait() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1))
    ledger = pool.withdraw(ledger, want(1).key).ledger
    assert ledger.waiting == {}
    assert want(1).key not in ledger.notify


def asked_again(change: Change) -> list[str]:
    return [one.notify for one in change.effects if isinstance(one, AskAgain)]


def test_several_may_ask_for_one_pod() -> None:
    """A step that is over may have asked late, in the place of one that waits."""
    wants = [want(1), want(1, cpus=9, notify="other"), want(1, cpus=2, notify="over")]
    ledger = reserved(with_agents(info("a")), want(0, cpus=4), *wants)
    assert ledger.waiting[want(1).key].requirement == wants[2]
    change = pool.release(ledger, want(0).key, NOW, destroy=False)
    assert (offered(change), asked_again(change)) == ([1], ["step-1", "other"])
    assert change.ledger.waiting == {}


def test_who_waits_for_a_pod_that_another_is_given_is_told() -> None:
    small, large = want(0), want(0, cpus=9, notify="large")
    answer = pool.reserve(reserved(with_agents(info("a")), large), small, NOW)
    assert answer.reservation is not None
    assert asked_again(answer.change) == ["large"]
    again = pool.reserve(answer.change.ledger, large, NOW)
    assert (again.reservation, again.change.effects) == (None, ())


def test_one_of_several_withdraws() -> None:
    first, second = want(0, cpus=9), want(0, cpus=9, notify="second")
    ledger = reserved(with_agents(info("a")), first, second)
    key = want(0).key
    gone = pool.withdraw(ledger, key, "second")
    assert (gone.ledger.waiting, asked_again(gone)) == ({}, ["step-0"])
    left = pool.withdraw(ledger, key, "step-0")
    assert (left.ledger.waiting[key].others, left.effects) == ((), ())
    assert pool.withdraw(left.ledger, key, "step-0") == left
    assert pool.withdraw(ledger, key) == Change(pool.release(ledger, key, NOW).ledger)


def test_others_ask_again_when_the_one_that_waited_is_no_more() -> None:
    ledger = reserved(with_agents(info("a")), want(0, cpus=9), want(0, cpus=9, notify="over"))
    change = pool.reconcile(ledger, {"over"}, {}, LATER, GRACE)
    assert (change.ledger.waiting, asked_again(change)) == ({}, ["step-0"])


def unheard_of(ledger: Ledger) -> tuple[Ledger, Offered]:
    """``over`` waits for pod 1, gets it, and is no more."""
    waits = reserved(ledger, want(0, cpus=4), want(1, notify="over"))
    change = pool.release(waits, want(0).key, NOW, destroy=False)
    (offer,) = [one for one in change.effects if isinstance(one, Offered)]
    return change.ledger, offer


def test_an_offer_that_nobody_hears_is_taken_back() -> None:
    ledger, offer = unheard_of(with_agents(info("a")))
    gone = pool.cancel_offer(ledger, offer, NOW)
    assert (gone.ledger.reservations, gone.ledger.to_destroy) == ({}, {})
    assert pool.cancel_offer(gone.ledger, offer, NOW) == gone


@pytest.mark.parametrize("who", ["step-1", "over"])
def test_an_offer_that_somebody_took_is_kept(who: str) -> None:
    """Also by the next run of the workflow that did not hear of it: their ids are the same."""
    ledger, offer = unheard_of(with_agents(info("a")))
    taken = reserved(ledger, want(1, notify=who))
    assert pool.cancel_offer(taken, offer, NOW) == Change(taken)


def test_an_offer_that_was_moved_from_is_not_taken_back_in_its_new_place() -> None:
    """The move waits until the agent has destroyed what was there, so nobody has taken it yet."""
    ledger, offer = unheard_of(with_agents(info("a")))
    moves = pool.reserve(ledger, want(1, permanent=True), NOW)
    assert moves.reservation is None
    moved = moves.change.ledger
    assert held(moved, 1).id != offer.reservation.id
    assert pool.cancel_offer(moved, offer, NOW) == Change(moved)


def test_who_waits_for_more_is_not_bound_to_a_place_that_nobody_took() -> None:
    ledger, offer = unheard_of(with_agents(info("a")))
    waits = reserved(ledger, want(2, cpus=3), want(1, cpus=4))
    assert [one.requirement.index for one in waits.waiting.values()] == [1]
    change = pool.cancel_offer(pool.register(waits, info("b"), NOW).ledger, offer, NOW)
    assert offered(change) == [1]
    assert places(change.ledger) == {1: "b", 2: "a"}


@pytest.mark.parametrize("permanent", [True, False])
def test_two_that_want_different_sizes_where_something_is_yet_to_be_destroyed(
    permanent: bool,
) -> None:
    """Each may have it resized; it is the last one that counts."""
    ledger = reserved(with_agents(info("a")), want(0))
    if permanent:
        ledger = reserved(ledger, want(0, permanent=True))
    else:
        ledger = pool.release(ledger, want(0).key, NOW).ledger
    ledger = reserved(ledger, want(0), want(0, cpus=2, notify="other"))
    (to_destroy,) = ledger.to_destroy
    change = pool.destroyed(ledger, to_destroy, NOW)
    assert (offered(change), asked_again(change)) == ([0], ["step-0"])


def test_releasing_ends_the_wait_too() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1))
    assert pool.release(ledger, want(1).key, NOW).ledger.waiting == {}
