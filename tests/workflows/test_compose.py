"""The script of docker-compose.yml that makes the namespace, with the real `temporal` CLI."""

import asyncio
import os
import re
from pathlib import Path

import pytest
import yaml
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from repository import ROOT
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.server_binary import server_binary

pytestmark = pytest.mark.cached("runs no workflow")


def script() -> str:
    """The script as compose hands it to the shell."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    (text,) = compose["services"]["namespace"]["command"]
    return re.sub(r"(?<!\$)\$\{[A-Z_]+:-([^}]*)\}", r"\1", text).replace("$$", "$")


async def made_by_the_script(server: DevServer, namespace: str, home: Path) -> None:
    environment = {
        "PATH": f"{(await server_binary()).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": namespace,
    }
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-euc", script(), env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def test_the_namespace_is_made_once(tmp_path: Path) -> None:
    async with DevServer() as server:
        for _ in range(2):
            await made_by_the_script(server, "elsewhere", tmp_path)
        client = await Client.connect(server.address)
        asked = DescribeNamespaceRequest(namespace="elsewhere")
        found = await client.workflow_service.describe_namespace(asked)
        assert found.namespace_info.name == "elsewhere"
