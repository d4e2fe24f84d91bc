"""The story of the demo's fleet, told to its end whatever is killed meanwhile.

The database and the web shop need each other. Both are installed in two environments, upgraded in
one, promoted to the other, where a window opens; a release of mail fails and is rolled back; one of
the shop is recalled, and left for an older one.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from acceptance.fleet_kills.documents import BROKEN, ENVIRONMENTS
from acceptance.fleet_kills.journal import Work
from acceptance.fleet_kills.sites import Sites
from acceptance.fleet_soak.timeline import Timeline
from temporal_plans.cli.actions.fleet_applying import apply_files
from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.domain.fleets.suppressions import WindowClass
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.environments import EnvironmentInput
from temporal_plans.messages.fleets.products import Publish, RecallRelease
from temporal_plans.messages.fleets.stops import OverrideWindows

WITHIN = 180.0
"""Seconds in which a chapter ends; it takes some, and more for each process that is killed."""

HISTORY = 100
"""Events after which an environment continues as new, which records its state."""

Landing = tuple[str | None, str]
"""The installed version of an entity, and the code of its last decision."""

PLANS: Mapping[str, tuple[Work, str]] = {
    f"environment/{entity}.{number}": (Work(entity, intent, before, version), status)
    for entity, number, intent, before, version, status in (
        ("north/database", 1, "INSTALL", "none", "1.0.0", "SUCCEEDED"),
        ("north/database", 2, "UPGRADE", "1.0.0", "1.1.0", "SUCCEEDED"),
        ("north/mail", 1, "INSTALL", "none", "1.0.0", "SUCCEEDED"),
        ("north/mail", 2, "UPGRADE", "1.0.0", "1.1.0", "FAILED"),
        ("north/mail", 3, "ROLLBACK", "1.1.0", "1.0.0", "SUCCEEDED"),
        ("north/web", 1, "INSTALL", "none", "1.0.0", "SUCCEEDED"),
        ("north/web", 2, "UPGRADE", "1.0.0", "1.1.0", "SUCCEEDED"),
        ("north/web", 3, "RECALL_ROLL_OFF", "1.1.0", "1.0.0", "SUCCEEDED"),
        ("south/database", 1, "INSTALL", "none", "1.0.0", "SUCCEEDED"),
        ("south/database", 2, "UPGRADE", "1.0.0", "1.1.0", "SUCCEEDED"),
        ("south/database", 3, "UPGRADE", "1.1.0", "1.2.0", "SUCCEEDED"),
        ("south/web", 1, "INSTALL", "none", "1.0.0", "SUCCEEDED"),
        ("south/web", 2, "UPGRADE", "1.0.0", "1.1.0", "SUCCEEDED"),
        ("south/web", 3, "RECALL_ROLL_OFF", "1.1.0", "1.0.0", "SUCCEEDED"),
    )
}
"""All plans that the story leads to, by their ids, with how they end."""

LINES = 2 * len(PLANS) + 1
"""Lines that it writes to the journal: two of each plan, and one more of the one that fails."""

_HERE = "UP_TO_DATE"


class Story:
    """What people do, chapter by chapter."""

    def __init__(self, sites: Sites, timeline: Timeline) -> None:
        self._sites = sites
        self._hub = sites.hub
        self._timeline = timeline

    async def tell(self) -> None:
        """All chapters; each ends when every entity is as it must be."""
        both = ("north/database", "north/web", "south/database", "south/web")
        landed: dict[str, Landing] = dict.fromkeys([*both, "north/mail"], ("1.0.0", _HERE))
        chapters: list[tuple[Callable[[], Awaitable[None]], dict[str, Landing]]] = [
            (self._begin, {}),
            (self._upgrade, dict.fromkeys(both, ("1.1.0", _HERE))),
            (self._fail, {"north/mail": ("1.0.0", "SUPPRESSED")}),
            (self._recall, self.end()),
        ]
        for chapter, changed in chapters:
            await chapter()
            landed |= changed
            await self._until(chapter.__name__, landed)

    @staticmethod
    def end() -> dict[str, Landing]:
        """How every entity stands in the end."""
        return {
            "north/database": ("1.1.0", _HERE),
            "north/mail": ("1.0.0", "SUPPRESSED"),
            "north/web": ("1.0.0", "RECALLED"),
            "south/database": ("1.2.0", _HERE),
            "south/web": ("1.0.0", "RECALLED"),
        }

    async def _until(self, chapter: str, landed: Mapping[str, Landing]) -> None:
        async def look() -> dict[str, tuple[Landing, str]]:
            found = await self._hub.statuses(ENVIRONMENTS)
            return {name: one for status in found.values() for name, one in _stands(status)}

        def holds(found: dict[str, tuple[Landing, str]]) -> bool:
            return found == {name: (one, "") for name, one in landed.items()}

        await self._hub.until(f"{chapter}: {landed}", look, holds, within=WITHIN)
        self._timeline.tell(f"{chapter}: {len(self._sites.journal)} lines")

    # --- chapters ---

    async def _begin(self) -> None:
        client = await self._hub.client()
        products = self._sites.documents.products()
        await self._hub.insist("products", lambda: apply_files(client, products, "", "a story"))
        for name in ENVIRONMENTS:
            request = self._sites.documents.environment(name)
            begin = EnvironmentInput(name=name, history_limit=HISTORY)

            async def apply() -> object:
                return await self._hub.apply(request, begin)  # noqa: B023

            await self._hub.insist(f"apply {name}", apply)
        for product in ("database", "web"):
            await self._publish(product, "1.0.0", "early", "stable")
        await self._publish("mail", "1.0.0", "early")

    async def _upgrade(self) -> None:
        """They are promoted from ``early`` to ``stable``; south needs its window."""
        await self._publish("web", "1.1.0", "early")
        await self._publish("database", "1.1.0", "early")
        client = await self._hub.client()
        request = OverrideWindows(
            id="night", admits=WindowClass.DOWNTIME, duration=timedelta(hours=1), reason="a story"
        )

        async def ask() -> None:
            await client.ask_environment("south", request)

        await self._hub.insist("open the window", ask)

    async def _fail(self) -> None:
        await self._publish("mail", "1.1.0", "early", file=BROKEN)

    async def _recall(self) -> None:
        await self._publish("database", "1.2.0", "stable")
        back = RollOff(allow_downgrade=True)
        recall = Recall(id="bad", start="1.1.0", single=True, roll_off=back)
        client = await self._hub.client()

        async def ask() -> None:
            await client.recall("shop:web", RecallRelease(recall=recall, reason="it loses orders"))

        await self._hub.insist("recall", ask)

    async def _publish(self, product: str, version: str, *channels: str, file: str = "") -> None:
        more = {"file": file} if file else {}
        request: Publish = self._sites.documents.release(product, version, *channels, **more)
        client = await self._hub.client()

        async def ask() -> None:
            await client.publish(f"shop:{product}", request)

        await self._hub.insist(f"publish {product} {version}", ask)


def _stands(status: EnvironmentStatus) -> list[tuple[str, tuple[Landing, str]]]:
    """How each entity stands, with the plan that runs."""
    return [
        (f"{status.name}/{row.entity}", ((row.standing.installed, row.standing.code), row.plan_id))
        for row in status.rows
    ]
