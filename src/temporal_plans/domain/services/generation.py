"""Generation of a service's plans (behaviour 5.1-5.4).

Without a ``plans`` section there is one plan, ``deploy``: a phase per pod, a step per instance.
With that section there are exactly its plans. A step that can't be built (two of its tasks would
share a resource set or a DNS name) is not refused: it becomes a step with errors, which the plan
shows.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.parameters import declaration_problems
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies import IN_SERVICES, keeping_dependencies, record_of
from temporal_plans.domain.plans.strategies.record import Dependencies
from temporal_plans.domain.plans.strategies.spec import Strategy, StrategySpec
from temporal_plans.domain.plans.strategy_check import strategy_problems
from temporal_plans.domain.services.plan_names import DEPLOY, RESERVED, UPDATE
from temporal_plans.domain.services.spec import PhaseYaml, PlanYaml, PodSpec, ServiceSpec
from temporal_plans.domain.values.names import MAX_POD_STEP_NAME, name_fault, suggestion
from temporal_plans.domain.values.refusal import Reason, SpecError

_DEFAULT = "default"
_INDEX = re.compile(r"[0-9]{1,9}")

_Lists = tuple[tuple[str, ...], ...]
"""The steps of one pod instance: task names, step by step."""

_strategy: TypeAdapter[StrategySpec] = TypeAdapter(Strategy)
_parameters: TypeAdapter[tuple[ParameterSpec, ...]] = TypeAdapter(tuple[ParameterSpec, ...])


def generate(
    spec: ServiceSpec,
    *,
    completed_before: bool = False,
    strategies: Collection[str] = IN_SERVICES,
) -> tuple[PlanSpec, ...]:
    """Return the service's plans: ``deploy`` first, then the others in the file's order.

    ``completed_before``: a deployment of this service has been complete; a plan ``update`` then
    replaces ``deploy``, under that name. Before that it is left out (behaviour 5.4).

    Raises SpecError with every problem of the ``plans`` section.
    """
    found = problems(spec, strategies)
    if found:
        raise SpecError(found)
    if spec.plans is None:
        return (_default_plan(spec),)
    plans = dict(spec.plans)
    update = plans.pop(UPDATE, None)
    deploy = plans.pop(DEPLOY)
    first = update if update is not None and completed_before else deploy
    return (
        _plan(spec, DEPLOY, first),
        *(_plan(spec, name, plan) for name, plan in plans.items()),
    )


def _default_plan(spec: ServiceSpec) -> PlanSpec:
    return PlanSpec(
        name=DEPLOY,
        phases=tuple(
            PhaseSpec(name=pod.type, steps=tuple(_whole_pods(spec, pod))) for pod in spec.pods
        ),
    )


def _whole_pods(spec: ServiceSpec, pod: PodSpec) -> Iterator[StepSpec]:
    tasks = tuple(task.name for task in pod.tasks)
    for index in range(pod.count):
        yield _step(pod, index, tasks)


def _plan(spec: ServiceSpec, name: str, plan: PlanYaml) -> PlanSpec:
    return PlanSpec(
        name=name,
        strategy=_strategy.validate_python(plan.strategy),
        parameters=_parameters.validate_python(plan.parameters) or None,
        phases=tuple(_phase(spec, name, phase) for name, phase in plan.phases.items()),
    )


def _phase(spec: ServiceSpec, name: str, phase: PhaseYaml) -> PhaseSpec:
    pod = spec.pod(phase.pod)
    strategy: StrategySpec = _strategy.validate_python(phase.strategy)
    if not phase.steps:
        return PhaseSpec(name=name, strategy=strategy, steps=tuple(_whole_pods(spec, pod)))
    composed = keeping_dependencies(strategy.name)
    chained = composed != strategy.name
    steps: list[StepSpec] = []
    for index in range(pod.count):
        own = _instance_steps(pod, index, _chosen(phase.steps, index) or ())
        steps += _chained(own) if chained else own
    return PhaseSpec(name=name, strategy=strategy.but(name=composed), steps=tuple(steps))


def _instance_steps(pod: PodSpec, index: int, lists: _Lists) -> list[StepSpec]:
    """Return an instance's steps; steps with errors share the instance's name, so they get
    numbers."""
    steps: list[StepSpec] = []
    for tasks in lists:
        step = _step(pod, index, tasks)
        taken = sum(bool(other.errors) for other in steps)
        if step.errors and taken:
            step = step.but(name=f"{step.name} ({taken + 1})")
        steps.append(step)
    return steps


def _chained(steps: Sequence[StepSpec]) -> Iterator[StepSpec]:
    """Make each step depend on all earlier ones: dependencies are not transitive (behaviour
    2.2)."""
    earlier: tuple[str, ...] = ()
    for step in steps:
        yield step.but(depends_on=earlier)
        earlier = (*earlier, step.name)


def _step(pod: PodSpec, index: int, tasks: tuple[str, ...]) -> StepSpec:
    instance = pod.instance(index)
    errors = tuple(_launch_errors(pod, tasks))
    if errors:
        work = PodWork(pod=pod.type, index=index, tasks=())
        return StepSpec(name=instance, work=work, errors=errors)
    work = PodWork(pod=pod.type, index=index, tasks=tasks)
    return StepSpec(name=f"{instance}:[{', '.join(tasks)}]", work=work)


def _launch_errors(pod: PodSpec, names: Sequence[str]) -> Iterator[str]:
    """Yield why these tasks can't be launched at the same time (behaviour 3.1, 5.3)."""
    tasks = [pod.task(name) for name in names]
    for resources in _repeated(task.resource_set for task in tasks):
        sharing = ", ".join(task.name for task in tasks if task.resource_set == resources)
        yield (
            f"the tasks {sharing} of pod {pod.type} use the same resource set {resources!r} and"
            " can't be launched together; give each its own step, or its own resource set"
        )
    prefixes = [task.discovery.prefix for task in tasks if task.discovery]
    for prefix in _repeated(prefix for prefix in prefixes if prefix):
        yield (
            f"several tasks of pod {pod.type} in one step have the DNS prefix {prefix!r};"
            " give each its own step, or its own prefix"
        )


