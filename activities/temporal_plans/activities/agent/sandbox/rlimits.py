"""POSIX resource limits that a pod requires and an agent may set."""

import resource
from functools import cache
from typing import Literal, NamedTuple

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.services.spec import RLimit
from temporal_plans.domain.values.refusal import Reason

_CAP_SYS_RESOURCE = 24


class Limits(NamedTuple):
    """(name, soft, hard) of every limit to set, -1 for unlimited; and a note about them."""

    limits: tuple[tuple[str, int, int], ...]
    note: str = ""


@cache
def can_raise_rlimits() -> bool:
    """Whether this process may set limits above its own hard limits. An agent keeps what it may."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def own_hard_limit(name: str) -> int:
    """Return this process' hard limit, -1 for unlimited. Raises TaskRefused for a wrong name."""
    number: int | None = getattr(resource, name, None)
    if number is None:
        raise TaskRefused(Reason(field=f"rlimits.{name}", problem="this machine has no such limit"))
    return resource.getrlimit(number)[1]


def plan_limits(
    requested: tuple[RLimit, ...], *, policy: Literal["require", "lower"], can_raise: bool
) -> Limits:
    """Return the limits to set. Raises TaskRefused for a limit that is too high to ``require``."""
    limits: list[tuple[str, int, int]] = []
    lowered: list[str] = []
    for limit in requested:
        maximum = own_hard_limit(limit.name)
        soft = resource.RLIM_INFINITY if limit.soft is None else limit.soft
        hard = resource.RLIM_INFINITY if limit.hard is None else limit.hard
        if not can_raise and _above(hard, maximum):
            if policy == "require":
                raise TaskRefused(
                    Reason(
                        field=f"rlimits.{limit.name}",
                        problem=f"{_text(hard)} is above the agent's own hard limit "
                        f"{_text(maximum)}, which it may not raise",
                        fix="start the agent with a higher one (LimitNOFILE= and the like, or "
                        "CAP_SYS_RESOURCE), lower the pod's, or set the agent's 'rlimits' to "
                        "'lower'",
                    )
                )
            lowered.append(f"{limit.name} lowered from {_text(hard)} to {_text(maximum)}")
            soft, hard = (maximum if _above(soft, maximum) else soft), maximum
        limits.append((limit.name, soft, hard))
    return Limits(tuple(limits), ", ".join(lowered))


def _above(value: int, limit: int) -> bool:
    if limit == resource.RLIM_INFINITY:
        return False
    return value == resource.RLIM_INFINITY or value > limit


def _text(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)
