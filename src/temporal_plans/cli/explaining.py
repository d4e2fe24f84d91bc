"""Why elements are not moving, in words."""

import shlex
from collections import Counter
from datetime import UTC, datetime, timedelta

from rich.text import Text

from temporal_plans.cli.duration import duration
from temporal_plans.cli.output import coloured, printable
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.explain import Cause, Explanation, Explanations, PendingWork

_POLLS_WITHIN = timedelta(seconds=70)
"""A worker with room for more work asks its queues anew after a minute."""

_PURPOSE: dict[str, str] = {Verb.CONTINUE: "to go on", Verb.RESTART: "to try again"}


def explanation_lines(
    plan: str,
    explanations: Explanations,
    service: str | None = None,
    *,
    now: datetime | None = None,
) -> list[Text]:
    """The status of what was asked about, then every element with its cause and the details, and
    the commands that would move something, each once. ``service`` as it was given, if it was."""
    now = datetime.now(UTC) if now is None else now
    head = Text(f"{printable(plan)} is ")
    head.append_text(coloured(explanations.status))
    if explanations.cut_short:
        head.append(f", {explanations.cut_short}")
    lines = [head]
    told: set[tuple[str, ...]] = set()
    for explanation in explanations.explanations:
        lines += _lines(plan, explanation, now)
        if explanation.remedy and explanation.remedy not in told:
            told.add(explanation.remedy)
            lines.append(Text(f"    {printable(_command(plan, explanation.remedy, service))}"))
    return lines


def _command(plan: str, remedy: tuple[str, ...], service: str | None) -> str:
    verb, *names = remedy
    of_service = ("-s", service) if service else ()
    words = ("temporal", "plan", verb, plan, *names, *of_service)
    return f"{_PURPOSE[verb]}: {shlex.join(words)}"


def _lines(plan: str, explanation: Explanation, now: datetime) -> list[Text]:
    path = "/".join(part for part in (explanation.phase, explanation.step) if part) or plan
    line = Text(f"- {printable(path)} (")
    line.append_text(coloured(explanation.status))
    line.append(f"): {printable(_text(explanation))}")
    details = [printable(f"    {refusal}") for refusal in explanation.refusals]
    missing = [name for name in explanation.waits_for if name not in explanation.text]
    if missing:
        details.append(printable(f"    waits for {', '.join(missing)}"))
    if explanation.until is not None:
        details.append(f"    again in {duration(explanation.until - now)}")
    told = Counter(f"{_what(work)} {_state(work, now)}" for work in explanation.work)
    for what, count in told.items():
        details.append(printable(f"    {what}" if count == 1 else f"    {count} times: {what}"))
    return [line, *map(Text, details)]


def _what(work: PendingWork) -> str:
    if work.workflow_id:
        return f"workflow {work.type} ({work.workflow_id})"
    return f"activity {work.type}"


def _state(work: PendingWork, now: datetime) -> str:
    since = f"for {duration(now - work.since)}" if work.since is not None else "now"
    tries = f", attempt {work.attempt}" if work.attempt > 1 else ""
    failed = f"; the one before failed: {work.last_failure}" if work.last_failure else ""
    agent = f"; the agent is {work.agent_state}" if work.agent_state is not None else ""
    if work.paused:
        return f"is paused{tries}{failed}; `temporal activity unpause` lets it go on"
    if work.started:
        worker = f" on worker {work.worker}" if work.worker else ""
        return f"runs {since}{worker}{tries}{failed}{agent}"
    if work.next_attempt is not None and work.next_attempt > now:
        left = duration(work.next_attempt - now)
        if not work.last_failure:
            return f"begins in {left}{tries}"
        return f"failed: {work.last_failure}; attempt {work.attempt} in {left}"
    return f"waits {since} for {_whom(work)}{tries}{failed}{agent or _silence(work, now)}"


def _whom(work: PendingWork) -> str:
    if work.agent:
        return f"agent {work.agent}"
    return f"a worker on task queue {work.task_queue}" if work.task_queue else "a worker"


def _silence(work: PendingWork, now: datetime) -> str:
    if not work.task_queue or (work.last_poll and now - work.last_poll < _POLLS_WITHIN):
        return ""
    since = f" for {duration(now - work.last_poll)}" if work.last_poll else ""
    if work.agent:
        return f"; it has not asked for work{since}"
    return f"; nobody has asked for work there{since}: no worker runs, or all are busy"


def _text(explanation: Explanation) -> str:
    """The pool's reasons of today stand below, in place of those that the step heard."""
    if explanation.cause is Cause.OFFER and explanation.refusals:
        return f"waits for resources for {explanation.pod}; no agent fits:"
    return explanation.text
