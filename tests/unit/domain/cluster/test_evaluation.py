"""Evaluating one offer (behaviour 9.3 to 9.6)."""

from typing import Any

import pytest

from builders.clock import NOW
from builders.pools import agent, requirement
from temporal_plans.domain.cluster.agents import AgentResources, AgentState, MountDisk
from temporal_plans.domain.cluster.evaluation import (
    Evaluation,
    evaluate_existing,
    evaluate_new,
    new_reservation_id,
)
from temporal_plans.domain.cluster.offer import Offer, Used
from temporal_plans.domain.cluster.requirement_check import RequirementError, check_requirement
from temporal_plans.domain.cluster.requirements import PortWant, Requirement, SetWant, VolumeWant
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.requirements import requirement_for
from temporal_plans.domain.services.spec import PodSpec, PortSpec, ResourceSet, TaskSpec, VolumeSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.values.ports import PortRange

ID = new_reservation_id("default", "service/s:hello-0", 0, NOW)


def offer(
    *, state: AgentState = AgentState.ALIVE, used: Used | None = None, **resources: Any
) -> Offer:
    has: dict[str, Any] = {"cpus": 4.0, "memory": 1000, "disk": 1000, **resources}
    return Offer(agent("a", resources=AgentResources(**has)), state, used or Used())


def machine_using(*numbers: int) -> Offer:
    """An agent on whose machine other processes listen on these ports."""
    given = offer()
    return Offer(given.agent.but(ports_in_use=numbers), given.state, given.used)


def new(wanted: Requirement, given: Offer) -> Evaluation:
    return evaluate_new(wanted, given, ID, None)


def held(*sets: SetWant, given: Offer | None = None) -> Reservation:
    wanted = requirement(*sets)
    outcome = new(wanted, given or offer())
    assert outcome.passed, outcome.refusal
    return outcome.reservation(wanted, ID, NOW)


def again(
    reservation: Reservation,
    *sets: SetWant,
    given: Offer | None = None,
    **fields: Any,
) -> Evaluation:
    base = given or offer()
    whole = Offer(base.agent, base.state, base.used.plus(reservation.resources))
    return evaluate_existing(requirement(*sets, **fields), whole, reservation)


def amounts(outcome: Evaluation) -> dict[tuple[str, str, str], float]:
    return {(one.set, one.kind, one.name): one.value for one in outcome.resources}


S = SetWant(id="s", cpus=1, memory=100)


def ports(*wants: PortWant) -> SetWant:
    return SetWant(id="s", ports=wants)


def volumes(*wants: VolumeWant) -> SetWant:
    return SetWant(id="s", volumes=wants)


def ranges(*pairs: tuple[int | None, int | None]) -> tuple[PortRange, ...]:
    return tuple(PortRange(begin=begin, end=end) for begin, end in pairs)


SSD = MountDisk(path="/ssd", size=100, profile="ssd")
PLAIN, LARGE = MountDisk(path="/plain", size=100), MountDisk(path="/large", size=500)

