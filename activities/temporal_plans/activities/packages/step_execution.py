"""The tasks of a step, executed together once: prepared, recorded, begun, and looked at."""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from temporal_plans.activities.packages.errors import located, problem_of
from temporal_plans.activities.packages.run_record import record
from temporal_plans.activities.packages.secret_values import HiddenValues
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import TaskExecution, TaskKind, TaskState
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.tasks import AnyTask
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.packages import TasksOutcome, TasksResult

_Made = TypeVar("_Made")

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class TaskIntervals:
    """Seconds between two looks at objects, between heartbeats, and until an answer is due."""

    look: float = 1.0
    heartbeat: float = 1.0
    answer: float = 60.0


class StepExecution:
    """All tasks are attempted: one that may succeed later does not keep the others from it; one
    that can't ends the execution at once."""

    def __init__(
        self,
        context: StepContext,
        kinds: Mapping[str, TaskKind],
        hidden: HiddenValues,
        intervals: TaskIntervals,
    ) -> None:
        self._context = context
        self._order = context.order
        self._kinds = kinds
        self._hidden = hidden
        self._intervals = intervals
        self._executions: dict[str, TaskExecution] = {}
        self._problems: list[TaskProblem] = []
        self._waiting: list[TaskState] = []
        self._done: list[str] = []
        self._gone: list[ObjectRef] = []

    async def run(self) -> TasksResult:
        """Execute the tasks."""
        try:
            await self._prepare()
            if await self._attempted("", self._record()):
                await self._begin()
                await self._watch()
                if self._gone:
                    await record(self._context.client, self._order, gone=self._gone)
        except TaskProblem as problem:
            return ended(problem, self._hidden, tuple(self._done))
        return self._result()

    async def _prepare(self) -> None:
        for name in self._order.tasks:
            made = await self._attempted(name, self._prepared(name))
            if made is not None:
                self._executions[name] = made

    async def _begin(self) -> None:
        for name, execution in list(self._executions.items()):
            await self._attempted(name, execution.begin())

    async def _prepared(self, name: str) -> TaskExecution:
        task: AnyTask = self._context.package.task(name)
        if faults := list(task.faults()):
            raise TaskProblem("; ".join(map(str, faults)))
        kind = task.type if isinstance(task, CustomTask) else task.kind
        prepare = self._kinds.get(kind)
        if prepare is None:
            known = ", ".join(sorted(self._kinds))
            raise TaskProblem(f"no kind of task {kind!r}; this cluster's worker has {known}")
        made = await prepare(task, self._context)
        self._hidden.add_objects(made.objects)
        if any(self._hidden.tells(str(ObjectRef.of(one))) for one in made.objects):
            raise TaskProblem(
                "the name of an object has the value of a secret parameter; name it otherwise"
            )
        return made

    async def _record(self) -> bool:
        """Before anything is changed: once a plan is over it changes nothing any more."""
        executions = self._executions.values()
        if not any(execution.changes for execution in executions):
            return True
        objects = [ObjectRef.of(one) for execution in executions for one in execution.objects]
        live = self._context.objects
        if objects:
            installation = self._order.run.installation
            objects = [live.anchor_ref, *await live.unrecorded(installation), *objects]
        await record(self._context.client, self._order, list(dict.fromkeys(objects)))
        await live.note_recorded()
        return True

    async def _watch(self) -> None:
        """Look until there is something to say. The first look at what was just applied is too
        early to say anything, so that a second one follows always."""
        loop = asyncio.get_running_loop()
        end, looks = loop.time() + self._intervals.answer, 0
        while True:
            await self._look()
            looks += 1
            if self._problems or not self._waiting:
                return
            if looks > 1 and (self._has_news() or loop.time() >= end):
                return
            await asyncio.sleep(self._intervals.look)

    async def _look(self) -> None:
        self._waiting = []
        for name, execution in list(self._executions.items()):
            state = await self._attempted(name, execution.look())
            if state is None:
                continue
            if state.done:
                self._done.append(name)
                self._gone += state.gone
                del self._executions[name]
            else:
                self._waiting.append(state)

    async def _attempted(self, name: str, part: Awaitable[_Made]) -> _Made | None:
        """Return what a part of a task gives; None when it failed and may succeed later."""
        try:
            return await part
        except Exception as error:
            problem = located(problem_of(error), self._order, name)
            if not problem.passing:
                raise problem from error
            self._problems.append(problem)
            self._executions.pop(name, None)
            return None

    def _result(self) -> TasksResult:
        if self._problems:
            return ended(self._problems[0], self._hidden, tuple(self._done))
        done = tuple(self._done)
        if not self._waiting:
            return TasksResult(outcome=TasksOutcome.DONE, done=done)
        return TasksResult(
            outcome=TasksOutcome.WAITING,
            done=done,
            reason=self._reason(),
            about=_shown(self._waiting[0].about, self._hidden),
        )

    def _reason(self) -> str:
        state = self._waiting[0]
        return self._shown(": ".join(filter(None, (state.reason, state.details))))

    def _shown(self, text: str) -> str:
        return shortened(self._hidden.hide(text))

    def _has_news(self) -> bool:
        """Whether the reason is another one than the step shows, but for numbers in its details,
        such as that of restarts."""
        shown, reason = self._order.shown, self._reason()
        head = self._shown(self._waiting[0].reason)
        if not shown.startswith(head):
            return True
        at = len(head)
        return _NUMBERS.sub("", shown[at:]) != _NUMBERS.sub("", reason[at:])


def ended(problem: TaskProblem, hidden: HiddenValues, done: tuple[str, ...] = ()) -> TasksResult:
    """Return the result of an execution that a problem ended."""
    outcome = TasksOutcome.RETRY if problem.passing else TasksOutcome.FAILED
    reason = shortened(hidden.hide(str(problem)))
    return TasksResult(
        outcome=outcome, done=done, reason=reason, about=_shown(problem.about, hidden)
    )


def _shown(about: ObjectRef | None, hidden: HiddenValues) -> ObjectRef | None:
    """Return the identity of an object, unless its name tells a value."""
    return None if about is None or hidden.tells(str(about)) else about
