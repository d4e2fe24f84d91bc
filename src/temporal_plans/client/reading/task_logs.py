"""Tasks on their agents, and their output."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from temporal_plans.client.errors import (
    AgentNotFound,
    AgentUnreachable,
    Ambiguous,
    Refused,
    TaskNotFound,
)
from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.pools import AgentView
from temporal_plans.messages.tasks import LogChunk, ReadLogInput

Stream = Literal["stdout", "stderr"]

AGENT_ANSWER_TIMEOUT = timedelta(seconds=5)
"""How long an agent may take to answer, in addition to ``ReadLogInput.wait``."""

_FOLLOW_TIMEOUT = timedelta(seconds=10)
_CHUNK_SIZE = 65536  # bytes
_LINE_SIZE_ESTIMATE = 200  # bytes, to find the last lines of a long log


@dataclass(frozen=True)
class TaskAt:
    """A task, the agent that has its sandbox, and the agent's task queue."""

    task_id: str
    agent: str
    queue: str


def find_task(text: str, records: Sequence[TaskRecord]) -> TaskAt | None:
    """Find a task by name (``hello-0-server``) or the id of a launch, the newest or one before.

    Raises Ambiguous when several services have a task of the name.
    """
    found = [record for record in records if text in (record.task_id, record.name)]
    if len(found) > 1:
        ids = ", ".join(record.task_id for record in found)
        raise Ambiguous(f"several services have a task {text!r}; give --service, or one of {ids}")
    if found:
        return TaskAt(found[0].task_id, found[0].agent, found[0].queue)
    earlier = (launch for record in records for launch in record.earlier)
    known = next((launch for launch in earlier if launch.task_id == text), None)
    return TaskAt(known.task_id, known.agent, known.queue) if known else None


def task_of_step(view: PlanView, path: str) -> str:
    """Return the id of the newest task of the step ``phase/step``. Raises TaskNotFound when the
    step runs no command."""
    tasks = {
        f"{phase.name}/{step.name}": step.task
        for phase in view.phases
        for step in phase.steps
        if step.task
    }
    if path not in tasks:
        raise TaskNotFound(path, tasks)
    return tasks[path]


def task_on_agent(task_id: str, agent: str, agents: Sequence[AgentView]) -> TaskAt:
    """Return the task on the agent with this id; when several pools have such an agent, on one that
    is ALIVE. Raises AgentNotFound."""
    found = [view for view in agents if view.info.id == agent]
    if not found:
        raise AgentNotFound(agent, [view.info.id for view in agents])
    view = min(found, key=lambda view: view.state is not AgentState.ALIVE)
    return TaskAt(task_id, agent, view.info.queue)


async def find_on_agents(
    gateway: Gateway, task_id: str, agents: Sequence[AgentView]
) -> TaskAt | None:
    """Find the task of an older launch, which only its agent still knows. Agents that are not ALIVE
    are skipped."""

    async def knows(place: TaskAt) -> bool:
        try:
            await read_log(gateway, place, "stdout", limit=1)
        except (Refused, AgentUnreachable):
            return False
        return True

    places = [
        TaskAt(task_id, view.info.id, view.info.queue)
        for view in agents
        if view.state is AgentState.ALIVE
    ]
    answers = await asyncio.gather(*map(knows, places))
    return next((place for place, known in zip(places, answers, strict=True) if known), None)


async def read_log(
    gateway: Gateway,
    task: TaskAt,
    stream: Stream,
    *,
    offset: int = 0,
    limit: int = _CHUNK_SIZE,
    wait: timedelta | None = None,
) -> LogChunk:
    """Read one chunk of a task's output; see ``ReadLogInput``. Raises AgentUnreachable, Refused."""
    request = ReadLogInput(
        task_id=task.task_id, stream=stream, offset=offset, limit=limit, wait=wait
    )
    timeout = AGENT_ANSWER_TIMEOUT + (wait or timedelta())
    return await gateway.ask_agent(
        task.agent, task.queue, "read_log", request, LogChunk, timeout=timeout
    )


async def read_output(
    gateway: Gateway, task: TaskAt, stream: Stream, *, tail: int | None = None, follow: bool = False
) -> AsyncIterator[str]:
    """Yield a task's output in chunks: all of it or the last ``tail`` lines; with ``follow`` also
    new output, until the task has ended."""
    offset = 0
    if tail is not None:
        text, offset = await _last_lines(gateway, task, stream, tail)
        yield text
    while True:
        wait = _FOLLOW_TIMEOUT if follow else None
        chunk = await read_log(gateway, task, stream, offset=offset, wait=wait)
        if chunk.text:
            yield chunk.text
        if chunk.ended or (not follow and chunk.next_offset == offset):
            return
        offset = chunk.next_offset


async def _last_lines(
    gateway: Gateway, task: TaskAt, stream: Stream, lines: int
) -> tuple[str, int]:
    """Return the last lines and the offset of their end, reading from further back until there are
    enough."""
    back = max(lines, 1) * _LINE_SIZE_ESTIMATE
    while True:
        text, end = await _read_to_end(gateway, task, stream, -back)
        kept = text.splitlines(keepends=True)
        if len(kept) > lines or back >= end:
            return "".join(kept[-lines:] if lines else []), end
        back *= 4


async def _read_to_end(
    gateway: Gateway, task: TaskAt, stream: Stream, offset: int
) -> tuple[str, int]:
    """Return the text from an offset to the current end, and the offset of that end."""
    text: list[str] = []
    chunk = await read_log(gateway, task, stream, offset=offset)
    while chunk.text:
        text.append(chunk.text)
        if chunk.ended:
            break
        chunk = await read_log(gateway, task, stream, offset=chunk.next_offset)
    return "".join(text), chunk.next_offset


def task_not_found(text: str, records: Sequence[TaskRecord]) -> TaskNotFound:
    """Return the error for an unknown task."""
    return TaskNotFound(text, [record.name for record in records])
