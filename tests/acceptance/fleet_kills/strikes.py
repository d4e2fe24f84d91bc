"""Which processes are killed, and at which moments of the story."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from acceptance.fleet_kills.sites import VICTIMS, Sites
from acceptance.fleet_kills.story import LINES
from acceptance.fleet_soak.timeline import Timeline

LATER = 1.5
"""Seconds at most from a line of the story to a kill: about those until the next one."""

AWAY = 1.0
"""Seconds at most before a process that was killed is started again."""

A_STORY = 8
"""How many kills a story has at most."""


@dataclass(frozen=True)
class Strike:
    """``line``: how many lines the story has written before; ``later``: for how many seconds it
    goes on then."""

    victim: str
    line: int
    later: float
    away: float


def stories(kills: int, seed: int) -> list[list[Strike]]:
    """The strikes of each of some stories: each victim is killed ``kills`` times in all."""
    chance = Random(f"fleet kills {seed}")
    wanted = [victim for victim in VICTIMS for _ in range(kills)]
    chance.shuffle(wanted)
    told = [wanted[at : at + A_STORY] for at in range(0, len(wanted), A_STORY)]
    return [_of_story(chosen, chance) for chosen in told]


def _of_story(victims: Sequence[str], chance: Random) -> list[Strike]:
    lines = sorted(chance.sample(range(LINES), len(victims)))
    return [
        Strike(victim, line, chance.uniform(0, LATER), chance.uniform(0, AWAY))
        for victim, line in zip(victims, lines, strict=True)
    ]


async def strike(sites: Sites, strikes: Sequence[Strike], timeline: Timeline) -> None:
    """Kill one process after the other, and start each again."""
    for one in strikes:
        while len(sites.journal) < one.line:
            await asyncio.sleep(0.02)
        await asyncio.sleep(one.later)
        fault = sites.victim(one.victim)
        async with sites.breaking:
            timeline.tell(f"{fault.name} is killed after {len(sites.journal)} lines")
            await fault.begin()
            await asyncio.sleep(one.away)
            await asyncio.shield(fault.mend())
        timeline.tell(f"{fault.name} is back")
