"""Environments that are being deleted."""

from dataclasses import dataclass

from temporal_plans.client.errors import Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.executions import Ended, Execution
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.requests import DeleteRequest
from unit.fake_gateway import FakeGateway, FakeWorkflow

DONE = Outcome(result=Result.DONE, message="it is forgotten")


@dataclass
class Leaving(FakeGateway):
    """Its environments end after some looks."""

    looks: int = 3

    async def describe(self, workflow_id: str) -> Execution:
        self.looks -= 1
        if self.looks == 0:
            self.workflows[workflow_id].ended = Ended.COMPLETED
        return await super().describe(workflow_id)


def environment(name: str) -> FakeWorkflow:
    return FakeWorkflow(
        "Environment",
        {"status": EnvironmentStatus(name=name, connection="CONNECTED"), "delete": DONE},
    )


async def test_an_environment_has_ended_when_it_was_deleted() -> None:
    gateway = Leaving({"environment/prod": environment("prod")})
    client = PlansClient(gateway=gateway)
    assert await client.ask_environment("prod", DeleteRequest()) == DONE
    assert gateway.workflows["environment/prod"].ended is Ended.COMPLETED


async def test_the_fleet_leaves_out_what_has_just_ended() -> None:
    """It is still listed."""
    gateway = FakeGateway(
        {f"environment/{name}": environment(name) for name in ("a", "b")},
        ends_with={"environment/a": "environment/b"},
    )
    client = PlansClient(gateway=gateway)
    assert list(await client.fleet()) == ["a"]


async def test_the_fleet_has_an_error_for_a_name_that_there_is_not() -> None:
    found = await PlansClient(gateway=FakeGateway()).fleet("west")
    error = found["west"]
    assert isinstance(error, Refused)
    assert error.refusal.code == Code.NOT_FOUND
