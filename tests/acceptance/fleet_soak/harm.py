"""Faults of a fleet's place: each begins, lasts a while, and is mended.

A kind of fault is a ``Fault``: a process is killed, or the network between a spoke and the hub does
not do what it should.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from acceptance.fleet_soak.place import Place
from acceptance.fleet_soak.timeline import Timeline
from acceptance.programs import Member
from acceptance.proxy import Proxy

Seconds = tuple[float, float]
"""At least and at most."""

KILLS_QUIET: Seconds = (8.0, 20.0)
"""Between two kills. What a worker had begun when it was killed is tried again after 10 to 30
seconds, and nothing would go on if it were always killed before."""

NETWORKS_QUIET: Seconds = (6.0, 16.0)
"""Between two disturbances of a network. Kills meet them, as they happen beside."""


class Fault(Protocol):
    """Something that may be broken. ``weight``: how often beside the others; ``lasts``: for how
    many seconds."""

    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def lasts(self) -> Seconds: ...
    async def begin(self) -> None: ...
    async def mend(self) -> None: ...


@dataclass(frozen=True)
class Killed:
    """``kill -9`` of a process, which is started again."""

    name: str
    member: Member
    weight: float = 1.0
    lasts: Seconds = (0.0, 3.0)

    async def begin(self) -> None:
        await self.member.kill()

    async def mend(self) -> None:
        await self.member.start()


@dataclass(frozen=True)
class Disturbed:
    """What a network does to the connections of a spoke."""

    name: str
    network: Proxy
    disturb: Callable[[Proxy], None]
    weight: float = 1.0
    lasts: Seconds = (0.5, 6.0)

    async def begin(self) -> None:
        self.disturb(self.network)

    async def mend(self) -> None:
        self.network.flow()


def _late(network: Proxy) -> None:
    network.delay = 0.4


LONG: Seconds = (14.0, 30.0)
"""Longer than a spoke is waited for: its plans read UNKNOWN then."""

DISTURBANCES: Mapping[str, tuple[Callable[[Proxy], None], float, Seconds]] = {
    "is cut": (Proxy.cut, 2.0, (0.5, 8.0)),
    "is cut for long": (Proxy.cut, 2.0, LONG),
    "stalls": (Proxy.stall, 1.0, (0.5, 8.0)),
    "stalls for long": (Proxy.stall, 1.0, LONG),
    "forgets its connections": (Proxy.half_open, 0.5, (0.0, 0.0)),
    "resets its connections": (Proxy.reset, 0.5, (0.0, 0.0)),
    "is late": (_late, 0.5, (1.0, 8.0)),
}
"""By what is said of the network, each with its weight."""


def faults_of(place: Place) -> list[Fault]:
    """Of all processes: workers are killed more often than others."""
    weights = {"worker": 3.0, "server": 1.0}
    return [Killed(name, member, weights.get(name, 1.0)) for name, member in place.members.items()]


def disturbances_of(place: Place) -> list[Fault]:
    """Of all networks."""
    return [
        Disturbed(f"the network of {name} {said}", outpost.network, how, weight, lasts)
        for name, outpost in place.outposts.items()
        for said, (how, weight, lasts) in DISTURBANCES.items()
    ]


class Harm:
    """Lets one fault after the other happen, with some quiet between two."""

    def __init__(self, faults: Sequence[Fault], quiet: Seconds, timeline: Timeline) -> None:
        self._faults = faults
        self._quiet = quiet
        self._timeline = timeline
        self._broken: Fault | None = None
        self._began: asyncio.Future[None] | None = None

    async def run(self, chance: Random) -> None:
        """Until it is cancelled; ``mend`` then."""
        weights = [one.weight for one in self._faults]
        while self._faults:
            await asyncio.sleep(chance.uniform(*self._quiet))
            fault = chance.choices(self._faults, weights)[0]
            seconds = chance.uniform(*fault.lasts)
            self._broken, self._began = fault, asyncio.ensure_future(fault.begin())
            await asyncio.shield(self._began)
            self._timeline.counts[f"fault: {fault.name}"] += 1
            self._timeline.tell(f"fault: {fault.name}, for {seconds:.1f} s")
            await asyncio.sleep(seconds)
            await self.mend()

    async def mend(self) -> None:
        if self._broken is not None and self._began is not None:
            fault, self._broken = self._broken, None
            await self._began
            await asyncio.shield(fault.mend())
            self._timeline.tell(f"over: {fault.name}")
