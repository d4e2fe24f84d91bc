"""The rules of examples/developer, in force for a service on a real agent, by its own worker."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acceptance.cluster import ROOT, Cluster, Machine, phase, running_cluster, steps
from acceptance.life import Life
from acceptance.programs import Program
from temporal_plans.domain.plans.status import Status
from temporal_plans.worker.ports import free_port

PROJECT = ROOT / "examples" / "developer"
WEB = PROJECT / "web.yml"

REPLACED_SOON = (
    *("-e", "ENABLE_AUTOMATIC_POD_REPLACEMENT=true", "-e", "PERMANENT_FAILURE_TIMEOUT_SECS=1"),
    *("-e", "FRAMEWORK_INITIAL_BACKOFF=8"),  # longer than that
)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """One whose worker is the project's."""
    async with running_cluster((Machine("one", "one.example"),)) as cluster:
        await cluster.worker.stop()
        cluster.worker = Program(
            Path(sys.executable),
            [str(PROJECT / "worker.py")],
            env=cluster.env,
            log=cluster.directory / "worker-of-the-project.log",
        )
        await cluster.worker.start()
        await cluster.until("the worker answers", cluster.pool, bool)
        yield cluster


async def test_the_rules_of_the_house(cluster: Cluster, tmp_path: Path) -> None:
    web = Life(cluster, "web", WEB.read_text())
    values = ("-e", f"PORT={free_port()}", "-e", "VERSION=1.0", *REPLACED_SOON)

    await cluster.plan("deploy", str(WEB), *values, "--wait")
    view = await web.view()
    assert [one.name for one in view.phases] == ["web", "smoke-test"]
    assert steps(view)["web-server"].status is Status.COMPLETE

    unready = tmp_path / "web.yml"
    unready.write_text(WEB.read_text().partition("        readiness-check:")[0])
    refused = await cluster.plan("deploy", str(unready), *values, code=1)
    assert "pods.web.tasks.server.readiness-check: is missing" in refused.err
    await cluster.plan("deploy", str(WEB), *values, "--wait")

    before = await web.held("web-0")
    await web.kill("web-0-server")
    view = await cluster.until_plan(
        "web/recovery", "asks first", lambda view: view.waiting and view.phases
    )
    asked = phase(view, "replace-web-0")
    assert [step.name for step in asked.steps] == ["agree", "web-0"]
    assert "Give up the data of web-0?" in asked.steps[0].message
    assert (await web.held("web-0")).id == before.id

    await cluster.plan("continue", "recovery", "replace-web-0", "agree", "-s", "web")
    await cluster.until_status("web/recovery", Status.COMPLETE)
    assert (await web.held("web-0")).id != before.id
    await cluster.until_running(["web-0-server"])
