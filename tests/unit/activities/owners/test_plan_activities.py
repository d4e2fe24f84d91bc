"""``start_plan`` while the server does not say what a plan's last run left."""

import dataclasses
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from temporal_plans.activities.owners.plans import LAST_RUN_ATTEMPTS_LIMIT, PlanActivities
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.messages.owners import PlanStart
from temporal_plans.messages.plans import EngineInput, FirstCommand, PlanInput

AGAIN = PlanStart(
    workflow_id="s/deploy",
    run=2,
    input=PlanInput(
        name="deploy",
        engine=EngineInput(first=(FirstCommand(verb=Verb.RESTART, command=Command(by="ann")),)),
    ),
)


class Silent:
    """A server that starts workflows, and says nothing of those that were."""

    def __init__(self, status: RPCStatusCode) -> None:
        self.started: list[PlanInput] = []
        self._trouble = RPCError("it is away", status, b"")

    def get_workflow_handle(self, *_: object, **__: object) -> "Silent":
        return self

    async def describe(self) -> None:
        raise RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")

    async def result(self, **_: object) -> None:
        raise self._trouble

    async def start_workflow(self, _: str, input: PlanInput, **__: object) -> None:
        self.started.append(input)


async def _start(server: Silent, attempt: int) -> None:
    env = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, attempt=attempt)
    await env.run(PlanActivities(cast(Client, cast(Any, server))).start_plan, AGAIN)


@pytest.mark.parametrize("code", ["UNAVAILABLE", "UNKNOWN", "DEADLINE_EXCEEDED"])
async def test_it_is_asked_again(code: str) -> None:
    server = Silent(RPCStatusCode[code])
    with pytest.raises(RPCError):
        await _start(server, attempt=LAST_RUN_ATTEMPTS_LIMIT - 1)
    assert not server.started


async def test_a_run_that_nobody_answers_for_keeps_no_plan_from_its_start() -> None:
    server = Silent(RPCStatusCode.UNAVAILABLE)
    await _start(server, attempt=LAST_RUN_ATTEMPTS_LIMIT)
    assert len(server.started) == 1


async def test_a_run_that_is_gone_left_nothing() -> None:
    server = Silent(RPCStatusCode.NOT_FOUND)
    await _start(server, attempt=1)
    assert len(server.started) == 1
