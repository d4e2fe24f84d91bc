"""Why elements are not moving, in words."""

import shlex
from datetime import UTC, datetime, timedelta

from rich.text import Text

from temporal_plans.cli.duration import duration
from temporal_plans.cli.output import coloured, printable
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.explain import Cause, Explanation, Explanations, GivenWork

_ASKS_WITHIN = timedelta(seconds=70)
"""Every worker asks its queues anew after a minute."""

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
    lines = [head.append_text(coloured(explanations.status))]
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
    details += [printable(f"    {_what(work)} {_state(work, now)}") for work in explanation.work]
    return [line, *map(Text, details)]


def _what(work: GivenWork) -> str:
    return f"workflow {work.type} ({work.id})" if work.id else f"activity {work.type}"


def _state(work: GivenWork, now: datetime) -> str:
    since = f"for {duration(now - work.since)}" if work.since is not None else "now"
    tries = f", attempt {work.attempt}" if work.attempt > 1 else ""
    failed = f"; before that: {work.failure}" if work.failure else ""
    if work.paused:
        return f"is paused{tries}{failed}"
    if work.taken:
        return f"runs {since}{f' on worker {work.worker}' if work.worker else ''}{tries}{failed}"
    if work.again is not None and work.again > now:
        return f"failed: {work.failure}; attempt {work.attempt} in {duration(work.again - now)}"
    waits = f"waits {since} for a worker on task queue {work.queue}{tries}{failed}"
    if work.asked is None:
        return f"{waits}; there is none"
    silent = now - work.asked
    return f"{waits}; none has asked for {duration(silent)}" if silent > _ASKS_WITHIN else waits


def _text(explanation: Explanation) -> str:
    """The pool's reasons of today stand below, in place of those that the step heard."""
    if explanation.cause is Cause.OFFER and explanation.refusals:
        return f"waits for resources for {explanation.pod}; no agent fits:"
    return explanation.text
