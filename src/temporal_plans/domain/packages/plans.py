"""Plans of packages: phases, steps, and the names of the tasks of each step."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from pydantic import Field

from temporal_plans.domain.packages.value import ENTRIES_LIMIT, PackageValue, Text
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError

DEPLOY, UPDATE, UPGRADE, CLEANUP = "deploy", "update", "upgrade", "cleanup"
"""The plans with a meaning; a package must have the first."""

SERIAL, PARALLEL = "serial", "parallel"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Named)


class PackageStep(PackageValue):
    """A step: tasks that are executed together."""

    name: Text = Field(description="Its name.")
    tasks: tuple[Text, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The names of its tasks."
    )


class PackagePhase(PackageValue):
    """A phase of a plan."""

    name: Text = Field(description="Its name.")
    strategy: Text = Field(default="", description="`serial` or `parallel`.")
    steps: tuple[PackageStep, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="Its steps."
    )

    def step(self, name: str) -> PackageStep:
        """Return the step of this name. Raises RefusedError with names that resemble it."""
        return found(self.steps, name, "step")


class PackagePlan(PackageValue):
    """A plan."""

    strategy: Text = Field(default="", description="`serial` or `parallel`.")
    phases: tuple[PackagePhase, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="Its phases."
    )

    def phase(self, name: str) -> PackagePhase:
        """Return the phase of this name. Raises RefusedError with names that resemble it."""
        return found(self.phases, name, "phase")

    def steps(self) -> Iterator[tuple[PackagePhase, PackageStep]]:
        """Yield all steps, each with its phase."""
        for phase in self.phases:
            for step in phase.steps:
                yield phase, step


def is_serial(strategy: str) -> bool:
    """Return whether the children run one after the other; those without a strategy don't."""
    return strategy == SERIAL


def found(entries: Iterable[_Entry], name: str, noun: str) -> _Entry:
    """Return the entry of this name. Raises RefusedError with the names that resemble it."""
    known = list(entries)
    for entry in known:
        if entry.name == name:
            return entry
    raise unknown(noun, name, [entry.name for entry in known])


def unknown(noun: str, name: str, known: Iterable[str]) -> RefusedError:
    """Return the refusal of a name that is unknown."""
    return RefusedError(
        Refusal.of(Code.NOT_FOUND, f"no {noun} {name!r}", field=noun, fix=suggestion(name, known))
    )
