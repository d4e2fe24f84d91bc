"""The commands of README.md and docs/packages.md that need a Kubernetes cluster run against a real
one, and end and print as the pages say. How a page is read: ``acceptance/readme``."""

import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from acceptance.cluster import PROGRAMS, ROOT
from acceptance.programs import Server
from acceptance.readme import NEEDS_KUBERNETES, commands, run_all
from kubernetes.control_plane import ControlPlane
from temporal_plans.cli.processes.demo_cluster import PIPED

NOT_RUN = re.compile(r"<!-- not run: (.*?) -->\s*```console\n(.*?)```", re.DOTALL)
NAMESPACE = "shop"
PAGES = ("README.md", "docs/packages.md")


@dataclass(frozen=True)
class Workplace:
    """The project as a reader has it, in ``folder``, and the environment of the reader."""

    folder: Path
    env: Mapping[str, str]


@pytest.fixture
async def workplace(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Workplace]:
    """A Temporal server of its own, and the kubeconfig where kubectl has it, with one context."""
    for path in PIPED:
        control_plane.put_file(path, "made once")
    (tmp_path / ".kube").mkdir()
    kubeconfig = json.loads(control_plane.credentials.kubeconfig("admin").read_text())
    kubeconfig["contexts"][0]["name"] = kubeconfig["current-context"] = "prod"
    (tmp_path / ".kube" / "config").write_text(json.dumps(kubeconfig))
    project = tmp_path / "project"
    shutil.copytree(ROOT / "examples", project / "examples")
    server = Server(tmp_path / "temporal.db", tmp_path / "temporal.log")
    await server.start()
    yield Workplace(
        project,
        {
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "TEMPORAL_ADDRESS": server.address,
        },
    )
    await server.stop()
    async with control_plane.client() as cluster:
        if await cluster.get("v1", "Namespace", NAMESPACE):
            await cluster.delete("v1", "Namespace", NAMESPACE)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
async def test_the_commands_of_the_page(workplace: Workplace, page: str) -> None:
    text = (ROOT / page).read_text()
    await run_all(text, workplace.env, workplace.folder, NEEDS_KUBERNETES)


@pytest.mark.parametrize("page", PAGES)
def test_no_block_about_a_cluster_is_left_out(page: str) -> None:
    """Another reason would keep it from being run in any ring."""
    text = (ROOT / page).read_text()
    about = re.compile(r"--kube|--cluster|packages/store")
    reasons = {reason for reason, block in NOT_RUN.findall(text) if about.search(block)}
    assert reasons == {NEEDS_KUBERNETES}
    assert list(commands(text, NEEDS_KUBERNETES))
