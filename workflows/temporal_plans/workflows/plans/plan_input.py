"""Checks of a Plan workflow's input."""

from collections.abc import Iterable

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.plans.plan_check import phase_problems, problems
from temporal_plans.domain.values.compressed import payload_size
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.plans import PLAN_RUN, PLAN_STARTER, EngineInput, PlanInput
from temporal_plans.workflows.plans.registry import Registry

ID_SIZE_LIMIT = 900
"""Bytes of a step's workflow id; the server allows 1,000, and a step's children have longer ids."""

REFUSED_MARKER = "refused at its beginning"
"""The marker in the history of a plan that its worker refused."""

SPEC_LIMIT = 900_000
"""Bytes of a plan's input, compressed: half of what one payload takes."""


def arguments_of(
    input: PlanInput, plan_id: str, registry: Registry, *, interrupted: bool
) -> dict[str, str] | None:
    """Check the plan, and return the values of its parameters; None when it has them already, or
    gets them when it is started.

    Raises ApplicationError (InvalidPlan, not retryable) with every reason why the plan can't run.

    Names of developers' strategies and kinds are checked only when the plan begins: otherwise a
    replay on a worker with other names would fail a running plan. A marker in the history says that
    it was refused then, so that a replay refuses it too, whatever its worker knows. The phases of a
    standing plan that continues as new were checked one by one (``faults_of``).
    """
    engine = input.engine or EngineInput()
    begins = engine.state is None
    if engine.standing and not begins:
        return None
    replays = workflow.unsafe.is_replaying()
    check_names = begins and not replays
    refused_before = begins and replays and workflow.patched(REFUSED_MARKER)
    faults = list(
        problems(
            input,
            registry.strategy_names if check_names else None,
            frozenset(registry.kinds) if check_names else None,
            of_service=engine.context is not None,
            may_be_empty=engine.standing or engine.context is not None,
        )
    )
    faults += _id_problems(plan_id, input.phases)
    if begins:
        faults += _size_problems(input)
    arguments: dict[str, str] | None = None
    if begins and not interrupted:
        arguments, more = check_arguments(input.parameters, input.arguments)
        faults += more
    if check_names and faults:
        workflow.patched(REFUSED_MARKER)  # writes the marker
    if refused_before and not faults:
        faults = [Reason(problem="the worker that began this plan did not know all names in it")]
    if faults:
        text = "this plan can't run:\n" + "\n".join(map(str, faults))
        refusal = Refusal(code=Code.INVALID, reasons=tuple(faults))
        raise refusal_error(refusal, text=text, type="InvalidPlan")
    return arguments


def refuse_forged(input: PlanInput, plan_id: str) -> None:
    """Refuse a field ``engine`` that did not come from the engine: a user wrote it, or copied it
    from another plan. Raises ApplicationError (InvalidPlan, not retryable).

    The engine's starts carry memos; a run that continues as new passes ``engine`` to the next one.
    """
    if input.engine is None or workflow.info().continued_run_id:
        return
    starter = workflow.memo_value(PLAN_STARTER, default=None, type_hint=str)
    context = input.engine.context
    forged = starter is None
    if context is not None:
        run = workflow.memo_value(PLAN_RUN, default=None, type_hint=int)
        own = f"{context.owner.strip('/')}/{context.plan}"
        forged = (run, starter, plan_id) != (context.run, context.starter, own)
    if forged:
        reason = Reason(
            field="engine",
            problem="is set by the engine, not by callers",
            fix="leave it out; plans of a service are started with the update start_plan",
        )
        raise refusal_error(Refusal(code=Code.INVALID, reasons=(reason,)), type="InvalidPlan")


def faults_of(phase: PhaseSpec, plan_id: str) -> tuple[Reason, ...]:
    """Return why a phase that is put into a standing plan can't run; empty when it can. The answer
    must be the same at every replay, so it does not depend on the names that this worker knows."""
    return (*phase_problems(phase), *_id_problems(plan_id, (phase,)))


def _size_problems(input: PlanInput) -> tuple[Reason, ...]:
    """What a plan is made of is carried from run to run, beside the state of its steps."""
    works = (step.work.__dict__ for phase in input.phases for step in phase.steps)
    if sum(len(str(work)) for work in works) <= SPEC_LIMIT:  # cheap, and surely more
        return ()
    size = payload_size(input)
    if size <= SPEC_LIMIT:
        return ()
    problem = f"the plan has more than {SPEC_LIMIT} bytes, compressed"
    fix = "make several plans of it, or keep long texts out of it"
    return (Reason(field="phases", problem=problem, value=size, fix=fix),)


def _id_problems(plan_id: str, phases: Iterable[PhaseSpec]) -> tuple[Reason, ...]:
    longest = max(
        (f"{plan_id}/{phase.name}/{step.name}" for phase in phases for step in phase.steps),
        key=lambda path: len(path.encode()),
        default="",
    )
    if len(longest.encode()) <= ID_SIZE_LIMIT:
        return ()
    problem = f"makes step ids longer than {ID_SIZE_LIMIT} bytes"
    return (Reason(field="name", problem=problem, value=plan_id, fix="use shorter names"),)
