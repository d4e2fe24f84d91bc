"""Changes of installed packages as lines of text.

version 1.0.0 -> 1.1.0: plan upgrade, the version changes
    BROKER_COUNT: 3 -> 5
    LOG_LEVEL: unset, the default is info
"""

from rich.text import Text

from temporal_plans.cli.terminal.output import printable
from temporal_plans.domain.packages.changes import Change, ParameterChange, ParameterEffect

_NOTHING = "(none)"


def change_lines(change: Change) -> list[Text]:
    """Return the plan that a change starts and why, its parameters, and its warnings."""
    plan = f"plan {change.plan}, because {change.why}" if change.plan else change.why
    version = change.version
    if change.version_before and change.version_before != change.version:
        version = f"{change.version_before} -> {change.version}"
    lines = [Text(printable(f"version {version}: {plan}"))]
    lines += [_parameter(one) for one in change.parameters]
    lines += [Text(printable(f"warning: {one}"), style="yellow") for one in change.warnings]
    return lines


def _parameter(one: ParameterChange) -> Text:
    before = _NOTHING if one.before is None else one.before or '""'
    after = _NOTHING if one.after is None else one.after or '""'
    words = {
        ParameterEffect.ADD: f"{before} -> {after}",
        ParameterEffect.CHANGE: f"{before} -> {after}",
        ParameterEffect.REMOVE: f"{before} -> {after} (unset, the default)",
        ParameterEffect.DEFAULT: f"{before} -> {after} (the default changes)",
        ParameterEffect.DROP: f"{before} is dropped, the package no longer has it",
    }
    return Text(printable(f"    {one.name}: {words[one.effect]}"))
