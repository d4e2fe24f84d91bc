"""The plans that take pods and services away (behaviour 7, 8)."""

from typing import Any

import pytest

from builders.clock import NOW
from builders.plans import phase_spec, plan_spec, step_spec
from builders.pools import agent, by_key, reservation
from builders.services import pod, service, task
from builders.tasks import by_name, record
from temporal_plans import build
from temporal_plans.domain.kinds.deregister import DeregisterWork
from temporal_plans.domain.kinds.erase import EraseWork
from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import completed
from temporal_plans.domain.services.plan_customizer import customized
from temporal_plans.domain.services.removal import (
    decommission_plan,
    to_decommission,
    uninstall_plan,
    unneeded,
)
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.names import MAX_NAME
from temporal_plans.domain.values.refusal import SpecError

RECORDS = by_name(
    *(record(name, 0, "t") for name in ("podA", "podB", "podC", "podD", "podE")),
    *(record(name, 1, "t") for name in ("podA", "podB", "podD")),
    record("podA", 2, "t"),
)
SPEC = service(pod("podA", 1, task("t")), pod("podB", 1, task("t")), pod("podC", 1, task("t")))


def names(plan: PlanSpec) -> dict[str, list[str]]:
    return {phase.name: [step.name for step in phase.steps] for phase in plan.phases}


# --- decommission --------------------------------------------------------------------------------


def test_the_order_in_which_pods_go() -> None:
    assert to_decommission(SPEC, RECORDS, {}) == (
        ("podD", 1),
        ("podD", 0),
        ("podE", 0),
        ("podB", 1),
        ("podA", 2),
        ("podA", 1),
    )


def test_a_pod_that_only_holds_resources_goes_too() -> None:
    held = by_key(reservation("podA", 3, "x"), reservation("podA", 0, "y"))
    assert to_decommission(SPEC, {}, held) == (("podA", 3),)


def test_there_is_no_plan_when_nothing_must_go() -> None:
    kept = by_name(record("podA", 0, "t"))
    assert decommission_plan(SPEC, kept, by_key(reservation("podA", 0, "x"))) is None


def test_a_phase_kills_then_gives_back_then_forgets() -> None:
    spec = service(pod("world", 0, task("server"), task("log")))
    held = by_key(
        *(
            reservation("world", i, f"cpu-{i}", f"mem-{i}", f"cpu-{i}", on=agent("a1"))
            for i in (0, 1)
        )
    )
    records = by_name(*(record("world", i, t) for i in (0, 1) for t in ("server", "log")))
    plan = decommission_plan(spec, records, held)
    assert plan is not None
    assert list(names(plan)) == ["world-1", "world-0"]
    assert names(plan)["world-1"] == [
        "kill-world-1-log",
        "kill-world-1-server",
        "unreserve-cpu-1",
        "unreserve-mem-1",
        "erase-world-1-log",
        "erase-world-1-server",
    ]
    assert {plan.strategy.name, *(phase.strategy.name for phase in plan.phases)} == {"serial"}
    steps = plan.phases[0].steps
    assert steps[0].work == KillWork(task="world-1-log")
    assert steps[2].work == UnreserveWork(
        resource="cpu-1", key="service/svc:world-1", reservation="r-world-1", agent="a1"
    )
    assert steps[4].work == EraseWork(task="world-1-log")
    assert not problems(plan)


# --- uninstall -----------------------------------------------------------------------------------


def test_an_uninstall_kills_gives_back_and_deregisters() -> None:
    records = by_name(record("b", 0, "t"), record("a", 0, "t", TaskState.FAILED))
    held = by_key(
        reservation("b", 0, "r3", "r1", on=agent("a2", hostname="zeta")),
        reservation("a", 0, "r2", on=agent("a1", hostname="alpha")),
    )
    plan = uninstall_plan(service(), records, held)
    assert (plan.name, plan.strategy.name) == ("deploy", "dependency")
    assert names(plan) == {
        "kill-tasks": ["kill-task-svc__a-0-t__1", "kill-task-svc__b-0-t__1"],
        "unreserve-resources-alpha": ["unreserve-r2"],
        "unreserve-resources-zeta": ["unreserve-r1", "unreserve-r3"],
        "deregister-service": ["deregister"],
    }
    assert plan.phases[0].steps[0].work == KillWork(task="a-0-t", task_id="svc__a-0-t__1")
    assert plan.phases[-1].steps[0].work == DeregisterWork()
    assert [phase.depends_on for phase in plan.phases] == [(), (), (), tuple(names(plan))[:-1]]
    assert [phase.strategy.name for phase in plan.phases] == ["parallel"] * 3 + ["serial"]
    assert not problems(plan)


def test_all_begin_at_once_but_the_last() -> None:
    board = PlanBoard(
        uninstall_plan(service(), by_name(record("a", 0, "t")), by_key(reservation("a", 0, "r")))
    )
    assert (board.status, board.candidates()) == (Status.PENDING, [0, 1])
    for phase in board.phases[:2]:
        assert board.candidates() != [2]
        phase.set(0, completed(phase.steps[0], NOW))
    assert board.candidates() == [2]


