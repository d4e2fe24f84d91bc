"""The domain decides the same everywhere and always.

What the domain may import and call is checked beside the other rules of the layout (the import
contracts and ``tests/test_layout.py``); here is what no such rule can see: an order that a hash
decides, which differs from one worker process to the next and would break a workflow's replay.
"""

import os
import subprocess
import sys

import pytest

from repository import ROOT

HASH_SEEDS = ("0", "1", "4711")

STORY = """
from datetime import UTC, datetime, timedelta

from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PlanBoard, element_id
from temporal_plans.domain.plans.commands import (
    Command, CommandRefused, Verb, apply_order, apply_plan, decide,
)
from temporal_plans.domain.plans.leases import Lease, LeaseState, drop_plan, request
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec, StrategySpec
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.plans.transitions import TaskProgress, launched, reported
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

now = datetime(2026, 1, 1, tzinfo=UTC)
names = [f"step-{i}" for i in range(12)]
for strategy in sorted(NAMES):
    spec = StrategySpec(name=strategy, limit=3, waves=(2, "30%"))
    phases = tuple(
        PhaseSpec(
            name=f"phase-{k}",
            strategy=spec,
            depends_on=("phase-0",) if k else (),
            steps=tuple(
                StepSpec(
                    name=name,
                    work=SleepWork(duration=timedelta(0)),
                    depends_on=tuple(names[: i // 3]),
                )
                for i, name in enumerate(names)
            ),
        )
        for k in range(3)
    )
    board = PlanBoard(PlanSpec(name="plan", strategy=spec, phases=phases), seed=5)
    for verb, phase, step in [
        (Verb.CONTINUE, "", ""), (Verb.CONTINUE, "phase-0", ""), (Verb.INTERRUPT, "phase-1", ""),
        (Verb.FORCE_COMPLETE, "phase-0", "step-3"), (Verb.RESTART, "phase-1", "step-99"),
        (Verb.CONTINUE, "", ""), (Verb.STOP, "", ""), (Verb.START, "", ""),
    ]:
        try:
            command = Command(phase=phase, step=step)
            decision = decide(board, "svc/plan", verb, command)
        except CommandRefused as refused:
            print(refused.outcome)
            continue
        print(decision.model_dump_json())
        apply_plan(board, decision)
        for order in decision.orders:
            print(apply_order(board.phases[order.phase], order, now))
        print(board.status, board.candidates(), [p.candidates() for p in board.phases])
        print(board.waits(), board.errors)
    tasks = {f"{name}-1": TaskProgress(name=name, goal=Goal.ONCE) for name in names}
    state = launched(board.phases[0].steps[0], tasks, now)
    for number, (task_id, task) in enumerate(tasks.items()):
        fate = list(TaskState)[number]
        report = TaskStatus(task_id=task_id, name=task.name, state=fate, sequence=1, at=now)
        state = reported(state, report, Backoff(), now)
    board.phases[0].set(0, state)
    print(board.state.model_dump_json())
print(element_id("svc/plan", "phase", "step"))

book = LeaseState()
for plan in ("deploy", "seed", "backup"):
    wants = [
        Lease(plan=plan, phase=f"svc/{plan}/p", step=i, pod="web", index=i % 4, tasks=("a", "b"),
              priority=len(plan))
        for i in range(8)
    ]
    book, grants, held = request(book, wants, [], f"svc/{plan}/p", False)
    print([grant.key for grant in grants], list(held.items()))
book, grants, held = drop_plan(book, "deploy")
print([grant.key for grant in grants], book.model_dump_json())
"""


def told(hash_seed: str) -> str:
    """The story as a process with that hash seed tells it."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", STORY],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def stories() -> dict[str, str]:
    return {seed: told(seed) for seed in HASH_SEEDS}


def test_no_order_depends_on_hashes(stories: dict[str, str]) -> None:
    first, *others = (story.splitlines() for story in stories.values())
    assert len(first) > 200
    for other in others:
        assert other == first


def test_the_hash_seeds_do_change_the_order_of_sets() -> None:
    """Or the test above could not fail."""
    script = "print(list({f'step-{i}' for i in range(12)}))"
    orders = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in HASH_SEEDS
    }
    assert len(orders) > 1
