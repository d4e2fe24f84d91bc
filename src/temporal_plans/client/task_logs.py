"""Finding a task on its agent, and reading what it wrote."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from temporal_plans.client.errors import AgentUnreachable, Ambiguous, Refused, TaskNotFound
from temporal_plans.client.gateway import Gateway
from temporal_plans.messages.cluster import LogChunk, ReadLogInput
from temporal_plans.messages.plan import PlanView
from temporal_plans.messages.service import TaskRecord

Stream = Literal["stdout", "stderr"]

AGENT_WITHIN = timedelta(seconds=5)
"""How long an agent may take to answer, beside the time it was asked to wait for something new."""

_HOLD = timedelta(seconds=10)
_PIECE = 65536
_LONGEST_LINE = 200  # bytes of a line, guessed to find the last lines of a long log


@dataclass(frozen=True)
class TaskAt:
    """A task, and the agent that has its sandbox."""

    task_id: str
    agent: str


def find_task(text: str, records: Sequence[TaskRecord]) -> TaskAt | None:
    """The task of that id or name (``hello-0-server``) among the newest launches.

    Raises Ambiguous when several services have a task of the name.
    """
    found = [record for record in records if text in (record.task_id, record.name)]
    if len(found) > 1:
        ids = ", ".join(record.task_id for record in found)
        raise Ambiguous(f"several services have a task {text!r}: give --service, or its id: {ids}")
    return TaskAt(found[0].task_id, found[0].agent) if found else None


def task_of_step(view: PlanView, path: str) -> str:
    """The id of the newest task of the step ``phase/step``, which runs a command. TaskNotFound."""
    ran = {
        f"{phase.name}/{step.name}": step.task
        for phase in view.phases
        for step in phase.steps
        if step.task
    }
    if path not in ran:
        raise TaskNotFound(path, ran)
    return ran[path]


async def find_by_agents(gateway: Gateway, task_id: str, agents: Sequence[str]) -> TaskAt | None:
    """The task of an older launch, which only its agent still knows."""

    async def knows(agent: str) -> bool:
        try:
            await read_log(gateway, TaskAt(task_id, agent), "stdout", limit=1)
        except (Refused, AgentUnreachable):
            return False
        return True

    answers = await asyncio.gather(*(knows(agent) for agent in agents))
    known = [agent for agent, answer in zip(agents, answers, strict=True) if answer]
    return TaskAt(task_id, known[0]) if known else None


async def read_log(
    gateway: Gateway,
    task: TaskAt,
    stream: Stream,
    *,
    offset: int = 0,
    limit: int = _PIECE,
    wait: timedelta | None = None,
) -> LogChunk:
    """One piece of a task's output; see ``ReadLogInput``. Raises AgentUnreachable, Refused."""
    request = ReadLogInput(
        task_id=task.task_id, stream=stream, offset=offset, limit=limit, wait=wait
    )
    within = AGENT_WITHIN + (wait or timedelta())
    return await gateway.ask_agent(task.agent, "read_log", request, LogChunk, within=within)


async def read_all(
    gateway: Gateway, task: TaskAt, stream: Stream, *, tail: int | None = None, follow: bool = False
) -> AsyncIterator[str]:
    """A task's output piece by piece: all of it or the last ``tail`` lines; with ``follow`` also
    what comes, until the task has ended."""
    offset = 0
    if tail is not None:
        text, offset = await _last_lines(gateway, task, stream, tail)
        yield text
    while True:
        wait = _HOLD if follow else None
        chunk = await read_log(gateway, task, stream, offset=offset, wait=wait)
        if chunk.text:
            yield chunk.text
        if chunk.ended or (not follow and chunk.next_offset == offset):
            return
        offset = chunk.next_offset


async def _last_lines(
    gateway: Gateway, task: TaskAt, stream: Stream, lines: int
) -> tuple[str, int]:
    """The last lines and where the log goes on, looking back further until there are enough."""
    back = max(lines, 1) * _LONGEST_LINE
    while True:
        text, end = await _from(gateway, task, stream, -back)
        kept = text.splitlines(keepends=True)
        if len(kept) > lines or back >= end:
            return "".join(kept[-lines:] if lines else []), end
        back *= 4


async def _from(gateway: Gateway, task: TaskAt, stream: Stream, offset: int) -> tuple[str, int]:
    """All from an offset to the present end, and the end."""
    text: list[str] = []
    chunk = await read_log(gateway, task, stream, offset=offset)
    while chunk.text:
        text.append(chunk.text)
        if chunk.ended:
            break
        chunk = await read_log(gateway, task, stream, offset=chunk.next_offset)
    return "".join(text), chunk.next_offset


def not_found(text: str, records: Sequence[TaskRecord]) -> TaskNotFound:
    return TaskNotFound(text, [record.name for record in records])
