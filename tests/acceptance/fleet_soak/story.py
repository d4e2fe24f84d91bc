"""A small story of a fleet, told to its end whatever is killed meanwhile.

Two environments follow two products, of which one needs the other. Both are published and upgraded;
an upgrade fails and is rolled back; a release is recalled and left for an older one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from acceptance.fleet_soak.catalogue import payload
from acceptance.fleet_soak.harm import Fault
from acceptance.fleet_soak.place import Place
from acceptance.fleet_soak.timeline import Timeline
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.domain.fleets.releases import Dependency, Release
from temporal_plans.domain.fleets.standing import standing
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environment_views import StatusRow
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentInput
from temporal_plans.messages.fleets.products import Publish, RecallRelease

WITHIN = 150.0
"""Seconds in which a chapter ends; it takes some, and half a minute when a worker is killed."""

SECONDS = 0.4
"""How long a step takes, so that kills meet it at work."""

Landing = tuple[str | None, str]
"""The installed version of an entity, and the code of its last decision."""


class Story:
    """``round`` tells its products and environments from those of others on the same server."""

    def __init__(self, place: Place, timeline: Timeline, round: int) -> None:
        self._place = place
        self._timeline = timeline
        self.base, self.web = f"shop:base{round}", f"shop:web{round}"
        self.names = [f"left{round}", f"right{round}"]

    @property
    def products(self) -> dict[str, str]:
        return {"base": self.base, "web-a": self.web, "web-b": self.web}

    async def tell(self) -> None:
        """All chapters; each ends when every entity is as it must be."""
        chapters: list[tuple[Callable[[], Awaitable[None]], Landing, Landing]] = [
            (self._begin, ("1.0.0", "UP_TO_DATE"), ("1.0.0", "UP_TO_DATE")),
            (self._upgrade, ("1.1.0", "UP_TO_DATE"), ("1.1.0", "UP_TO_DATE")),
            (self._fail, ("1.1.0", "UP_TO_DATE"), ("1.1.0", "SUPPRESSED")),
            (self._recall, ("1.0.0", "RECALLED"), ("1.1.0", "SUPPRESSED")),
        ]
        for chapter, base, web in chapters:
            await chapter()
            await self._until(base, web)
            self._timeline.tell(f"{self.names}: base is {base}, web is {web}")

    async def _until(self, base: Landing, web: Landing) -> None:
        wanted = {"base": base, "web-a": web, "web-b": web}

        async def look() -> list[tuple[str, Landing, str]]:
            found = await self._place.statuses(self.names)
            return [
                (row.entity, _landing(row), row.plan_id)
                for status in found.values()
                for row in status.rows
            ]

        def landed(found: list[tuple[str, Landing, str]]) -> bool:
            settled = all(at == wanted[name] and not plan for name, at, plan in found)
            return settled and len(found) == len(self.names) * len(wanted)

        what = f"{self.names}: base is {base}, web is {web}"
        await self._place.until(what, look, landed, within=WITHIN)

    # --- chapters ---

    async def _begin(self) -> None:
        for name in self.names:
            await self._apply(name)
        await self._publish(self.web, "1.0.0", needs=self.base)
        await self._publish(self.base, "1.0.0")

    async def _upgrade(self) -> None:
        await self._publish(self.web, "1.1.0", needs=self.base)
        await self._publish(self.base, "1.1.0")

    async def _fail(self) -> None:
        await self._publish(self.web, "1.2.0", failing=frozenset({"upgrade"}))

    async def _recall(self) -> None:
        """All bases that are newer than 1.0.0."""
        back = RollOff(allow_downgrade=True, minimum_release="1.0.0")
        recall = Recall(id="bad", start="1.1.0", roll_off=back)
        client = await self._place.client()

        async def ask() -> None:
            await client.recall(self.base, RecallRelease(recall=recall, reason="it leaks"))

        await self._place.insist(f"recall {self.base}", ask)

    async def _apply(self, name: str) -> None:
        config: dict[str, Any] = {"1.0.0": {"overrides": {}}}
        entities: dict[str, Any] = {
            entity: {"product": product, "kind": "plan", "config": config}
            for entity, product in self.products.items()
        }
        settings = {"release_channel": "stable", "failure_suppression": "1h"}
        document = {"name": name, "settings": settings, "entities": entities}
        declared = EnvironmentDeclaration.model_validate(document)

        async def ask() -> None:
            request = EnvironmentApply(environment=declared, reason="a story")
            await self._place.apply(request, EnvironmentInput(name=name, history_limit=100))

        await self._place.insist(f"apply {name}", ask)

    async def _publish(
        self,
        product: str,
        version: str,
        *,
        needs: str = "",
        failing: frozenset[str] = frozenset(),
    ) -> None:
        range = Dependency(product=needs, minimum_version="1.0.0") if needs else None
        release = Release(
            version=version, channels=("stable",), dependencies=(range,) if range else ()
        )
        files = payload(version, seconds=SECONDS, failing=failing)
        client = await self._place.client()

        async def ask() -> None:
            request = Publish(release=release, payload=files, reason="a story")
            await client.publish(product, request)

        await self._place.insist(f"publish {product} {version}", ask)

    # --- its end ---

    async def decided_otherwise(self) -> list[str]:
        """The entities of which ``decide`` says something else from nothing."""
        client = await self._place.client()
        faults: list[str] = []
        for status in (await self._place.statuses(self.names)).values():
            for row in status.rows:
                answer = await client.explain_entity(status.name, row.entity, datetime.now(UTC))
                found = standing(answer.decision, row.standing)
                if not found.same_as(row.standing) or found.outcome is Outcome.ISSUE:
                    faults.append(f"{status.name}/{row.entity}: {row.standing}, again {found}")
        return faults


def _landing(row: StatusRow) -> Landing:
    return row.standing.installed, row.standing.code


LINES = 36
"""Lines that a story writes to the ledger at least, but for the last chapter."""


async def strike(place: Place, faults: list[Fault], chance: Random, timeline: Timeline) -> None:
    """Break one thing after the other, each when the story has written so many lines: moments that
    are somewhere in it, however slow the machine is."""
    began = len(place.ledger.lines())
    moments = sorted(chance.sample(range(1, LINES), len(faults)))
    for fault, moment in zip(faults, moments, strict=True):
        while len(place.ledger.lines()) < began + moment:
            await asyncio.sleep(0.02)
        await asyncio.sleep(chance.uniform(0, 0.5))
        timeline.tell(f"{fault.name} is killed after {len(place.ledger.lines()) - began} lines")
        await fault.begin()
        await asyncio.sleep(chance.uniform(0, 1))
        await asyncio.shield(fault.mend())
        timeline.tell(f"{fault.name} is back")