def _repeated(names: Iterator[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _chosen(entries: Sequence[Mapping[str, _Lists]], index: int) -> _Lists | None:
    """Return the file's steps of an instance; None without an entry for it."""
    merged = {key: lists for entry in entries for key, lists in entry.items()}
    named = {int(key): lists for key, lists in merged.items() if _INDEX.fullmatch(key)}
    return named.get(index, merged.get(_DEFAULT))


# --- problems of the section -------------------------------------------------------------------


def problems(spec: ServiceSpec, strategies: Collection[str] = IN_SERVICES) -> tuple[Reason, ...]:
    """Return all problems of the service's ``plans``, for which ``generate`` fails (behaviour
    5.3)."""
    if spec.plans is None:
        return ()
    return tuple(_section_problems(spec, spec.plans, strategies))


def _section_problems(
    spec: ServiceSpec, plans: Mapping[str, PlanYaml], strategies: Collection[str]
) -> Iterator[Reason]:
    if DEPLOY not in plans:
        yield Reason(
            field="plans",
            problem="there is no plan deploy",
            value=list(plans),
            fix="define it, or remove plans to get the default plan",
        )
    for name, plan in plans.items():
        path = f"plans.{name}"
        fault = name_fault(name)
        if fault:
            yield Reason(field=path, problem=fault, value=name)
        if name in RESERVED:
            yield Reason(
                field=path,
                problem="every service has a plan of this name already",
                value=name,
                fix="choose another name",
            )
        yield from _plan_problems(spec, plan, path, strategies)


def _plan_problems(
    spec: ServiceSpec, plan: PlanYaml, path: str, strategies: Collection[str]
) -> Iterator[Reason]:
    yield from _strategy_problems(plan.strategy, f"{path}.strategy", strategies)
    try:
        parameters = _parameters.validate_python(plan.parameters)
        yield from declaration_problems(parameters, f"{path}.parameters")
    except ValidationError as error:
        yield Reason(field=f"{path}.parameters", problem=_first(error), value=plan.parameters)
    if not plan.phases:
        yield Reason(field=f"{path}.phases", problem="the plan has no phases")
    for name, phase in plan.phases.items():
        where = f"{path}.phases.{name}"
        fault = name_fault(name)
        if fault:
            yield Reason(field=where, problem=fault, value=name)
        yield from _strategy_problems(phase.strategy, f"{where}.strategy", strategies)
        yield from _phase_problems(spec, phase, where)


def _strategy_problems(written: object, path: str, strategies: Collection[str]) -> Iterator[Reason]:
    try:
        strategy: StrategySpec = _strategy.validate_python(written)
    except ValidationError as error:
        yield Reason(field=path, problem=_first(error), value=written)
        return
    yield from strategy_problems(strategy, path, strategies)


def _phase_problems(spec: ServiceSpec, phase: PhaseYaml, path: str) -> Iterator[Reason]:
    try:
        pod = spec.pod(phase.pod)
    except KeyError:
        yield Reason(
            field=f"{path}.pod",
            problem="the service has no such pod",
            value=phase.pod,
            fix=suggestion(phase.pod, (pod.type for pod in spec.pods)),
        )
        return
    if not phase.steps:
        yield from _length_problems(pod, tuple(task.name for task in pod.tasks), path)
        return
    yield from _entry_problems(pod, phase.steps, f"{path}.steps")
    yield from _order_problems(phase, f"{path}.strategy")


def _entry_problems(
    pod: PodSpec, entries: Sequence[Mapping[str, _Lists]], path: str
) -> Iterator[Reason]:
    """Yield the faults of the entries ``{"0" | "default": [[task, ...], ...]}``."""
    seen: set[str] = set()
    for position, entry in enumerate(entries):
        where = f"{path}.{position}"
        if len(entry) != 1:
            yield Reason(
                field=where,
                problem="an entry has exactly one key, a pod's index or default",
                value=list(entry),
                fix="write one entry for each: - 0: [[a]]",
            )
        for key, lists in entry.items():
            yield from _key_problems(key, seen, f"{where}.{key}")
            seen.add(_canonical(key))
            yield from _list_problems(pod, lists, f"{where}.{key}")
    missing = [i for i in range(pod.count) if str(i) not in seen]
    if missing and _DEFAULT not in seen:
        yield Reason(
            field=path,
            problem=f"has no entry for instance {', '.join(map(str, missing))} of pod {pod.type}",
            fix="add an entry for it, or default",
        )


def _canonical(key: str) -> str:
    return str(int(key)) if _INDEX.fullmatch(key) else key


def _key_problems(key: str, seen: set[str], path: str) -> Iterator[Reason]:
    if key != _DEFAULT and not _INDEX.fullmatch(key):
        yield Reason(
            field=path, problem="is neither a pod's index nor default", value=key, fix="write 0"
        )
    elif _canonical(key) in seen:
        yield Reason(field=path, problem="an earlier entry has the same key", value=key)


def _list_problems(pod: PodSpec, lists: _Lists, path: str) -> Iterator[Reason]:
    known = {task.name for task in pod.tasks}
    for position, tasks in enumerate(lists):
        where = f"{path}.{position}"
        if not tasks:
            yield Reason(
                field=where,
                problem="a step without tasks would never complete",
                value=[],
                fix="name its tasks; to skip an instance write []",
            )
        for task in tasks:
            if task not in known:
                yield Reason(
                    field=where,
                    problem=f"pod {pod.type} has no such task",
                    value=task,
                    fix=suggestion(task, known),
                )
        for task in _repeated(iter(tasks)):
            yield Reason(field=where, problem="names a task twice", value=task)
        if tasks in lists[:position]:
            yield Reason(
                field=where,
                problem="the same step is listed twice",
                value=list(tasks),
                fix="remove one of them",
            )
        yield from _length_problems(pod, tasks, where)


def _length_problems(pod: PodSpec, tasks: tuple[str, ...], path: str) -> Iterator[Reason]:
    name = f"{pod.instance(max(pod.count - 1, 0))}:[{', '.join(tasks)}]"
    if len(name) > MAX_POD_STEP_NAME:
        yield Reason(
            field=path,
            problem=f"the step's name would have {len(name)} characters, the limit is"
            f" {MAX_POD_STEP_NAME}",
            fix="launch fewer tasks in one step",
        )


def _order_problems(phase: PhaseYaml, path: str) -> Iterator[Reason]:
    """Yield a problem for a strategy that would run an instance's steps out of order."""
    try:
        strategy: StrategySpec = _strategy.validate_python(phase.strategy)
    except ValidationError:
        return  # reported as the strategy's own problem
    if _keeps_order(strategy):
        return
    if any(len(lists) > 1 for entry in phase.steps for lists in entry.values()):
        yield Reason(
            field=path,
            problem="does not keep the order of several steps of one instance",
            value=strategy.name,
            fix="use serial or parallel, or one step for each instance",
        )


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else fault["msg"]


def _keeps_order(strategy: StrategySpec) -> bool:
    """Whether an instance's steps run in order: by the strategy, or by added dependencies."""
    record = record_of(strategy.name)
    if record is None:
        return False
    return record.dependencies is Dependencies.EARLIER or bool(record.with_dependencies)
