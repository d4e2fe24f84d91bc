"""The command line in this process, over workflows that answer from memory."""

import pytest
from pydantic import BaseModel

from builders.plan_views import reference_plan
from builders.services import service_status
from temporal_plans.cli import main as cli
from temporal_plans.client import plans_client
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal import connection as connecting
from temporal_plans.client.temporal.connection import Connection
from temporal_plans.messages.services import Pods
from unit.cli.kit import DONE, Ran, Run
from unit.fake_gateway import FakeGateway, FakeWorkflow


@pytest.fixture
def gateway() -> FakeGateway:
    """The service hello-world with its plan deploy, which does whatever it is told."""
    status = service_status("hello-world", "deploy")
    verbs = ("start", "stop", "continue", "interrupt", "restart", "force_complete")
    answers: dict[str, BaseModel | Exception] = dict.fromkeys(verbs, DONE)
    answers["status"] = reference_plan()
    return FakeGateway(
        {
            "service/hello-world": FakeWorkflow("Service", {"status": status, "pods": Pods()}),
            "hello-world/deploy": FakeWorkflow("Plan", answers),
        }
    )


@pytest.fixture
def connections() -> list[Connection]:
    """The connections that commands asked for."""
    return []


@pytest.fixture
def run(
    gateway: FakeGateway,
    connections: list[Connection],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    async def connect(connection: Connection, **_: object) -> None:
        connections.append(connection)

    monkeypatch.setattr(connecting, "connect", connect)  # commands import both when they run

    def client(_: object) -> PlansClient:
        return PlansClient(gateway=gateway)

    monkeypatch.setattr(plans_client, "PlansClient", client)
    for name in ("TEMPORAL_PLAN_SERVICE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def ran(*arguments: str) -> Ran:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return ran
