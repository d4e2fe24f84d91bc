"""What a template of a package refers to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ROOTS = frozenset(
    {
        "Name",
        "Namespace",
        "OperatorName",
        "OperatorVersion",
        "AppVersion",
        "PlanName",
        "PhaseName",
        "StepName",
        "Params",
        "Pipes",
    }
)
"""The fields of the dot of templates."""


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """The fields that a template uses, each with the line of its first use, from 1. ``roots``:
    `.X` of the root; ``parameters``: `.Params.X`; ``pipes``: `.Pipes.X`. ``looked_up`` are names of
    parameters and artefacts in `index .Params "X"`, which may be absent. ``all_parameters`` and
    ``all_pipes``: it uses the mapping itself, so that it may use any. ``fault`` is its error of
    syntax, and the line."""

    roots: Mapping[str, int] = field(default_factory=dict[str, int])
    parameters: Mapping[str, int] = field(default_factory=dict[str, int])
    pipes: Mapping[str, int] = field(default_factory=dict[str, int])
    looked_up: frozenset[str] = frozenset()
    all_parameters: bool = False
    all_pipes: bool = False
    fault: tuple[str, int | None] | None = None
