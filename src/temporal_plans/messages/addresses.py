"""Names that sender and receiver of a message share."""

PLANS_QUEUE = "plans"
"""The task queue of workflows and of the activities that only talk to Temporal."""


def pool_id(pool: str) -> str:
    """Return the workflow id of a pool."""
    return f"pool/{pool}"


def service_id(service: str) -> str:
    """Return the workflow id of a service."""
    return f"service/{service.strip('/')}"


REFUSED = "Refused"
"""The failure type of a refused update; its detail is the ``Refusal``."""
