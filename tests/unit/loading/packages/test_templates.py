"""Rendering of a package's templates in a process of its own."""

import sys
import time
from collections.abc import Collection
from dataclasses import replace

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


def reasons_of(
    templates: Collection[str],
    context: TemplateContext = CONTEXT,
    limits: RenderLimits | None = None,
) -> list[Reason]:
    """Return why each of the templates can't be rendered: they are t0.yaml, t1.yaml..."""
    named = {f"t{number}.yaml": template for number, template in enumerate(templates)}
    rendered = render_each(named, context, limits)
    reasons = [reason for reason in rendered.values() if isinstance(reason, Reason)]
    assert len(reasons) == len(named)
    return reasons


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
    names = ("PlanName", "PhaseName", "StepName", "Pipes")
    reasons = reasons_of([f"{{{{ .{name} }}}}" for name in names], context)
    assert [reason.problem for reason in reasons] == [f"there is no .{name}" for name in names]
    assert {reason.fix for reason in reasons} == {"only a step's templates have it"}


REFUSALS = {
    "\n {{ .Params.NODE_COUNTS }}": "2:5: there is no .Params.NODE_COUNTS; did you mean NODE_",
    "{{ .Params.X }}": "1:4: there is no .Params.X; define the parameter X in params.yaml",
    "{{ .StepNumber }}": "1:4: there is no .StepNumber; did you mean .StepName?",
    "{{ .Pipes.key }}": "1:4: there is no .Pipes.key; a Pipe task with the key key must be in",
    "{{ .Params.M.x }}": "1:4: there is no .Params.M.x; the value of Params.M has no such key",
    "a\n{{ if }}": "2:",
}


def test_a_refusal_has_file_line_column_and_the_cure() -> None:
    reasons = reasons_of(list(REFUSALS))
    for number, (reason, text) in enumerate(zip(reasons, REFUSALS.values(), strict=True)):
        assert str(reason).startswith(f"t{number}.yaml:{text}")
        assert reason.line == int(text[0])


def test_every_template_that_fails_is_named_at_once() -> None:
    templates = {"a.yaml": "{{ .NOPE }}", "b.yaml": "fine", "c/d.yaml": "{{ now }}"}
    with pytest.raises(TemplateError) as raised:
        render(templates, CONTEXT)
    assert [reason.field for reason in raised.value.reasons] == ["a.yaml:1:4", "c/d.yaml:1:4"]
    rendered = render_each(templates, CONTEXT)
    assert rendered["b.yaml"] == "fine"
    assert list(rendered) == list(templates)


def test_no_value_of_a_secret_parameter_stands_in_an_error() -> None:
    key = "-----BEGIN KEY-----\n" + "MIIEvQIBADANBgkqhkiG\n" * 10_000
    params = {**CONTEXT.params, "PASSWORD": "hunter2", "KEY": key}
    context = replace(CONTEXT, params=params, secrets=("PASSWORD", "M", "KEY", "ABSENT"))
    expressions = (
        *(".Params.PASSWORD", ".Params.M.token", "(toJson .Params.M)"),
        *(".Params.KEY", "(toJson .Params.KEY)", "(substr 19 60 .Params.KEY)"),
    )
    faulty = [f"{{{{ fail {expression} }}}}" for expression in expressions]
    for reason in reasons_of(faulty, context):
        assert "secret parameter" in reason.problem
        assert "hunter2" not in str(reason)
        assert "deep-secret" not in str(reason)


UNBOUNDED = {
    '{{ repeat 1000000000 "x" }}': "takes more than 256 MB",
    '{{ $x := "xxxxxxxx" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}': "more than 256 MB",
    "{{ until 1000000000 }}": "takes more than 256 MB",
    '{{ printf "%1000000000d" 1 }}': "takes more than 256 MB",
    '{{ indent 1000000000 "x" }}': "takes more than 256 MB",
    "{{ range 1000000000 }}{{ end }}": "iteration budget exceeded",
    '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}': "nested too deeply",
}

ENDLESS = "{{ range until 200 }}{{ $u := uniq (until 20000) }}{{ end }}"


def test_memory_loops_and_depth_are_bounded() -> None:
    reasons = reasons_of(list(UNBOUNDED), limits=RenderLimits(memory=256 * 2**20))
    for reason, problem in zip(reasons, UNBOUNDED.values(), strict=True):
        assert problem in reason.problem


def test_one_template_without_an_end_spoils_no_other() -> None:
    rendered = render_each(
        {"a.yaml": "a", "b.yaml": ENDLESS, "c.yaml": "c"}, CONTEXT, RenderLimits(seconds=0.5)
    )
    assert (rendered["a.yaml"], rendered["c.yaml"]) == ("a", "c")
    assert str(rendered["b.yaml"]) == "b.yaml: takes more than 0.5 s"


def test_the_process_ends_at_its_limit_whatever_the_template_does() -> None:
    limits = RenderLimits(seconds=60, all_seconds=1)
    rendered = render_each({"a.yaml": "a", "b.yaml": ENDLESS, "c.yaml": "c"}, CONTEXT, limits)
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


def test_an_error_of_a_templates_own_is_shortened() -> None:
    [reason] = reasons_of(['{{ fail (repeat 3000000 "x") }}'])
    assert reason.problem.startswith("function 'fail' failed: xxx")
    assert len(reason.problem) <= 1000


def test_a_process_that_can_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    [reason] = reasons_of(["fine"])
    assert "No module named 'gotpl'" in reason.problem
