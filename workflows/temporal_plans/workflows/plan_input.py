"""Whether a plan can run, as the Plan workflow asks it of its input."""

from collections.abc import Iterable

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.plan import PhaseSpec
from temporal_plans.domain.plan_check import phase_problems, problems
from temporal_plans.messages.plan import PlanInput
from temporal_plans.workflows.registry import Registry

LONGEST_ID = 900
"""Bytes of a step's workflow id; the server takes 1,000, and a step's own children need some."""


def arguments_of(
    input: PlanInput, plan_id: str, registry: Registry, *, interrupted: bool
) -> dict[str, str] | None:
    """The values of the plan's parameters when it begins at once; None when it has them already, or
    gets them when it is started.

    Raises ApplicationError (InvalidPlan, not retryable) with every reason why it can't run.

    Names of the developer's own are asked for when the plan begins and never again: a worker that
    knows others would otherwise, replaying, fail a plan that runs. A standing plan has by then
    phases that were judged one by one (``faults_of``).
    """
    begins = input.state is None
    if input.standing and not begins:
        return None
    asked = begins and not workflow.unsafe.is_replaying()
    faults = list(
        problems(
            input,
            registry.strategy_names if asked else None,
            frozenset(registry.kinds) if asked else None,
            of_service=input.context is not None,
            standing=input.standing,
        )
    )
    faults += _id_problems(plan_id, input.phases)
    arguments: dict[str, str] | None = None
    if begins and not interrupted:
        arguments, more = check_arguments(input.parameters, input.arguments)
        faults += more
    if faults:
        raise ApplicationError(
            "this plan can't run:\n" + "\n".join(str(fault) for fault in faults),
            type="InvalidPlan",
            non_retryable=True,
        )
    return arguments


def faults_of(phase: PhaseSpec, plan_id: str) -> tuple[Problem, ...]:
    """Why a phase that is put into a standing plan can't run; empty when it can. The answer must be
    the same at every replay, so it is not asked which names this worker knows."""
    return (*phase_problems(phase), *_id_problems(plan_id, (phase,)))


def _id_problems(plan_id: str, phases: Iterable[PhaseSpec]) -> tuple[Problem, ...]:
    longest = max(
        (f"{plan_id}/{phase.name}/{step.name}" for phase in phases for step in phase.steps),
        key=lambda path: len(path.encode()),
        default="",
    )
    if len(longest.encode()) <= LONGEST_ID:
        return ()
    told = f"its steps would have ids of more than {LONGEST_ID} bytes; use shorter names"
    return (Problem(path="name", message=told, value=plan_id),)