FITS: dict[str, tuple[Requirement, Offer, dict[tuple[str, str, str], float]]] = {
    "nothing wanted": (requirement(), offer(), {}),
    "scalars": (
        requirement(S),
        offer(),
        {("s", "cpus", ""): 1, ("s", "memory", ""): 100},
    ),
    "exactly what there is": (
        requirement(SetWant(id="s", cpus=4)),
        offer(),
        {("s", "cpus", ""): 4},
    ),
    "a tenth thrice is three tenths": (
        requirement(*(SetWant(id=name, cpus=0.1) for name in "abc")),
        offer(cpus=0.3),
        {("a", "cpus", ""): 0.1, ("b", "cpus", ""): 0.1, ("c", "cpus", ""): 0.1},
    ),
    "beyond three digits does not count": (
        requirement(SetWant(id="s", cpus=1.0004)),
        offer(cpus=1),
        {("s", "cpus", ""): 1},
    ),
    "gpus": (requirement(SetWant(id="s", gpus=1)), offer(gpus=1), {("s", "gpus", ""): 1}),
    "root volumes take disk": (
        requirement(volumes(VolumeWant(path="x", size=600), VolumeWant(path="y", size=400))),
        offer(),
        {("s", "volume", "x"): 600, ("s", "volume", "y"): 400},
    ),
    "a mount volume takes the smallest whole disk": (
        requirement(volumes(VolumeWant(path="x", size=50, type="MOUNT"))),
        offer(mounts=(LARGE, PLAIN, SSD), disk=0),
        {("s", "volume", "x"): 100},
    ),
    "a profile": (
        requirement(volumes(VolumeWant(path="x", size=50, type="MOUNT", profiles=("hdd", "ssd")))),
        offer(mounts=(PLAIN, SSD)),
        {("s", "volume", "x"): 100},
    ),
    "two mount volumes, two disks": (
        requirement(
            volumes(
                VolumeWant(path="x", size=50, type="MOUNT"),
                VolumeWant(path="y", size=300, type="MOUNT"),
            )
        ),
        offer(mounts=(LARGE, PLAIN)),
        {("s", "volume", "x"): 100, ("s", "volume", "y"): 500},
    ),
    "a fixed port": (
        requirement(ports(PortWant(name="http", port=8080))),
        offer(),
        {("s", "port", "http"): 8080},
    ),
    "the first free port": (
        requirement(ports(PortWant(name="a"), PortWant(name="b"))),
        offer(ports=ranges((2000, 2005)), used=Used(ports=frozenset({2000, 2002}))),
        {("s", "port", "a"): 2001, ("s", "port", "b"): 2003},
    ),
    "a range, ends included": (
        requirement(ports(PortWant(name="a", ranges=ranges((3000, 3000))))),
        offer(),
        {("s", "port", "a"): 3000},
    ),
    "a range with an open end": (
        requirement(ports(PortWant(name="a", ranges=ranges((31999, None))))),
        offer(),
        {("s", "port", "a"): 31999},
    ),
    "a dynamic port leaves a fixed one alone": (
        requirement(
            SetWant(id="a", ports=(PortWant(name="any"),)),
            SetWant(id="b", ports=(PortWant(name="fixed", port=2000),)),
        ),
        offer(ports=ranges((2000, 2001))),
        {("a", "port", "any"): 2001, ("b", "port", "fixed"): 2000},
    ),
    "a dynamic port leaves a restricted one alone": (
        requirement(
            ports(PortWant(name="any"), PortWant(name="narrow", ranges=ranges((2000, 2000))))
        ),
        offer(ports=ranges((2000, 2001))),
        {("s", "port", "any"): 2001, ("s", "port", "narrow"): 2000},
    ),
}


@pytest.mark.parametrize(("wanted", "given", "expected"), FITS.values(), ids=FITS.keys())
def test_what_fits(
    wanted: Requirement, given: Offer, expected: dict[tuple[str, str, str], float]
) -> None:
    outcome = new(wanted, given)
    assert outcome.reasons == ()
    assert amounts(outcome) == expected


