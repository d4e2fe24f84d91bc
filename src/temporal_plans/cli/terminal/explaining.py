"""Explanations of elements that make no progress, as lines of text."""

import shlex
from collections import Counter
from datetime import UTC, datetime, timedelta

from rich.text import Text

from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.output import coloured, one_line, printable
from temporal_plans.client.reading.diagnosis import Diagnosis
from temporal_plans.domain.cluster.refusals import in_short
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.explain import Explanation, Explanations, PendingWork
from temporal_plans.messages.addresses import cluster_of

_POLL_INTERVAL_LIMIT = timedelta(seconds=70)
"""A worker with free capacity polls its queues at least once a minute."""

_PURPOSE: dict[str, str] = {Verb.CONTINUE: "to continue", Verb.RESTART: "to retry"}


def explanation_lines(
    plan: str,
    explanations: Explanations,
    service: str | None = None,
    *,
    now: datetime | None = None,
    verbose: bool = False,
) -> list[Text]:
    """Return the status of the element, then every element below with its cause and details, and
    the commands that would help, each once. ``service`` is the option as given, for them;
    ``verbose`` adds tracebacks of developers' code."""
    now = datetime.now(UTC) if now is None else now
    head = Text(f"{printable(plan)} is ")
    head.append_text(coloured(explanations.status))
    if explanations.cut_short:
        head.append(f", {explanations.cut_short}")
    lines = [head]
    printed: set[tuple[str, ...]] = set()
    for explanation in explanations.explanations:
        lines += _lines(plan, explanation, now)
        if verbose:
            lines += trace_lines(explanation.trace)
        elif explanation.trace:
            lines.append(Text("    -v shows where the code failed"))
        lines += [Text(f"    {printable(str(hint))}") for hint in explanation.hints]
        if explanation.remedy and explanation.remedy not in printed:
            printed.add(explanation.remedy)
            lines.append(Text(f"    {printable(_command(plan, explanation.remedy, service))}"))
    return lines


def diagnosis_lines(
    diagnosis: Diagnosis, *, now: datetime | None = None, verbose: bool = False
) -> list[Text]:
    """Return what is wrong with a service, then the explanations of its plans."""
    name = printable(diagnosis.service)
    if diagnosis.well:
        return [Text(f"Nothing is wrong with {name}: no plan is under way, {diagnosis.extent}.")]
    lines = [Text(f"{name}: {diagnosis.extent}")]
    for finding in diagnosis.findings:
        lines.append(Text(f"- {one_line(finding.subject)}: {one_line(finding.text)}"))
        lines += trace_lines(finding.trace) if verbose else []
        lines += [Text(f"    {printable(str(hint))}") for hint in finding.hints]
    for plan, error in diagnosis.silent.items():
        lines += [Text(printable(f"plan {plan}: {line}")) for line in error.splitlines()]
    for plan, explanations in diagnosis.plans.items():
        lines += explanation_lines(plan, explanations, diagnosis.service, now=now, verbose=verbose)
    return lines


def trace_lines(trace: str) -> list[Text]:
    """Return a traceback, indented."""
    return [Text(f"      {printable(line)}", style="dim") for line in trace.splitlines()]


def _command(plan: str, remedy: tuple[str, ...], service: str | None) -> str:
    verb, *names = remedy
    of_service = ("-s", service) if service else ()
    words = ("temporal", "plan", verb, plan, *names, *of_service)
    return f"{_PURPOSE[verb]}: {shlex.join(words)}"


def _lines(plan: str, explanation: Explanation, now: datetime) -> list[Text]:
    path = "/".join(part for part in (explanation.phase, explanation.step) if part) or plan
    line = Text(f"- {printable(path)} (")
    line.append_text(coloured(explanation.status))
    line.append(f"): {one_line(_text(explanation))}")
    details = [printable(f"    {in_short(refusal)}") for refusal in explanation.refusals]
    if explanation.until is not None:
        details.append(f"    retry in {duration(explanation.until - now)}")
    states = Counter(f"{_work_name(work)} {_state(work, now)}" for work in explanation.work)
    for state, count in states.items():
        details.append(printable(f"    {state}" if count == 1 else f"    {count} times: {state}"))
    return [line, *map(Text, details)]


def _work_name(work: PendingWork) -> str:
    if work.workflow_id:
        return f"workflow {work.type} ({work.workflow_id})"
    return f"activity {work.type}"


def _state(work: PendingWork, now: datetime) -> str:
    since = f"for {duration(now - work.since)}" if work.since is not None else "now"
    tries = f", attempt {work.attempt}" if work.attempt > 1 else ""
    failed = f"; the previous attempt failed: {work.last_failure}" if work.last_failure else ""
    agent = f"; the agent is {work.agent_state}" if work.agent_state else ""
    if work.paused:
        return f"is paused{tries}{failed}; `temporal activity unpause` resumes it"
    if work.started:
        worker = f" on worker {work.worker}" if work.worker else ""
        return f"runs {since}{worker}{tries}{failed}{agent}"
    if work.next_attempt is not None and work.next_attempt > now:
        left = duration(work.next_attempt - now)
        if not work.last_failure:
            return f"starts in {left}{tries}"
        return f"failed: {work.last_failure}; attempt {work.attempt} in {left}"
    poller = agent or _missing_poller(work, now)
    return f"waits {since} for {_awaited_poller(work)}{tries}{failed}{poller}"


def _awaited_poller(work: PendingWork) -> str:
    if work.agent:
        return f"agent {work.agent}"
    return f"a worker on task queue {work.task_queue}" if work.task_queue else "a worker"


def _missing_poller(work: PendingWork, now: datetime) -> str:
    if not work.task_queue or (work.last_poll and now - work.last_poll < _POLL_INTERVAL_LIMIT):
        return ""
    since = f" for {duration(now - work.last_poll)}" if work.last_poll else ""
    if work.agent:
        return f"; it has not polled for work{since}"
    cluster = cluster_of(work.task_queue)
    fix = f"; `temporal plan worker --kubernetes {cluster}` starts one" if cluster else ""
    return f"; no worker has polled it{since}: none runs, or all are busy{fix}"


def _text(explanation: Explanation) -> str:
    """Return the text of the cause. For offers, the pool's current reasons follow it in place of
    the older ones that the step has."""
    if explanation.cause is Cause.OFFER and explanation.refusals:
        return f"waits for resources for {explanation.pod}; no agent fits:"
    return explanation.text
