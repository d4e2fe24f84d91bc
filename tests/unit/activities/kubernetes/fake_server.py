"""An API server of two kinds that keeps objects in memory: what the client sends, and what it makes
of the answers. How a real one behaves is for ``tests/kubernetes``."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Object = dict[str, Any]

GROUP = "tests.example"


class FakeServer:
    """``refusals`` are answers by the name of an object: status, reason, message. ``printed`` are
    the messages that a command in a pod sends, each the number of its stream and its content; a
    text is sent as one, and None keeps the connection open. Paths with ``lost_paths`` in them are
    answered as by a proxy that knows none."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.refusals: dict[str, tuple[int, str, str]] = {}
        self.requests: list[str] = []
        self.deletions: list[Object] = []
        self.printed: list[bytes | str | None] = []
        self.things_are_defined = False
        self.stalls = False
        self.lost_paths = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        path = request.path
        if self.stalls:
            await asyncio.Event().wait()
        if self.lost_paths and self.lost_paths in path:
            return web.Response(status=404, text="<html>", content_type="text/html")
        if (found := self._discovered(path)) is not None:
            return web.json_response(found)
        self.requests.append(f"{request.method} {request.path_qs}")
        if refusal := self.refusals.get(path.rpartition("/")[2]):
            return _refused(*refusal)
        if path.endswith("/exec"):
            return await self._execute(request)
        if request.method == "PATCH":
            applied: Object = json.loads(await request.text())
            if "dryRun" not in request.query:
                self.objects[path] = applied
            return web.json_response(applied)
        if request.method == "GET" and path.endswith("/configmaps"):
            return web.json_response(self._listed(path, request))
        if path not in self.objects:
            return _refused(404, "NotFound", "not found")
        if request.method == "DELETE":
            self.deletions.append(await request.json())
            return web.json_response(self.objects.pop(path))
        return web.json_response(self.objects[path])

    async def _execute(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        for message in self.printed:
            if message is None:
                await socket.receive()
            elif isinstance(message, str):
                await socket.send_str(message)
            else:
                await socket.send_bytes(message)
        await socket.close()
        return socket

    def _listed(self, folder: str, request: web.Request) -> Object:
        """As many as the limit, as metadata alone."""
        assert "PartialObjectMetadataList" in request.headers["Accept"]
        found = [one for path, one in self.objects.items() if path.startswith(f"{folder}/")]
        limit = int(request.query["limit"])
        items = [{"metadata": one["metadata"]} for one in found[:limit]]
        return {"metadata": {"continue": "x" if len(found) > limit else ""}, "items": items}

    def _discovered(self, path: str) -> Object | None:
        version = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
        group = {"name": GROUP, "versions": [version], "preferredVersion": version}
        defined = self.things_are_defined
        answers: dict[str, Object | None] = {
            "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
            "/apis": {"kind": "APIGroupList", "groups": [group] if defined else []},
            "/api/v1": _kinds("v1", "configmaps", "ConfigMap"),
            f"/apis/{GROUP}/v1": _kinds(f"{GROUP}/v1", "things", "Thing") if defined else None,
        }
        return answers.get(path)


def _kinds(version: str, name: str, kind: str) -> Object:
    resource = {"name": name, "singularName": "", "namespaced": True, "kind": kind}
    return {"kind": "APIResourceList", "groupVersion": version, "resources": [resource]}


def _refused(status: int, reason: str, message: str) -> web.Response:
    content = {"kind": "Status", "status": "Failure", "reason": reason, "message": message}
    return web.json_response(content, status=status)


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[tuple[FakeServer, Path], None]:
    """A server on a free port, and a kubeconfig for it in ``folder``."""
    server = FakeServer()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        host, port = runner.addresses[0][:2]
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(f"http://{host}:{port}"))
        yield server, kubeconfig
    finally:
        await runner.cleanup()


def _kubeconfig(server: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": {"token": "token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    return json.dumps(content)