REFUSED: dict[str, tuple[Requirement, Offer, list[tuple[str, str]]]] = {
    "cpus": (
        requirement(SetWant(id="s", cpus=1)),
        offer(used=Used(cpus=3500)),
        [("cpus", "set s wants 1 cpus, 0.5 of 4 are free")],
    ),
    "much memory": (
        requirement(SetWant(id="s", memory=12_345_678)),
        offer(),
        [("memory", "set s wants 12345678 MB of memory, ")],
    ),
    "sets add up": (
        requirement(SetWant(id="a", cpus=3), SetWant(id="b", cpus=2)),
        offer(),
        [("cpus", "set b wants 2 cpus, 1 of 4 are free")],
    ),
    "disk": (
        requirement(volumes(VolumeWant(path="x", size=1001))),
        offer(),
        [("disk", "1001 MB of disk for x, 1000 of 1000")],
    ),
    "no disk without a profile": (
        requirement(volumes(VolumeWant(path="x", size=50, type="MOUNT"))),
        offer(mounts=(SSD,)),
        [("mount", "no profile for x, free are /ssd (100 MB, ssd)")],
    ),
    "no disk of the profile": (
        requirement(volumes(VolumeWant(path="x", size=50, type="MOUNT", profiles=("hdd",)))),
        offer(mounts=(SSD, PLAIN)),
        [("mount", "profile hdd")],
    ),
    "no disk large enough": (
        requirement(volumes(VolumeWant(path="x", size=501, type="MOUNT"))),
        offer(mounts=(LARGE,)),
        [("mount", "501 MB or more")],
    ),
    "disk taken": (
        requirement(volumes(VolumeWant(path="x", size=50, type="MOUNT"))),
        offer(mounts=(LARGE,), used=Used(mounts=frozenset({"/large"}))),
        [("mount", "free are none")],
    ),
    "fixed port taken": (
        requirement(ports(PortWant(name="a", port=8080))),
        offer(used=Used(ports=frozenset({8080}))),
        [("ports", "port 8080, which is taken")],
    ),
    "fixed port used by another process": (
        requirement(ports(PortWant(name="a", port=8080))),
        machine_using(8080),
        [("ports", "port 8080, which another process of the machine uses")],
    ),
    "all ports used by other processes": (
        requirement(ports(PortWant(name="a", ranges=ranges((2000, 2001))))),
        machine_using(2000, 2001),
        [("ports", "for a in 2000-2001")],
    ),
    "fixed port not offered": (
        requirement(ports(PortWant(name="a", port=80))),
        offer(),
        [("ports", "port 80, the agent offers 1025-32000")],
    ),
    "no port left in the range": (
        requirement(ports(PortWant(name="a", ranges=ranges((2000, 2000))))),
        offer(used=Used(ports=frozenset({2000}))),
        [("ports", "for a in 2000")],
    ),
    "an empty range": (
        requirement(ports(PortWant(name="a", ranges=ranges((5, 4))))),
        offer(),
        [("ports", "empty range")],
    ),
    "unreachable": (
        requirement(S),
        offer(state=AgentState.UNREACHABLE),
        [("agent", "unreachable")],
    ),
    "every cause is told": (
        requirement(
            SetWant(
                id="s",
                cpus=9,
                gpus=1,
                memory=2000,
                ports=(PortWant(name="a", port=80),),
                volumes=(VolumeWant(path="x", size=5000),),
            )
        ),
        offer(state=AgentState.LOST),
        [
            ("agent", "lost"),
            ("ports", "80"),
            ("cpus", "9"),
            ("gpus", "0 of 0"),
            ("memory", "2000 MB of memory, 1000 of 1000"),
            ("disk", "5000"),
        ],
    ),
}


