"""A fleet by the shipped commands: documents, releases of plan files and of services, and what
people do by hand."""

import asyncio
import json
import shlex
import time
from pathlib import Path

import pytest

from acceptance.cluster import ROOT, Cluster
from pauses import PATIENCE
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow

PRODUCTS = """
kind: product
name: shop:tool
---
kind: product
name: shop:web
"""

FLEET = """
kind: environment
name: {name}
settings:
  release-channel: RELEASE
entities:
  tool: {{product: "shop:tool", kind: plan, config: {{1.0.0: {{overrides: {{PAUSE: 10ms}}}}}}}}
  web: {{product: "shop:web", kind: service, config: {{1.0.0: {{overrides: {{WORD: {name}}}}}}}}}
"""

PLAN = """
name: install
phases:
  change:
    steps:
      nap: {sleep: "10ms"}
"""

SERVICE = """
name: web
pods:
  web:
    count: 1
    tasks:
      server:
        goal: RUNNING
        cmd: echo {{WORD}} {{VERSION}}; while true; do sleep 1; done
        cpus: 0.1
        memory: 16
"""

PIPELINE = """
kind: channel
name: stable
labels: {}
---
kind: pipeline
product: shop:web
stages:
  - source: beta
    target: stable
    canary: {promote: {percent: 100, soak: 4h}, recall: {count: 1, soak: 30m}}
"""

APPROVALS = "settings:\n  approvals: {changes: [settings, entities, config]}\n"

LONG = 2 * PATIENCE
"""A service of pods takes some seconds, on a slow machine many."""


async def rows(cluster: Cluster) -> dict[str, StatusRow]:
    """The entities by ``environment/entity``."""
    fleet = await (await cluster.client()).fleet()
    return {
        f"{row.environment}/{row.entity}": row
        for one in fleet.values()
        if isinstance(one, EnvironmentStatus)
        for row in one.rows
    }


async def until_at(cluster: Cluster, version: str | None, *entities: str) -> None:
    end = time.monotonic() + LONG
    while True:
        found = await rows(cluster)
        at = {name: found[name].standing.installed for name in entities if name in found}
        if at == dict.fromkeys(entities, version):
            return
        assert time.monotonic() < end, found
        await asyncio.sleep(0.5)


async def launches(cluster: Cluster, service: str) -> dict[str, str]:
    return await (await cluster.client()).launches(service, "web-0")


async def until_restarted(cluster: Cluster, entity: str) -> None:
    end = time.monotonic() + LONG
    while True:
        plans = json.loads((await cluster.plan("fleet", "plans", entity, "--json")).out)
        restarts = [one for one in plans["rows"] if one["kind"] == "RESTART"]
        if [one["status"] for one in restarts] == ["SUCCEEDED"]:
            return
        assert time.monotonic() < end, plans
        await asyncio.sleep(0.5)


def write(cluster: Cluster, name: str, text: str) -> str:
    path = Path(cluster.directory) / name
    path.write_text(text)
    return str(path)


FLEETS = ROOT / "docs" / "fleets.md"
DOCUMENTED = [
    line for line in FLEETS.read_text().splitlines() if line.startswith("temporal plan fleet ")
]


async def test_the_documented_commands_run(cluster: Cluster) -> None:
    """Nothing is installed: the environment follows another channel."""
    assert len(DOCUMENTED) > 4
    write(cluster, "products.yml", PRODUCTS)
    text = FLEET.format(name="prod").replace("channel: RELEASE", "channel: quiet")
    write(cluster, "prod.yml", text)
    write(cluster, "svc.yml", SERVICE)
    write(cluster, "pipeline.yml", PIPELINE)
    write(cluster, "approvals.yml", text.replace("settings:\n", APPROVALS))
    for line in DOCUMENTED:
        await cluster.plan(*shlex.split(line)[2:])
    assert {row.standing.code for row in (await rows(cluster)).values()} == {"CHANNEL_EMPTY"}
    for subject in ("environment/prod", "product/shop:web", "product/shop:tool"):
        await cluster.plan("fleet", "delete", subject)


