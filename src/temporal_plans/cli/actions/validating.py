"""``validate``: the kind of a file, its problems, and the plans made from it."""

from pathlib import Path

from temporal_plans.cli.actions.packages import package_facts, validate_package
from temporal_plans.cli.inputs.files import FileKind, ServiceFileOptions, kind_of, service_file
from temporal_plans.cli.inputs.strategy_names import custom_strategies
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, print_lines
from temporal_plans.cli.terminal.tree import tree
from temporal_plans.domain.plans.board import PlanBoard, PlanState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.plan_names import DEPLOY, UPDATE
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.plans import load_plan
from temporal_plans.messages.plan_views import PlanView, PlanViewer


def validate_file(file: ServiceFileOptions) -> int:
    """Check the file and print what it is; return the exit code. Raises SpecError."""
    kind = kind_of(file.path)
    if kind is FileKind.PACKAGE:
        return validate_package(file.path)
    if kind is FileKind.PLAN:
        return _plan(file.path)
    return _service(service_file(file), file.path)


def validate_file_as_json(file: ServiceFileOptions) -> int:
    """Check the file and print the result as JSON: its kind and name, its plans in their first
    state, and every problem. Return the exit code."""
    path = file.path
    found: dict[str, object] = {"file": str(path), "kind": None, "name": None, "plans": []}
    try:
        kind = kind_of(path)
        found["kind"] = kind.value
        if kind is FileKind.PACKAGE:
            found |= package_facts(path)
        elif kind is FileKind.PLAN:
            found |= _plan_facts(path)
        else:
            found |= _service_facts(service_file(file))
    except SpecError as error:
        found["problems"] = list(error.reasons)
    print_json(found)
    return 1 if found["problems"] else 0


def _plan_facts(path: Path) -> dict[str, object]:
    spec = _loaded(path)
    custom_strategies(spec, source=path.name)
    unknown = plan_problems(spec, strategies=NAMES, step_kinds=())
    shown = not any("strategy" in problem.field for problem in unknown)
    return {
        "name": spec.name,
        "plans": [_view(spec, started=True)] if shown else [],
        "parameters": list(spec.parameters or ()),
        "needs_worker_with": list(unknown),
        "problems": [],
    }


def _service_facts(spec: ServiceSpec) -> dict[str, object]:
    plans = [*generate(spec), *_update(spec)]
    return {
        "name": spec.name,
        "plans": [_view(plan, started=plan.name in (DEPLOY, UPDATE)) for plan in plans],
        "problems": [
            Reason(field=f"plans.{plan.name}", problem=error)
            for plan in plans
            for error in PlanBoard(plan).errors
        ],
    }


def _service(spec: ServiceSpec, path: Path) -> int:
    plans = [*generate(spec), *_update(spec)]
    pods, tasks = len(spec.pods), sum(len(pod.tasks) for pod in spec.pods)
    print_line(
        f"{path.name}: service {spec.name!r} with {_count(pods, 'pod type')}, "
        f"{_count(tasks, 'task')} and {_count(len(plans), 'plan')}"
    )
    for plan in plans:
        print_line()
        if plan.name == UPDATE:
            print_line("Used in place of deploy after the first complete deployment:")
        print_lines(_tree(plan, started=plan.name in (DEPLOY, UPDATE)))
    faults = [f"{plan.name}: {error}" for plan in plans for error in PlanBoard(plan).errors]
    if faults:
        print_error("\n".join(["steps that can't be executed:", *faults]))
    return 1 if faults else 0


def _update(spec: ServiceSpec) -> list[PlanSpec]:
    """Return the plan ``update`` of the file, which replaces ``deploy`` in later deployments."""
    if spec.plans is None or UPDATE not in spec.plans:
        return []
    return [generate(spec, completed_before=True)[0].but(name=UPDATE)]


def _loaded(path: Path) -> PlanSpec:
    """Load a plan. Raises SpecError with all problems; where there are some, names that only a
    worker of one's own can know are among them."""
    try:
        return load_plan(path)
    except SpecError as sure:
        try:
            load_plan(path, strategies=NAMES, step_kinds=())
        except SpecError as every:
            raise SpecError(
                [one if one in sure.reasons else _or_registered(one) for one in every.reasons],
                source=path.name,
            ) from None
        raise


def _or_registered(reason: Reason) -> Reason:
    return reason.but(fix=f"{reason.fix} (one of your own: register it on the worker)".strip())


def _plan(path: Path) -> int:
    spec = _loaded(path)
    custom = custom_strategies(spec, source=path.name)
    unknown = plan_problems(spec, strategies=NAMES, step_kinds=())
    print_line(f"{path.name}: plan {spec.name!r} with {_count(len(spec.phases), 'phase')}")
    if custom:
        print_line("Its steps are not shown: a strategy is not built in.")
    else:
        print_line()
        print_lines(_tree(spec, started=True))
    if spec.parameters:
        print_line("\nParameters:")
        for parameter in spec.parameters:
            presence = "required" if parameter.required else f"default {parameter.default!r}"
            if parameter.default is None and not parameter.required:
                presence = "optional"
            about = f": {parameter.description}" if parameter.description else ""
            print_line(f"- {parameter.name} ({presence}){about}")
    if unknown:
        print_line("\nOnly a worker that registers these names can run it:")
        for problem in unknown:
            print_line(f"- {problem}")
    return 0


def _tree(plan: PlanSpec, *, started: bool) -> list[str]:
    return [line.plain for line in tree(_view(plan, started=started))]


def _view(plan: PlanSpec, *, started: bool) -> PlanView:
    board = PlanBoard(plan, PlanState(interrupted=not started))
    return PlanViewer(plan.name).plan(board, arguments={}, started=None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
