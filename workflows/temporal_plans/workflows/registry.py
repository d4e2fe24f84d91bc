"""What developers registered: strategies and step kinds by name.

The plugin hands a registry to the workflows of its worker through an extern function, so two
workers in one process may differ, and nothing is registered by the mere import of a module.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from temporalio import workflow

from temporal_plans.domain.change_check import ConfigValidator
from temporal_plans.domain.plan_customizer import PlanCustomizer
from temporal_plans.domain.recovery_book import Recoverer
from temporal_plans.domain.strategies import BUILT_IN, NAMES, Select

if TYPE_CHECKING:
    from temporal_plans.workflows.step_context import StepContext

EXTERN = "temporal_plans_registry"
"""The name of the extern function that answers the worker's registry."""

StepKind = Callable[["StepContext"], Awaitable[Any]]
"""A step kind: workflow code that does a step's work. It returns when the work is done, raises
``ApplicationError`` when it failed; when it is cancelled it may clean up."""


@dataclass(frozen=True)
class Registry:
    """``strategies`` and ``kinds`` beside the built-in ones, by the names that plans use.

    ``recoverers`` are asked in order for phases that bring a pod back; ``plan_customizers`` change
    plans before they run; ``config_validators`` refuse configurations.
    """

    strategies: Mapping[str, Select] = field(default_factory=dict[str, Select])
    kinds: Mapping[str, StepKind] = field(default_factory=dict[str, StepKind])
    recoverers: Sequence[Recoverer] = ()
    plan_customizers: Sequence[PlanCustomizer] = ()
    config_validators: Sequence[ConfigValidator] = ()

    @property
    def all_strategies(self) -> Mapping[str, Select]:
        return {**BUILT_IN, **self.strategies}

    @property
    def strategy_names(self) -> frozenset[str]:
        return NAMES | frozenset(self.strategies)


def registry() -> Registry:
    """The registry of the worker that runs this workflow; empty without the plugin."""
    functions = cast(Mapping[str, Callable[[], Registry]], workflow.extern_functions())
    return functions[EXTERN]() if EXTERN in functions else Registry()
