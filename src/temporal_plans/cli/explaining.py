"""Why elements are not moving, in words."""

from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.duration import duration
from temporal_plans.cli.output import coloured, printable
from temporal_plans.domain.explain import Cause, Explanation, Explanations


def explanation_lines(plan: str, explanations: Explanations) -> list[Text]:
    """The status of what was asked about, then every element with its cause and the details."""
    head = Text(f"{printable(plan)} is ")
    lines = [head.append_text(coloured(explanations.status))]
    for explanation in explanations.explanations:
        lines += _lines(plan, explanation)
    return lines


def _lines(plan: str, explanation: Explanation) -> list[Text]:
    path = "/".join(part for part in (explanation.phase, explanation.step) if part) or plan
    line = Text(f"- {printable(path)} (")
    line.append_text(coloured(explanation.status))
    line.append(f"): {printable(_text(explanation))}")
    details = [printable(f"    {refusal}") for refusal in explanation.refusals]
    missing = [name for name in explanation.waits_for if name not in explanation.text]
    if missing:
        details.append(printable(f"    waits for {', '.join(missing)}"))
    if explanation.until is not None:
        details.append(f"    again in {duration(explanation.until - datetime.now(UTC))}")
    return [line, *map(Text, details)]


def _text(explanation: Explanation) -> str:
    """The pool's reasons of today stand below, in place of those that the step heard."""
    if explanation.cause is Cause.OFFER and explanation.refusals:
        return f"waits for resources for {explanation.pod}; no agent fits:"
    return explanation.text
