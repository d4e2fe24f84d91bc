"""What the plans of a fleet wrote down, independent of any workflow."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from temporal_plans.messages.fleets.plans import PlanRow


@dataclass(frozen=True)
class Line:
    """``begun`` or ``done``: one attempt of an activity, of the plan file of a version."""

    event: str
    file: str
    version: str
    workflow: str
    run: str
    activity: str
    attempt: int

    @property
    def plan(self) -> str:
        """``environment/NAME/ENTITY.NUMBER``"""
        return "/".join(self.workflow.split("/")[:3])


class Ledger:
    """The file that the activities ``note`` write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[Line]:
        if not self.path.exists():
            return []
        return [Line(**json.loads(text)) for text in self.path.read_text().splitlines()]

    def has_done(self, plan: str) -> bool:
        return any(one.plan == plan and one.event == "done" for one in self.lines())

    def faults(self, rows: dict[str, PlanRow], *, resolved: set[str]) -> list[str]:
        """What differs from the plans as environments list them, by plan id. ``resolved`` are those
        of which a person said how they ended."""
        by_plan: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines():
            by_plan[line.plan].append(line)
        faults = [
            f"{plan} was carried out, and is listed nowhere" for plan in by_plan.keys() - rows
        ]
        for plan, lines in by_plan.items():
            faults += [f"{plan} {fault}" for fault in _twice(lines)]
        for plan, row in rows.items():
            if plan not in resolved:
                faults += [f"{plan} {fault}" for fault in _unlike(row, by_plan.get(plan, []))]
        return faults


def _twice(lines: list[Line]) -> list[str]:
    """A plan has one file with one step, so all lines are attempts of one activity of one run. An
    attempt may have been done without the server knowing it: then the next one is the same work."""
    works = {(one.run, one.activity, one.file, one.version) for one in lines}
    if len(works) > 1:
        return [f"was carried out {len(works)} times: {sorted(works)}"]
    attempts = [(one.attempt, one.event) for one in lines]
    return [f"wrote an attempt twice: {attempts}"] if len(set(attempts)) < len(attempts) else []


def _unlike(row: PlanRow, lines: list[Line]) -> list[str]:
    done = [one for one in lines if one.event == "done"]
    if row.status == "SUCCEEDED" and not done:
        return [f"is {row.status} ({row.intent} to {row.to}), and was never carried out"]
    wrong = {one.version for one in done} - {row.to, row.from_version}
    if wrong:
        return [f"leads from {row.from_version} to {row.to}, and carried out {sorted(wrong)}"]
    if row.status == "FAILED" and done and not row.errors:
        return ["is FAILED without an error, and was carried out"]
    return []
