"""Clusters of real processes for the tests of this ring."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator

import pytest

from acceptance.agent_bench import Bench, bench
from acceptance.cluster import Cluster, running_cluster
from acceptance.fleet_kills.sites import Sites
from acceptance.fleet_soak.place import Place
from process_logs import add_logs


@pytest.fixture(scope="package")
async def cluster() -> AsyncIterator[Cluster]:
    """One for all tests that hurt none of its processes."""
    async with running_cluster() as cluster:
        yield cluster


@pytest.fixture
async def fresh_cluster() -> AsyncIterator[Cluster]:
    """One of its own for a test that does."""
    async with running_cluster() as cluster:
        yield cluster


@pytest.fixture
async def agent() -> AsyncGenerator[Bench, None]:
    """An agent of the test's own, without a Temporal server."""
    async with bench() as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the processes of its cluster printed last."""
    report = yield
    for kind in (Cluster, Place, Sites):
        add_logs(report, item, kind)
    return report
