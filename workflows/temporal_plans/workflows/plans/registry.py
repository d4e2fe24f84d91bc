"""The strategies and step kinds of a worker.

The plugin passes the registry to the workflows of its worker (``mechanics.externs``), so two
workers in one process may differ, and importing a module registers nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from temporal_plans.domain.kinds import KINDS
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.strategies import BUILT_IN, NAMES
from temporal_plans.domain.plans.strategies.record import Select
from temporal_plans.workflows.mechanics.externs import extern
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.plans.step_context import StepContext

EXTERN = "temporal_plans_registry"
"""The name under which the worker passes the registry."""

StepKind = Callable[[StepContext], Awaitable[Any]]
"""A developer's step kind: workflow code that does a step's work. It returns when the work is done,
raises ``ApplicationError`` when the work failed, and may clean up when it is cancelled."""

Runner = Callable[[StepAttempt], Awaitable[Any]]
"""The function that runs a built-in kind: like a ``StepKind``, but with the whole attempt."""


class UnknownStepKind(LookupError):
    """A step kind of an accepted plan is unknown to this worker.

    The error fails the workflow task, which is retried until a worker knows the kind.
    """


@dataclass(frozen=True)
class Registry:
    """``runners`` run the built-in kinds, by the kind's name (``runners_of`` each room);
    ``strategies`` and ``kinds`` are the developer's own, by the names that plans use."""

    runners: Mapping[str, Runner]
    strategies: Mapping[str, Select] = field(default_factory=dict[str, Select])
    kinds: Mapping[str, StepKind] = field(default_factory=dict[str, StepKind])

    @property
    def all_strategies(self) -> Mapping[str, Select]:
        return {**BUILT_IN, **self.strategies}

    @property
    def strategy_names(self) -> frozenset[str]:
        return NAMES | frozenset(self.strategies)

    def runner_of(self, work: Work) -> Runner:
        """Return the function that runs this work. Raises UnknownStepKind."""
        if isinstance(work, CustomWork):
            return self._custom(work.type)
        if work.kind not in self.runners:
            raise UnknownStepKind(f"this worker runs no steps of kind {work.kind}")
        return self.runners[work.kind]

    def _custom(self, name: str) -> Runner:
        if name not in self.kinds:
            known = ", ".join(sorted(self.kinds)) or "none"
            raise UnknownStepKind(f"this worker knows no step kind {name!r}; it knows: {known}")

        async def run(step: StepAttempt) -> Any:
            step.begin()
            return await self.kinds[name](step)

        return run


def runners_of(room: str) -> dict[str, Runner]:
    """Return the runners of the kinds of a room of ``workflows``, by the kind's name: the function
    ``run`` of ``<room>/kinds/<kind>.py``, with ``_`` for ``-``."""
    package = f"temporal_plans.workflows.{room}.kinds"
    names = (kind.name() for kind in KINDS if kind.room == room and kind is not CustomWork)
    return {name: import_module(f"{package}.{name.replace('-', '_')}").run for name in names}


def registry() -> Registry:
    """Return the registry of this workflow's worker; an empty registry without the plugin."""
    return extern(EXTERN, Registry) or Registry(runners={})
