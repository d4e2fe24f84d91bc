"""``demo --package`` on a cluster of the user's kubeconfig, and on a control plane of its own."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from acceptance.programs import Said, run
from kubernetes.control_plane import ControlPlane
from kubernetes.listing import Identity
from kubernetes.namespaces import LONG
from pauses import until
from temporal_plans.cli.main import app
from temporal_plans.cli.processes.demo_cluster import PIPED
from temporal_plans.worker.control_plane.programs import cache

DEMO = (str(Path(sys.executable).parent / "temporal-plan"), "demo", "--package")
DEMO_TIMEOUT = 600.0
"""Seconds that the whole story may take."""

CHAPTERS = range(1, 9)
PLANS = ("deploy", "update", "backup", "update", "upgrade", "cleanup")


@pytest.fixture
def env(control_plane: ControlPlane, tmp_path: Path) -> dict[str, str]:
    """Of a person whose kubeconfig names the cluster."""
    for path in PIPED:
        control_plane.put_file(path, "made once")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "KUBECONFIG": str(control_plane.credentials.kubeconfig("admin")),
    }


@asynccontextmanager
async def nothing_is_left(control_plane: ControlPlane) -> AsyncGenerator[None]:
    """Fail when the cluster has afterwards what it did not have before."""

    async def look() -> set[Identity]:
        async with control_plane.client() as cluster:
            return {each for each in await cluster.everything() if each.kind != "Event"}

    before = await look()
    yield
    await until(look, lambda found: found <= before, patience=LONG)


async def told(env: Mapping[str, str], tmp_path: Path, *options: str) -> Said:
    program, *words = DEMO
    return await run(Path(program), *words, *options, env=env, cwd=tmp_path, limit=DEMO_TIMEOUT)


def assert_whole_story(said: Said) -> None:
    assert (said.code, said.err) == (0, ""), str(said)
    assert "\x1b" not in said.out
    for number in CHAPTERS:
        assert f"\n[{number}/{len(CHAPTERS)}] " in said.out
    changed = r"StatefulSet shop: (.*; )?others have changed it since it was applied: spec.replicas"
    assert re.search(changed, said.out), str(said)
    assert "Nothing is wrong with shop" in said.out
    *_, what_happened = said.out.partition("What happened\n")
    rows = [re.split(r"  +", line) for line in what_happened.splitlines() if line[0:1] == "+"]
    assert [row[1:3] for row in rows if row[1] != "-"] == [[plan, "COMPLETE"] for plan in PLANS]
    assert said.out.endswith("Nothing is left running.\n")


def commands_of(said: Said) -> list[list[str]]:
    lines = re.findall(r"(?m)^\$ temporal-plan (.*)$", said.out)
    return [shlex.split(line) for line in lines]


@pytest.mark.timeout(900)
async def test_the_story_on_a_cluster_of_the_user(
    control_plane: ControlPlane, env: Mapping[str, str], tmp_path: Path
) -> None:
    async with nothing_is_left(control_plane):
        said = await told(env, tmp_path, "--context", "local")
    assert_whole_story(said)
    assert not list(tmp_path.glob("temporal-plans-demo-*"))
    for words in commands_of(said):
        assert_is_a_command(words)


def assert_is_a_command(words: list[str]) -> None:
    """What the demo prints can be typed."""
    command = typer.main.get_command(app)
    context = command.make_context("temporal-plan", list(words), resilient_parsing=True)
    while words and isinstance(command, TyperGroup):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    command.make_parser(context).parse_args(list(words))


@pytest.mark.timeout(900)
async def test_the_story_on_a_control_plane_of_its_own(env: dict[str, str], tmp_path: Path) -> None:
    del env["KUBECONFIG"]
    env["XDG_CACHE_HOME"] = str(cache().parents[1])
    said = await told(env, tmp_path)
    assert_whole_story(said)
    assert not list(tmp_path.glob("control-plane-*"))


async def test_a_plan_that_takes_too_long(
    control_plane: ControlPlane, env: Mapping[str, str], tmp_path: Path
) -> None:
    async with nothing_is_left(control_plane):
        said = await told(env, tmp_path, "--context", "local", "--timeout", "1ms")
    assert said.code == 1
    assert "plan shop/deploy has not come to its end within" in said.err
    assert "$ temporal-plan explain -s shop\n" in said.out


async def test_an_interrupted_story(
    control_plane: ControlPlane, env: Mapping[str, str], tmp_path: Path
) -> None:
    """As by Ctrl-C, while the package is being installed."""
    output = tmp_path / "output"
    async with nothing_is_left(control_plane):
        with output.open("wb") as sink:
            demo = await asyncio.create_subprocess_exec(
                *DEMO, "--context", "local", env=env, cwd=tmp_path, stdout=sink, stderr=sink
            )

        async def installs() -> bool:
            return "store/password" in output.read_text() or demo.returncode is not None

        await until(installs)
        demo.send_signal(signal.SIGINT)
        assert await demo.wait() == 1, output.read_text()
    assert output.read_text().endswith(
        "Error: interrupted; what the demo has made is being removed\n"
    )


async def test_a_context_that_is_not_there(env: Mapping[str, str], tmp_path: Path) -> None:
    said = await told(env, tmp_path, "--context", "prod")
    assert said.code == 1
    assert said.err.startswith("Error: --context prod: ")
    assert said.err.endswith(
        "`kubectl config get-contexts` lists the contexts of your kubeconfig\n"
    )
