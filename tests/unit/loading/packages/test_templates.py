"""Rendering of a package's templates in a process of its own."""

import time

import pytest

from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.templates import (
    RenderLimits,
    StepPlace,
    TemplateContext,
    TemplateError,
    render,
    render_each,
)

CONTEXT = TemplateContext(
    name="inst",
    namespace="ns1",
    operator_name="op",
    operator_version="1.2.3",
    params={"NODE_COUNT": "3", "PASSWORD": "hunter2", "M": {"a": 1.0, "token": "deep-secret"}},
    place=StepPlace("deploy", "main", "first"),
    pipes={"cert": "inst.cert"},
    secrets=("PASSWORD", "M", "ABSENT"),
)

SMALL = RenderLimits(seconds=0.5, all_seconds=20, memory=256 * 2**20)


def reason_of(template: str, context: TemplateContext = CONTEXT) -> Reason:
    reason = render_each({"t.yaml": template}, context, SMALL)["t.yaml"]
    assert isinstance(reason, Reason), reason[:100]
    return reason


def test_a_template_sees_the_fields_of_its_step() -> None:
    template = (
        "{{ .Name }} {{ .Namespace }} {{ .OperatorName }} {{ .OperatorVersion }}"
        " [{{ .AppVersion }}] {{ .PlanName }} {{ .PhaseName }} {{ .StepName }}"
        " {{ .Params.NODE_COUNT }} {{ .Pipes.cert }}"
    )
    assert render({"t.yaml": template}, CONTEXT) == {
        "t.yaml": "inst ns1 op 1.2.3 [] deploy main first 3 inst.cert"
    }


def test_without_a_step_there_are_neither_its_names_nor_pipes() -> None:
    context = TemplateContext("inst", "ns1", "op", "1.2.3")
    for name in ("PlanName", "PhaseName", "StepName", "Pipes"):
        reason = reason_of(f"{{{{ .{name} }}}}", context)
        assert reason.problem == f"there is no .{name}"
        assert reason.fix == "only a step's templates have it"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (
            "\n {{ .Params.NODE_COUNTS }}",
            "t.yaml:2:5: there is no .Params.NODE_COUNTS; did you mean",
        ),
        ("{{ .Params.X }}", "t.yaml:1:4: there is no .Params.X; define the parameter X in"),
        ("{{ .StepNumber }}", "t.yaml:1:4: there is no .StepNumber; did you mean .StepName?"),
        ("{{ .Pipes.key }}", "t.yaml:1:4: there is no .Pipes.key; a Pipe task with the key key"),
        ("{{ .Params.M.x }}", "t.yaml:1:4: there is no .Params.M.x; the value of Params.M has no"),
        ("a\n{{ if }}", "t.yaml:2:"),
    ],
)
def test_a_refusal_has_file_line_column_and_the_cure(template: str, text: str) -> None:
    assert str(reason_of(template)).startswith(text)


def test_every_template_that_fails_is_named_at_once() -> None:
    templates = {"a.yaml": "{{ .NOPE }}", "b.yaml": "fine", "c/d.yaml": "{{ now }}"}
    with pytest.raises(TemplateError) as raised:
        render(templates, CONTEXT)
    assert [reason.field for reason in raised.value.reasons] == ["a.yaml:1:4", "c/d.yaml:1:4"]
    rendered = render_each(templates, CONTEXT)
    assert rendered["b.yaml"] == "fine"
    assert list(rendered) == list(templates)


@pytest.mark.parametrize(
    "expression", [".Params.PASSWORD", ".Params.M.token", "(toJson .Params.M)"]
)
def test_no_value_of_a_secret_parameter_stands_in_an_error(expression: str) -> None:
    reason = reason_of(f"{{{{ fail {expression} }}}}")
    assert "secret parameter" in reason.problem
    assert "hunter2" not in str(reason)
    assert "deep-secret" not in str(reason)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ('{{ repeat 1000000000 "x" }}', "takes more than 256 MB"),
        ('{{ $x := "xxxxxxxx" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}', "more than 256 MB"),
        ("{{ until 1000000000 }}", "takes more than 256 MB"),
        ('{{ printf "%1000000000d" 1 }}', "takes more than 256 MB"),
        ('{{ indent 1000000000 "x" }}', "takes more than 256 MB"),
        ("{{ range until 200 }}{{ $u := uniq (until 20000) }}{{ end }}", "takes more than 0.5 s"),
        ("{{ range 1000000000 }}{{ end }}", "iteration budget exceeded"),
        ('{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}', "nested too deeply"),
    ],
)
def test_time_and_memory_are_bounded(template: str, problem: str) -> None:
    assert problem in reason_of(template).problem


def test_one_template_without_an_end_spoils_no_other() -> None:
    endless = "{{ range until 200 }}{{ $u := uniq (until 20000) }}{{ end }}"
    rendered = render_each({"a.yaml": "a", "b.yaml": endless, "c.yaml": "c"}, CONTEXT, SMALL)
    assert (rendered["a.yaml"], rendered["c.yaml"]) == ("a", "c")
    assert "takes more than" in str(rendered["b.yaml"])


def test_the_process_ends_at_its_limit_whatever_the_template_does() -> None:
    limits = RenderLimits(seconds=60, all_seconds=1)
    endless = "{{ range until 200 }}{{ $u := uniq (until 20000) }}{{ end }}"
    rendered = render_each({"a.yaml": "a", "b.yaml": endless, "c.yaml": "c"}, CONTEXT, limits)
    assert rendered["a.yaml"] == "a"
    assert "b.yaml: takes more than 1 s" in str(rendered["b.yaml"])
    assert "was not rendered" in str(rendered["c.yaml"])


def test_a_process_that_gets_no_processor_is_stopped_as_well() -> None:
    started = time.monotonic()
    reason = render_each({"a.yaml": "a"}, CONTEXT, RenderLimits(elapsed=0.001))["a.yaml"]
    assert "takes more than 0.001 s" in str(reason)
    assert time.monotonic() - started < 30


def test_all_texts_together_are_bounded() -> None:
    templates = {f"{number}.yaml": '{{ repeat 600 "x" }}' for number in range(3)}
    rendered = render_each(templates, CONTEXT, RenderLimits(output=1000))
    assert rendered["0.yaml"] == "x" * 600
    assert "more than 1000 characters" in str(rendered["1.yaml"])
    assert "was not rendered" in str(rendered["2.yaml"])


def test_the_process_has_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    assert render({"t.yaml": "fine"}, CONTEXT) == {"t.yaml": "fine"}
