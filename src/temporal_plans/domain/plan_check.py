"""Whether a plan makes sense beyond its form: names, order, strategies, parameters.

Everyone who takes a plan asks this: loading a file, starting a Plan workflow, the command line.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.names import MAX_NAME, MAX_POD_STEP_NAME, name_fault, suggestion
from temporal_plans.domain.parameters import declaration_problems
from temporal_plans.domain.placement import PlacementError, parse_placement
from temporal_plans.domain.plan import (
    ActivityWork,
    CommandWork,
    CustomWork,
    DeregisterWork,
    EraseWork,
    KillWork,
    PhaseSpec,
    PlanSpec,
    PodWork,
    SleepWork,
    StepSpec,
    UnreserveWork,
    WorkflowWork,
)
from temporal_plans.domain.strategy_check import Child, dependency_problems, strategy_problems

_LONGEST = timedelta(days=3650)
_MAX_ID_BYTES = 1000
_REMOVALS = (KillWork, UnreserveWork, EraseWork, DeregisterWork)
_INTERNAL_QUEUES = "/_sys/"
"""What the Temporal server refuses: longer times and ids, queues of its own."""


def problems(
    spec: PlanSpec,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
    *,
    of_service: bool = True,
    standing: bool = False,
) -> tuple[Problem, ...]:
    """Everything that is wrong with the plan; empty when it can run.

    ``strategies`` and ``step_kinds`` are the names that the worker knows (``step_kinds``: of custom
    steps). None leaves that question to the worker. Only a plan ``of_service`` may have steps that
    take a service away; only a ``standing`` one needs no phases.
    """
    found = list(_plan_problems(spec, strategies, step_kinds, standing=standing))
    return (*found, *(() if of_service else _service_problems(spec)))


def phase_problems(
    phase: PhaseSpec,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> tuple[Problem, ...]:
    """Everything that is wrong with a phase that is put into a plan by itself."""
    return (
        *_child_problems((phase,), "phases"),
        *_phase_problems(phase, f"phases.{phase.name}", strategies, step_kinds),
    )


def _service_problems(spec: PlanSpec) -> Iterator[Problem]:
    for phase in spec.phases:
        for step in phase.steps:
            if isinstance(step.work, _REMOVALS):
                yield Problem(
                    path=f"phases.{phase.name}.steps.{step.name}.{step.work.kind}",
                    message="takes something of a service away, and this plan is of no service",
                    fix="decommission or uninstall the service; it makes such plans itself",
                )


def _plan_problems(
    spec: PlanSpec,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
    *,
    standing: bool,
) -> Iterator[Problem]:
    fault = name_fault(spec.name)
    if fault:
        yield Problem(path="name", message=fault, value=spec.name)
    yield from strategy_problems(spec.strategy, "strategy", strategies)
    yield from declaration_problems(spec.parameters or (), "parameters")
    if not spec.phases and not standing:
        yield Problem(
            path="phases", message="the plan has no phases", fix="give it one with some steps"
        )
    yield from _child_problems(spec.phases, "phases")
    yield from dependency_problems(spec.strategy, spec.phases, "phases")
    for phase in spec.phases:
        yield from _phase_problems(phase, f"phases.{phase.name}", strategies, step_kinds)


def _phase_problems(
    phase: PhaseSpec,
    path: str,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
) -> Iterator[Problem]:
    yield from strategy_problems(phase.strategy, f"{path}.strategy", strategies)
    yield from _child_problems(phase.steps, f"{path}.steps")
    yield from dependency_problems(phase.strategy, phase.steps, f"{path}.steps")
    for step in phase.steps:
        yield from _work_problems(step, f"{path}.steps.{step.name}", step_kinds)


def _child_problems(children: Sequence[Child], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for child in children:
        of_pod = isinstance(child, StepSpec) and isinstance(child.work, PodWork)
        fault = name_fault(child.name, MAX_POD_STEP_NAME if of_pod else MAX_NAME)
        if fault:
            yield Problem(path=f"{path}.{child.name}", message=fault, value=child.name)
        elif child.name in seen:
            yield Problem(
                path=f"{path}.{child.name}",
                message="another one beside it has the same name",
                fix="give each its own name",
            )
        seen.add(child.name)


def _work_problems(
    step: StepSpec, path: str, step_kinds: Collection[str] | None
) -> Iterator[Problem]:
    work = step.work
    path = f"{path}.{work.kind}"
    match work:
        case CustomWork() if step_kinds is not None and work.type not in step_kinds:
            yield Problem(
                path=f"{path}.type",
                message="unknown kind of step",
                value=work.type,
                fix=suggestion(work.type, step_kinds)
                or "register it with PlansPlugin on the worker",
            )
        case ActivityWork() | WorkflowWork():
            if work.input is not None and work.inputs is not None:
                yield Problem(
                    path=f"{path}.inputs",
                    message="input and inputs are given",
                    fix="use input for one argument, inputs for several",
                )
            yield from _type_problems(work.type, path)
            yield from _server_problems(work, path)
            yield from _duration_problems(work, path)
        case PodWork() if not work.tasks and not step.errors:
            yield Problem(
                path=f"{path}.tasks", message="must not be empty", fix="name the tasks to launch"
            )
        case CommandWork():
            yield from _command_problems(work, path)
        case SleepWork():
            yield from _sleep_problems(work, path)
        case _:
            return


def _sleep_problems(work: SleepWork, path: str) -> Iterator[Problem]:
    if work.duration < timedelta(0):
        yield Problem(
            path=f"{path}.duration",
            message="must not be negative",
            value=work.duration.total_seconds(),
        )
    yield from _countable(work.duration, f"{path}.duration")


def _command_problems(work: CommandWork, path: str) -> Iterator[Problem]:
    if not work.cmd.strip():
        yield Problem(path=f"{path}.cmd", message="the command is empty", value=work.cmd)
    yield from _positive(work.timeout, f"{path}.timeout")
    try:
        parse_placement(work.placement)
    except PlacementError as error:
        yield Problem(
            path=f"{path}.placement", message=error.problem, value=work.placement, fix=error.fix
        )


def _type_problems(name: str, path: str) -> Iterator[Problem]:
    if not name.strip():
        yield Problem(path=f"{path}.type", message="the type is empty", value=name)


def _server_problems(work: ActivityWork | WorkflowWork, path: str) -> Iterator[Problem]:
    if work.task_queue is not None and work.task_queue.startswith(_INTERNAL_QUEUES):
        yield Problem(
            path=f"{path}.task-queue",
            message=f"must not begin with {_INTERNAL_QUEUES}: those are the server's own",
            value=work.task_queue,
            fix="name the queue that your worker polls",
        )
    given = work.id if isinstance(work, WorkflowWork) else None
    size = len(given.encode(errors="replace")) if given is not None else 0
    if size > _MAX_ID_BYTES:
        yield Problem(
            path=f"{path}.id",
            message=f"has {size} bytes; an id has {_MAX_ID_BYTES} at most",
            value=given,
        )


def _duration_problems(work: ActivityWork | WorkflowWork, path: str) -> Iterator[Problem]:
    yield from _positive(work.timeout, f"{path}.timeout")
    if isinstance(work, ActivityWork):
        yield from _positive(work.heartbeat_timeout, f"{path}.heartbeat-timeout")
        yield from _positive(work.schedule_to_close_timeout, f"{path}.schedule-to-close-timeout")
    if work.retry is not None:
        yield from _positive(work.retry.initial_interval, f"{path}.retry.initial-interval")
        yield from _positive(work.retry.maximum_interval, f"{path}.retry.maximum-interval")
        longest = work.retry.maximum_interval
        if longest is not None and longest > timedelta(0) and longest < work.retry.initial_interval:
            yield Problem(
                path=f"{path}.retry.maximum-interval",
                message="must not be less than initial-interval",
                value=longest.total_seconds(),
            )


def _positive(duration: timedelta | None, path: str) -> Iterator[Problem]:
    """Above zero and short enough to be counted, if it is given at all."""
    if duration is not None and duration <= timedelta(0):
        yield Problem(
            path=path,
            message="must be more than zero",
            value=duration.total_seconds(),
            fix="for example 30s or 5m",
        )
    elif duration is not None:
        yield from _countable(duration, path)


def _countable(duration: timedelta, path: str) -> Iterator[Problem]:
    if duration > _LONGEST:
        yield Problem(
            path=path, message="must be at most 10 years (3650d)", value=duration.total_seconds()
        )
