"""What tests say to an API server: objects as plain dicts, by the dynamic client."""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

from kubernetes_asyncio.client import ApiClient, CoreV1Api, VersionApi
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.dynamic import DynamicClient
from kubernetes_asyncio.stream import WsApiClient
from kubernetes_asyncio.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL

from temporal_plans.activities.kubernetes.api_client import api_client

MANAGER = "tests"
"""The field manager of what tests apply."""

Object = dict[str, Any]


class Executed(NamedTuple):
    """What a command in a pod printed, and its exit code."""

    code: int
    out: bytes
    err: bytes


class ClusterClient:
    """A connection of one user. Every method raises ApiException with the server's status."""

    def __init__(self, api: ApiClient, dynamic: DynamicClient) -> None:
        self._api = api
        self._dynamic = dynamic

    async def version(self) -> str:
        """Return the version of the API server, such as ``v1.36.3``."""
        return (await VersionApi(self._api).get_code()).git_version

    async def apply(self, manifest: Mapping[str, Any], **options: Any) -> Object:
        """Apply on the server's side with force, and return the object as it is now."""
        resource = await self._resource(manifest["apiVersion"], manifest["kind"])
        answer = await resource.server_side_apply(
            body=dict(manifest), field_manager=MANAGER, force_conflicts=True, **options
        )
        return cast(Object, answer.to_dict())

    async def create(self, manifest: Mapping[str, Any], **options: Any) -> Object:
        """Create an object, which must not be there."""
        resource = await self._resource(manifest["apiVersion"], manifest["kind"])
        namespace = manifest["metadata"].get("namespace")
        answer = await resource.create(body=dict(manifest), namespace=namespace, **options)
        return cast(Object, answer.to_dict())

    async def tried(self, manifest: Mapping[str, Any]) -> Object | None:
        """Return the object that applying would make; None while that is refused."""
        try:
            return await self.apply(manifest, dry_run="All")
        except ApiException as error:
            if error.status in (403, 404):
                return None
            raise

    async def get(
        self, version: str, kind: str, name: str, namespace: str | None = None
    ) -> Object | None:
        """Return an object; None when there is none of that name."""
        resource = await self._resource(version, kind)
        try:
            answer = await resource.get(name=name, namespace=namespace)
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return cast(Object, answer.to_dict())

    async def list(self, version: str, kind: str, namespace: str, labels: str = "") -> list[Object]:
        """Return the objects of a namespace that a label selector selects."""
        resource = await self._resource(version, kind)
        answer = await resource.get(namespace=namespace, label_selector=labels)
        return cast(list[Object], answer.to_dict()["items"])

    async def delete(
        self, version: str, kind: str, name: str, namespace: str | None = None
    ) -> None:
        """Order the deletion of an object, and of what it owns in the background."""
        resource = await self._resource(version, kind)
        await resource.delete(name=name, namespace=namespace, propagation_policy="Background")

    async def token(self, namespace: str, account: str) -> str:
        """Return a token of a service account."""
        request: Any = {"spec": {"expirationSeconds": 3600}}
        create: Any = CoreV1Api(self._api).create_namespaced_service_account_token
        return str((await create(account, namespace, request)).status.token)

    async def execute(self, namespace: str, pod: str, *command: str) -> Executed:
        """Run a command in the only container of a pod, to its end."""
        streams = {STDOUT_CHANNEL: b"", STDERR_CHANNEL: b"", ERROR_CHANNEL: b""}
        streaming: ApiClient = WsApiClient(self._api.configuration)
        async with streaming:
            connect: Any = CoreV1Api(streaming).connect_get_namespaced_pod_exec
            opened = await connect(
                pod, namespace, command=list(command), stdout=True, stderr=True,
                _preload_content=False,
            )  # fmt: skip
            async with opened as socket:
                async for message in socket:
                    channel, content = message.data[0], message.data[1:]
                    streams[channel] = streams.get(channel, b"") + content
        ended = json.loads(streams[ERROR_CHANNEL])
        return Executed(_exit_code(ended), streams[STDOUT_CHANNEL], streams[STDERR_CHANNEL])

    async def _resource(self, version: str, kind: str) -> Any:
        return await self._dynamic.resources.get(api_version=version, kind=kind)


def _exit_code(status: Mapping[str, Any]) -> int:
    """Kubelets give the exit code as a cause; KWOK 0.8 has it in the text of the failure only."""
    if status["status"] == "Success":
        return 0
    causes = status.get("details", {}).get("causes", [])
    codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
    codes += re.findall(r"exit status (\d+)", status.get("message", ""))
    assert codes, f"the command was not executed: {status}"
    return int(codes[0])


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncGenerator[ClusterClient, None]:
    """Connect as a kubeconfig says; for ``async with``."""
    # What the dynamic client discovers it keeps in a file, by default one for all of the machine.
    with TemporaryDirectory() as folder:
        api = await api_client(kubeconfig)
        async with api:
            dynamic = await DynamicClient(api, cache_file=str(Path(folder) / "discovered.json"))
            yield ClusterClient(api, dynamic)
