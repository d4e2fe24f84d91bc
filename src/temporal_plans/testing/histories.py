"""Recorded histories: save those of a test, and check that changed code still replays them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from temporal_plans.domain.plans.strategies.record import Select
from temporal_plans.domain.services.recovery.book import Recoverer
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.registry import StepKind


class ReplayFailed(AssertionError):
    """Code can't replay a recorded history: it would block the workflows that run now. The message
    names the file and the difference."""

    def __init__(self, failures: Mapping[Path, str]) -> None:
        texts = (f"{path}: {text}" for path, text in failures.items())
        super().__init__("\n".join(["histories that do not replay:", *texts]))
        self.failures = dict(failures)


async def check_replays(
    histories: Path | Iterable[Path],
    *,
    strategies: Mapping[str, Select] | None = None,
    step_kinds: Mapping[str, StepKind] | None = None,
    recoverers: Sequence[Recoverer] = (),
    workflows: Sequence[type] = (),
    passthrough: Sequence[str] = (),
) -> int:
    """Replay saved histories with your code, and return how many there are. ``histories`` are files
    of ``PlanEnvironment.save_histories``, or a directory of them.

    Do so before each release, with histories that the release before it recorded: what raises here
    would stop running plans. Raises ReplayFailed, and FileNotFoundError when there are none.
    """
    paths = sorted(histories.glob("*.json")) if isinstance(histories, Path) else [*histories]
    if not paths:
        raise FileNotFoundError(f"there are no histories in {histories}")
    plugin = PlansPlugin(
        strategies=strategies,
        step_kinds=step_kinds,
        recoverers=recoverers,
        passthrough=passthrough,
    )
    replayer = Replayer(workflows=workflows, plugins=[plugin])
    failures: dict[Path, str] = {}
    for path in paths:
        result = await replayer.replay_workflow(_read(path), raise_on_replay_failure=False)
        if result.replay_failure is not None:
            failures[path] = str(result.replay_failure)
    if failures:
        raise ReplayFailed(failures)
    return len(paths)


async def save_histories(client: Client, ids: Iterable[str], directory: Path) -> list[Path]:
    """Write the histories of workflows, of their children and of their earlier runs to files;
    return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    left: list[tuple[str, str | None]] = [(workflow_id, None) for workflow_id in ids]
    paths: dict[Path, None] = {}
    while left:
        workflow_id, run_id = left.pop()
        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
        first = history.events[0].workflow_execution_started_event_attributes
        run = first.original_execution_run_id
        path = directory / f"{quote(workflow_id, safe='')}-{run[:8]}.json"
        if path in paths:
            continue
        path.write_text(_written(workflow_id, history), encoding="utf-8")
        paths[path] = None
        left += _related(workflow_id, history)
    return list(paths)


def _related(workflow_id: str, history: WorkflowHistory) -> Iterable[tuple[str, str | None]]:
    """Yield the children of a run, and its predecessor."""
    first = history.events[0].workflow_execution_started_event_attributes
    if first.continued_execution_run_id:
        yield workflow_id, first.continued_execution_run_id
    for event in history.events:
        if event.HasField("child_workflow_execution_started_event_attributes"):
            child = event.child_workflow_execution_started_event_attributes.workflow_execution
            yield child.workflow_id, child.run_id
            yield child.workflow_id, None  # a later run of it


def _written(workflow_id: str, history: WorkflowHistory) -> str:
    return json.dumps({"workflow_id": workflow_id, "history": history.to_json_dict()}, indent=1)


def _read(path: Path) -> WorkflowHistory:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    return WorkflowHistory.from_json(recorded["workflow_id"], recorded["history"])
