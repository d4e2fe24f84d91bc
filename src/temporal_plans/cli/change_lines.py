"""What a configuration changes, in lines for people.

hello: hello-0 restarts, hello-1 is added
    tasks.server.cpus: 0.1 -> 0.2 (restarts)
    count: 1 -> 2
"""

from collections.abc import Iterable, Sequence

from rich.text import Text

from temporal_plans.cli.output import printable, say, say_all
from temporal_plans.cli.tree import tree
from temporal_plans.domain.change import FieldChange, InstanceChange, PodChange, PodEffect
from temporal_plans.messages.service import ChangeView

_NAMED = 6
"""Instances named in one line; of more, the first few and how many others."""

_WORDS = {
    PodEffect.RESTART: ("restarts", "restart", "yellow"),
    PodEffect.ADD: ("is added", "are added", "green"),
    PodEffect.REMOVE: ("is removed", "are removed", "red"),
}


def changes_anything(change: ChangeView) -> bool:
    """Whether a field differs or an instance is touched."""
    return any(pod.fields or _touched(pod.instances) for pod in change.pods)


def change_lines(pods: Iterable[PodChange]) -> list[Text]:
    """A block a pod type that differs; nothing for the others."""
    lines: list[Text] = []
    for pod in pods:
        if pod.fields or _touched(pod.instances):
            lines += _pod(pod)
    return lines


def field_lines(fields: Iterable[FieldChange]) -> list[Text]:
    return [_field(field) for field in fields]


def problem_text(change: ChangeView) -> str:
    """Every reason why it is refused, a line each."""
    return "\n".join(["the configuration is refused:", *(f"- {one}" for one in change.problems)])


def show_change(change: ChangeView, *, plans: bool = False) -> None:
    """Print what would change and, if asked, the plans as they would begin."""
    if not changes_anything(change):
        say("Nothing changes.")
    say_all(change_lines(change.pods))
    if not plans:
        return
    for plan in (change.deploy, change.decommission):
        if plan is not None and plan.phases:
            say()
            say_all(tree(plan))


def _pod(pod: PodChange) -> list[Text]:
    line = Text(f"{printable(pod.pod)}: ")
    parts = [part for effect in _WORDS if (part := _effect(pod.instances, effect)) is not None]
    line.append_text(Text(", ").join(parts) if parts else Text("no pod is touched", style="dim"))
    return [line, *field_lines(pod.fields)]


def _effect(instances: Sequence[InstanceChange], effect: PodEffect) -> Text | None:
    names = [instance.name for instance in instances if instance.effect is effect]
    if not names:
        return None
    one, several, style = _WORDS[effect]
    shown = names if len(names) <= _NAMED else names[: _NAMED // 2]
    text = ", ".join(shown)
    if len(shown) < len(names):
        text += f" and {len(names) - len(shown)} more"
    return Text(f"{printable(text)} {one if len(names) == 1 else several}", style=style)


def _field(field: FieldChange) -> Text:
    before = "(none)" if field.before is None else field.before
    after = "(none)" if field.after is None else field.after
    line = Text(printable(f"    {field.path}: {before} -> {after}").replace("\n", "\\n"))
    return line.append(" (restarts)", style="yellow") if field.restarts else line


def _touched(instances: Iterable[InstanceChange]) -> bool:
    return any(instance.effect is not PodEffect.NONE for instance in instances)
