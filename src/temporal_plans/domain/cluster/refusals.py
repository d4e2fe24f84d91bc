"""Why an agent can't take a requirement, as a refusal: one reason for each failed stage."""

from collections.abc import Iterable

from temporal_plans.domain.values.refusal import Code, Reason, Refusal

ALL_AGENTS = "*"
"""The subject of a refusal that concerns all agents."""


def does_not_fit(agent: str, reasons: Iterable[tuple[str, str]]) -> Refusal:
    """Return the refusal of one agent. ``reasons`` are pairs of a stage (``cpus``) and what it
    lacks."""
    return Refusal(
        code=Code.DOES_NOT_FIT,
        subject=agent,
        reasons=tuple(Reason(field=stage, problem=text) for stage, text in reasons),
    )


def in_short(refusal: Refusal) -> str:
    """Return the refusal on one line: the agent and what it lacks, which names the stage
    already."""
    return f"{refusal.subject}: " + "; ".join(reason.problem for reason in refusal.reasons)
