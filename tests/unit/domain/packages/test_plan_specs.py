"""Plans of packages as plans of the engine."""

from datetime import timedelta
from typing import Any

from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.package_tasks import PackageTasksWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.packages.installation import PackageDefinition, Switches
from temporal_plans.domain.packages.plan_specs import plan_specs
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from unit.domain.packages.installations import definition


def test_a_plan_has_its_phases_steps_and_tasks() -> None:
    package = definition(
        plans={
            "deploy": {
                "strategy": "serial",
                "reentrant": False,
                "onError": "continue",
                "phases": [
                    {
                        "name": "main",
                        "strategy": "canary",
                        "steps": [{"name": "a", "tasks": ["t", "t"]}, {"name": "b"}],
                    },
                    {"name": "rest"},
                    {"name": "more", "strategy": {"name": "max-parallel", "limit": 2}},
                ],
            },
            "cleanup": {},
        }
    )
    specs = plan_specs(package, Switches())
    assert specs["deploy"] == PlanSpec(
        name="deploy",
        strategy=StrategySpec(name="serial"),
        parameters=(),
        on_error="continue",
        reentrant=False,
        phases=(
            PhaseSpec(
                name="main",
                strategy=StrategySpec(name="canary"),
                steps=(
                    StepSpec(name="a", work=PackageTasksWork(tasks=("t", "t"))),
                    StepSpec(name="b", work=PackageTasksWork()),
                ),
            ),
            PhaseSpec(name="rest", strategy=StrategySpec(name="parallel")),
            PhaseSpec(name="more", strategy=StrategySpec(name="max-parallel", limit=2)),
        ),
    )
    assert PackageDefinition.model_validate_json(package.model_dump_json()) == package
    assert specs["cleanup"].on_error == "stop"
    assert specs["cleanup"].strategy.name == "parallel"
    serial = plan_specs(package, Switches(absent_strategy="serial"))
    assert serial["deploy"].phases[1].strategy.name == "serial"
    assert PlanSpec.model_validate_json(specs["deploy"].model_dump_json()) == specs["deploy"]


def test_steps_may_wait_and_depend_on_each_other() -> None:
    phase = {
        "name": "main",
        "steps": [
            {"name": "ask", "approval": True},
            {"name": "pause", "sleep": "5m", "dependsOn": ["ask"]},
            {"name": "copy", "tasks": ["t"], "depends-on": ["pause"]},
        ],
    }
    after = {"name": "after", "strategy": "serial", "dependsOn": ["main"]}
    package = definition(plans={"deploy": {"phases": [phase, after]}})
    spec = plan_specs(package, Switches())["deploy"]
    assert spec.strategy == spec.phases[0].strategy == StrategySpec(name="dependency")
    assert spec.phases[1].strategy == StrategySpec()
    assert spec.phases[1].depends_on == ("main",)
    assert [step.work for step in spec.phases[0].steps] == [
        ApprovalWork(),
        SleepWork(duration=timedelta(minutes=5)),
        PackageTasksWork(tasks=("t",)),
    ]
    assert [step.depends_on for step in spec.phases[0].steps] == [(), ("ask",), ("pause",)]


def test_plans_and_phases_without_anything_are_complete_at_once() -> None:
    empty: dict[str, Any] = {
        "deploy": {},
        "update": {"phases": [{"name": "a"}, {"name": "b", "steps": []}]},
    }
    for spec in plan_specs(definition(plans=empty), Switches()).values():
        board = PlanBoard(spec, None, seed=0)
        assert board.status is Status.COMPLETE


def test_of_two_children_with_one_name_the_first_has_precedence() -> None:
    steps = [{"name": "s", "tasks": ["t"]}, {"name": "s"}]
    phases = [{"name": "a", "steps": steps}, {"name": "a"}]
    (phase,) = plan_specs(definition(plans={"p": {"phases": phases}}), Switches())["p"].phases
    (step,) = phase.steps
    assert step.work == PackageTasksWork(tasks=("t",))


def test_a_start_may_set_parameters_for_one_run() -> None:
    other: dict[str, Any] = {"a-b": {}}
    package = definition(
        plans={"deploy": {}},
        A={"default": "1", "required": True},
        S={"secret": True},
        F={"immutable": True, "default": "1"},
        **other,
    )
    declared = plan_specs(package, Switches())["deploy"].parameters
    assert check_arguments(declared, {}) == ({}, ())
    assert check_arguments(declared, {"A": "x"}) == ({"A": "x"}, ())
    for name in ("S", "F", "a-b", "B"):
        (problem,) = check_arguments(declared, {name: "x"})[1]
        assert problem.field == f"parameters.{name}"
