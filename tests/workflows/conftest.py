"""One real Temporal dev server for all workflow tests, and clients of it that speak our values."""

import time
from collections.abc import AsyncIterator

import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from temporal_plans.worker.dev import DYNAMIC_CONFIG
from temporal_plans.worker.server_binary import server_binary


@pytest_asyncio.fixture(scope="session", loop_scope="session")
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
