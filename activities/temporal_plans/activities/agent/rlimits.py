"""Resource limits of POSIX, as a pod asks for them and as an agent may set them."""

import resource
from typing import Literal, NamedTuple

from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.service import RLimit

_CAP_SYS_RESOURCE = 24


class Limits(NamedTuple):
    """(name, soft, hard) of every limit to set, -1 for unlimited; and what to say about them."""

    limits: tuple[tuple[str, int, int], ...]
    note: str = ""


def may_raise() -> bool:
    """Whether this process may set a limit above its own hard one."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def own_hard_limit(name: str) -> int:
    """This process' own hard limit; -1 when unlimited. TaskRefused for a name that isn't known."""
    number: int | None = getattr(resource, name, None)
    if number is None:
        raise TaskRefused(f"rlimits.{name}: this machine knows no such limit")
    return resource.getrlimit(number)[1]


def plan_limits(
    asked: tuple[RLimit, ...], *, policy: Literal["require", "lower"], raisable: bool
) -> Limits:
    """What to set. TaskRefused when a limit is out of reach and the policy is to require it."""
    limits: list[tuple[str, int, int]] = []
    lowered: list[str] = []
    for limit in asked:
        most = own_hard_limit(limit.name)
        soft = resource.RLIM_INFINITY if limit.soft is None else limit.soft
        hard = resource.RLIM_INFINITY if limit.hard is None else limit.hard
        if not raisable and _above(hard, most):
            if policy == "require":
                raise TaskRefused(
                    f"rlimits.{limit.name}: {_text(hard)} is above the agent's own hard limit "
                    f"{_text(most)}, which it may not raise; start the agent with a higher one "
                    "(LimitNOFILE= and the like, or CAP_SYS_RESOURCE), lower the pod's, or set the "
                    "agent's 'rlimits' to 'lower'"
                )
            lowered.append(f"{limit.name} lowered from {_text(hard)} to {_text(most)}")
            soft, hard = (most if _above(soft, most) else soft), most
        limits.append((limit.name, soft, hard))
    return Limits(tuple(limits), ", ".join(lowered))


def _above(value: int, limit: int) -> bool:
    if limit == resource.RLIM_INFINITY:
        return False
    return value == resource.RLIM_INFINITY or value > limit


def _text(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)
