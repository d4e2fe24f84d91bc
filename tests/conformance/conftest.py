"""Every backend that there is, each with a pool of its own for every test."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from conformance.agents import Listener, agent_cluster
from conformance.cluster import BRIEF, NEVER, Cluster
from conformance.memory import MemoryCluster
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.plugin import PlansPlugin

Open = Callable[[Client, Path, timedelta], AbstractAsyncContextManager[Cluster]]
"""Opens a cluster with a grace period; a server and a directory are there for those that want."""


@asynccontextmanager
async def memory_cluster(_: Client, __: Path, grace: timedelta) -> AsyncGenerator[MemoryCluster]:
    yield MemoryCluster(grace)


BACKENDS = [
    pytest.param(agent_cluster, id="agents"),
    pytest.param(memory_cluster, id="memory"),
]


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def client() -> AsyncIterator[Client]:
    """A server with a worker as it is shipped."""
    async with DevServer() as server:
        plans = await Client.connect(server.address, plugins=[PlansPlugin()])
        async with Worker(plans, task_queue=PLANS_QUEUE, workflows=[Listener]):
            yield await Client.connect(server.address, data_converter=pydantic_data_converter)


@pytest.fixture(params=BACKENDS)
async def cluster(
    request: pytest.FixtureRequest, client: Client, tmp_path: Path
) -> AsyncIterator[Cluster]:
    """A cluster in which nothing outlives the grace period."""
    opens: Open = request.param
    async with opens(client, tmp_path, NEVER) as made:
        yield made


@pytest.fixture(params=BACKENDS)
async def brief(
    request: pytest.FixtureRequest, client: Client, tmp_path: Path
) -> AsyncIterator[Cluster]:
    """A cluster in which a test can wait for that."""
    opens: Open = request.param
    async with opens(client, tmp_path, BRIEF) as made:
        yield made