@pytest.mark.long
async def test_a_fleet_by_commands(cluster: Cluster) -> None:
    products = write(cluster, "products.yml", PRODUCTS)
    documents = [
        write(cluster, f"{name}.yml", FLEET.format(name=name)) for name in ("north", "south")
    ]
    files = [flag for path in (*documents, products) for flag in ("-f", path)]
    differs = await cluster.plan("fleet", "diff", *files, "--exit-code", "--json", code=1)
    assert any("(applied)" in line for line in json.loads(differs.out)["lines"])
    said = await cluster.plan("fleet", "apply", *files, "--reason", "two places")
    assert said.out.startswith("product shop:tool: ")
    same = await cluster.plan("fleet", "diff", *files, "--exit-code")
    assert same.out.strip() == "no differences"

    install = write(cluster, "install.yml", PLAN)
    await cluster.plan("fleet", "publish", "shop:tool", "1.0.0", "-f", install)
    await until_at(cluster, "1.0.0", "north/tool", "south/tool")

    svc = write(cluster, "svc.yml", SERVICE)
    await cluster.plan("fleet", "publish", "shop:web", "1.0.0", "-f", svc)
    await until_at(cluster, "1.0.0", "north/web", "south/web")
    listed = (await cluster.plan("list", "--json")).out
    assert "north.web" in listed
    assert "south.web" in listed

    await cluster.plan("fleet", "suppress", "north/tool", "--reason", "a look")
    await cluster.plan("fleet", "publish", "shop:tool", "1.1.0", "-f", install)
    await until_at(cluster, "1.1.0", "south/tool")
    explained = await cluster.until_said(
        *("fleet", "explain", "north/tool"),
        texts=["K15", "release 1.1.0: chosen; held back: SUPPRESSED"],
    )
    assert (await cluster.plan("explain", "north/tool")).out == explained.out
    drawn = (await cluster.plan("fleet", "graph", "north", "--format", "dot")).out
    assert '"tool" [label="tool\\n1.0.0"];' in drawn
    table = (await cluster.plan("fleet", "status", "north")).out
    assert "a look" in table
    found = json.loads((await cluster.plan("fleet", "status", "north", "--json")).out)
    assert [row["standing"]["code"] for row in found[0]["rows"]] == ["SUPPRESSED", "UP_TO_DATE"]
    await cluster.plan("fleet", "unsuppress", "north", "manual-1")
    await until_at(cluster, "1.1.0", "north/tool")

    before = await launches(cluster, "north.web")
    await cluster.plan("fleet", "command", "north/web", "restart", "--reason", "stuck")
    await until_restarted(cluster, "north/web")
    assert (await launches(cluster, "north.web")).keys() == before.keys()
    assert not set((await launches(cluster, "north.web")).values()) & set(before.values())

    await cluster.plan(
        *("fleet", "recall", "shop:tool", "1.1.0", "--allow-downgrade", "--minimum", "1.0.0"),
        *("--reason", "it naps too long"),
    )
    await until_at(cluster, "1.0.0", "north/tool", "south/tool")
    releases = (await cluster.plan("fleet", "releases", "shop:tool")).out
    assert "recall 1.1.0 (active): 1.1.0: it naps too long" in releases
    history = (await cluster.plan("fleet", "plans", "north/tool")).out
    assert "RECALL_ROLL_OFF" in history
    shown = (await cluster.plan("show", "environment/north/tool.1")).out
    assert all(phase in shown for phase in ("prepare", "change", "verify", "report"))

    exported = (await cluster.plan("fleet", "export", "environment/north")).out
    again = write(cluster, "exported.yml", exported)
    said = await cluster.plan("fleet", "apply", "-f", again)
    assert "so already" in said.out

    refused = await cluster.plan("fleet", "suppress", "north/tol", code=1)
    assert "did you mean tool" in refused.both
    refused = await cluster.plan("fleet", "publish", "shop:tool", "1.1", code=1)
    assert "version" in refused.both
    missing = await cluster.plan("fleet", "status", "west", code=1)
    assert "there is no such environment" in missing.both

    for name in ("north", "south"):
        text = FLEET.format(name=name).replace("kind: service,", "kind: service, uninstall: true,")
        await cluster.plan("fleet", "apply", "-f", write(cluster, f"{name}.yml", text))
    await until_at(cluster, None, "north/web", "south/web")
    for name in ("north", "south"):
        await cluster.plan("fleet", "delete", f"environment/{name}", "--reason", "the end")
    for name in ("shop:web", "shop:tool"):
        await cluster.plan("fleet", "delete", f"product/{name}", "--force")
    left = json.loads((await cluster.plan("fleet", "status", "--json")).out)
    assert [one["name"] for one in left if one["name"] in ("north", "south")] == []