@pytest.mark.parametrize(("wanted", "given", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(
    wanted: Requirement, given: Offer, expected: list[tuple[str, str]]
) -> None:
    outcome = new(wanted, given)
    assert [stage for stage, _ in outcome.reasons] == [stage for stage, _ in expected]
    for (_, reason), (_, part) in zip(outcome.reasons, expected, strict=True):
        assert part in reason


def test_placement_is_one_more_stage() -> None:
    outcome = evaluate_new(requirement(SetWant(id="s", cpus=9)), offer(), ID, lambda _: "not here")
    assert [stage for stage, _ in outcome.reasons] == ["placement", "cpus"]


def test_ids_are_the_same_for_the_same_reservation_and_never_shared() -> None:
    wanted = requirement(S, ports(PortWant(name="a")).but(id="t"))
    first, second = new(wanted, offer()), new(wanted, offer())
    assert first.resources == second.resources
    other = evaluate_new(wanted, offer(), new_reservation_id("p", "k", 1, NOW), None)
    ids = [one.id for one in (*first.resources, *other.resources)]
    assert len(ids) == len(set(ids))


def test_same_size_keeps_everything() -> None:
    reservation = held(S, given=offer(mounts=(PLAIN,)))
    assert again(reservation, S).resources == reservation.resources


def test_growth_takes_the_difference_and_keeps_the_id() -> None:
    reservation = held(SetWant(id="s", cpus=1))
    outcome = again(reservation, SetWant(id="s", cpus=4))
    assert amounts(outcome) == {("s", "cpus", ""): 4}
    assert outcome.resources[0].id == reservation.resources[0].id


def test_growth_beyond_what_is_free_is_refused_with_the_difference() -> None:
    reservation = held(SetWant(id="s", cpus=1))
    outcome = again(reservation, SetWant(id="s", cpus=4.5), given=offer(used=Used(cpus=1000)))
    assert outcome.reasons == (("cpus", "set s wants 3.5 more cpus, 2 of 4 are free"),)


def test_shrinking_one_set_makes_room_for_another() -> None:
    reservation = held(SetWant(id="a", cpus=1), SetWant(id="b", cpus=3))
    outcome = again(reservation, SetWant(id="a", cpus=3), SetWant(id="b", cpus=1))
    assert amounts(outcome) == {("a", "cpus", ""): 3, ("b", "cpus", ""): 1}


def beside(*in_use: str, launches: tuple[str, ...] = ("a",)) -> dict[str, Any]:
    return {"in_use": in_use, "launches": launches}


def web(set_id: str, name: str, number: int, **more: float) -> SetWant:
    return SetWant.model_validate({"id": set_id, "ports": [{"name": name, "port": number}], **more})


A, B = SetWant(id="a", cpus=1), web("b", "http", 2000, cpus=2, memory=200)
HELD_B = {("b", "cpus", ""): 2, ("b", "memory", ""): 200, ("b", "port", "http"): 2000}

IN_USE = [
    pytest.param((A.but(cpus=0.5), web("b", "http", 2000, cpus=1, memory=300)), id="resized"),
    pytest.param((A.but(cpus=0.5), web("b", "web", 2000, cpus=2, memory=200)), id="renamed-port"),
    pytest.param((A.but(cpus=0.5), web("b", "http", 2001, cpus=2)), id="another-port"),
    pytest.param((A.but(cpus=0.5), web("c", "http", 2000, cpus=2, memory=200)), id="renamed-set"),
    pytest.param((A.but(cpus=0.5),), id="removed"),
]


@pytest.mark.parametrize("wanted", IN_USE)
def test_what_is_in_use_stays_as_it_is(wanted: tuple[SetWant, ...]) -> None:
    """A task runs on in set b, and a is launched, in whichever configuration."""
    reservation = held(A, B, given=offer(ports=ranges((2000, 2001))))
    given = offer(ports=ranges((2000, 2001)))
    outcome = again(reservation, *wanted, given=given, **beside("b"))
    assert amounts(outcome) == {("a", "cpus", ""): 0.5, **HELD_B}
    alone = again(reservation, *wanted, given=given)
    assert amounts(alone) != amounts(outcome)


def test_what_nobody_uses_is_resized_also_beside_what_is_in_use() -> None:
    reservation = held(A, B, SetWant(id="c", memory=50), SetWant(id="d", memory=50))
    wanted = (A, B.but(cpus=1.0), SetWant(id="c", memory=60))
    assert amounts(again(reservation, *wanted, **beside("b"))) == {
        ("a", "cpus", ""): 1,
        ("c", "memory", ""): 60,
        **HELD_B,
    }


def test_a_set_that_is_launched_is_had_also_when_it_is_new() -> None:
    reservation = held(B)
    new_and_later = (SetWant(id="n", cpus=1), SetWant(id="later", cpus=1), B)
    outcome = again(reservation, *new_and_later, **beside("b", launches=("n",)))
    assert amounts(outcome) == {("n", "cpus", ""): 1, **HELD_B}


def test_a_refusal_says_what_is_in_use() -> None:
    reservation = held(SetWant(id="a", cpus=1), SetWant(id="b", cpus=3))
    swapped = SetWant(id="a", cpus=3), SetWant(id="b", cpus=1)
    assert again(reservation, *swapped, **beside("b")).reasons == (
        ("cpus", "set a wants 2 more cpus, 0 of 4 are free; in use by tasks that run on: b"),
    )
    reservation = held(A, B, given=offer(ports=ranges((2000, 2001))))
    [(stage, reason)] = again(reservation, web("a", "x", 2000), B, **beside("b")).reasons
    assert stage == "ports"
    assert reason == "set a wants port 2000, which is taken; in use by tasks that run on: b"


def test_an_agent_that_came_back_smaller_still_has_what_it_gave() -> None:
    reservation = held(SetWant(id="s", cpus=4, ports=(PortWant(name="p", port=5000),)))
    smaller = offer(cpus=1.0, ports=ranges((2000, 2001)))
    sets = (SetWant(id="s", cpus=4, ports=(PortWant(name="p", port=5000),)),)
    assert again(reservation, *sets, given=smaller).resources == reservation.resources
    more = again(reservation, SetWant(id="s", cpus=4.5), given=smaller)
    assert more.reasons == (("cpus", "set s wants 0.5 more cpus, 0 of 1 are free"),)


def test_a_dynamic_port_is_kept_unless_the_range_excludes_it() -> None:
    reservation = held(ports(PortWant(name="a")), given=offer(used=Used(ports=frozenset({1025}))))
    assert amounts(again(reservation, ports(PortWant(name="a")))) == {("s", "port", "a"): 1026}
    moved = again(reservation, ports(PortWant(name="a", ranges=ranges((3000, 3001)))))
    assert amounts(moved) == {("s", "port", "a"): 3000}


def test_ports_that_other_processes_use_are_passed_over() -> None:
    outcome = new(requirement(ports(PortWant(name="a"), PortWant(name="b"))), machine_using(1025))
    assert amounts(outcome) == {("s", "port", "a"): 1026, ("s", "port", "b"): 1027}


def test_a_dynamic_port_that_another_process_has_taken_is_not_kept() -> None:
    reservation = held(ports(PortWant(name="a")))
    taken = again(reservation, ports(PortWant(name="a")), given=machine_using(1025))
    assert amounts(taken) == {("s", "port", "a"): 1026}
    free = again(reservation, ports(PortWant(name="a")), given=machine_using(1026))
    assert amounts(free) == {("s", "port", "a"): 1025}


def test_a_fixed_port_that_the_pod_has_is_kept() -> None:
    """Its launch is refused by the agent; the pod has no other port to go to."""
    wanted = ports(PortWant(name="a", port=8080))
    assert again(held(wanted), wanted, given=machine_using(8080)).passed


def test_a_set_in_use_keeps_its_ports() -> None:
    reservation = held(ports(PortWant(name="a")))
    outcome = again(
        reservation, ports(PortWant(name="a")), given=machine_using(1025), in_use=("s",)
    )
    assert amounts(outcome) == {("s", "port", "a"): 1025}


def test_a_kept_port_gives_way_to_a_fixed_one_of_the_same_pod() -> None:
    reservation = held(ports(PortWant(name="a")))
    outcome = again(reservation, ports(PortWant(name="a"), PortWant(name="b", port=1025)))
    assert amounts(outcome) == {("s", "port", "a"): 1026, ("s", "port", "b"): 1025}


def test_a_volume_keeps_its_size_and_disk_whatever_is_wanted() -> None:
    wanted = volumes(VolumeWant(path="x", size=100), VolumeWant(path="y", size=50, type="MOUNT"))
    given = offer(mounts=(PLAIN,))
    reservation = held(wanted, given=given)
    larger = volumes(
        VolumeWant(path="x", size=900_000), VolumeWant(path="y", size=900_000, type="MOUNT")
    )
    assert again(reservation, larger, given=given).resources == reservation.resources


def test_what_is_no_longer_wanted_is_given_back() -> None:
    gone = SetWant(id="t", cpus=1, memory=10, ports=(PortWant(name="p"),))
    reservation = held(S, gone)
    outcome = again(reservation, S)
    assert amounts(outcome) == {("s", "cpus", ""): 1, ("s", "memory", ""): 100}


def test_a_volume_stays_with_the_pod_when_its_task_is_removed() -> None:
    gone = SetWant(
        id="t",
        cpus=1,
        volumes=(VolumeWant(path="x", size=700), VolumeWant(path="m", size=50, type="MOUNT")),
    )
    given = offer(disk=1000, mounts=(PLAIN,))
    reservation = held(S, gone, given=given)
    outcome = again(reservation, S, given=given)
    kept = {("t", "volume", "x"): 700, ("t", "volume", "m"): 100}
    assert amounts(outcome) == {("s", "cpus", ""): 1, ("s", "memory", ""): 100, **kept}
    smaller = reservation.but(resources=outcome.resources)
    assert again(smaller, S, given=given).resources == smaller.resources
    assert set(again(smaller, S, gone, given=given).resources) == set(reservation.resources)
    more = again(smaller, S, volumes(VolumeWant(path="y", size=301)).but(id="u"), given=given)
    assert more.reasons == (("disk", "set u wants 301 MB of disk for y, 300 of 1000 are free"),)


def test_a_new_set_in_a_pod_that_runs_is_reserved_beside_what_it_has() -> None:
    reservation = held(S, ports(PortWant(name="a")).but(id="p"))
    new_set = SetWant(
        id="n", cpus=0.5, ports=(PortWant(name="b"),), volumes=(VolumeWant(path="d", size=10),)
    )
    outcome = again(reservation, S.but(cpus=2), ports(PortWant(name="a")).but(id="p"), new_set)
    before = {(one.set, one.kind, one.name): one for one in reservation.resources}
    after = {(one.set, one.kind, one.name): one for one in outcome.resources}
    assert after["s", "cpus", ""] == before["s", "cpus", ""].but(value=2)
    unchanged = before.keys() - {("s", "cpus", "")}
    assert {slot: after[slot] for slot in unchanged} == {slot: before[slot] for slot in unchanged}
    assert {slot[1]: after[slot].value for slot in after.keys() - before.keys()} == {
        "cpus": 0.5,
        "port": 1026,
        "volume": 10,
    }


def test_used_gives_back_exactly_what_it_took() -> None:
    reservation = held(
        SetWant(
            id="s",
            cpus=0.1,
            gpus=0.2,
            memory=3,
            ports=(PortWant(name="p"),),
            volumes=(
                VolumeWant(path="x", size=5),
                VolumeWant(path="y", size=5, type="MOUNT"),
            ),
        ),
        given=offer(gpus=1, mounts=(PLAIN,)),
    )
    used = Used(cpus=7, ports=frozenset({9}))
    taken = used.plus(reservation.resources)
    assert (taken.cpus, taken.gpus, taken.memory, taken.disk) == (107, 200, 3, 5)
    assert (taken.ports, taken.mounts, taken.reservations) == (
        frozenset({9, 1025}),
        frozenset({"/plain"}),
        1,
    )
    assert taken.minus(reservation.resources) == used
    assert Used.model_validate_json(taken.model_dump_json()) == taken


# --- requirements --------------------------------------------------------------------------------

POD = PodSpec(
    type="hello",
    count=2,
    placement="hostname:UNIQUE",
    tasks=(TaskSpec(name="server", goal=Goal.RUNNING, cmd="x", resource_set="main"),),
    resource_sets=(
        ResourceSet(
            id="main", cpus=0.5, memory=32, ports=(PortSpec(name="http", ranges=ranges((1, 2))),)
        ),
        ResourceSet(id="side", gpus=1, volumes=(VolumeSpec(path="d", size=5, type="MOUNT"),)),
    ),
    volumes=(VolumeSpec(path="data", size=10, profiles=("ssd",)),),
)


def test_a_requirement_is_for_the_whole_pod() -> None:
    wanted = requirement_for(POD, 1, owner="service/s", notify="n")
    assert wanted == Requirement(
        owner="service/s",
        pod="hello",
        index=1,
        notify="n",
        placement="hostname:UNIQUE",
        sets=(
            SetWant(id="", volumes=(VolumeWant(path="data", size=10, profiles=("ssd",)),)),
            SetWant(
                id="main",
                cpus=0.5,
                memory=32,
                ports=(PortWant(name="http", ranges=ranges((1, 2))),),
            ),
            SetWant(id="side", gpus=1, volumes=(VolumeWant(path="d", size=5, type="MOUNT"),)),
        ),
    )
    check_requirement(wanted)


IMPOSSIBLE = {
    "owner": (requirement(owner=""), "owner: is empty"),
    "index": (requirement(index=-1), "(found -1)"),
    "negative": (
        requirement(SetWant(id="s", cpus=-1)),
        "sets.s.cpus: must be a number of 0 or more (found -1.0)",
    ),
    "not a number": (
        requirement(SetWant(id="s").but(gpus=float("nan"))),
        'sets.s.gpus: must be a number of 0 or more (found "nan")',
    ),
    "port": (requirement(ports(PortWant(name="p", port=70000))), "(found 70000)"),
    "port twice": (requirement(ports(PortWant(name="p"), PortWant(name="p"))), "'p' twice"),
    "set twice": (requirement(S, S), "'s' twice"),
    "volume": (requirement(volumes(VolumeWant(path="x", size=0))), "(found 0)"),
    "placement": (requirement(placement="hostname:NEAR"), "'NEAR' is unknown"),
}


@pytest.mark.parametrize(("wanted", "told"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_no_agent_could_satisfy(wanted: Requirement, told: str) -> None:
    with pytest.raises(RequirementError) as caught:
        check_requirement(wanted)
    assert told in str(caught.value)
