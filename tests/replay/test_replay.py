"""Recorded histories replay: a change of the code does not break what runs (CONTRIBUTING)."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from temporal_plans.worker.plugin import WORKFLOWS, PlansPlugin

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*/*.json"))


def _recorded(path: Path) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return recorded


def _type(path: Path) -> str:
    first = _recorded(path)["history"]["events"][0]
    return str(first["workflowExecutionStartedEventAttributes"]["workflowType"]["name"])


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=f"{p.parent.name}-{p.stem}-{_type(p)}") for p in HISTORIES]
)
async def test_a_recorded_history_replays(path: Path) -> None:
    recorded = _recorded(path)
    history = WorkflowHistory.from_json(recorded["workflow_id"], recorded["history"])
    await Replayer(workflows=[], plugins=[PlansPlugin()]).replay_workflow(history)


def test_every_workflow_type_is_recorded() -> None:
    names = {"Plan", "Phase", "Step", "Service", "Pool", "ScheduledRun", "Content"}
    names |= {"Environment", "Instance", "Product", "Spoke"}
    assert len(names) == len(WORKFLOWS)
    assert {_type(path) for path in HISTORIES} == names
