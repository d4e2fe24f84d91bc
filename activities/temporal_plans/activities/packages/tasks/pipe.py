"""The task kind ``Pipe``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from temporal_plans.activities.kubernetes.cluster import Object
from temporal_plans.activities.packages.pipe_run import PipeRun
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import TaskExecution
from temporal_plans.domain.packages.pipes.artefact import for_step_run, reference
from temporal_plans.domain.packages.pipes.names import PipeNames
from temporal_plans.domain.packages.pipes.pod import WAITER_IMAGE, pipe_pod, pod_faults
from temporal_plans.domain.packages.tasks.pipe import PipeTask
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.objects import read_objects

PIPE_IMAGE_VARIABLE = "TEMPORAL_PLANS_PIPE_IMAGE"
"""The image of the container that keeps the pod until its files have been read: for clusters that
reach only a registry of their own."""

_REASONS_LIMIT = 5


@dataclass(frozen=True)
class PipeKind:
    """Runs a pod that makes files, and keeps them in Secrets and ConfigMaps. ``image`` is that of
    the container which waits until the files have been read."""

    image: str = WAITER_IMAGE

    async def __call__(self, task: PipeTask, context: StepContext) -> TaskExecution:
        """Prepare a task."""
        order = context.order
        names = PipeNames(
            instance=order.run.package.instance,
            plan=order.plan,
            phase=order.phase,
            step=order.step,
            task=task,
        )
        _refuse(task, names.faults())
        token = order.attempt or order.run.uid
        made = pipe_pod(_template(task, context), names.pod, self.image)
        kept = [reference(file, names.artefact(file.key)) for file in task.pipe]
        pod, *kept = await context.objects.enhanced([for_step_run(made, token), *kept])
        await context.objects.claim([pod, *kept])
        run = PipeRun(context=context, names=names, pod=pod, kept=kept, token=token)
        return TaskExecution(begin=_nothing, look=run.look, objects=[pod, *kept])


def pipe_kind(environ: Mapping[str, str]) -> PipeKind:
    """Return the kind as the environment of a worker sets it."""
    return PipeKind(environ.get(PIPE_IMAGE_VARIABLE) or WAITER_IMAGE)


async def _nothing() -> None:
    """All changes depend on what is there, so that looks make them."""


def _template(task: PipeTask, context: StepContext) -> Object:
    """Return the pod as its template says. Raises TaskProblem with what is wrong with it."""
    read = read_objects(context.text(task.pod))
    _refuse(task, read.faults)
    if len(read.objects) != 1:
        problem = f"gives {len(read.objects)} objects instead of one Pod"
        _refuse(task, [Reason(problem=problem)])
    pod = dict(read.objects[0])
    _refuse(task, pod_faults(pod, task.pipe))
    return pod


def _refuse(task: PipeTask, faults: Iterable[Reason]) -> None:
    """Raise a TaskProblem, if there is a fault. Values may be those of secrets."""
    texts = [str(fault.but(value=None)) for fault in faults][:_REASONS_LIMIT]
    if texts:
        raise TaskProblem(f"template {task.pod}: {'; '.join(texts)}")
