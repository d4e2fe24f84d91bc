"""Services and packages at a spoke, whose hub is behind TLS and wants client certificates."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from acceptance.cluster import Cluster, Machine, running_cluster
from acceptance.proxy import Proxy
from acceptance.test_spoke import LONG, Places
from builders.packages import write_package
from builders.tls import Authority
from temporal_plans.messages.fleets.environment_views import StatusRow

ENVIRONMENT = "prod-eu"

DOCUMENTS = """
kind: product
name: shop:web
---
kind: product
name: shop:store
---
kind: environment
name: prod-eu
settings: {{release-channel: RELEASE, spoke: true}}
entities:
  web:
    product: shop:web
    kind: service
    uninstall: {uninstall}
    config: {{1.0.0: {{overrides: {{WORD: {word}}}}}}}
  store: {{product: "shop:store", kind: package, config: {{1.0.0: {{}}}}}}
"""

SERVICE = """
name: web
pods:
  web:
    count: 1
    tasks:
      server:
        goal: RUNNING
        cmd: echo {{WORD}} {{VERSION}} {{ENVIRONMENT}} > said; exec sleep 600
        cpus: 0.1
        memory: 16
"""


@asynccontextmanager
async def places(folder: Path) -> AsyncGenerator[Places]:
    authority = Authority(folder)
    certificate, key = authority.client("spoke")
    options = ("--hub-tls", "--hub-tls-ca-path", str(authority.path))
    own = ("--hub-tls-cert-path", str(certificate), "--hub-tls-key-path", str(key))
    async with (
        running_cluster(()) as hub,
        running_cluster((Machine("one", "one.example"),)) as here,
        Proxy(hub.server.port, tls=authority.server(mutual=True)) as network,
    ):
        yield Places(hub, here, network, ENVIRONMENT, (*options, *own))


async def said(at: Places) -> list[str]:
    """What the tasks of the spoke's agent have written since they began."""
    files = at.here.work_dir("one").rglob("said")
    found: list[str] = []
    for path in files:
        with suppress(FileNotFoundError):  # a sandbox that is being removed
            found.append(path.read_text().strip())
    return found


async def until_said(at: Places, text: str) -> None:
    await at.here.until(f"{text} is said", lambda: said(at), lambda found: text in found)


async def has_service(place: Cluster) -> bool:
    client = await place.bare_client()
    found = client.list_workflows("WorkflowId = 'service/prod-eu.web'")
    return bool([one async for one in found])


async def rows(at: Places) -> dict[str, StatusRow]:
    status = await (await at.hub.client()).environment(ENVIRONMENT)
    return {row.entity: row for row in status.rows}


async def until_web(at: Places, version: str | None) -> None:
    await at.hub.until(
        f"web is at {version}",
        lambda: rows(at),
        lambda found: found["web"].standing.installed == version and not found["web"].plan_status,
        within=LONG,
    )


async def test_a_service_and_a_package_at_a_spoke_behind_tls(tmp_path: Path) -> None:
    async with places(tmp_path) as at:
        await at.apply(DOCUMENTS.format(word="one", uninstall="false"))
        svc = at.hub.directory / "svc.yml"
        svc.write_text(SERVICE)
        await at.hub.plan("fleet", "publish", "shop:web", "1.0.0", "-f", str(svc))
        spoke = at.spoke("one")
        await spoke.start()
        try:
            await until_web(at, "1.0.0")
            await at.here.until_running(["web-0-server"])
            await until_said(at, "one 1.0.0 prod-eu")
            assert await said(at) == ["one 1.0.0 prod-eu"]
            assert await has_service(at.here)
            assert not await has_service(at.hub)

            # another configuration, and another version
            await at.apply(DOCUMENTS.format(word="two", uninstall="false"))
            await at.hub.plan("fleet", "publish", "shop:web", "1.1.0", "-f", str(svc))
            await until_web(at, "1.1.0")
            await until_said(at, "two 1.1.0 prod-eu")

            # a package: nobody serves a cluster here, which people are told, and it can be ended
            folder = write_package(tmp_path / "package")
            await at.hub.plan("fleet", "publish", "shop:store", "1.0.0", "-f", str(folder))
            await at.apply(DOCUMENTS.format(word="two", uninstall="true"))
            await until_web(at, None)
            await at.here.until_running([])

            here = await at.here.client()
            await at.here.until(
                "the package waits for its cluster",
                lambda: here.explain_service("prod-eu.store"),
                lambda found: "kubernetes/main" in str(found),
                within=LONG,
            )
            await at.hub.plan("fleet", "cancel", f"{ENVIRONMENT}/store", "--reason", "no cluster")
            await at.hub.until(
                "the plan of the package is cancelled",
                at.history,
                lambda found: {one.entity: one.status for one in found}["store"] == "CANCELLED",
                within=LONG,
            )
            ended = [(one.entity, one.intent, one.status) for one in await at.history()]
            assert ("web", "UNINSTALL", "SUCCEEDED") in ended
        finally:
            await spoke.stop()
