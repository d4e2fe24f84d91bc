"""The control plane of this ring: built by ``make control-plane``, started once for all tests."""

import os
from collections.abc import AsyncIterator, Generator

import pytest

from kubernetes.cluster_client import ClusterClient
from kubernetes.control_plane import ControlPlane, running_control_plane
from kubernetes.namespaces import Namespace
from tools.control_plane import Programs, absence, programs


@pytest.fixture(scope="session")
def control_plane_programs() -> Programs:
    """Skips where there is none; in CI that is a failure."""
    found = programs()
    if (reason := absence(found)) is None:
        return found
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
async def control_plane(control_plane_programs: Programs) -> AsyncIterator[ControlPlane]:
    async with running_control_plane(control_plane_programs) as plane:
        yield plane


@pytest.fixture
async def cluster(control_plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    """A connection that may do everything."""
    async with control_plane.client() as client:
        yield client


@pytest.fixture
async def namespace(cluster: ClusterClient) -> AsyncIterator[Namespace]:
    """A namespace of the test's own, in which pods can be made."""
    made = await Namespace.made(cluster)
    yield made
    await made.delete()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the processes of the control plane printed last."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, ControlPlane):
                for name, text in value.logs().items():
                    report.sections.append((f"log of {name}", text))
    return report
