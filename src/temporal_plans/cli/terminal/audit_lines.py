"""The comparison of agents with services, as lines of text."""

from rich.text import Text

from temporal_plans.cli.terminal.output import one_line, printable
from temporal_plans.client.reading.audit import Audit


def audit_lines(audit: Audit) -> list[Text]:
    """Return each difference with the commands that help, and what gave no answer."""
    lines: list[Text] = []
    for one in audit.differences:
        lines.append(Text(f"- {printable(one.task_id)}: {one_line(one.text)}"))
        lines += [Text(f"    {printable(str(hint))}") for hint in one.hints]
    for name, why in audit.silent.items():
        lines.append(Text(f"{printable(name)} was left out: {one_line(why)}", style="yellow"))
    if not audit.differences:
        lines.append(Text(f"Agents and services agree; {audit.tasks} tasks run."))
    return lines
