"""Parameters of plans, and their values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.temporal import RetrySpec
from temporal_plans.domain.plans.parameters import check_arguments, substitute
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from unit.loading.plan_files import ELEMENTS, load, step

# --- parameters ----------------------------------------------------------------------------------

DECLARED = (
    ParameterSpec(name="WHO", required=True, description="the user"),
    ParameterSpec(name="N", default="3", pattern="[0-9]+"),
    ParameterSpec(name="OPT"),
)


@pytest.mark.parametrize(
    ("declared", "given", "values", "wrong"),
    [
        pytest.param(DECLARED, {"WHO": "me"}, {"WHO": "me", "N": "3"}, [], id="defaults"),
        pytest.param(
            DECLARED,
            {"WHO": "me", "N": "7", "OPT": ""},
            {"WHO": "me", "N": "7", "OPT": ""},
            [],
            id="all",
        ),
        pytest.param(DECLARED, {}, {"N": "3"}, ["WHO"], id="required"),
        pytest.param(DECLARED, {"WHO": "", "N": "x1"}, None, ["N"], id="pattern"),
        pytest.param(DECLARED, {"WHO": "", "N": "1\n"}, None, ["N"], id="pattern-matches-whole"),
        pytest.param(DECLARED, {"WHO": "", "HWO": ""}, None, ["HWO"], id="undeclared"),
        pytest.param((), {"A": ""}, None, ["A"], id="none-taken"),
        pytest.param(None, {"ANY_1": "x"}, {"ANY_1": "x"}, [], id="no-declaration"),
        pytest.param(None, {"1A": "", "B-C": "", "": ""}, None, ["1A", "B-C", ""], id="names"),
    ],
)
def test_arguments(
    declared: tuple[ParameterSpec, ...] | None,
    given: dict[str, str],
    values: dict[str, str] | None,
    wrong: list[str],
) -> None:
    found, problems = check_arguments(declared, given)
    assert [problem.field for problem in problems] == [f"parameters.{name}" for name in wrong]
    assert values is None or found == values


def test_messages_about_arguments_help() -> None:
    _, (missing,) = check_arguments(DECLARED, {})
    assert str(missing) == "parameters.WHO: the plan needs this parameter (the user)"
    _, (unknown,) = check_arguments(DECLARED, {"WHO": "x", "OPTT": "y"})
    assert "did you mean OPT?" in str(unknown)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("a ${A} b", "a 1 b", id="text"),
        pytest.param("${A}${B}", "1${A}", id="not-twice"),
        pytest.param("$${A} $$$", "${A} $$$", id="escaped"),
        pytest.param("${C} ${ A } $A", "${C} ${ A } $A", id="left-alone"),
        pytest.param(
            {"${A}": ["${A}", 1, None, True]}, {"${A}": ["1", 1, None, True]}, id="nested"
        ),
        pytest.param(3.5, 3.5, id="number"),
    ],
)
def test_substitution(value: object, expected: object) -> None:
    assert substitute(value, {"A": "1", "B": "${A}"}) == expected


@given(st.text(), st.dictionaries(ELEMENTS, st.text()))
def test_text_without_references_stays(text: str, arguments: dict[str, str]) -> None:
    plain = text.replace("${", "")
    assert substitute(plain, arguments) == plain


@pytest.mark.parametrize(
    "text",
    [
        f"{{activity: {{type: {'x' * 200}, task-queue: {'x' * 200}, timeout: 3650d}}}}",
        f"{{workflow: {{type: x, id: {'x' * 500}, retry: {{maximum-attempts: 2147483647}}}}}}",
        "{sleep: 3650d}",
    ],
    ids=["activity", "workflow", "sleep"],
)
def test_what_the_server_just_takes_is_taken(text: str) -> None:
    load(step(text))


def test_retries_back_off_by_a_finite_factor() -> None:
    with pytest.raises(ValidationError, match="finite"):
        RetrySpec(backoff_coefficient=float("inf"))


def test_a_faulty_pod_step_has_no_tasks() -> None:
    """Generation makes such steps of pods that can't be launched: they show as errors."""
    faulty = StepSpec(
        name="web-0", work=PodWork(pod="web", index=0, tasks=()), errors=("no task of it fits",)
    )
    plan = PlanSpec(name="deploy", phases=(PhaseSpec(name="web", steps=(faulty,)),))
    assert plan_problems(plan) == ()
    (problem,) = plan_problems(
        plan.but(phases=(PhaseSpec(name="web", steps=(faulty.but(errors=()),)),))
    )
    assert problem.field == "phases.web.steps.web-0.pod.tasks"
