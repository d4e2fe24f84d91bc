"""Strategies of plans and phases: which of their children may be worked on at a time."""

from dataclasses import dataclass, field
from typing import Any, Literal

from temporal_plans.build.documents import Settings, given


@dataclass(frozen=True)
class Strategy:
    """A strategy by name, with its settings as in plan files."""

    name: str
    settings: Settings = field(default_factory=given)

    @property
    def document(self) -> Settings:
        """The strategy as in a plan file."""
        return {"name": self.name, **self.settings}


def serial() -> Strategy:
    """One after the other, in the order of the plan. The default."""
    return Strategy("serial")


def parallel() -> Strategy:
    """All at once; a child with ``depends_on`` starts after its dependencies."""
    return Strategy("parallel")


def dependency() -> Strategy:
    """Each as soon as its dependencies are complete."""
    return Strategy("dependency")


def random() -> Strategy:
    """One at a time, in an order that differs from run to run."""
    return Strategy("random")


def max_parallel(limit: int) -> Strategy:
    """In order, at most ``limit`` at once; failed and interrupted children count."""
    return Strategy("max-parallel", given(limit=limit))


def waves(*sizes: int | str) -> Strategy:
    """In waves, whose sizes are counts (3) or shares of all ("25%"); the last size repeats."""
    return Strategy("waves", given(waves=sizes))


def canary(
    *,
    proceeds: int | None = None,
    then: Literal["serial", "parallel", "dependency", "max-parallel"] = "serial",
    limit: int | None = None,
    gates: Literal["steps", "pods"] | None = None,
) -> Strategy:
    """Each of the first ``proceeds`` (by default 2) waits for a continue; the others follow by the
    strategy ``then``. ``limit`` is that of ``max-parallel``, for all children from the first on.
    With ``gates="pods"`` the first pods wait, not the first steps (of phases of pods)."""
    name = "canary" if then == "serial" else f"{then}-canary"
    return Strategy(name, given(proceeds=proceeds, limit=limit, gates=gates))


def strategy(name: str, **options: Any) -> Strategy:
    """A strategy that is registered with ``PlansPlugin(strategies={name: ...})``, and its
    options."""
    return Strategy(name, given(options=options or None))
