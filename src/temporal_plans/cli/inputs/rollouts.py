"""The options ``--canary`` and ``--max-unavailable``: ``N`` for every phase, or ``PHASE=N``."""

from collections.abc import Iterable

import typer

from temporal_plans.domain.owners.rollout import PhaseRollout, Rollout

_LIMIT = 1000


def rollout_of(canary: Iterable[str] | None, max_unavailable: Iterable[str] | None) -> Rollout:
    """Return the rollout of a deployment. Raises typer.BadParameter."""
    gates = _numbers(canary or (), "--canary")
    bounds = _numbers(max_unavailable or (), "--max-unavailable")
    return Rollout(
        canary=gates.pop("", None),
        max_unavailable=bounds.pop("", None),
        phases={
            phase: PhaseRollout(canary=gates.get(phase), max_unavailable=bounds.get(phase))
            for phase in dict.fromkeys((*gates, *bounds))
        },
    )


def _numbers(texts: Iterable[str], option: str) -> dict[str, int]:
    """Return the numbers by phase; that of every phase under an empty name."""
    numbers: dict[str, int] = {}
    for text in texts:
        phase, equals, number = text.rpartition("=")
        if (equals and not phase) or not number.isdecimal() or not 1 <= int(number) <= _LIMIT:
            raise typer.BadParameter(
                f"must be a number of pods from 1 to {_LIMIT}, or PHASE=NUMBER (found {text!r}); "
                "write for example 2 or web=2",
                param_hint=option,
            )
        if phase in numbers:
            where = f"phase {phase}" if phase else "every phase"
            raise typer.BadParameter(f"{where} has a number already", param_hint=option)
        numbers[phase] = int(number)
    return numbers
