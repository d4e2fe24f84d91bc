"""Errors about agents that the pool raises."""

from collections.abc import Collection, Sequence

from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.cluster.ledger import AgentRecord
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError
from temporal_plans.domain.values.text import listed


class UnknownAgentError(RefusedError):
    """No agent of that id is registered; the reason lists the registered ones."""

    def __init__(self, agent: str, known: Collection[str]) -> None:
        listed = ", ".join(sorted(known)[:20]) or "none"
        problem = f"agent {agent!r} is not registered"
        super().__init__(Refusal.of(Code.NOT_FOUND, problem, fix=f"registered are: {listed}"))


class AgentInUseError(RefusedError):
    """An agent can't leave while pods hold reservations on it; release them, or force it."""

    def __init__(self, agent: str, keys: Sequence[str]) -> None:
        count = f"{len(keys)} reservation{'s' if len(keys) > 1 else ''}"
        super().__init__(
            Refusal.of(
                Code.IN_USE,
                f"agent {agent!r} holds {count} ({listed(keys, 10)})",
                fix="replace their pods first with `temporal plan pod replace`, or use --force, "
                "which drops them: their pods are replaced elsewhere",
            )
        )


class AgentIdTakenError(RefusedError):
    """Another agent, with a work directory of its own, is alive under this id."""

    def __init__(self, holder: AgentRecord) -> None:
        info = holder.info
        super().__init__(
            Refusal.of(
                Code.NAME_TAKEN,
                f"agent id {info.id!r} is taken: an agent with another work directory runs under"
                f" it on host {info.hostname}, alive since {holder.since:%Y-%m-%d %H:%M:%S} UTC"
                f" (boot {info.boot or 'unknown'})",
                fix="stop the other agent, or give this agent another id",
            )
        )


class AgentQueueChangedError(RefusedError):
    """An agent is registered with another task queue. Its reservations and launched tasks are
    reached on that queue only, so the queue can't change."""

    def __init__(self, known: AgentInfo, queue: str) -> None:
        reason = Reason(
            field="queue",
            problem=f"agent {known.id!r} is registered with the task queue {known.queue!r}",
            value=queue,
            fix=f"use {known.queue!r}, or remove the agent first",
        )
        super().__init__(Refusal(code=Code.IN_USE, reasons=(reason,)))


class NamelessAgentError(RefusedError):
    """An agent without an id can't register."""

    def __init__(self) -> None:
        super().__init__(
            Refusal.of(Code.INVALID, "is empty", field="id", fix="give the agent an id")
        )


class PoolFullError(RefusedError):
    """The pool can't take one more agent, or such attributes: it carries those of all its agents
    from run to run."""

    def __init__(self, pool: str, agents: int, characters: int) -> None:
        problem = f"pool {pool} takes {agents} agents, with {characters} characters of attributes"
        fix = "use another pool, or fewer attributes"
        super().__init__(Refusal.of(Code.UNAVAILABLE, problem, fix=fix))
