"""The release on a real Temporal server, with real files and real web servers on this machine."""

import threading
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import pytest_asyncio
import worker
from release import SERVERS, release_plan
from workflows.zones import zone_by_zone

from temporal_plans.sdk import Element, Status, StrategySpec, load_plan
from temporal_plans.testing import PlanEnvironment

PLAN_FILE = Path(worker.__file__).with_name("release.yml")


@contextmanager
def web_servers(root: Path) -> Generator[str]:
    """Serve the folder on a free port; yield its URL."""
    root.mkdir(exist_ok=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest_asyncio.fixture
async def plans() -> AsyncIterator[PlanEnvironment]:
    async with PlanEnvironment(
        activities=worker.ACTIVITIES,
        workflows=worker.WORKFLOWS,
        strategies=worker.STRATEGIES,
        step_kinds=worker.STEP_KINDS,
    ) as environment:
        yield environment


def _element(index: int, name: str, status: Status, depends_on: tuple[str, ...] = ()) -> Element:
    eligible = status is not Status.COMPLETE
    return Element(index, name, status, eligible=eligible, depends_on=depends_on)


@pytest.mark.parametrize(
    ("statuses", "picked"),
    [
        pytest.param("PPPP", ["a1", "a3"], id="all-of-the-first-zone"),
        pytest.param("CPPP", ["a2", "a3"], id="what-depends-on-it-is-free"),
        pytest.param("CPCP", ["a2"], id="the-zone-is-not-complete"),
        pytest.param("CCCP", ["b1"], id="the-next-zone"),
        pytest.param("CCCC", [], id="all-is-done"),
    ],
)
def test_zone_by_zone(statuses: str, picked: list[str]) -> None:
    names = ["a/a1", "a/a2", "a/a3", "b/b1"]
    elements = [
        _element(
            index,
            name,
            Status.COMPLETE if letter == "C" else Status.PENDING,
            ("a/a1",) if name == "a/a2" else (),
        )
        for index, (name, letter) in enumerate(zip(names, statuses, strict=True))
    ]
    spec = StrategySpec(name="zone-by-zone", options={"separator": "/"})
    chosen = zone_by_zone(elements, spec, 0)
    assert [element.name.partition("/")[2] for element in chosen] == picked


def test_the_file_and_python_say_the_same() -> None:
    assert load_plan(PLAN_FILE) == release_plan()


async def test_a_release_reaches_every_server(plans: PlanEnvironment, tmp_path: Path) -> None:
    root = tmp_path / "site"
    with web_servers(root) as url:
        for version in ("1.0", "1.1"):
            run = await plans.run(
                release_plan(),
                {"VERSION": version, "ROOT": str(root), "URL": url, "EVERY": "100ms"},
            )
            assert run.complete, run.view.errors
    for server in SERVERS:
        assert "Version 1.1" in (root / "servers" / server / "index.html").read_text()
    assert (root / "releases.txt").read_text() == "1.0\n1.1\n"
