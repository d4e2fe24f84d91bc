"""A namespace for one test, and what is looked at in it."""

import secrets
from collections.abc import Callable
from typing import Any

from kubernetes.cluster_client import ClusterClient, Object
from pauses import PATIENCE, until

LONG = 2 * PATIENCE
"""Seconds that controllers may take: one that lost its server may look again after a minute."""


class Namespace:
    """Objects of one namespace, by kind and name."""

    def __init__(self, cluster: ClusterClient, name: str) -> None:
        self.cluster = cluster
        self.name = name

    @classmethod
    async def made(cls, cluster: ClusterClient) -> "Namespace":
        """Make a namespace of a new name, and wait for what controllers make in it: a service
        account, without which the API server refuses pods, and the authority of the server."""
        made = cls(cluster, f"test-{secrets.token_hex(4)}")
        await cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.name}}
        )
        await made.until("v1", "ServiceAccount", "default", bool)
        await made.until("v1", "ConfigMap", "kube-root-ca.crt", bool)
        return made

    async def delete(self) -> None:
        """Order its deletion; what is in it is deleted meanwhile."""
        if await self.cluster.get("v1", "Namespace", self.name):
            await self.cluster.delete("v1", "Namespace", self.name)

    async def apply(self, manifest: Object) -> Object:
        """Apply an object in this namespace."""
        metadata = {**manifest["metadata"], "namespace": self.name}
        return await self.cluster.apply({**manifest, "metadata": metadata})

    async def until(
        self, version: str, kind: str, name: str, wanted: Callable[[Any], object]
    ) -> Object:
        """Wait until an object, or None without it, is as wanted; return it."""

        async def look() -> Object | None:
            return await self.cluster.get(version, kind, name, self.name)

        return await until(look, wanted, patience=LONG) or {}

    async def until_pods(
        self, labels: str, wanted: Callable[[list[Object]], object]
    ) -> list[Object]:
        """Wait until the pods that a selector selects are as wanted; return them."""

        async def look() -> list[Object]:
            return await self.cluster.list("v1", "Pod", self.name, labels)

        return await until(look, wanted, patience=LONG)
