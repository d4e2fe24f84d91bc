"""Sentences about the Pool that hold whatever happens, in whatever order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders.pools import agent
from properties import examples
from temporal_plans.domain.cluster import agent_errors, pool
from temporal_plans.domain.cluster.agents import AgentResources, AgentState, MountDisk
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.offer import Used, ports_of, within
from temporal_plans.domain.cluster.packing import pack, unpack
from temporal_plans.domain.cluster.pool import Change, Offered
from temporal_plans.domain.cluster.requirements import PortWant, Requirement, SetWant, VolumeWant
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values.ports import PortRange

AGENTS = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["service/one", "service/two"])
RULES = st.sampled_from(
    [
        "",
        "",
        "hostname:UNIQUE",
        "hostname:MAX_PER:2",
        "@zone:GROUP_BY:2",
        '{"kind":"avoid","pod":"other"}',
        '{"kind":"colocate","pod":"other"}',
    ]
)
PORTS = st.lists(
    st.builds(
        PortWant,
        name=st.sampled_from(["p", "q"]),
        port=st.sampled_from([0, 0, 1000, 1001]),
        ranges=st.sampled_from([(), (PortRange(begin=1001, end=1002),)]),
    ),
    max_size=2,
    unique_by=lambda port: port.name,
).map(tuple)
VOLUMES = st.lists(
    st.builds(
        VolumeWant,
        path=st.sampled_from(["x", "y"]),
        size=st.sampled_from([10, 40]),
        type=st.sampled_from(["ROOT", "MOUNT"]),
    ),
    max_size=2,
    unique_by=lambda volume: volume.path,
).map(tuple)
SETS = st.lists(
    st.builds(
        SetWant,
        id=st.sampled_from(["s", "t"]),
        cpus=st.sampled_from([0.1, 0.4, 0.7]),
        gpus=st.sampled_from([0, 0, 1]),
        memory=st.sampled_from([0, 10, 50]),
        ports=PORTS,
        volumes=VOLUMES,
    ),
    max_size=2,
    unique_by=lambda wanted: wanted.id,
).map(tuple)
REQUIREMENTS = st.builds(
    Requirement,
    owner=OWNERS,
    pod=st.sampled_from(["pod", "other"]),
    index=st.integers(0, 3),
    notify=st.sampled_from(["step", "another"]),
    sets=SETS,
    placement=RULES,
    permanent=st.sampled_from([False, False, True]),
    launches=st.sampled_from([("s",), ("t",), ()]),
    in_use=st.sampled_from([(), ("s",), ("s", "t")]),
)
RESOURCES = st.builds(
    AgentResources,
    cpus=st.sampled_from([0.5, 1, 3]),
    memory=st.sampled_from([50, 120]),
    gpus=st.sampled_from([0, 1]),
    disk=st.sampled_from([0, 50]),
    ports=st.just((PortRange(begin=1000, end=1003),)),
    mounts=st.sampled_from([(), (MountDisk(path="/m", size=20), MountDisk(path="/n", size=40))]),
)


class PoolMachine(RuleBasedStateMachine):
    """Agents come, shrink, go silent and leave; pods ask, ask again, move and give up."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.ids: set[str] = set()
        self.shrunk: set[str] = set()

    def apply(self, event: Callable[[Ledger, datetime], Change]) -> None:
        self.now += timedelta(seconds=1)
        before = self.ledger
        change = event(before, self.now)
        self.ledger = change.ledger
        for one in change.effects:
            if isinstance(one, Offered):
                key = one.requirement.key
                assert change.ledger.reservations[key] == one.reservation
                assert key not in change.ledger.waiting
        made = {one.id for one in self.ledger.reservations.values()}
        former = {one.id for one in before.reservations.values()}
        assert not (made - former) & self.ids, "an id was given twice"
        self.ids |= made

    @initialize(resources=st.tuples(RESOURCES, RESOURCES))
    def begin(self, resources: tuple[AgentResources, AgentResources]) -> None:
        self.register("a", resources[0], "z1")
        self.register("b", resources[1], "z2")

    @rule(
        name=AGENTS,
        resources=RESOURCES,
        zone=st.sampled_from([None, "z1", "z2"]),
        lineage=st.sampled_from(["", "l", "m"]),
    )
    def register(
        self, name: str, resources: AgentResources, zone: str | None, lineage: str = ""
    ) -> None:
        info = agent(name, zone=zone, resources=resources, lineage=lineage)
        known = self.ledger.agents.get(name)
        try:
            self.apply(lambda ledger, now: pool.register(ledger, info, now))
        except agent_errors.AgentIdTakenError:
            assert known is not None
            assert known.state is AgentState.ALIVE
            return
        if known is not None:
            self.shrunk.add(name)

    @rule(name=AGENTS)
    def heard(self, name: str) -> None:
        self.apply(lambda ledger, now: pool.heartbeat(ledger, name, "", now))

    @rule(name=AGENTS)
    def unreachable(self, name: str) -> None:
        self.apply(lambda ledger, now: pool.unreachable(ledger, name, now))

    @rule(name=AGENTS)
    def lost(self, name: str) -> None:
        self.apply(lambda ledger, now: pool.lost(ledger, name, now))

    @precondition(lambda self: self.ledger.agents)
    @rule(data=st.data())
    def leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.ledger.agents)))
        self.shrunk.discard(name)
        self.apply(lambda ledger, now: pool.deregister(ledger, name, now, force=True))

    @rule(requirements=st.lists(REQUIREMENTS, min_size=1, max_size=5))
    def reserve(self, requirements: list[Requirement]) -> None:
        for one in requirements:
            self.reserve_one(one)

    def reserve_one(self, requirement: Requirement) -> None:
        def ask(ledger: Ledger, now: datetime) -> Change:
            answer = pool.reserve(ledger, requirement, now)
            after = answer.change.ledger
            if answer.reservation is None:
                assert answer.refusals
                told = [one for one in answer.change.effects if isinstance(one, Offered)]
                assert requirement.key in after.waiting or any(
                    one.requirement.key == requirement.key for one in told
                )
            else:
                assert requirement.key not in after.waiting
                assert after.reservations[requirement.key] == answer.reservation
            return answer.change

        self.apply(ask)

    @precondition(lambda self: self.ledger.reservations)
    @rule(data=st.data(), destroy=st.booleans())
    def release(self, data: st.DataObject, destroy: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.ledger.reservations)))
        self.apply(lambda ledger, now: pool.release(ledger, key, now, destroy=destroy))
        assert key not in self.ledger.reservations

    @precondition(lambda self: self.ledger.to_destroy)
    @rule(data=st.data())
    def destroyed(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.ledger.to_destroy)))
        self.apply(lambda ledger, now: pool.destroyed(ledger, one, now))

    @precondition(lambda self: self.ledger.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.ledger.waiting)))
        notify = data.draw(st.sampled_from(["", "step", "another"]))
        self.apply(lambda ledger, now: pool.withdraw(ledger, key, notify))

    @rule(gone=st.sets(st.sampled_from(["service/one", "step"])))
    def reconcile(self, gone: set[str]) -> None:
        self.apply(lambda ledger, now: pool.reconcile(ledger, gone, {}, now, timedelta(seconds=5)))

    @invariant()
    def nothing_is_over_reserved(self) -> None:
        for name, record in self.ledger.agents.items():
            if name in self.shrunk:
                continue  # it may have given away more than it has now
            offer = record.offer
            assert min(offer.cpus, offer.gpus, offer.memory, offer.disk) >= 0
            offered = ports_of(record.info.resources.ports)
            assert all(within(port, offered) for port in record.used.ports)
            assert record.used.mounts <= {disk.path for disk in record.info.resources.mounts}

    @invariant()
    def no_port_and_no_disk_is_reserved_twice(self) -> None:
        taken: set[tuple[str, object]] = set()
        for one in self.counted():
            for resource in one.resources:
                slot = int(resource.value) if resource.kind == "port" else resource.source
                if slot:
                    assert (one.agent, slot) not in taken
                    taken.add((one.agent, slot))

    @invariant()
    def totals_are_what_is_reserved_so_releases_give_back_exactly(self) -> None:
        totals = dict.fromkeys(self.ledger.agents, Used())
        for one in self.counted():
            totals[one.agent] = totals[one.agent].plus(one.resources)
        assert totals == {name: record.used for name, record in self.ledger.agents.items()}

    @invariant()
    def what_nobody_took_is_held(self) -> None:
        held = {key: one.id for key, one in self.ledger.reservations.items()}
        assert self.ledger.offers.items() <= held.items()

    @invariant()
    def what_waits_does_not_fit(self) -> None:
        for waiting in self.ledger.waiting.values():
            assert pool.explain(self.ledger, waiting.requirement, self.now)

    @invariant()
    def what_is_to_be_destroyed_is_on_an_agent_that_is_here(self) -> None:
        for one in self.to_destroy():
            assert one.agent in self.ledger.agents

    @invariant()
    def keys_and_ids_name_one_thing_each(self) -> None:
        for key, one in self.ledger.reservations.items():
            assert one.key == key
            assert one.agent in self.ledger.agents
        everything = [*self.ledger.reservations.values(), *self.to_destroy()]
        ids = [resource.id for one in everything for resource in one.resources]
        ids += [one.id for one in everything]
        assert len(ids) == len(set(ids))

    def teardown(self) -> None:
        """However it came about, a ledger survives being written and being packed."""
        written = self.ledger.model_dump_json()
        assert Ledger.model_validate_json(written) == self.ledger
        assert unpack(pack(self.ledger)) == self.ledger

    def to_destroy(self) -> list[Reservation]:
        return [one.reservation for one in self.ledger.to_destroy.values()]

    def counted(self) -> list[Reservation]:
        """Everything that is in an agent's total."""
        waiting_for_destroy = [
            one.reservation for one in self.ledger.to_destroy.values() if one.counted
        ]
        return [*self.ledger.reservations.values(), *waiting_for_destroy]


PoolMachine.TestCase.settings = examples(60, stateful_step_count=30)
TestPool = PoolMachine.TestCase
