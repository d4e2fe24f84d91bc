"""``validate``: a file's kind, its problems, and the plans that it would give."""

from collections.abc import Iterable
from pathlib import Path

from temporal_plans.cli.files import FileKind, kind_of, service_file
from temporal_plans.cli.output import complain, say, say_all
from temporal_plans.cli.strategy_names import only_workers_know
from temporal_plans.cli.tree import tree
from temporal_plans.domain.board import PlanBoard, PlanState
from temporal_plans.domain.generation import DEPLOY, UPDATE, generate
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems as plan_problems
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.strategies import NAMES
from temporal_plans.loading.plans import load_plan
from temporal_plans.workflows.views import PlanViewer


def validated(path: Path, given: Iterable[str] | None, files: Iterable[Path] | None) -> int:
    """Check the file and say what it is; the exit code. Raises SpecError with its problems."""
    if kind_of(path) is FileKind.PLAN:
        return _plan(path)
    return _service(service_file(path, given, files), path)


def _service(spec: ServiceSpec, path: Path) -> int:
    plans = [*generate(spec), *_update(spec)]
    pods, tasks = len(spec.pods), sum(len(pod.tasks) for pod in spec.pods)
    say(
        f"{path.name}: service {spec.name!r} with {_count(pods, 'pod type')}, "
        f"{_count(tasks, 'task')} and {_count(len(plans), 'plan')}"
    )
    for plan in plans:
        say()
        if plan.name == UPDATE:
            say("In the place of deploy, once that has been complete:")
        say_all(_tree(plan, started=plan.name in (DEPLOY, UPDATE)))
    faults = [f"{plan.name}: {error}" for plan in plans for error in PlanBoard(plan).errors]
    if faults:
        complain("\n".join(["steps that can't be done:", *faults]))
    return 1 if faults else 0


def _update(spec: ServiceSpec) -> list[PlanSpec]:
    """What ``deploy`` is for a service that was deployed before, if the file says so."""
    if spec.plans is None or UPDATE not in spec.plans:
        return []
    return [generate(spec, completed_before=True)[0].but(name=UPDATE)]


def _plan(path: Path) -> int:
    spec = load_plan(path)
    only_workers_know(spec, source=path.name)
    unknown = plan_problems(spec, strategies=NAMES, step_kinds=())
    say(f"{path.name}: plan {spec.name!r} with {_count(len(spec.phases), 'phase')}")
    if any("strategy" in problem.path for problem in unknown):
        say("Its steps are not shown: a strategy is not built in.")
    else:
        say()
        say_all(_tree(spec, started=True))
    if spec.parameters:
        say("\nParameters:")
        for parameter in spec.parameters:
            need = "required" if parameter.required else f"default {parameter.default!r}"
            if parameter.default is None and not parameter.required:
                need = "optional"
            about = f": {parameter.description}" if parameter.description else ""
            say(f"- {parameter.name} ({need}){about}")
    if unknown:
        say("\nOnly a worker that registers them can run it:")
        for problem in unknown:
            say(f"- {problem}")
    return 0


def _tree(plan: PlanSpec, *, started: bool) -> list[str]:
    board = PlanBoard(plan, PlanState(interrupted=not started))
    view = PlanViewer(plan.name).plan(board, arguments={}, started=None)
    return [line.plain for line in tree(view)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
