"""The Pool's ledger: agents that come, go and come back, and reconciliation."""

import math
from datetime import datetime
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from builders.clock import NOW
from builders.pools import agent
from temporal_plans.domain.cluster import agent_errors, pool
from temporal_plans.domain.cluster.agents import AgentResources, AgentState
from temporal_plans.domain.cluster.evaluation import new_reservation_id
from temporal_plans.domain.cluster.ledger import AgentRecord, Ledger
from temporal_plans.domain.cluster.packing import pack, unpack
from temporal_plans.domain.cluster.pool import AgentGone, Change
from temporal_plans.domain.values.compressed import PAYLOAD_LIMIT
from temporal_plans.messages.pools import PoolInput
from unit.domain.cluster.ledgers import GRACE, LATER, held, info, reserved, want, with_agents

OWNER = "service/s"


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
        pool.heartbeat(ledger, "x", "1", NOW),
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
    for back in (pool.heartbeat(gone, "a", "2", LATER), pool.register(gone, info("a"), LATER)):
        assert back.ledger.agents["a"].state is AgentState.ALIVE
        assert back.ledger.agents["a"].registered == NOW
    assert pool.heartbeat(gone, "a", "2", LATER).ledger.agents["a"].info.boot == "2"


def test_an_agent_in_use_leaves_only_by_force() -> None:
    ledger = reserved(with_agents(info("a")), want(0))
    with pytest.raises(agent_errors.AgentInUseError, match=r"1 reservation \(.*hello-0\).*--force"):
        pool.deregister(ledger, "a", NOW)
    released = pool.release(ledger, want(0).key, NOW).ledger
    with pytest.raises(agent_errors.AgentInUseError, match="being destroyed"):
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
    left = {held(ledger).id, *ledger.to_destroy}
    gone = pool.deregister(ledger, "a", NOW, force=True).ledger
    back = pool.register(gone, info("a", lineage="l", queue="new"), LATER).ledger
    assert {one.reservation.queue for one in back.to_destroy.values()} == {"new"}
    assert back.agents["a"].registered == LATER
    assert back.agents["a"].used.reservations == 0
    assert (set(back.to_destroy), back.departed) == (left, {})
    again = pool.reserve(back, want(0), LATER)
    assert again.reservation is None, "first the former one of the same pod is destroyed"
    for one in left:
        back = pool.destroyed(back, one, LATER).ledger
    assert back.agents["a"].used.cpus == 0


def test_another_agent_under_the_id_of_a_removed_one_is_not_asked_for_its_leavings() -> None:
    ledger = reserved(with_agents(info("a", lineage="l")), want(0))
    gone = pool.deregister(ledger, "a", NOW, force=True).ledger
    other = pool.register(gone, info("a", lineage="m"), LATER).ledger
    assert (other.to_destroy, list(other.departed)) == ({}, ["a"])


def test_of_removed_agents_only_so_much_is_remembered() -> None:
    more_than_half = range(pool.DEPARTED_LIMIT // 2 + 1)
    ledger = Ledger()
    for name in "abc":
        ledger = pool.register(ledger, info(name, cpus=len(more_than_half)), NOW).ledger
        ledger = reserved(ledger, *(want(index) for index in more_than_half))
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
        with pytest.raises(
            agent_errors.AgentIdTakenError, match=r"'a' is taken: .* on host host-a, alive"
        ):
            pool.register(ledger, comer, LATER)
    else:
        assert pool.register(ledger, comer, LATER).ledger.agents["a"].info == comer


@pytest.mark.parametrize("lineage", ["l", "m"], ids=["the same", "a stranger"])
def test_an_agent_keeps_its_task_queue_until_it_is_removed(lineage: str) -> None:
    ledger = pool.unreachable(with_agents(info("a", lineage="l")), "a", NOW).ledger
    moved = info("a", lineage=lineage, queue="elsewhere")
    with pytest.raises(
        agent_errors.AgentQueueChangedError, match=r"'queue-a' \(found \"elsewhere\"\)"
    ):
        pool.register(ledger, moved, LATER)
    removed = pool.deregister(ledger, "a", LATER).ledger
    assert pool.register(removed, moved, LATER).ledger.agents["a"].info.queue == "elsewhere"


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
    with pytest.raises(agent_errors.AgentIdTakenError):
        pool.register(change.ledger, info("a", lineage="l"), LATER)


def test_an_agent_without_an_id_is_refused() -> None:
    with pytest.raises(agent_errors.NamelessAgentError):
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
    assert pool.left_to_destroy(ledger, want(0).key, None, second.id) is None
    assert pool.left_to_destroy(ledger, want(0).key, None, first.id) == first
    assert pool.left_to_destroy(ledger, want(1).key, None) is None


def test_an_unknown_agent_cannot_leave() -> None:
    with pytest.raises(agent_errors.UnknownAgentError, match="registered are: a"):
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
    assert bool(after.to_destroy) is not kept


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
    with pytest.raises(ValueError, match="can't be expanded"):
        unpack("AAAA")


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param({"cpus": math.nan}, id="nan"),
        pytest.param({"cpus": math.inf}, id="infinite"),
        pytest.param({"cpus": -1}, id="negative"),
        pytest.param({"cpus": 10**16}, id="too many"),
        pytest.param({"gpus": math.nan}, id="nan gpus"),
        pytest.param({"memory": 10**400}, id="a number of 400 digits"),
        pytest.param({"ports": [{"begin": 0, "end": 10**400}]}, id="a port of 400 digits"),
        pytest.param({"ports": [{"begin": 1, "end": 2}] * 101}, id="many ranges"),
        pytest.param({"mounts": [{"path": "/x", "size": 1}] * 101}, id="many disks"),
        pytest.param({"mounts": [{"path": "x" * 1001, "size": 1}]}, id="a long path"),
    ],
)
def test_resources_are_finite_and_bounded(resources: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentResources.model_validate({"cpus": 1, "memory": 1, **resources})


def test_attributes_are_bounded() -> None:
    agent("a", attributes={"rack": "x" * 9000})
    with pytest.raises(ValidationError, match="have 10001 characters; at most 10000"):
        agent("a", attributes={"r": "x" * 10_000})


def test_a_pool_takes_no_more_than_it_can_carry() -> None:
    large = [agent(f"a{i}", attributes={"rack": "x" * 9996}) for i in range(101)]
    ledger = with_agents(*large[:100])
    with pytest.raises(agent_errors.PoolFullError, match="1000000 characters of attributes"):
        pool.register(ledger, large[100], NOW)
    assert pool.register(ledger, agent("small"), NOW).ledger.agents.keys() > ledger.agents.keys()
    assert pool.register(ledger, large[3], LATER).ledger.agents.keys() == ledger.agents.keys()
    pool.register(ledger, large[3].but(attributes={}), LATER)


def test_a_full_pool_of_agents_with_their_attributes_fits_into_a_payload() -> None:
    random = Random(7)
    many = {
        f"agent-{i}": AgentRecord(
            info=agent(f"agent-{i}", attributes={"rack": random.randbytes(96).hex()}),
            registered=NOW,
            since=NOW,
        )
        for i in range(pool.AGENTS_LIMIT)
    }
    ledger = Ledger(agents=many)
    written = PoolInput(ledger=ledger).model_dump_json()
    assert len(written) < PAYLOAD_LIMIT
    assert PoolInput.model_validate_json(written).ledger == ledger
    with pytest.raises(agent_errors.PoolFullError, match="takes 5000 agents"):
        pool.register(ledger, agent("one-more"), NOW)
