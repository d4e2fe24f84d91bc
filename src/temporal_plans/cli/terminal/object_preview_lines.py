"""What a plan would change in a cluster, object by object, as lines of text.

~ Deployment web
    spec.replicas: 3 -> 5
"""

from rich.text import Text

from temporal_plans.cli.terminal.output import printable
from temporal_plans.domain.packages.object_preview import ObjectPreview, PreviewAction
from temporal_plans.messages.packages import ObjectsPreview

_MARKS = {
    PreviewAction.ADDED: ("+", "green"),
    PreviewAction.CHANGED: ("~", "yellow"),
    PreviewAction.DELETED: ("-", "red"),
    PreviewAction.REFUSED: ("!", "red"),
    PreviewAction.LEFT: (".", ""),
}
_ABSENT = "(none)"


def object_preview_lines(preview: ObjectsPreview) -> list[Text]:
    """Return a block for each object that changes, and a line about those that do not."""
    lines: list[Text] = []
    for one in preview.objects:
        if one.action is not PreviewAction.UNCHANGED:
            lines += _object(one)
    if count := preview.counts.get(PreviewAction.UNCHANGED):
        lines.append(Text(f"{count} object{'s' if count > 1 else ''} unchanged"))
    lines += [Text(printable(f"note: {note}")) for note in preview.notes]
    return lines


def _object(one: ObjectPreview) -> list[Text]:
    mark, style = _MARKS[one.action]
    words = f": {one.problem}" if one.problem else ""
    left = " stays, and no template renders it any more" if one.action is PreviewAction.LEFT else ""
    lines = [Text(printable(f"{mark} {one.ref}{left}{words}"), style=style)]
    if one.action is PreviewAction.CHANGED:
        lines += [
            Text(printable(f"    {field.field}: {_shown(field.before)} -> {_shown(field.after)}"))
            for field in one.fields
        ]
        lines += [Text(f"    and {one.more} more fields")] if one.more else []
    return lines


def _shown(value: str | None) -> str:
    return _ABSENT if value is None else value
