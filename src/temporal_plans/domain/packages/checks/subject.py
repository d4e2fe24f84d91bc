"""What the checks of packages look at, and the form of a check."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from temporal_plans.domain.packages.findings import Finding
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.packages.parameters import Decode
from temporal_plans.domain.packages.template_use import TemplateUse


@dataclass(frozen=True, slots=True)
class Subject:
    """A package, and what only others can know of it: ``uses`` has what each template refers to by
    key, ``decode`` reads texts of lists and mappings, ``task_kinds`` are the names of kinds that
    developers registered."""

    package: Package
    decode: Decode
    uses: Mapping[str, TemplateUse]
    task_kinds: Collection[str] = ()


class Check(NamedTuple):
    """A check of packages. ``name`` stands in each of its findings."""

    name: str
    find: Callable[[Subject], Iterator[Finding]]
