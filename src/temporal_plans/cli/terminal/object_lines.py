"""The objects of installed packages as a table."""

from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.output import printable
from temporal_plans.domain.packages.object_causes import cause_of_report
from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.messages.packages import ObjectsReport

_STYLES = {
    ObjectState.HEALTHY: "green",
    ObjectState.UNHEALTHY: "yellow",
    ObjectState.FAILED: "red",
    ObjectState.FOREIGN: "red",
}


def object_lines(report: ObjectsReport) -> list[Text]:
    """Return a line for each object, with why it is not healthy or what others changed."""
    if not report.objects:
        return [Text("No objects.")]
    return columns(("KIND", "NAMESPACE", "NAME", "STATE", "WHY"), [_row(o) for o in report.objects])


def _row(one: ObjectReport) -> tuple[str | Text, ...]:
    cause = cause_of_report(one)
    why = f"{cause.text}; {cause.fix}".removeprefix(f"{one.ref}: ") if cause else ""
    return (
        one.ref.kind,
        one.ref.namespace or "-",
        one.ref.name,
        Text(one.state.value, style=_STYLES.get(one.state, "")),
        printable(why),
    )
