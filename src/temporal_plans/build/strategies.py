"""Strategies of plans and phases: which of their children may be worked on at a time."""

from dataclasses import dataclass, field
from typing import Any, Literal

from temporal_plans.build.documents import Settings, given


@dataclass(frozen=True)
class Strategy:
    """A strategy by name, with its settings as plan files write them."""

    name: str
    settings: Settings = field(default_factory=given)

    @property
    def document(self) -> Settings:
        return {"name": self.name, **self.settings}


def serial() -> Strategy:
    """One after the other, in the order that they are written. What applies when none is said."""
    return Strategy("serial")


def parallel() -> Strategy:
    """All at once, but each after what it depends on, where ``depends_on`` is given."""
    return Strategy("parallel")


def dependency() -> Strategy:
    """Each as soon as what it depends on is complete."""
    return Strategy("dependency")


def random() -> Strategy:
    """One at a time, in an order that differs from run to run."""
    return Strategy("random")


def max_parallel(limit: int) -> Strategy:
    """In order, at most ``limit`` at once; what failed or is interrupted keeps its place."""
    return Strategy("max-parallel", given(limit=limit))


def waves(*sizes: int | str) -> Strategy:
    """In waves of a count (3) or a share of all ("25%"); the last size repeats."""
    return Strategy("waves", given(waves=sizes))


def canary(
    *,
    proceeds: int | None = None,
    then: Literal["serial", "parallel", "dependency", "max-parallel"] = "serial",
    limit: int | None = None,
) -> Strategy:
    """Each of the first ``proceeds`` (2 when absent) waits for a continue, then the rest follows as
    ``then`` says. ``limit`` is that of ``max-parallel``: from the first one on, at most so many run
    at once."""
    name = "canary" if then == "serial" else f"{then}-canary"
    return Strategy(name, given(proceeds=proceeds, limit=limit))


def strategy(name: str, **options: Any) -> Strategy:
    """One that is registered with ``PlansPlugin(strategies={name: ...})``, and its options."""
    return Strategy(name, given(options=options or None))
