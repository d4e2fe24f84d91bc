"""Plans of many steps: what is started, carried on, answered and returned fits into a payload."""

from random import Random
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from pauses import LONG_PATIENCE
from temporal_plans.domain.plans.commands import Result, Verb
from temporal_plans.domain.plans.explain import EXPLAINED_LIMIT
from temporal_plans.domain.plans.plan import STEPS_LIMIT
from temporal_plans.domain.plans.status import Status
from workflows.plan_kit import Kit

STEPS = 20_000


def many(phases: int, steps: int = STEPS) -> dict[str, Any]:
    """A plan of so many phases, whose steps need no worker and take no time."""
    named = {f"step-{i}": {"sleep": 0} for i in range(steps // phases)}
    return {
        "steps": "inline",
        "phases": {f"phase-{i}": {"strategy": "parallel", "steps": named} for i in range(phases)},
    }


@pytest.mark.long
async def test_a_plan_of_20000_steps(plans: Kit) -> None:
    """It answers and takes commands, continues as new with its state, and ends with its tree."""
    run = await plans.start(many(10), interrupted=True, history_limit=50)
    explained = await run.explain("phase-3")
    assert len(explained.explanations) == EXPLAINED_LIMIT + 1
    assert explained.explanations[-1].text.startswith(f"{STEPS // 10 - EXPLAINED_LIMIT} more")
    assert (await run.update(Verb.FORCE_COMPLETE, "phase-9")).result is Result.DONE
    assert (await run.update(Verb.CONTINUE)).result is Result.DONE
    result = await run.result(patience=LONG_PATIENCE)
    assert result.status is Status.COMPLETE
    assert sum(len(phase.steps) for phase in result.view.phases) == STEPS
    assert all(step.forced for step in result.view.phases[9].steps)
    described = await run.handle.describe()
    assert described.run_id != run.handle.first_execution_run_id


async def test_a_phase_of_many_steps_that_take_no_time(plans: Kit) -> None:
    """It carries them out in several activations, for one has a few seconds."""
    run = await plans.start(many(1, 5000))
    assert (await run.result(patience=LONG_PATIENCE)).status is Status.COMPLETE


async def test_a_plan_of_too_many_steps_is_refused_with_the_number_that_can(plans: Kit) -> None:
    run = await plans.start(many(10, STEPS_LIMIT + 10))
    with pytest.raises(WorkflowFailureError) as refused:
        await run.result()
    found = f"a plan has at most {STEPS_LIMIT} steps (found {STEPS_LIMIT + 10})"
    assert found in str(refused.value.cause)


async def test_a_plan_of_too_many_bytes_is_refused(plans: Kit) -> None:
    texts = {
        f"step-{i}": {"activity": {"type": "noop", "input": random_text(i)}} for i in range(700)
    }
    run = await plans.start({"phases": {"a": {"steps": texts}}})
    with pytest.raises(WorkflowFailureError) as refused:
        await run.result()
    assert "the plan has more than 900000 bytes, compressed" in str(refused.value.cause)


def random_text(seed: int) -> str:
    return Random(seed).randbytes(1000).hex()
