"""Changes of a configuration as lines of text.

hello: hello-0 restarts, hello-1 is added
    tasks.server.cpus: 0.1 -> 0.2 (restarts)
    count: 1 -> 2
"""

from collections.abc import Iterable, Sequence

from rich.text import Text

from temporal_plans.cli.terminal.output import print_line, print_lines, printable
from temporal_plans.cli.terminal.tree import tree
from temporal_plans.cli.terminal.width import line_width, wrapped
from temporal_plans.domain.services.change import (
    FieldChange,
    InstanceChange,
    PlanChange,
    PlanEffect,
    PodChange,
    PodEffect,
)
from temporal_plans.messages.services import ChangeView

_NAMES_LIMIT = 6
"""At most this many instances are named in a line; of more, the first few and a count."""

_WORDS = {
    PodEffect.RESTART: ("restarts", "restart", "yellow"),
    PodEffect.ADD: ("is added", "are added", "green"),
    PodEffect.REMOVE: ("is removed", "are removed", "red"),
}

_PLAN_WORDS = {
    PlanEffect.ADD: ("is added", "green"),
    PlanEffect.CHANGE: ("changes", "yellow"),
    PlanEffect.REMOVE: ("is removed", "red"),
}
_LINE_STYLES = {"-": "red", "+": "green"}


def changes_anything(change: ChangeView) -> bool:
    """Whether a field or a plan differs, or an instance is touched."""
    pods = any(pod.fields or _touched(pod.instances) for pod in change.pods)
    return bool(pods or change.plans or change.settings)


def change_lines(change: ChangeView) -> list[Text]:
    """Return a block of lines for each pod type and each plan that changes, and the settings."""
    lines: list[Text] = []
    for pod in change.pods:
        if pod.fields or _touched(pod.instances):
            lines += _pod(pod)
    return [*lines, *plan_lines(change.plans), *settings_lines(change.settings)]


def plan_lines(plans: Iterable[PlanChange]) -> list[Text]:
    lines: list[Text] = []
    for plan in plans:
        word, style = _PLAN_WORDS[plan.effect]
        line = Text(f"plan {printable(plan.plan)} ").append(word, style=style)
        lines += [line, *field_lines(plan.fields)]
    return lines


def settings_lines(settings: Sequence[FieldChange]) -> list[Text]:
    return [Text("settings:"), *field_lines(settings)] if settings else []


def field_lines(fields: Iterable[FieldChange]) -> list[Text]:
    """Return a line for each field; for texts of several lines, a line for each that differs."""
    return [line for field in fields for line in _field(field)]


def problem_text(change: ChangeView) -> str:
    """Return the reasons of a refusal, a line each."""
    return "\n".join(
        ["the configuration is refused:", *(f"- {reason}" for reason in change.problems)]
    )


def show_change(change: ChangeView, *, plans: bool = False) -> None:
    """Print the changes and, with ``plans``, the plans in their first state."""
    if not changes_anything(change):
        print_line("Nothing changes.")
    print_lines(change_lines(change))
    if not plans:
        return
    for plan in (change.deploy, change.decommission):
        if plan is not None and plan.phases:
            print_line()
            print_lines(tree(plan))


def _pod(pod: PodChange) -> list[Text]:
    line = Text(f"{printable(pod.pod)}: ")
    parts = [part for effect in _WORDS if (part := _effect(pod.instances, effect)) is not None]
    line.append_text(Text(", ").join(parts) if parts else Text("no pod is touched", style="dim"))
    return [*wrapped(line, indent=4), *field_lines(pod.fields)]


def _effect(instances: Sequence[InstanceChange], effect: PodEffect) -> Text | None:
    names = [instance.name for instance in instances if instance.effect is effect]
    if not names:
        return None
    singular, plural, style = _WORDS[effect]
    shown = names if len(names) <= _NAMES_LIMIT else names[: _NAMES_LIMIT // 2]
    text = ", ".join(shown)
    if len(shown) < len(names):
        text += f" and {len(names) - len(shown)} more"
    return Text(f"{printable(text)} {singular if len(names) == 1 else plural}", style=style)


def _field(field: FieldChange) -> list[Text]:
    restarts = Text(" (restarts)" if field.restarts else "", style="yellow")
    if field.lines:
        head = Text(printable(f"    {field.path}:")).append_text(restarts)
        return [head, *(text for line in field.lines for text in _compared(line))]
    before = "(none)" if field.before is None else _in_a_line(field.before)
    after = "(none)" if field.after is None else _in_a_line(field.after)
    line = Text(f"    {printable(field.path)}: {before} -> {after}").append_text(restarts)
    width = line_width()
    if width is None or line.cell_len <= width:
        return [line]
    head = Text(f"    {printable(field.path)}:").append_text(restarts)
    return [head, *_compared(f"-{before}"), *_compared(f"+{after}")]


def _in_a_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _compared(line: str) -> list[Text]:
    text = Text(f"      {printable(line)}", style=_LINE_STYLES.get(line[:1], "dim"))
    return wrapped(text, indent=8)


def _touched(instances: Iterable[InstanceChange]) -> bool:
    return any(instance.effect is not PodEffect.NONE for instance in instances)
