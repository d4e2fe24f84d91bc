"""The soak of a fleet: chaos for some time, then calm, then a look at what is left."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

from temporalio.service import RPCError

from acceptance.fleet_soak import verdict
from acceptance.fleet_soak.environments import DECIDED_HERE
from acceptance.fleet_soak.harm import (
    KILLS_QUIET,
    NETWORKS_QUIET,
    Harm,
    disturbances_of,
    faults_of,
)
from acceptance.fleet_soak.people import People
from acceptance.fleet_soak.place import SILENT, Place
from acceptance.fleet_soak.timeline import Timeline
from acceptance.histories import keep_histories
from temporal_plans.messages.fleets.plans import PlanRow

PEOPLE = 2

SETTLES_WITHIN = 180.0
"""Seconds that a fleet has to come to rest. It takes a quarter of a minute; what takes long is a
machine that is busy with other tests."""

LOOKS = 3
"""Looks in a row that find it at rest, so that a pause is not taken for it."""

LOOKS_EVERY = 1.0
"""Seconds from one look to the next: each costs the servers and workers something."""


class Soak:
    """``seed`` decides what is done, though not when exactly it takes effect."""

    def __init__(self, place: Place, seed: int, pause: float, kept: Path) -> None:
        """``pause`` is that of ``People``; ``kept`` is where the histories are left if something is
        wrong."""
        self.place = place
        self.seed = seed
        self.kept = kept
        self.timeline = Timeline()
        self._cost = place.processor_seconds()
        self.people = People(place, self.timeline, pause)
        self.kills = Harm(faults_of(place), KILLS_QUIET, self.timeline)
        self.networks = Harm(disturbances_of(place), NETWORKS_QUIET, self.timeline)

    async def run(self, seconds: float) -> None:
        """Raises AssertionError, with the timeline, for all that is wrong."""
        self.timeline.tell(f"seed {self.seed}")
        try:
            faults = await self._faults(seconds)
        except AssertionError as error:  # something was never answered
            faults = [str(error)]
        self.timeline.tell(", ".join(f"{n} {what}" for what, n in self._counts()))
        self._tell_cost("the end")
        if faults:
            raise AssertionError(await self._report(faults))

    async def _faults(self, seconds: float) -> list[str]:
        await self.people.begin()
        self._tell_cost("the first releases")
        await self._chaos(seconds)
        self._tell_cost("the chaos")
        faults = await self._settled()
        self._tell_cost("the rest")
        faults += self.place.ended()
        return faults + await self._verdict()

    async def _verdict(self) -> list[str]:
        place, names = self.place, self.people.names
        faults = await verdict.fleet_faults(place, names, self.people.catalogues)
        rows = await place.plan_rows(names)
        faults += await verdict.plan_faults(
            place, names, place.ledger, resolved=self.people.resolved
        )
        more, recorded = await verdict.decision_faults(place, names)
        faults += more
        faults += [
            f"no decision about {name} is recorded"
            for name in DECIDED_HERE
            if not recorded.answers[name]
        ]
        self.timeline.tell(f"{recorded}; {len(place.ledger.lines())} lines in the ledger")
        self._tell_plans(rows)
        return faults

    def _tell_plans(self, rows: Mapping[str, PlanRow]) -> None:
        ends = Counter(str(row.status) for row in rows.values())
        said = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
        self.timeline.tell(f"{len(rows)} plans: {said}")
        for name, outpost in self.place.outposts.items():
            again = len(outpost.spoke.ends)
            self.timeline.tell(f"the spoke of {name} found no server {again} times as it started")

    def _tell_cost(self, after: str) -> None:
        now = self.place.processor_seconds()
        self.timeline.tell(f"{now - self._cost:.1f} s of processors until {after}")

    def _counts(self) -> list[tuple[str, int]]:
        return sorted(self.timeline.counts.items())

    async def _chaos(self, seconds: float) -> None:
        acts = [
            self.kills.run(Random(f"harm {self.seed}")),
            self.networks.run(Random(f"networks {self.seed}")),
            *(self.people.run(Random(f"person {i} {self.seed}")) for i in range(PEOPLE)),
        ]
        going = [asyncio.create_task(act) for act in acts]
        done, _ = await asyncio.wait(going, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for task in done:
            await task  # an error of the drill itself
        await asyncio.gather(self.kills.mend(), self.networks.mend())
        self.timeline.tell("the chaos is over")
        await self.people.calm()

    async def _settled(self) -> list[str]:
        """What still goes on when the time is up; nothing as soon as it is at rest."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLES_WITHIN
        rests, found, seen = 0, ["nothing was seen"], ""
        while loop.time() < deadline:
            try:
                await self.people.lift_all()
                await self.people.resolve_all()
                found = await verdict.restless(self.place, self.people.names)
            except SILENT as error:
                found = [f"not to be looked at: {error!r}"]
            rests = 0 if found else rests + 1
            if rests == LOOKS:
                self.timeline.tell("it is at rest")
                return []
            if found and found[0] != seen:
                seen = found[0]
                self.timeline.tell(f"{len(found)} go on: {seen}"[:200])
            await asyncio.sleep(LOOKS_EVERY)
        return [f"never at rest: {one}" for one in found]

    async def _report(self, faults: list[str]) -> str:
        try:
            kept = sum([await keep_histories(one, self.kept) for one in self.place.addresses])
        except (RPCError, RuntimeError):  # no server answers
            kept = 0
        logs = [f"log of {name}:\n{text}" for name, text in self.place.logs(200).items()]
        (self.kept / "logs.txt").write_text("\n\n".join(logs))
        lines = [
            f"fleet soak with --soak-seed {self.seed}; {kept} histories are in {self.kept}:",
            *(f"- {fault}" for fault in faults),
            "",
            "timeline:",
            *self.timeline.lines,
        ]
        return "\n".join(lines)
