"""The Pool's ledger: what each event makes of it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_plans.domain import pool
from temporal_plans.domain.cluster import (
    AgentInfo,
    AgentResources,
    AgentState,
    PortWant,
    Refusal,
    Requirement,
    Reservation,
    SetWant,
)
from temporal_plans.domain.evaluation import new_reservation_id
from temporal_plans.domain.ledger import Ledger
from temporal_plans.domain.packing import pack, unpack
from temporal_plans.domain.pool import AgentGone, AskAgain, Change, Offered
from temporal_plans.domain.requirements import RequirementError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
GRACE = timedelta(seconds=30)
OWNER = "service/s"


def info(name: str, cpus: float = 4, boot: str = "1", **more: Any) -> AgentInfo:
    resources = AgentResources(cpus=cpus, memory=1000)
    return AgentInfo(id=name, hostname=f"host-{name}", resources=resources, boot=boot, **more)


def want(index: int = 0, cpus: float = 1, **more: Any) -> Requirement:
    fields: dict[str, Any] = {"owner": OWNER, "pod": "hello", "notify": f"step-{index}", **more}
    sets = fields.pop("sets", (SetWant(id="s", cpus=cpus),))
    return Requirement(**fields, index=index, sets=sets)


def with_agents(*agents: AgentInfo) -> Ledger:
    ledger = Ledger()
    for one in agents:
        ledger = pool.register(ledger, one, NOW).ledger
    return ledger


def reserved(ledger: Ledger, *wants: Requirement) -> Ledger:
    for one in wants:
        ledger = pool.reserve(ledger, one, NOW).change.ledger
    return ledger


def held(ledger: Ledger, index: int = 0) -> Reservation:
    return ledger.reservations[want(index).key]


def places(ledger: Ledger) -> dict[int, str]:
    return {one.index: one.agent for one in ledger.reservations.values()}


def offered(change: Change) -> list[int]:
    return [one.requirement.index for one in change.effects if isinstance(one, Offered)]


def stages(refusals: Iterable[Refusal]) -> list[tuple[str, str]]:
    return [(one.agent, stage) for one in refusals for stage, _ in one.reasons]


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
    assert answer.refusals == (Refusal(agent="*", reasons=(("agents", "pool gpu has no agents"),)),)


def test_an_impossible_requirement_is_refused() -> None:
    with pytest.raises(RequirementError, match=r"sets\.s\.cpus -1"):
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
    assert answer.reservation.agent == "a"
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
    change = pool.heard(answer.change.ledger, "a", "1", LATER)
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
    assert list(after.condemned) == [held(ledger).id]
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
    assert done.ledger.condemned == {}


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
    gone = pool.unheard(ledger, offer, NOW)
    assert (gone.ledger.reservations, gone.ledger.condemned) == ({}, {})
    assert pool.unheard(gone.ledger, offer, NOW) == gone


@pytest.mark.parametrize("who", ["step-1", "over"])
def test_an_offer_that_somebody_took_is_kept(who: str) -> None:
    """Also by the next run of the workflow that did not hear of it: their ids are the same."""
    ledger, offer = unheard_of(with_agents(info("a")))
    taken = reserved(ledger, want(1, notify=who))
    assert pool.unheard(taken, offer, NOW) == Change(taken)


def test_an_offer_that_was_moved_from_is_not_taken_back_in_its_new_place() -> None:
    """The move waits until the agent has destroyed what was there, so nobody has taken it yet."""
    ledger, offer = unheard_of(with_agents(info("a")))
    moves = pool.reserve(ledger, want(1, permanent=True), NOW)
    assert moves.reservation is None
    moved = moves.change.ledger
    assert held(moved, 1).id != offer.reservation.id
    assert pool.unheard(moved, offer, NOW) == Change(moved)


def test_who_waits_for_more_is_not_bound_to_a_place_that_nobody_took() -> None:
    ledger, offer = unheard_of(with_agents(info("a")))
    waits = reserved(ledger, want(2, cpus=3), want(1, cpus=4))
    assert [one.requirement.index for one in waits.waiting.values()] == [1]
    change = pool.unheard(pool.register(waits, info("b"), NOW).ledger, offer, NOW)
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
    (condemned,) = ledger.condemned
    change = pool.destroyed(ledger, condemned, NOW)
    assert (offered(change), asked_again(change)) == ([0], ["step-0"])


def test_releasing_ends_the_wait_too() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1))
    assert pool.release(ledger, want(1).key, NOW).ledger.waiting == {}


# --- agents --------------------------------------------------------------------------------------


def test_a_lost_agent_is_told_once_to_each_owner_and_its_reservations_stay() -> None:
    ledger = with_agents(info("a"))
    ledger = reserved(ledger, want(0), want(1), want(2, owner="other"))
    change = pool.lost(ledger, "a", LATER)
    assert change.effects == (AgentGone("a", ("other", OWNER)),)
    assert change.ledger.reservations == ledger.reservations
    assert pool.lost(change.ledger, "a", LATER).effects == ()


def test_an_agent_nobody_knows_is_ignored() -> None:
    ledger = with_agents(info("a"))
    for change in (
        pool.heard(ledger, "x", "1", NOW),
        pool.unreachable(ledger, "x", NOW),
        pool.lost(ledger, "x", NOW),
    ):
        assert change == Change(ledger)


def test_states_of_an_agent() -> None:
    ledger = with_agents(info("a"))
    silent = pool.unreachable(ledger, "a", LATER).ledger
    assert (silent.agents["a"].state, silent.agents["a"].since) == (AgentState.UNREACHABLE, LATER)
    gone = pool.lost(silent, "a", LATER).ledger
    assert pool.unreachable(gone, "a", LATER).ledger == gone
    for back in (pool.heard(gone, "a", "2", LATER), pool.register(gone, info("a"), LATER)):
        assert back.ledger.agents["a"].state is AgentState.ALIVE
        assert back.ledger.agents["a"].registered == NOW
    assert pool.heard(gone, "a", "2", LATER).ledger.agents["a"].info.boot == "2"


def test_an_agent_in_use_leaves_only_by_force() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    with pytest.raises(pool.AgentInUseError, match="hello-0"):
        pool.deregister(ledger, "a", NOW)
    released = pool.release(ledger, want(0).key, NOW).ledger
    with pytest.raises(pool.AgentInUseError, match="being destroyed"):
        pool.deregister(released, "a", NOW)
    change = pool.deregister(ledger, "a", NOW, force=True)
    assert change.ledger.but(departed={}) == Ledger(serial=1)
    assert change.effects == (AgentGone("a", (OWNER,), by_operator=True),)
    idle = pool.destroyed(released, held(ledger).id, NOW).ledger
    assert pool.deregister(idle, "a", NOW).ledger.agents == {}


def test_what_is_being_destroyed_leaves_with_its_agent() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    lost = pool.lost(pool.release(ledger, want(0).key, NOW).ledger, "a", NOW)
    # Its owner may still wait for the tasks there to end.
    assert lost.effects == (AgentGone("a", (OWNER,)),)
    change = pool.deregister(lost.ledger, "a", LATER, force=True)
    assert change.ledger.but(departed={}) == Ledger(serial=1)
    assert change.effects == (AgentGone("a", (OWNER,), by_operator=True),)


def test_a_removed_agent_comes_back_as_new_and_destroys_what_it_had() -> None:
    ledger = reserved(with_agents(info("a", lineage="l"), info("b", cpus=0.5)), want(0), want(1))
    ledger = pool.release(ledger, want(1).key, NOW).ledger
    left = {held(ledger).id, *ledger.condemned}
    gone = pool.deregister(ledger, "a", NOW, force=True).ledger
    back = pool.register(gone, info("a", lineage="l"), LATER).ledger
    assert back.agents["a"].registered == LATER
    assert back.agents["a"].used.reservations == 0
    assert (set(back.condemned), back.departed) == (left, {})
    again = pool.reserve(back, want(0), LATER)
    assert again.reservation is None, "first the former one of the same pod is destroyed"
    for one in left:
        back = pool.destroyed(back, one, LATER).ledger
    assert back.agents["a"].used.cpus == 0


def test_another_agent_under_the_id_of_a_removed_one_is_not_asked_for_its_leavings() -> None:
    ledger = reserved(with_agents(info("a", lineage="l")), want(0))
    gone = pool.deregister(ledger, "a", NOW, force=True).ledger
    other = pool.register(gone, info("a", lineage="m"), LATER).ledger
    assert (other.condemned, list(other.departed)) == ({}, ["a"])


def test_of_removed_agents_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "DEPARTED_KEPT", 3)
    ledger = Ledger()
    for name in "abc":
        ledger = pool.register(ledger, info(name), NOW).ledger
        ledger = reserved(ledger, want(0), want(1))
        ledger = pool.deregister(ledger, name, NOW, force=True).ledger
    assert list(ledger.departed) == ["c"]


@pytest.mark.parametrize(
    ("holder", "comes", "taken"),
    [
        pytest.param("l", "l", False, id="a restart"),
        pytest.param("l", "m", True, id="another work directory"),
        pytest.param("", "m", False, id="holder without a lineage"),
        pytest.param("l", "", False, id="comer without a lineage"),
    ],
)
def test_the_id_of_a_live_agent_is_taken(holder: str, comes: str, taken: bool) -> None:
    ledger = with_agents(info("a", lineage=holder))
    comer = info("a", boot="2", lineage=comes).but(hostname="elsewhere")
    if taken:
        with pytest.raises(pool.AgentIdTakenError, match=r"'a' is taken: .* on host host-a, alive"):
            pool.register(ledger, comer, LATER)
    else:
        assert pool.register(ledger, comer, LATER).ledger.agents["a"].info == comer


@pytest.mark.parametrize("lost", [False, True], ids=["unreachable", "lost"])
def test_who_takes_the_place_of_a_silent_agent_has_none_of_its_tasks(lost: bool) -> None:
    ledger = reserved(with_agents(info("a", lineage="l")), want(0))
    silent = pool.unreachable(ledger, "a", NOW).ledger
    if lost:
        silent = pool.lost(silent, "a", NOW).ledger  # its owners are told by that
    change = pool.register(silent, info("a", lineage="m"), LATER)
    assert change.effects == (() if lost else (AgentGone("a", (OWNER,)),))
    assert change.ledger.reservations == ledger.reservations
    record = change.ledger.agents["a"]
    assert (record.state, record.registered) == (AgentState.ALIVE, LATER)
    with pytest.raises(pool.AgentIdTakenError):
        pool.register(change.ledger, info("a", lineage="l"), LATER)


def test_an_agent_without_an_id_is_refused() -> None:
    with pytest.raises(pool.NamelessAgentError):
        pool.register(Ledger(), info(""), NOW)


def test_what_is_left_to_destroy_of_a_key() -> None:
    ledger = reserved(with_agents(info("a"), info("b")), want(0))
    first = held(ledger)
    moved = pool.reserve(ledger, want(0, permanent=True, replaces=first.id), LATER).change.ledger
    second = held(moved)
    ledger = pool.release(moved, want(0).key, LATER).ledger
    assert pool.left_to_destroy(ledger, want(0).key, second) == second
    assert pool.left_to_destroy(ledger, want(0).key, None) == second
    ledger = pool.destroyed(ledger, second.id, LATER).ledger
    assert pool.left_to_destroy(ledger, want(0).key, second) is None
    assert pool.left_to_destroy(ledger, want(0).key, None) == first
    assert pool.left_to_destroy(ledger, want(1).key, None) is None


def test_an_unknown_agent_cannot_leave() -> None:
    with pytest.raises(pool.UnknownAgentError, match="registered are: a"):
        pool.deregister(with_agents(info("a")), "b", NOW)


# --- reconciling ---------------------------------------------------------------------------------

RECONCILED: dict[str, tuple[set[str], dict[str, list[str]], datetime, bool]] = {
    "owner gone": ({OWNER}, {}, LATER, False),
    "owner gone, but within the grace": ({OWNER}, {}, NOW + GRACE, True),
    "owner does not answer": (set(), {}, LATER, True),
    "owner keeps it": ({"step-0"}, {OWNER: [want(0).key]}, LATER, True),
    "owner does not know it, asker still at it": (set(), {OWNER: []}, LATER, True),
    "owner does not know it, asker gone": ({"step-0"}, {OWNER: []}, LATER, False),
}


@pytest.mark.parametrize(
    ("gone", "holdings", "now", "kept"), RECONCILED.values(), ids=RECONCILED.keys()
)
def test_reconciling_a_reservation(
    gone: set[str], holdings: dict[str, list[str]], now: datetime, kept: bool
) -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    after = pool.reconcile(ledger, gone, holdings, now, GRACE).ledger
    assert (want(0).key in after.reservations) is kept
    assert bool(after.condemned) is not kept


def test_reconciling_what_the_owner_itself_asked_for() -> None:
    ledger = reserved(with_agents(info("a")), want(0, notify=OWNER))
    assert pool.reconcile(ledger, (), {OWNER: []}, LATER, GRACE).ledger.reservations == {}


@pytest.mark.parametrize("gone", ["step-0", OWNER])
def test_reconciling_one_that_waits(gone: str) -> None:
    ledger = reserved(Ledger(), want(0))
    assert pool.reconcile(ledger, {gone}, {}, NOW + GRACE, GRACE).ledger == ledger
    assert pool.reconcile(ledger, {gone}, {}, LATER, GRACE).ledger.waiting == {}


@pytest.mark.parametrize("cpus", [1, 99], ids=["holds", "waits"])
def test_reconciling_leaves_what_was_asked_for_meanwhile(cpus: int) -> None:
    """The next run of a step has its id, and asks while an answer about the one before is out."""
    again = want(0, cpus=cpus)
    ledger = reserved(with_agents(info("a")), again, again)
    gone = {"step-0", OWNER}
    after = pool.reconcile(ledger, gone, {OWNER: []}, LATER, GRACE, asked={again.key})
    assert after == Change(ledger)
    assert pool.reconcile(ledger, gone, {OWNER: []}, LATER, GRACE) != after


def test_releasing_one_reservation_leaves_who_waits() -> None:
    """What is released was given up before: its successor waits, or has it."""
    key = want(0).key
    waits = reserved(with_agents(info("a", cpus=1)), want(0, cpus=9))
    assert pool.release(waits, key, NOW, reservation="gone") == Change(waits)
    holds = reserved(with_agents(info("a")), want(0))
    assert pool.release(holds, key, NOW, reservation="gone") == Change(holds)
    more = reserved(holds, want(0, cpus=99))
    given_up = pool.release(more, key, NOW, reservation=holds.reservations[key].id).ledger
    assert (key in given_up.reservations, key in given_up.waiting) == (False, True)


def test_everyone_to_be_asked() -> None:
    ledger = reserved(with_agents(info("a", cpus=1)), want(0), want(1, owner="other"))
    assert pool.workflows(ledger) == ("other", OWNER, "step-0", "step-1")


def test_ids_are_not_used_again_when_a_pool_starts_over() -> None:
    first = pool.reserve(with_agents(info("a")), want(0), NOW).reservation
    over = pool.register(Ledger(), info("a"), LATER).ledger
    second = pool.reserve(over, want(0), LATER).reservation
    assert first is not None
    assert second is not None
    assert first.id != second.id


def test_the_ledger_survives_being_written() -> None:
    ledger = reserved(with_agents(info("a")), want(0), want(1, 9))
    ledger = pool.release(ledger, want(0).key, NOW).ledger
    assert Ledger.model_validate_json(ledger.model_dump_json()) == ledger


def test_a_packed_ledger_of_ten_thousand_pods_is_one_payload() -> None:
    template = reserved(with_agents(info("a")), want(0))
    base = held(template)
    many = [
        base.but(index=index, id=new_reservation_id("p", str(index), index, NOW))
        for index in range(10_000)
    ]
    ledger = template.but(reservations={one.key: one for one in many})
    assert len(pack(ledger)) < 1_000_000
    assert list(unpack(pack(ledger)).reservations) == list(ledger.reservations)


def test_what_is_no_packed_ledger_is_refused() -> None:
    with pytest.raises(ValueError, match="packed ledger"):
        unpack("AAAA")
