"""What is wrong with an installed package: its configuration, its contents, and its workflow."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from temporal_plans.client.reading.diagnosis import (
    Finding,
    of_code,
    of_configuration,
    of_own_work,
    of_stuck,
)
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.hint import plan_hint
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.packages import InstanceStatus
from temporal_plans.messages.plans import CommandLog


def package_findings(
    status: InstanceStatus,
    *,
    log: CommandLog,
    stuck: Iterable[StuckWorkflow],
    work: Iterable[PendingWork],
    now: datetime,
) -> tuple[Finding, ...]:
    """Return what is wrong with an installed package beside its plans. ``work`` is the pending work
    of the Instance itself."""
    return (
        *of_stuck(stuck),
        *of_configuration(status),
        *_unheld(status, log),
        *of_own_work(work, now),
        *of_code(status.name, log),
    )


def _unheld(status: InstanceStatus, log: CommandLog) -> Iterator[Finding]:
    """Yield the last problem with the package's content: a later rollback may not find it."""
    problems = [entry for entry in log.entries if entry.verb == "hold_content"]
    for entry in problems[-1:]:
        hint = plan_hint("to see when", "log", service=status.name)
        yield Finding(subject="content", text=entry.outcome.message, hints=(hint,))
