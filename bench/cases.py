"""The compared cases: each tree as a plan, and as hand-written workflows."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from temporalio.client import Client

from bench.bare import TASK_QUEUE, BarePlan, Tree
from bench.noop import noop
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.plans.plan import PhaseSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.plans import PlanInput, PlanResult


@dataclass(frozen=True)
class Case:
    """``run`` runs the tree once, as the workflow with this id. ``floor`` names its baseline."""

    name: str
    tree: Tree
    run: Callable[[Client, str, Tree], Awaitable[None]]
    floor: str | None = None


async def run_bare(client: Client, id: str, tree: Tree) -> None:
    await client.execute_workflow(BarePlan.run, tree, id=id, task_queue=TASK_QUEUE)


async def run_plan(client: Client, id: str, tree: Tree) -> None:
    result = await client.execute_workflow(
        "Plan", plan(tree), id=id, task_queue=PLANS_QUEUE, result_type=PlanResult
    )
    if result.status is not Status.COMPLETE:
        raise RuntimeError(f"{id}: the plan ended {result.status}, not COMPLETE")


def plan(tree: Tree) -> PlanInput:
    """Return the tree as a plan."""
    strategy = StrategySpec(name="serial" if tree.serial else "parallel")
    steps = tuple(
        StepSpec(name=f"step-{index}", work=ActivityWork(type=noop.__name__))
        for index in range(tree.steps)
    )
    return PlanInput(
        name="bench",
        strategy=StrategySpec(name="parallel"),
        steps="inline" if tree.inline else "child",
        phases=tuple(
            PhaseSpec(name=f"phase-{index}", strategy=strategy, steps=steps)
            for index in range(tree.phases)
        ),
    )


def step_cases(phases: int, steps: int, serial_steps: int) -> list[Case]:
    """Return the wide and the serial tree, each with a workflow per step and inline; baselines
    first."""
    wide = Tree(phases, steps)
    serial = Tree(1, serial_steps, serial=True)
    return [
        *_pair("tree", wide),
        *_pair("tree, inline", replace(wide, inline=True)),
        *_pair("serial", serial),
        *_pair("serial, inline", replace(serial, inline=True)),
    ]


def _pair(name: str, tree: Tree) -> list[Case]:
    floor = Case(f"bare {name}", tree, run_bare)
    return [floor, Case(f"plan {name}", tree, run_plan, floor=floor.name)]
