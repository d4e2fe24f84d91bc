"""Services that answer from memory, and a client of them."""

from builders.services import service_status
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.plans.commands import Outcome, Result
from unit.fake_gateway import FakeGateway, FakeWorkflow

DONE = Outcome(result=Result.DONE, message="Received cmd: start")


def service(*plans: str, name: str = "hello", **answers: object) -> FakeWorkflow:
    status = service_status(name, *plans)
    return FakeWorkflow("Service", {"status": status, "start_plan": DONE, **answers})  # type: ignore[dict-item]


def client_of(**workflows: FakeWorkflow) -> tuple[PlansClient, FakeGateway]:
    """``__`` in a name is ``/``."""
    gateway = FakeGateway({id.replace("__", "/"): flow for id, flow in workflows.items()})
    return PlansClient(gateway=gateway), gateway
