"""The runs of plans, as a table."""

from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.listing import moment
from temporal_plans.cli.terminal.output import coloured
from temporal_plans.domain.owners.runs import RunHistory, RunRecord


def history_lines(history: RunHistory) -> list[Text]:
    if not history.runs:
        return [Text("No runs yet.")]
    rows = [
        (
            run.plan,
            str(run.run),
            str(run.config) if run.config else "",
            moment(run.started),
            duration(run.ended - run.started) if run.ended else "",
            _result(run),
            run.by,
            run.what,
            run.reason,
        )
        for run in history.runs
    ]
    head = ("PLAN", "RUN", "CONFIG", "STARTED", "TOOK", "RESULT", "BY", "WHAT", "REASON")
    lines = columns(head, rows)
    if history.dropped:
        lines.append(Text(f"({history.dropped} older runs are no longer kept)", style="dim"))
    return lines


def _result(run: RunRecord) -> Text:
    cell = coloured(run.status)
    if run.superseded:
        return cell.append(", superseded", style="yellow")
    return cell if run.ended else cell.append(", open", style="dim")
