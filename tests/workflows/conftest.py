"""One real Temporal dev server for all workflow tests, and clients of it that speak our values."""

import time
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import TimeSkippingConfig, WorkflowEnvironment
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from markers import marked
from temporal_plans.worker.dev import DYNAMIC_CONFIG
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.server_binary import server_binary
from temporal_plans.workflows.mechanics.settings import EngineSettings
from workflows.plan_kit import Kit, kit
from workflows.service_kit import Listener
from workflows.service_programs import ServiceKit, service_double


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def env() -> AsyncIterator[WorkflowEnvironment]:
    """The server, with the settings of our own dev server."""
    flags = [
        argument
        for key, value in DYNAMIC_CONFIG.items()
        for argument in ("--dynamic-config-value", f"{key}={value}")
    ]
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(await server_binary()),
        dev_server_log_level="error",
        dev_server_extra_args=flags,
    )
    yield environment
    await environment.shutdown()
    time.sleep(0.3)  # a process that exits right after may crash in the SDK's native threads


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def clocks() -> AsyncIterator[WorkflowEnvironment]:
    """A server whose workflows have clocks that can be moved on."""
    settings = {**DYNAMIC_CONFIG, "frontend.WorkflowTimeSkippingEnabled": "true"}
    flags = [
        argument
        for key, value in settings.items()
        for argument in ("--dynamic-config-value", f"{key}={value}")
    ]
    environment = await WorkflowEnvironment.start_time_skipping_v2(
        ts_config=TimeSkippingConfig(enabled=False),
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(await server_binary()),
        dev_server_log_level="error",
        dev_server_extra_args=flags,
    )
    yield environment
    await environment.shutdown()
    time.sleep(0.3)


@pytest_asyncio.fixture(loop_scope="session")
async def client(env: WorkflowEnvironment) -> Client:
    return env.client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> SandboxedWorkflowRunner:
    """The workflow sandbox as the plugin sets it up: our packages are loaded once, not per run."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(
        "temporal_plans", "pydantic", "pystache", "yaml"
    )
    return SandboxedWorkflowRunner(restrictions=restrictions)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    """A worker for the plans of one module of tests."""
    async with kit(env.client.service_client.config.target_host) as made:
        yield made


@pytest.fixture
def engine_settings(request: pytest.FixtureRequest) -> EngineSettings:
    """The settings of a test's marker ``engine``, or those of a deployment."""
    return EngineSettings(**marked(request, "engine"))


@pytest.fixture
def engine(engine_settings: EngineSettings) -> PlansPlugin:
    return PlansPlugin(settings=engine_settings)


@pytest_asyncio.fixture(loop_scope="session")
async def own_plans(env: WorkflowEnvironment, engine: PlansPlugin) -> AsyncIterator[Kit]:
    """A worker for the plans of one test, with its settings."""
    async with kit(env.client.service_client.config.target_host, engine) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def service(plans: Kit) -> AsyncIterator[ServiceKit]:
    """A service double, for the plans of which it is the owner."""
    async with service_double(plans.client) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def listener(plans: Kit) -> AsyncIterator["WorkflowHandle[Listener, None]"]:
    """A workflow that stands for a phase or a step, and keeps what it is sent."""
    queue = f"listener-{uuid4()}"
    async with Worker(plans.client, task_queue=queue, workflows=[Listener]):
        handle = await plans.client.start_workflow(Listener.run, id=queue, task_queue=queue)
        yield handle
        await handle.terminate()
