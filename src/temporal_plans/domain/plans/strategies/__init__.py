"""Strategies: which children of a plan or phase may be worked on now.

To add a strategy: a file here with a ``StrategyRecord``, and its line in ``STRATEGIES``. All other
code that knows strategies (checks, estimates, gates, service files, rollouts, the JSON Schema)
reads the record. Users register their own by name with the plugin.
"""

from collections.abc import Mapping
from types import MappingProxyType

from temporal_plans.domain.plans.strategies.chance import RANDOM
from temporal_plans.domain.plans.strategies.dependency import DEPENDENCY
from temporal_plans.domain.plans.strategies.max_parallel import MAX_PARALLEL
from temporal_plans.domain.plans.strategies.parallel import PARALLEL
from temporal_plans.domain.plans.strategies.record import Select, StrategyRecord
from temporal_plans.domain.plans.strategies.serial import SERIAL
from temporal_plans.domain.plans.strategies.waves import WAVES

STRATEGIES: tuple[StrategyRecord, ...] = (
    SERIAL,
    PARALLEL,
    DEPENDENCY,
    RANDOM,
    MAX_PARALLEL,
    WAVES,
)

CANARIES: Mapping[str, str] = MappingProxyType(
    {name: record.name for record in STRATEGIES for name in record.gated}
)
"""Names of canary strategies, and the strategy that applies once the gates are open."""

BUILT_IN: Mapping[str, Select] = MappingProxyType(
    {record.name: record.select for record in STRATEGIES}
)

NAMES = frozenset(BUILT_IN) | frozenset(CANARIES)
"""All names of built-in strategies that a plan may use."""

IN_SERVICES = frozenset(name for record in STRATEGIES for name in record.in_services)
"""The names of built-in strategies that a service file may use."""

_BY_NAME = {record.name: record for record in STRATEGIES}


def record_of(name: str) -> StrategyRecord | None:
    """Return the record of a built-in strategy, for a canary the one that applies once the gates
    are open; None for a strategy that a user registered."""
    return _BY_NAME.get(CANARIES.get(name, name))


def keeping_dependencies(name: str) -> str:
    """Return the name of the strategy that does the same and keeps its children's dependencies; the
    name itself where there is none, or none is needed."""
    record = record_of(name)
    if record is None or not record.with_dependencies:
        return name
    keeping = _BY_NAME[record.with_dependencies]
    return keeping.gated[0] if name in CANARIES else keeping.name
