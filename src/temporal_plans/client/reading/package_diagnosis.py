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
from temporal_plans.domain.packages.object_causes import cause_of_refusal, cause_of_report
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.hint import plan_hint
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.packages import InstanceStatus, ObjectsReport
from temporal_plans.messages.plans import CommandLog


def package_findings(
    status: InstanceStatus,
    *,
    seen: ObjectsReport | None,
    log: CommandLog,
    stuck: Iterable[StuckWorkflow],
    work: Iterable[PendingWork],
    now: datetime,
) -> tuple[Finding, ...]:
    """Return what is wrong with an installed package beside its plans. ``seen`` is how its objects
    are, None when nothing is known; ``work`` is the pending work of the Instance itself."""
    return (
        *of_stuck(stuck),
        *of_configuration(status),
        *_unheld(status, log),
        *_objects(status, seen),
        *of_own_work(work, now),
        *of_code(status.name, log),
    )


def _unheld(status: InstanceStatus, log: CommandLog) -> Iterator[Finding]:
    """Yield the last problem with the package's content: a later rollback may not find it."""
    problems = [entry for entry in log.entries if entry.verb == "hold_content"]
    for entry in problems[-1:]:
        hint = plan_hint("to see when", "log", service=status.name)
        yield Finding(subject="content", text=entry.outcome.message, hints=(hint,))


def _objects(status: InstanceStatus, seen: ObjectsReport | None) -> Iterator[Finding]:
    """Yield what is not as it should be. Plans explain themselves."""
    if seen is None:
        return
    if seen.problem:
        known = cause_of_refusal(seen.problem)
        fix = f"; {known.fix}" if known else ""
        yield Finding(subject=f"cluster {status.cluster}", text=f"{seen.problem}{fix}")
    for one in seen.objects:
        if (cause := cause_of_report(one)) is not None:
            hint = plan_hint("to look again", "objects", service=status.name)
            text = f"{cause.text}; {cause.fix}".removeprefix(f"{one.ref}: ")
            yield Finding(subject=str(one.ref), text=text, hints=(hint,))
