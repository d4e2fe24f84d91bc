"""A package that a fleet publishes is installed in the real cluster, by the shipped commands."""

from pathlib import Path
from uuid import uuid4

from builders.packages import OPERATOR, package_files, write_package
from kubernetes.cluster_client import ClusterClient
from kubernetes.namespaces import Namespace
from kubernetes.place import Place
from pauses import until

ENVIRONMENT = """\
kind: environment
name: {name}
settings:
  release-channel: RELEASE
  cluster: main
  namespace: {namespace}
entities:
  web:
    product: {product}
    kind: package
    {more}
    config: {{1.0.0: {{overrides: {{SIZE: {size}}}}}}}
"""

PATIENCE = 150.0


async def test_a_published_package_is_installed_configured_and_uninstalled(
    place: Place, cluster: ClusterClient, namespace: Namespace, tmp_path: Path
) -> None:
    name = f"e{uuid4().hex[:8]}"
    product = f"shop:{name}"
    document = tmp_path / "environment.yml"

    async def applied(size: int, more: str = "") -> None:
        text = ENVIRONMENT.format(
            name=name, namespace=namespace.name, product=product, size=size, more=more
        )
        document.write_text(text)
        await place.command("fleet", "apply", "-f", str(document))

    async def size() -> str:
        found = await cluster.list("v1", "ConfigMap", namespace.name)
        sizes = [one["data"]["size"] for one in found if one["metadata"]["name"] == "web"]
        return sizes[0] if sizes else ""

    await applied(4)
    folder = write_package(tmp_path / "package")
    said = await place.command("fleet", "publish", product, "1.0.0", "-f", str(folder))
    assert "1.0.0 is published" in said.out
    await until(size, lambda found: found == "4", patience=PATIENCE)

    newer = OPERATOR.replace('operatorVersion: "1.0.0"', 'operatorVersion: "1.1.0"')
    folder = write_package(tmp_path / "newer", package_files(newer))
    await place.command("fleet", "publish", product, "1.1.0", "-f", str(folder))
    await applied(7)
    await until(size, lambda found: found == "7", patience=PATIENCE)
    assert "operator.yaml" in (await place.command("fleet", "releases", product)).out

    await applied(7, more="uninstall: true")
    await until(size, lambda found: found == "", patience=PATIENCE)
    await place.command("fleet", "delete", f"environment/{name}", "--force")
    await place.command("fleet", "delete", f"product/{product}", "--force")
