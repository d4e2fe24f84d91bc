"""From a service to its plans (reference 5.1-5.4).

Without a ``plans`` section there is one plan, ``deploy``: a phase per pod, a step per instance.
With one there are exactly the plans it names. A step that can't be built (two of its tasks would
share a resource set or a DNS name) is not a refusal: it becomes a step with errors, which the plan
shows.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.names import MAX_POD_STEP_NAME, name_fault, suggestion
from temporal_plans.domain.parameters import declaration_problems
from temporal_plans.domain.plan import (
    ParameterSpec,
    PhaseSpec,
    PlanSpec,
    PodWork,
    StepSpec,
    Strategy,
    StrategySpec,
)
from temporal_plans.domain.service import PhaseYaml, PlanYaml, PodSpec, ServiceSpec
from temporal_plans.domain.strategy_check import strategy_problems

DEPLOY = "deploy"
UPDATE = "update"

RESERVED = frozenset({"recovery", "decommission"})
"""Plans that every service has of its own; a file can't define them."""

WRITABLE_STRATEGIES = frozenset(
    {
        "serial",
        "parallel",
        "canary",
        "serial-canary",
        "parallel-canary",
        "max-parallel",
        "waves",
    }
)
"""What a service file may write. ``dependency`` and its canary are made from steps, not written."""

_IN_ORDER = frozenset({"serial", "canary", "serial-canary"})
"""Strategies under which an instance's steps follow each other without dependencies."""

_COMPOSED = MappingProxyType({"parallel": "dependency", "parallel-canary": "dependency-canary"})
"""What a phase with custom steps becomes (reference 5.2, composition rules)."""

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
    strategies: Collection[str] = WRITABLE_STRATEGIES,
) -> tuple[PlanSpec, ...]:
    """The service's plans: ``deploy`` first, then the others as the file has them.

    ``completed_before``: a deployment of this service has been complete; a plan ``update`` then
    takes the place of ``deploy``, under that name. Before that it is left out (reference 5.4).

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
    composed = _COMPOSED.get(strategy.name)
    steps: list[StepSpec] = []
    for index in range(pod.count):
        own = _instance_steps(pod, index, _chosen(phase.steps, index) or ())
        steps += _chained(own) if composed else own
    if composed:
        strategy = strategy.but(name=composed)
    return PhaseSpec(name=name, strategy=strategy, steps=tuple(steps))


def _instance_steps(pod: PodSpec, index: int, lists: _Lists) -> list[StepSpec]:
    """An instance's steps; those with errors all have the instance's name, so they get numbers."""
    steps: list[StepSpec] = []
    for tasks in lists:
        step = _step(pod, index, tasks)
        taken = sum(bool(other.errors) for other in steps)
        if step.errors and taken:
            step = step.but(name=f"{step.name} ({taken + 1})")
        steps.append(step)
    return steps


def _chained(steps: Sequence[StepSpec]) -> Iterator[StepSpec]:
    """Each step after all earlier ones: dependencies are not followed further (reference 2.2)."""
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
    """Why these tasks can't be launched at the same time (reference 3.1, 5.3)."""
    tasks = [pod.task(name) for name in names]
    for resources in _repeated(task.resource_set for task in tasks):
        sharing = ", ".join(task.name for task in tasks if task.resource_set == resources)
        yield (
            f"the tasks {sharing} of pod {pod.type} use the same resource set {resources!r} and"
            " can't be launched together; give them steps of their own, or different resource sets"
        )
    prefixes = [task.discovery.prefix for task in tasks if task.discovery]
    for prefix in _repeated(prefix for prefix in prefixes if prefix):
        yield (
            f"several tasks of pod {pod.type} in one step have the DNS prefix {prefix!r};"
            " give them steps of their own, or different prefixes"
        )


