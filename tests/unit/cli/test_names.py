"""Which plan is meant, by what was said and what there is."""

import pytest

from builders.services import service_status
from temporal_plans.cli.inputs.names import resolve_plan, resolve_service
from temporal_plans.client.errors import Ambiguous, NotFound, PlanNotFound, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient
from unit.fake_gateway import FakeGateway, FakeWorkflow


def there(*plans: str, services: tuple[str, ...] = ()) -> PlansClient:
    """Services that each have the plans deploy and backup, and other plans."""
    gateway = FakeGateway({plan: FakeWorkflow("Plan") for plan in plans})
    for name in services:
        status = service_status(name, "deploy", "backup")
        gateway.workflows[f"service/{name}"] = FakeWorkflow("Service", {"status": status})
        gateway.workflows |= {plan.workflow_id: FakeWorkflow("Plan") for plan in status.plans}
    return PlansClient(gateway=gateway)


@pytest.mark.parametrize(
    ("client", "said", "name"),
    [
        pytest.param(there(services=("a", "b")), "b", "b", id="said"),
        pytest.param(there(services=("a", "b")), "/folder/b/", "folder/b", id="said-with-slashes"),
        pytest.param(there(services=("a",)), None, "a", id="the-only-one"),
        pytest.param(there(services=("a",)), "", "a", id="said-to-be-none"),
    ],
)
async def test_the_service(client: PlansClient, said: str | None, name: str) -> None:
    assert await resolve_service(client, said) == name


async def test_no_service() -> None:
    with pytest.raises(ServiceNotFound, match="there is no service; deploy one"):
        await resolve_service(there("backup"), None)


async def test_several_services() -> None:
    with pytest.raises(Ambiguous, match="TEMPORAL_PLAN_SERVICE: a, b"):
        await resolve_service(there(services=("a", "b")), None)


@pytest.mark.parametrize(
    ("client", "text", "said", "plan_id"),
    [
        pytest.param(there(services=("a", "b")), "deploy", "b", "b/deploy", id="service-said"),
        pytest.param(there(services=("a",)), "deploy", None, "a/deploy", id="only-service"),
        pytest.param(there(services=("a", "b")), "b/deploy", None, "b/deploy", id="full-id"),
        pytest.param(there(services=("a",)), "a/deploy", "a", "a/deploy", id="full-id-and-said"),
        pytest.param(there("nightly"), "nightly", None, "nightly", id="own-plan"),
        pytest.param(
            there("nightly", services=("a",)), "nightly", None, "nightly", id="own-beside-service"
        ),
        pytest.param(
            there("backup", services=("a",)), "backup", None, "backup", id="exact-id-first"
        ),
        pytest.param(
            there("backup", services=("a",)), "backup", "a", "a/backup", id="service-said-wins"
        ),
        pytest.param(there("backup", services=("a",)), "backup", "", "backup", id="said-none"),
    ],
)
async def test_the_plan(client: PlansClient, text: str, said: str | None, plan_id: str) -> None:
    assert await resolve_plan(client, text, said) == plan_id


@pytest.mark.parametrize(
    ("client", "text", "said", "error", "message"),
    [
        pytest.param(
            there(services=("a",)),
            "deplyo",
            None,
            PlanNotFound,
            "service 'a' has no plan 'deplyo'; did you mean deploy",
            id="mistyped",
        ),
        pytest.param(
            there(services=("a",)), "deploy", "b", ServiceNotFound, "use one of: a", id="no-service"
        ),
        pytest.param(
            there(services=("a", "b")),
            "deploy",
            None,
            Ambiguous,
            "choose one with -s",
            id="several",
        ),
        pytest.param(
            there(services=("a", "b")),
            "delpoy",
            None,
            PlanNotFound,
            "did you mean b/deploy or a/deploy",
            id="mistyped-with-several",
        ),
        pytest.param(
            there("nightly", services=("a",)),
            "nightly",
            "a",
            NotFound,
            "use -s ''",
            id="own-said",
        ),
        pytest.param(
            there("nightly"), "nihgtly", None, PlanNotFound, "did you mean nightly", id="own"
        ),
        pytest.param(
            there(services=("a",)), "deploy", "", PlanNotFound, "plan 'deploy' not found", id="none"
        ),
        pytest.param(there(), "deploy", None, PlanNotFound, "deploy a service with", id="nothing"),
    ],
)
async def test_no_such_plan(
    client: PlansClient, text: str, said: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await resolve_plan(client, text, said)
