"""How long a step of many objects takes."""

import time

from kubernetes.manifests import config_map
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import DONE, Object, Steps
from temporal_plans.activities.kubernetes.connection import ClusterConnection

COUNT = 200


def many(prefix: str) -> list[Object]:
    return [config_map(f"{prefix}-{number}", key="value" * 20) for number in range(COUNT)]


async def one_by_one(
    connection: ClusterConnection, namespace: Namespace, objects: list[Object]
) -> float:
    began = time.monotonic()
    async with connection.use() as cluster:
        for one in objects:
            metadata = {**one["metadata"], "namespace": namespace.name}
            await cluster.apply({**one, "metadata": metadata})
    return time.monotonic() - began


async def test_a_step_takes_little_longer_than_its_requests(
    connection: ClusterConnection, namespace: Namespace
) -> None:
    """Of five turns the best of both: others use the machine, too."""
    steps = Steps(connection, namespace.name)
    await one_by_one(connection, namespace, many("warm"))
    plain, whole = list[float](), list[float]()
    for turn in range(5):
        plain.append(await one_by_one(connection, namespace, many(f"plain-{turn}")))
        began = time.monotonic()
        result = await steps.execute(steps.apply(*many(f"step-{turn}")))
        whole.append(time.monotonic() - began)
        assert result == DONE
    assert min(whole) < 1.5 * min(plain), f"seconds of steps {whole}, of their requests {plain}"
