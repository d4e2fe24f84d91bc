"""The story of ``demo --fleet``: chapters of commands, each with what must come of them."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.text import Text

from temporal_plans.cli.terminal.fleet_changes import Fleet
from temporal_plans.cli.terminal.fleet_following import follow_fleet
from temporal_plans.cli.terminal.fleet_time_line import (
    environment_events,
    fleet_time_line,
    product_events,
)
from temporal_plans.cli.terminal.output import console, print_error, print_line, print_lines
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.environment import Connection
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow
from temporal_plans.messages.fleets.plans import PlanRow

ENVIRONMENTS = ("north", "south")
PRODUCTS = ("shop:database", "shop:web", "shop:mail")
CHAPTERS = 7

_POLL_INTERVAL = 0.3  # seconds
_OPENS_IN = timedelta(seconds=8)
"""From the request until the window opens: enough to see that it is awaited."""


class _Failed(Exception):
    """Something of the story did not happen; it was said what."""


class FleetStory:
    """``documents`` is the folder of the files that the commands name. Each chapter has ``timeout``
    to come to what it must."""

    def __init__(
        self,
        client: PlansClient,
        documents: Path,
        run: Callable[[Sequence[str]], int],
        timeout: timedelta,
    ) -> None:
        self._client = client
        self._documents = documents
        self._run = run
        self._timeout = timeout.total_seconds()
        self._chapter = 0
        self._seen: Fleet = {}

    async def told(self) -> int:
        """Tell all; return 1 for a story that came to an early end."""
        try:
            await self._apply()
            await self._install()
            await self._upgrade_early()
            await self._promote()
            await self._open_the_window()
            await self._fail()
            await self._recall()
            await self._end()
        except _Failed:
            print_error("the demo has come to an early end; the reason is above")
            return 1
        return 0

    # --- chapters ---

    async def _apply(self) -> None:
        self._begin("Documents say which products there are, and what each environment allows")
        files = [word for name in ("products", *ENVIRONMENTS) for word in ("-f", f"{name}.yml")]
        await self._do("apply", *files, "--reason", "a new fleet")
        await self._until("both spokes have registered", _connected)

    async def _install(self) -> None:
        self._begin("First releases: database and web need each other, and are installed together")
        channels = ("--channel", "early", "--channel", "stable")
        await self._publish("database", "1.0.0", *channels)
        await self._publish("web", "1.0.0", *channels)
        await self._publish("mail", "1.0.0", "--channel", "early")
        await self._until(
            "1.0.0 is everywhere", lambda fleet: _settled(fleet, "1.0.0", *_rows(fleet))
        )
        await self._do("graph", "north")

    async def _upgrade_early(self) -> None:
        self._begin(
            "Newer releases soak on the channel early, which north follows; the database goes first"
        )
        await self._publish("web", "1.1.0", "--channel", "early")
        await self._publish("database", "1.1.0", "--channel", "early")
        await self._do("explain", "shop:web/1.1.0")
        entities = ("north/database", "north/web")
        await self._until("north has 1.1.0", lambda fleet: _settled(fleet, "1.1.0", *entities))
        await self._check_order("north/database.2", "north/web.2")

    async def _promote(self) -> None:
        self._begin("When they have soaked they are promoted to stable, which south follows")
        await self._until("1.1.0 of the database is wanted in south", _waits_for_window)
        await self._do("releases", "shop:database")

    async def _open_the_window(self) -> None:
        self._begin(
            "The new database needs downtime, for which the window of south is closed; it opens"
        )
        opens = (datetime.now(UTC) + _OPENS_IN).replace(microsecond=0)
        when = opens.isoformat().replace("+00:00", "Z")
        await self._do(
            *("override", "south", "--downtime", "--from", when, "--for", "1h"),
            *("--reason", "the night shift"),
        )
        entities = ("south/database", "south/web")
        await self._until("south has 1.1.0", lambda fleet: _settled(fleet, "1.1.0", *entities))
        await self._check_order("south/database.2", "south/web.2", after=opens)

    async def _fail(self) -> None:
        self._begin(
            "A release that fails: what it changed is rolled back, and it is not tried again"
        )
        await self._publish("mail", "1.1.0", "--channel", "early", files="broken/install.yml")
        await self._until("mail is back at 1.0.0", _given_up)
        await self._do("plans", "north/mail")
        await self._check_ends("north/mail.2", "FAILED")
        await self._check_ends("north/mail.3", "SUCCEEDED")

    async def _recall(self) -> None:
        self._begin("A recall, while other work waits: the recalled release is left first")
        await self._do("suppress", "south", "--id", "look", "--reason", "orders are missing")
        await self._publish("database", "1.2.0", "--channel", "stable")
        await self._do(
            "recall", "shop:web", "1.1.0", "--allow-downgrade", "--reason", "it loses orders"
        )
        await self._until("south has two plans that wait", _both_wait)
        await self._do("unsuppress", "south", "look", "--reason", "the cause is found")
        await self._until("web is at 1.0.0, and the database of south at 1.2.0", _left)
        await self._check_order("south/web.3", "south/database.3")

    async def _end(self) -> None:
        if not console().is_terminal:  # which shows the table already
            await self._do("status")
        print_line()
        print_line(Text("What happened", style="bold"))
        logs = {name: await self._client.product_log(name) for name in PRODUCTS}
        events = [*product_events(logs)]
        for name in ENVIRONMENTS:
            status = await self._client.environment(name)
            plans = (await self._client.fleet_plans(name)).rows
            log = await self._client.environment_log(name)
            events += environment_events(status, plans, log)
        print_lines(fleet_time_line(events))

    # --- what a chapter does ---

    async def _publish(
        self, product: str, version: str, *options: str, files: str = "install.yml"
    ) -> None:
        manifest = f"{product}-{version}.yml"
        if (self._documents / manifest).is_file():
            options = ("--manifest", manifest, *options)
        await self._do("publish", f"shop:{product}", version, "-f", files, *options)

    async def _do(self, *words: str) -> None:
        """Print a command, and execute it. The files that it names are found where they are."""
        print_line()
        print_line(Text(f"$ {shlex.join(('temporal-plan', 'fleet', *words))}", style="cyan"))
        found = [self._documents / word for word in words]
        named = [
            str(path) if path.is_file() else word for path, word in zip(found, words, strict=True)
        ]
        if await asyncio.to_thread(self._run, ["fleet", *named]):
            raise _Failed

    async def _until(self, what: str, holds: Callable[[Fleet], bool]) -> None:
        """Show the fleet until it is so."""
        print_line()
        try:
            async with asyncio.timeout(self._timeout):
                self._seen = await follow_fleet(self._looks(holds), self._seen)
        except TimeoutError:
            print_error(f"not so within {self._timeout:g} s: {what}")
            await self._do("status")
            raise _Failed from None

    async def _looks(self, holds: Callable[[Fleet], bool]) -> AsyncIterator[Fleet]:
        while True:
            fleet = await self._client.fleet(*ENVIRONMENTS)
            yield fleet
            if holds(fleet):
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _check_order(self, *plans: str, after: datetime | None = None) -> None:
        """Check that each plan was issued when the one before had succeeded; the first not before a
        time."""
        ended = after
        for name in plans:
            row = await self._plan(name)
            if row is None or row.issued_at is None or row.status != "SUCCEEDED":
                self._is_wrong(f"{name} has not succeeded")
            elif ended is not None and row.issued_at < ended:
                self._is_wrong(f"{name} was issued at {row.issued_at}, before {ended}")
            else:
                ended = row.ended_at

    async def _check_ends(self, name: str, status: str) -> None:
        row = await self._plan(name)
        if row is None or row.status != status:
            self._is_wrong(f"{name} is {row.status if row else 'unknown'}, and not {status}")

    async def _plan(self, name: str) -> PlanRow | None:
        place, _, number = name.partition(".")
        environment, _, entity = place.partition("/")
        rows = (await self._client.fleet_plans(environment, entity)).rows
        return next((row for row in rows if row.number == int(number)), None)

    @staticmethod
    def _is_wrong(what: str) -> None:
        print_error(what)
        raise _Failed

    def _begin(self, title: str) -> None:
        self._chapter += 1
        print_line()
        print_line(Text(f"[{self._chapter}/{CHAPTERS}] {title}", style="bold"))


# --- what must come of a chapter ---


def _rows(fleet: Fleet) -> dict[str, StatusRow]:
    """Return all entities, by ``environment/entity``."""
    return {
        f"{row.environment}/{row.entity}": row
        for status in fleet.values()
        if isinstance(status, EnvironmentStatus)
        for row in status.rows
    }


def _connected(fleet: Fleet) -> bool:
    return all(
        isinstance(one, EnvironmentStatus) and one.connection == Connection.CONNECTED
        for one in fleet.values()
    )


def _settled(fleet: Fleet, version: str, *entities: str) -> bool:
    """Whether entities have a version, and nothing is to be done."""
    rows = _rows(fleet)
    return all(_stands(rows[one]) == (version, FleetCode.UP_TO_DATE) for one in entities)


def _waits_for_window(fleet: Fleet) -> bool:
    row = _rows(fleet)["south/database"]
    return _stands(row) == ("1.0.0", FleetCode.OUTSIDE_WINDOW) and row.standing.target == "1.1.0"


def _given_up(fleet: Fleet) -> bool:
    return _stands(_rows(fleet)["north/mail"]) == ("1.0.0", FleetCode.SUPPRESSED)


def _both_wait(fleet: Fleet) -> bool:
    rows = _rows(fleet)
    waiting = [rows[name].standing for name in ("south/web", "south/database")]
    return [(one.intent, one.code) for one in waiting] == [
        (Intent.RECALL_ROLL_OFF, FleetCode.SUPPRESSED),
        (Intent.UPGRADE, FleetCode.SUPPRESSED),
    ]


def _left(fleet: Fleet) -> bool:
    rows = _rows(fleet)
    at = {name: rows[name].standing.installed for name in rows}
    return (at["north/web"], at["south/web"], at["south/database"]) == ("1.0.0", "1.0.0", "1.2.0")


def _stands(row: StatusRow) -> tuple[str | None, str]:
    return row.standing.installed, row.standing.code
