"""Strategies: which children of a plan or phase may be worked on now.

Adding one: a file here with a function of the shape ``Select``, and a line in ``BUILT_IN``. Users
register theirs by name with the plugin.
"""

from collections.abc import Mapping
from types import MappingProxyType

from temporal_plans.domain.strategies.chance import chance
from temporal_plans.domain.strategies.dependency import dependency
from temporal_plans.domain.strategies.element import Element, Select
from temporal_plans.domain.strategies.max_parallel import max_parallel
from temporal_plans.domain.strategies.parallel import parallel
from temporal_plans.domain.strategies.serial import serial
from temporal_plans.domain.strategies.waves import waves

BUILT_IN: Mapping[str, Select] = MappingProxyType(
    {
        "serial": serial,
        "parallel": parallel,
        "dependency": dependency,
        "random": chance,
        "max-parallel": max_parallel,
        "waves": waves,
    }
)

CANARIES: Mapping[str, str] = MappingProxyType(
    {
        "canary": "serial",
        "serial-canary": "serial",
        "parallel-canary": "parallel",
        "dependency-canary": "dependency",
        "max-parallel-canary": "max-parallel",
    }
)
"""Strategies behind canary gates (domain.canary), and the one that applies once they are open."""

NAMES = frozenset(BUILT_IN) | frozenset(CANARIES)

__all__ = ["BUILT_IN", "CANARIES", "NAMES", "Element", "Select"]
