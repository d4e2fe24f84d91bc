"""Taking an agent away for good, on the command line."""

import pytest

from temporal_plans.client.errors import Refused
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.pools import DeregisterRequest, DeregisterResult
from unit.cli.kit import Run
from unit.fake_gateway import Call, FakeGateway, FakeWorkflow

GONE = "agent rack-3 has been removed from pool default\n"
DROPPED = DeregisterResult(dropped=("service/s:web-0", "service/s:web-1"))


@pytest.mark.parametrize(
    ("options", "force", "result", "out"),
    [
        pytest.param((), False, DeregisterResult(), GONE, id="idle"),
        pytest.param(
            ("--force",),
            True,
            DROPPED,
            f"{GONE}2 reservations were released:\n- service/s:web-0\n- service/s:web-1\n",
            id="with what pods held",
        ),
    ],
)
def test_an_agent_is_removed(
    run: Run,
    gateway: FakeGateway,
    options: tuple[str, ...],
    force: bool,
    result: DeregisterResult,
    out: str,
) -> None:
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"deregister": result})
    ran = run("remove-agent", "rack-3", *options)
    assert (ran.code, ran.out) == (0, out)
    assert gateway.told == [
        Call("pool/default", "deregister", DeregisterRequest(agent="rack-3", force=force))
    ]


def test_one_that_runs_is_to_be_stopped(run: Run, gateway: FakeGateway) -> None:
    answers = {"deregister": DeregisterResult(alive=True)}
    gateway.workflows["pool/gpu"] = FakeWorkflow("Pool", dict(answers))
    ran = run("remove-agent", "rack-3", "--pool", "gpu")
    assert ran.code == 0
    assert "agent rack-3 was still running: stop it" in ran.out


def test_a_refusal_is_passed_on(run: Run, gateway: FakeGateway) -> None:
    refused = Refused.of(Code.IN_USE, "agent 'rack-3' holds 1 reservations (service/s:web-0); ...")
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"deregister": refused})
    ran = run("remove-agent", "rack-3")
    assert (ran.code, "holds 1 reservations" in ran.err) == (1, True)


def test_an_unknown_pool_names_those_that_there_are(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["pool/default"] = FakeWorkflow("Pool")
    ran = run("remove-agent", "rack-3", "--pool", "defualt")
    assert ran.code == 1
    assert "default" in ran.err
