"""The secrets of tasks.

A service contains references only. The agent resolves them when it launches a task, with its
providers in order; a value is written to the task's environment or to a file of mode 0600 in its
sandbox, and nowhere else.
"""

from collections.abc import Sequence

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.mechanics.secrets import (
    SecretLookup,
    SecretProvider,
    SecretProviderFailed,
)
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Reason


class Secrets:
    """All providers of an agent."""

    def __init__(self, providers: Sequence[SecretProvider]) -> None:
        self._lookup = SecretLookup(providers)

    async def resolve(self, reference: str, *, field: str) -> bytes:
        """Return the value. Raises TaskRefused (FAILED) when no provider has it or one fails."""
        try:
            value = await self._lookup.find(reference)
        except SecretProviderFailed as problem:
            raise _refused(Reason(field=field, problem=str(problem))) from None
        if value is None:
            fix = f"this agent's providers: {self._lookup.names}"
            raise _refused(
                Reason(field=field, problem=f"secret {reference!r} was not found", fix=fix)
            )
        return value


def _refused(reason: Reason) -> TaskRefused:
    return TaskRefused(reason, state=TaskState.FAILED)
