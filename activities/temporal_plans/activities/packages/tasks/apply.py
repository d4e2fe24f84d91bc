"""The task kind ``Apply``."""

from collections.abc import Sequence

from temporal_plans.activities.kubernetes.cluster import Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.packages.object_details import details
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import DONE, TaskExecution, TaskState
from temporal_plans.domain.packages.health import HealthState, health
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.tasks.apply import ApplyTask

_DETAILS_INTERVAL = 5
"""Looks from one at pods and events to the next."""


async def apply(task: ApplyTask, context: StepContext) -> TaskExecution:
    """Apply the objects of its templates in order; it is done when all are healthy."""
    return await application(task.resources, context)


async def application(keys: Sequence[str], context: StepContext) -> TaskExecution:
    """Return the execution that applies the objects of templates."""
    wanted = await context.rendered(keys)
    await context.objects.claim(wanted)
    applied = Applied(context)

    async def begin() -> None:
        applied.add(await context.objects.apply(wanted))

    return TaskExecution(begin=begin, look=applied.look, objects=wanted)


class Applied:
    """Objects that were applied, until they are healthy."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._waiting: list[Object] = []
        self._fresh = False
        self._looks = 0
        self._details = ""

    def add(self, lives: Sequence[Object]) -> None:
        """Add objects as the API server answered."""
        self._waiting += lives
        self._fresh = True

    async def look(self) -> TaskState:
        """Return whether all are healthy, and else why the first that is not is not. Raises
        TaskProblem for one that failed."""
        if not self._fresh:
            self._waiting = [await self._again(live) for live in self._waiting]
        self._fresh = False
        found = [(live, health(live)) for live in self._waiting]
        for live, one in found:
            if one.state is HealthState.FAILED:
                ref = ObjectRef.of(live)
                raise TaskProblem(f"{ref}: {one.reason}", about=ref)
        unhealthy = [(live, one) for live, one in found if one.state is HealthState.UNHEALTHY]
        self._waiting = [live for live, _ in unhealthy]
        if not unhealthy:
            return DONE
        live, first = unhealthy[0]
        more = f" (and {len(unhealthy) - 1} more)" if len(unhealthy) > 1 else ""
        ref = ObjectRef.of(live)
        reason = f"{ref}: {first.reason}{more}"
        return TaskState(done=False, reason=reason, about=ref, details=await self._details_of(live))

    async def _details_of(self, live: Object) -> str:
        """Return what pods and events say, read at some of the looks: not at the first, which is
        too early for them."""
        self._looks += 1
        if self._looks % _DETAILS_INTERVAL == 2 % _DETAILS_INTERVAL:
            try:
                self._details = (await details(self._context.cluster, live)).first
            except ClusterError as error:
                if error.passing:
                    raise
                self._details = ""  # the worker may not read them
        return self._details

    async def _again(self, live: Object) -> Object:
        ref = ObjectRef.of(live)
        now = await self._context.cluster.get(live)
        if now is None:
            raise TaskProblem(f"{ref}: it was deleted meanwhile", passing=True, about=ref)
        return now