def _repeated(names: Iterator[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _chosen(entries: Sequence[Mapping[str, _Lists]], index: int) -> _Lists | None:
    """What the file says for an instance; None when it says nothing."""
    merged = {key: lists for entry in entries for key, lists in entry.items()}
    named = {int(key): lists for key, lists in merged.items() if _INDEX.fullmatch(key)}
    return named.get(index, merged.get(_DEFAULT))


# --- what generation refuses -------------------------------------------------------------------


def problems(
    spec: ServiceSpec, strategies: Collection[str] = WRITABLE_STRATEGIES
) -> tuple[Problem, ...]:
    """Everything in the service's ``plans`` that ``generate`` refuses (reference 5.3)."""
    if spec.plans is None:
        return ()
    return tuple(_section_problems(spec, spec.plans, strategies))


def _section_problems(
    spec: ServiceSpec, plans: Mapping[str, PlanYaml], strategies: Collection[str]
) -> Iterator[Problem]:
    if DEPLOY not in plans:
        yield Problem(
            path="plans",
            message="there is no plan deploy",
            value=list(plans),
            fix="define it, or remove plans to get the default one",
        )
    for name, plan in plans.items():
        path = f"plans.{name}"
        fault = name_fault(name)
        if fault:
            yield Problem(path=path, message=fault, value=name)
        if name in RESERVED:
            yield Problem(
                path=path,
                message="every service has a plan of this name already",
                value=name,
                fix="choose another name",
            )
        yield from _plan_problems(spec, plan, path, strategies)


def _plan_problems(
    spec: ServiceSpec, plan: PlanYaml, path: str, strategies: Collection[str]
) -> Iterator[Problem]:
    yield from _strategy_problems(plan.strategy, f"{path}.strategy", strategies)
    try:
        parameters = _parameters.validate_python(plan.parameters)
        yield from declaration_problems(parameters, f"{path}.parameters")
    except ValidationError as error:
        yield Problem(path=f"{path}.parameters", message=_first(error), value=plan.parameters)
    if not plan.phases:
        yield Problem(path=f"{path}.phases", message="the plan has no phases")
    for name, phase in plan.phases.items():
        where = f"{path}.phases.{name}"
        fault = name_fault(name)
        if fault:
            yield Problem(path=where, message=fault, value=name)
        yield from _strategy_problems(phase.strategy, f"{where}.strategy", strategies)
        yield from _phase_problems(spec, phase, where)


def _strategy_problems(
    written: object, path: str, strategies: Collection[str]
) -> Iterator[Problem]:
    try:
        strategy: StrategySpec = _strategy.validate_python(written)
    except ValidationError as error:
        yield Problem(path=path, message=_first(error), value=written)
        return
    yield from strategy_problems(strategy, path, strategies)


def _phase_problems(spec: ServiceSpec, phase: PhaseYaml, path: str) -> Iterator[Problem]:
    try:
        pod = spec.pod(phase.pod)
    except KeyError:
        yield Problem(
            path=f"{path}.pod",
            message="the service has no such pod",
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
) -> Iterator[Problem]:
    """Faults of the entries ``{"0" | "default": [[task, ...], ...]}``."""
    seen: set[str] = set()
    for position, entry in enumerate(entries):
        where = f"{path}.{position}"
        if len(entry) != 1:
            yield Problem(
                path=where,
                message="an entry has exactly one key, a pod's index or default",
                value=list(entry),
                fix="write one entry for each: - 0: [[a]]",
            )
        for key, lists in entry.items():
            yield from _key_problems(key, seen, f"{where}.{key}")
            seen.add(_canonical(key))
            yield from _list_problems(pod, lists, f"{where}.{key}")
    missing = [i for i in range(pod.count) if str(i) not in seen]
    if missing and _DEFAULT not in seen:
        yield Problem(
            path=path,
            message=f"says nothing about instance {', '.join(map(str, missing))} of pod {pod.type}",
            fix="add an entry for it, or default",
        )


def _canonical(key: str) -> str:
    return str(int(key)) if _INDEX.fullmatch(key) else key


def _key_problems(key: str, seen: set[str], path: str) -> Iterator[Problem]:
    if key != _DEFAULT and not _INDEX.fullmatch(key):
        yield Problem(
            path=path, message="is neither a pod's index nor default", value=key, fix="write 0"
        )
    elif _canonical(key) in seen:
        yield Problem(path=path, message="an earlier entry has the same key", value=key)


def _list_problems(pod: PodSpec, lists: _Lists, path: str) -> Iterator[Problem]:
    known = {task.name for task in pod.tasks}
    for position, tasks in enumerate(lists):
        where = f"{path}.{position}"
        if not tasks:
            yield Problem(
                path=where,
                message="a step without tasks would never complete",
                value=[],
                fix="name its tasks; to skip an instance write []",
            )
        for task in tasks:
            if task not in known:
                yield Problem(
                    path=where,
                    message=f"pod {pod.type} has no such task",
                    value=task,
                    fix=suggestion(task, known),
                )
        for task in _repeated(iter(tasks)):
            yield Problem(path=where, message="names a task twice", value=task)
        if tasks in lists[:position]:
            yield Problem(
                path=where,
                message="the same step is listed twice",
                value=list(tasks),
                fix="remove one of them",
            )
        yield from _length_problems(pod, tasks, where)


def _length_problems(pod: PodSpec, tasks: tuple[str, ...], path: str) -> Iterator[Problem]:
    name = f"{pod.instance(max(pod.count - 1, 0))}:[{', '.join(tasks)}]"
    if len(name) > MAX_POD_STEP_NAME:
        yield Problem(
            path=path,
            message=f"the step's name would have {len(name)} characters, the limit is"
            f" {MAX_POD_STEP_NAME}",
            fix="launch fewer tasks in one step",
        )


def _order_problems(phase: PhaseYaml, path: str) -> Iterator[Problem]:
    """Strategies that would run an instance's second step before its first is complete."""
    try:
        strategy: StrategySpec = _strategy.validate_python(phase.strategy)
    except ValidationError:
        return  # reported as the strategy's own problem
    if strategy.name in _IN_ORDER or strategy.name in _COMPOSED:
        return
    if any(len(lists) > 1 for entry in phase.steps for lists in entry.values()):
        yield Problem(
            path=path,
            message="does not keep the order of several steps of one instance",
            value=strategy.name,
            fix="use serial or parallel, or one step for each instance",
        )


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else fault["msg"]