def test_a_service_that_has_nothing_is_just_deregistered() -> None:
    board = PlanBoard(uninstall_plan(service(), {}, {}))
    assert names(board.spec) == {"kill-tasks": [], "deregister-service": ["deregister"]}
    assert board.candidates() == [1]
    assert not problems(board.spec)


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        pytest.param(["", "  "], ["UNKNOWN_AGENT"], id="none"),
        pytest.param(["h", "h"], ["h"], id="two agents of one host"),
        pytest.param(["a/b", "c\nd"], ["a_b", "c_d"], id="what no name may have"),
        pytest.param(["x/y", "x_y"], ["x_y"], id="alike once mended"),
    ],
)
def test_hosts_call_themselves_what_they_like(hosts: list[str], expected: list[str]) -> None:
    held = by_key(*(reservation("p", i, f"r{i}", hostname=host) for i, host in enumerate(hosts)))
    plan = uninstall_plan(service(), {}, held)
    assert list(names(plan))[1:-1] == [f"unreserve-resources-{host}" for host in expected]
    assert sum(len(phase.steps) for phase in plan.phases) == len(hosts) + 1
    assert not problems(plan)


def test_long_names_are_cut_and_stay_apart() -> None:
    long = "p" * MAX_NAME
    records = by_name(record(long, 0, "a"), record(long, 0, "b"))
    held = by_key(reservation(long, 0, "r", hostname="h" * 300))
    plans = [decommission_plan(service(), records, held), uninstall_plan(service(), records, held)]
    assert [len(problems(plan)) for plan in plans if plan] == [0, 0]


# --- tasks that no plan needs --------------------------------------------------------------------


def pod_plan(*tasks: str, name: str = "deploy", errors: tuple[str, ...] = ()) -> PlanSpec:
    work = PodWork(pod="p", index=0, tasks=tasks)
    return plan_spec(phase_spec("p", step_spec("s", work, errors=errors)), name=name)


@pytest.mark.parametrize(
    ("plans", "expected"),
    [
        pytest.param([pod_plan("a", "b")], [], id="both are launched"),
        pytest.param([pod_plan("b")], ["p-0-a"], id="one is not any more"),
        pytest.param([pod_plan("b"), pod_plan("a", name="side")], [], id="another plan has it"),
        pytest.param([pod_plan(errors=("wrong",))], [], id="a step that could not be built"),
        pytest.param([], ["p-0-a", "p-0-b"], id="no plans"),
    ],
)
def test_tasks_in_no_plan_are_not_needed(plans: list[PlanSpec], expected: list[str]) -> None:
    records = by_name(
        record("p", 0, "a"), record("p", 0, "b"), record("p", 0, "dead", TaskState.KILLED)
    )
    assert [one.name for one in unneeded(records, plans)] == expected


def test_tasks_of_a_decommission_die_in_their_turn() -> None:
    records = by_name(record("p", 0, "a"), record("p", 0, "b"))
    decommission = decommission_plan(service(), records, {})
    assert decommission is not None
    assert unneeded(records, [decommission]) == ()


# --- customizers ---------------------------------------------------------------------------------


def with_farewell(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    """As test_decommission's: a step of its own before each kill."""
    if plan.name != "decommission":
        return plan
    first = step_spec("custom_decommission_step")
    phases = tuple(phase.but(steps=(first, *phase.steps)) for phase in plan.phases)
    return plan.but(phases=phases)


def reversed_phases(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    return plan.but(phases=plan.phases[::-1])


def renaming(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    return plan.but(name=f"{plan.name} of {spec.name}")


def emptying(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    return plan.but(phases=())


def raising(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    raise ValueError("no idea")


def forgetting(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    return None  # type: ignore[return-value]


def mixing(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    """Puts a step of the builders into the plan, as it is."""
    first = plan.phases[0]
    steps: tuple[Any, ...] = (*first.steps, build.sleep(1))
    return plan.but(phases=(first.but(steps=steps),))


def decommission() -> PlanSpec:
    plan = decommission_plan(SPEC, RECORDS, {})
    assert plan is not None
    return plan


def test_customizers_follow_each_other() -> None:
    plan = customized(decommission(), SPEC, [with_farewell, reversed_phases])
    assert list(names(plan)) == list(names(decommission()))[::-1]
    assert {phase.steps[0].name for phase in plan.phases} == {"custom_decommission_step"}
    assert customized(pod_plan("a"), SPEC, [with_farewell]) == pod_plan("a")


def test_an_uninstall_may_be_turned_round() -> None:
    plan = uninstall_plan(service(), by_name(record("a", 0, "t")), {})
    assert next(iter(names(customized(plan, SPEC, [reversed_phases])))) == "deregister-service"


@pytest.mark.parametrize(
    ("customizer", "said"),
    [
        (renaming, "can't rename"),
        (emptying, "no phases"),
        (raising, "ValueError: no idea"),
        (forgetting, "did not return a PlanSpec"),
        (mixing, r"phases\..*is not a StepSpec.* \(found .*build.steps.Step"),
    ],
)
def test_a_customizer_that_is_wrong_is_named(customizer: object, said: str) -> None:
    with pytest.raises(SpecError, match=said) as refused:
        customized(decommission(), SPEC, [customizer])  # type: ignore[list-item]
    name = getattr(customizer, "__name__")  # noqa: B009
    assert all(name in str(reason) for reason in refused.value.reasons)


def test_a_plan_that_is_left_as_it_is_is_not_looked_at() -> None:
    plan = PlanSpec(name="deploy")
    assert customized(plan, SPEC, [lambda plan, spec: plan]) is plan
