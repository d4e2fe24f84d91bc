"""The worked example of docs/fleets.md, as a reader runs it."""

import shutil

from acceptance.cluster import ROOT, running_cluster
from acceptance.readme import run_all, section

PAGE = ROOT / "docs" / "fleets.md"


async def test_the_worked_example_prints_what_it_says() -> None:
    async with running_cluster() as cluster:
        directory = cluster.directory / "project"
        shutil.copytree(ROOT / "examples" / "fleets", directory / "examples" / "fleets")
        await run_all(section(PAGE.read_text(), "A worked example"), cluster.env, directory)
