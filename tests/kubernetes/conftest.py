"""The control plane of this ring: built by ``make control-plane``, started once for all tests."""

import os
from collections.abc import AsyncIterator, Generator

import pytest

from kubernetes.cluster_client import ClusterClient
from kubernetes.control_plane import ControlPlane, running_control_plane
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Steps
from process_logs import add_logs
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from tools.control_plane import absence, programs

PROGRAMS = programs()


def pytest_runtest_setup() -> None:
    """Without a control plane tests are skipped, all with one line; in CI that is a failure."""
    if (reason := absence(PROGRAMS)) is None:
        return
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
async def control_plane() -> AsyncIterator[ControlPlane]:
    async with running_control_plane(PROGRAMS) as plane:
        yield plane


@pytest.fixture
async def cluster(control_plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    """A connection that may do everything."""
    async with control_plane.client() as client:
        yield client


@pytest.fixture
async def own(control_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """The same, as the product sees it."""
    async with connected(control_plane.credentials.kubeconfig("admin")) as cluster:
        yield cluster


@pytest.fixture
async def namespace(cluster: ClusterClient) -> AsyncIterator[Namespace]:
    """A namespace of the test's own, in which pods can be made."""
    made = await Namespace.made(cluster)
    yield made
    await made.delete()


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[ClusterConnection]:
    """The cluster as a worker has it."""
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield connection


@pytest.fixture
def steps(connection: ClusterConnection, namespace: Namespace) -> Steps:
    return Steps(connection, namespace.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the processes of the control plane printed last."""
    report = yield
    add_logs(report, item, ControlPlane)
    return report
