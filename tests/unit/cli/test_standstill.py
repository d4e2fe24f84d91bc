"""What stands still is named by show, list and explain."""

import json

import pytest

from builders.plan_views import phase, plan, step
from builders.services import service_status
from builders.tasks import record
from temporal_plans.client.errors import StandsStill
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanation, Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Pods
from unit.cli.kit import Run
from unit.cli.service_answers import pod_view
from unit.fake_gateway import FakeGateway, FakeWorkflow

DEPLOY = "hello-world/deploy"

WORLD = StuckWorkflow(
    workflow_id=f"{DEPLOY}/world",
    type="Phase",
    parent=DEPLOY,
    attempt=7,
    error="NON_DETERMINISTIC_ERROR",
    failure="[TMPRL1100] Nondeterminism error: another child",
)
SERVICE = StuckWorkflow(
    workflow_id="service/hello-world", type="Service", attempt=3, error="KeyError", failure="'zone'"
)
RESTART = f"and then to start over: temporal plan restart {DEPLOY} world"


def test_show_names_a_phase_that_stands_still(run: Run, gateway: FakeGateway) -> None:
    assert "Stands still" not in run("show", "deploy").out
    gateway.stands_still = [WORLD]
    for out in (run("show", "deploy").out, run("show").out):
        assert f"Stands still:\nphase '{DEPLOY}/world' stands still: attempt 7" in out
        assert "TMPRL1100" in out
        assert RESTART in out
    [stuck] = json.loads(run("show", "deploy", "--json").out)["stuck"]
    assert stuck["workflow"] == f"{DEPLOY}/world"


def test_show_of_a_service_names_the_service(run: Run, gateway: FakeGateway) -> None:
    gateway.stands_still = [SERVICE]
    assert "service 'service/hello-world' stands still" in run("show").out


def test_list_names_a_phase_that_stands_still(run: Run, gateway: FakeGateway) -> None:
    record = service_status("hello-world", "deploy").plans[0].but(open=True, run=1)
    status = service_status("hello-world", record)
    gateway.workflows["service/hello-world"].answers["status"] = status
    assert "PROBLEM" not in run("list").out
    gateway.stands_still = [WORLD]
    assert f"{DEPLOY}/world stands still: [TMPRL1100]" in run("list").out
    assert "TMPRL1100" in json.loads(run("list", "--json").out)[0]["problem"]


def test_list_goes_on_over_a_service_that_stands_still(run: Run, gateway: FakeGateway) -> None:
    other = StandsStill(SERVICE.but(workflow_id="service/other"))
    gateway.workflows["service/other"] = FakeWorkflow("Service", {"status": other})
    lines = run("list").out.splitlines()
    assert lines[1].split()[:3] == ["hello-world", "service", "deploy"]
    assert "service 'service/other' stands still" in lines[2]


def test_list_names_steps_that_fail_behind_a_gate(run: Run, gateway: FakeGateway) -> None:
    """The first canary crashes again and again, and the plan reads WAITING (behaviour 1.4)."""
    crashing = plan(
        Status.WAITING,
        phase(
            "web",
            "canary",
            Status.WAITING,
            step("web-0:[server]", Status.DELAYED, attempt=3),
            step("web-1:[server]", Status.WAITING),
        ),
    )
    record = service_status("hello-world", "deploy").plans[0].but(open=True, run=1)
    gateway.workflows["service/hello-world"].answers["status"] = service_status(
        "hello-world", record
    )
    gateway.workflows[DEPLOY].answers["status"] = crashing
    [_, line] = run("list").out.splitlines()
    assert line.endswith("web/web-0:[server] failed, attempt 3")


@pytest.fixture
def waiting(gateway: FakeGateway) -> None:
    world = Explanation(
        phase="world", step="world-0", status=Status.PREPARED, cause=Cause.OFFER, text="waits"
    )
    gateway.workflows[DEPLOY].answers["explain"] = Explanations(
        status=Status.IN_PROGRESS, explanations=(world,)
    )
    gateway.workflows["service/hello-world"].answers["pods"] = Pods()


@pytest.mark.usefixtures("waiting")
def test_explain_names_a_phase_that_stands_still(run: Run, gateway: FakeGateway) -> None:
    gateway.stands_still = [WORLD]
    out = run("explain", "deploy").out
    assert out.index("phase workflow hello-world/deploy/world stands still") < out.index("waits")
    assert RESTART in out
    assert "stands still" in run("explain", "deploy", "world").out
    assert "stands still" not in run("explain", "deploy", "hello").out


@pytest.mark.usefixtures("waiting")
def test_explain_names_a_pool_that_stands_still(run: Run, gateway: FakeGateway) -> None:
    default = StandsStill(SERVICE.but(workflow_id="pool/default", type="Pool"))
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"status": default})
    gateway.workflows["pool/gpu"] = FakeWorkflow("Pool", {"status": PoolStatus(name="gpu")})
    out = run("explain", "deploy").out
    assert "pool/default stands still: attempt 3 of its workflow task fails: 'zone'" in out
    assert "temporal workflow show -w pool/default" in out


@pytest.mark.usefixtures("waiting")
def test_a_service_or_a_pool_is_never_to_be_terminated(run: Run, gateway: FakeGateway) -> None:
    """Its state would be lost."""
    gateway.stands_still = [SERVICE]
    out = run("explain", "deploy").out
    assert "service workflow service/hello-world stands still" in out
    assert "terminate" not in out


# --- paused pods (behaviour 6.8) -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "status", "displayed"),
    [
        (("PAUSED", "PAUSED"), Status.COMPLETE, "PAUSED"),
        (("PAUSED", "PAUSED"), Status.STARTED, "PAUSED"),
        (("PAUSED", "PAUSING"), Status.STARTING, "PAUSING"),
        (("PAUSING", "PAUSING"), Status.PENDING, "PENDING"),
        (("PAUSED", "RUNNING"), Status.COMPLETE, "COMPLETE"),
    ],
)
def test_steps_of_a_paused_pod(
    run: Run, gateway: FakeGateway, shown: tuple[str, str], status: Status, displayed: str
) -> None:
    """PAUSED only when all tasks of the pod are, also those of other steps."""
    steps = (step("hello-0:[a]", status), step("hello-1:[a]", status))
    gateway.workflows[DEPLOY].answers["status"] = plan(
        Status.IN_PROGRESS, phase("hello", "serial", Status.IN_PROGRESS, *steps)
    )
    tasks = tuple(record("hello", 0, task) for task in "ab")
    states = dict(zip((task.name for task in tasks), shown, strict=True))
    pods = Pods(pods=(pod_view(tasks=tasks, shown=states),))
    gateway.workflows["service/hello-world"].answers["pods"] = pods
    for out in (run("show", "deploy").out, run("show").out):
        assert f"hello-0:[a] ({displayed})" in out
        assert f"hello-1:[a] ({status})" in out
    body = json.loads(run("show", "deploy", "--json").out)
    assert body["phases"][0]["steps"][0]["status"] == displayed
    assert body["phases"][0]["status"] == "IN_PROGRESS"
