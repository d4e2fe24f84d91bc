"""Names that sender and receiver of a message share."""

PLANS_QUEUE = "plans"
"""The task queue of workflows and of the activities that only talk to Temporal."""


def pool_id(pool: str) -> str:
    """Return the workflow id of a pool."""
    return f"pool/{pool}"


def service_id(service: str) -> str:
    """Return the workflow id of a service."""
    return f"service/{service.strip('/')}"


_CLUSTER_QUEUES = "kubernetes/"


def cluster_queue(cluster: str) -> str:
    """Return the task queue of the workers that have the credentials of a cluster."""
    return f"{_CLUSTER_QUEUES}{cluster}"


def cluster_of(task_queue: str) -> str:
    """Return the cluster whose workers serve a task queue; empty for a queue of no cluster."""
    is_one = task_queue.startswith(_CLUSTER_QUEUES)
    return task_queue.removeprefix(_CLUSTER_QUEUES) if is_one else ""


REFUSED = "Refused"
"""The failure type of a refused update; its detail is the ``Refusal``."""
