"""The registration of an agent, where the pool or the machine refuses it."""

import asyncio
from typing import Any, NoReturn, cast

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError

from builders.pools import agent_view
from temporal_plans.activities.agent.host import main, registration
from temporal_plans.activities.agent.host.registration import (
    AgentCannotRun,
    AgentRefused,
    Registration,
)
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


async def test_the_refusal_of_the_pool_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Refusal.of(Code.NAME_TAKEN, "another agent is alive", field="id", fix="use another id")

    async def refuse(*_: object) -> NoReturn:
        raise WorkflowUpdateFailedError(refusal_error(taken))

    monkeypatch.setattr(registration, "register", refuse)
    agent = Registration(cast(Client, cast(Any, None)), agent_view("a").info, tuple)
    with pytest.raises(AgentRefused) as refused:
        await agent.register_with_retries()
    assert refused.value.refusal == taken.but(subject="pool/default")
    assert str(refused.value) == "pool/default: id: another agent is alive; use another id"


async def test_a_machine_that_runs_no_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(AgentCannotRun, match=r"^platform: agents run on") as refused:
        await main.run_agent(cast(Client, cast(Any, None)), cast(Any, None), stop=asyncio.Event())
    text = "agents run on Linux only, for tasks are supervised through /proc and pidfd"
    assert refused.value.reasons == (Reason(field="platform", problem=text, value="darwin"),)
