"""Placement: which agents a pod may go to (behaviour 9.8).

``parse_placement`` reads the ``placement`` of a pod; rules can also be written in
Python, joined with ``&``, ``|`` and ``~``; ``str(rule)`` is a text that ``parse_placement`` reads,
so that a rule made in Python travels as the placement of a pod.
"""

from temporal_plans.domain.cluster.placement.matching import Matcher
from temporal_plans.domain.cluster.placement.parsing import (
    OPERATORS,
    PlacementError,
    parse_placement,
)
from temporal_plans.domain.cluster.placement.rules import (
    And,
    Avoid,
    Check,
    Colocate,
    GroupBy,
    MaxPer,
    Not,
    OnAgents,
    Or,
    Rule,
    Where,
)

__all__ = [
    "OPERATORS",
    "And",
    "Avoid",
    "Check",
    "Colocate",
    "GroupBy",
    "Matcher",
    "MaxPer",
    "Not",
    "OnAgents",
    "Or",
    "PlacementError",
    "Rule",
    "Where",
    "parse_placement",
]
