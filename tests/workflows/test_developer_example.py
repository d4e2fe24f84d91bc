"""The project in examples/developer, as its developer runs it: in its folder, by its own worker.

Its packages are called ``workflows`` and ``activities``; that they do not collide with ours is part
of what is shown here.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from socket import socket
from uuid import uuid4

import pytest
import pytest_asyncio

from pauses import LONG_PATIENCE, PATIENCE
from temporal_plans.api.dialect import http_code
from temporal_plans.client import Connection, PlansClient, connect
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.plans import load_plan, load_plan_text
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.testing import RunningPlan
from temporal_plans.worker.dev import DevServer

pytestmark = pytest.mark.cached("its workers are processes")

PROJECT = Path(__file__).parents[2] / "examples" / "developer"


@asynccontextmanager
async def program(
    *arguments: str, output: Path, **environment: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A Python program in the project's folder; stopped at the end, with what it said in a file."""
    with output.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=PROJECT,
            env={**os.environ, **environment},
            stdout=file,
            stderr=file,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _finished(
    *arguments: str, output: Path, patience: float = PATIENCE, **environment: str
) -> str:
    """What a program said that ended well."""
    async with program(*arguments, output=output, **environment) as process:
        async with asyncio.timeout(patience):
            code = await process.wait()
    said = output.read_text()
    assert code == 0, said
    return said


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A server for the project's worker alone, which takes the queue ``plans``; and the worker."""
    said = tmp_path_factory.mktemp("worker") / "output"
    async with (
        DevServer() as server,
        program("worker.py", output=said, TEMPORAL_ADDRESS=server.address) as worker,
    ):
        yield server.address
        assert worker.returncode is None, said.read_text()


@pytest_asyncio.fixture(loop_scope="session")
async def plans(address: str) -> PlansClient:
    return PlansClient(await connect(Connection(address=address)))


def _free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Site:
    """A folder for the site and the port of its web servers, which do not run yet."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.port = _free_port()

    def arguments(self, **more: str) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.port}"
        return {"VERSION": "2.0", "ROOT": str(self.root), "URL": url, "EVERY": "100ms", **more}

    async def release(self, plans: PlansClient, **more: str) -> RunningPlan:
        plan = load_plan(PROJECT / "release.yml")
        plan_id = await plans.run(plan, plan_id=f"r-{uuid4()}", arguments=self.arguments(**more))
        return RunningPlan(plan_id, plans, timedelta(seconds=PATIENCE))

    @asynccontextmanager
    async def served(self, output: Path) -> AsyncGenerator[None]:
        arguments = ["--bind", "127.0.0.1", "--directory", str(self.root)]
        async with program("-m", "http.server", str(self.port), *arguments, output=output):
            yield


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def _moments(view: PlanView, zone: str) -> list[tuple[datetime, datetime]]:
    """When the steps of a zone began and were complete."""
    return [
        (step.started, step.finished)
        for step in view.phases[1].steps
        if step.name.startswith(f"{zone}-") and step.started and step.finished
    ]


async def test_the_own_step_kind_looks_again_and_the_own_strategy_keeps_its_order(
    plans: PlansClient, site: Site, output: Path
) -> None:
    running = await site.release(plans)

    def waits(view: PlanView) -> bool:
        steps = {step.name: step for step in view.phases[1].steps}
        return all(
            steps[f"a-{server}-check"].message.endswith("; retrying") for server in ("web1", "web2")
        )

    view = await running.until(waits)
    assert {s.status for s in view.phases[1].steps if s.name[0] == "b"} == {Status.PENDING}
    assert not (site.root / "servers" / "b-web1").exists()
    async with site.served(output):
        run = await running.at_rest()
    assert run.complete, run.view.errors
    first, second = _moments(run.view, "a"), _moments(run.view, "b")
    assert (len(first), len(second)) == (4, 4)
    assert max(finished for _, finished in first) <= min(started for started, _ in second)
    for server in ("a-web1", "a-web2", "b-web1", "b-web2"):
        assert "Version 2.0" in (site.root / "servers" / server / "index.html").read_text()
    assert (site.root / "releases.txt").read_text() == "2.0\n"


async def test_a_check_that_fails_reads_error_until_it_is_restarted(
    plans: PlansClient, site: Site, output: Path
) -> None:
    running = await site.release(plans, WITHIN="200ms")
    checks = ["a-web1-check", "a-web2-check"]
    for step in checks:
        await running.until(Status.ERROR, phase="roll-out", step=step)
    view = await running.view()
    assert [error.split(" answers nothing: ")[0] for error in view.errors] == [
        f"roll-out: {step}: CheckFailed: http://127.0.0.1:{site.port}/servers/{step[:6]}/index.html"
        for step in checks
    ]
    async with site.served(output):
        await _until_it_listens(site.port)
        for step in checks:
            outcome = await running.restart(phase="roll-out", step=step, reason="servers are back")
            assert http_code(outcome) == 200
        run = await running.until(Status.COMPLETE)
    assert run.errors == ()


async def test_the_plan_in_python_is_written_as_the_same_plan_file(output: Path) -> None:
    said = await _finished("release.py", output=output)
    assert load_plan_text(said) == load_plan(PROJECT / "release.yml")


async def test_the_projects_own_tests_pass(output: Path) -> None:
    said = await _finished(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"), output=output, patience=LONG_PATIENCE
    )
    assert " passed" in said


async def _until_it_listens(port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                await writer.wait_closed()
                return
