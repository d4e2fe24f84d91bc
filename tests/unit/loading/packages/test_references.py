"""What templates refer to."""

import pytest

from temporal_plans.loading.packages.references import template_use


@pytest.mark.parametrize(
    ("template", "parameters"),
    [
        ("{{ .Params.A }}{{ $.Params.B }}", {"A", "B"}),
        ("{{ if eq .Params.A `x` }}{{ .Params.B }}{{ else }}{{ .Params.C }}{{ end }}", set("ABC")),
        ("{{ range until (int .Params.A) }}{{ .X.Y }}{{ $.Params.B }}{{ end }}", set("AB")),
        ("{{ range $i, $v := .Params.A }}{{ $v.x }}{{ .Params.B }}{{ end }}", {"A"}),
        ("{{ range .Params.A }}{{ else }}{{ .Params.B }}{{ end }}", set("AB")),
        ("{{ with .Params }}{{ .A }}{{ $.Params.B }}{{ end }}", set("AB")),
        ("{{ with .Params.A }}{{ .B }}{{ else }}{{ .Params.C }}{{ end }}", set("AC")),
        ("{{ $p := .Params }}{{ $p.A }}{{ $r := . }}{{ $r.Params.B }}", set("AB")),
        ("{{ $p := .Params }}{{ if true }}{{ $p = .Name }}{{ end }}", set[str]()),
        ("{{ (.Params).A }}{{ (.Params.B).C }}", set("AB")),
        ("{{ .Params.A | quote | indent 2 }}", {"A"}),
        ("{{ define `t` }}{{ .A }}{{ end }}{{ template `t` .Params }}", {"A"}),
        ("{{ define `t` }}{{ .A }}{{ end }}{{ template `t` .Params.B }}", {"B"}),
        ("{{ define `t` }}{{ template `t` . }}{{ .Params.A }}{{ end }}{{ template `t` . }}", {"A"}),
        ("{{ block `b` .Params }}{{ .A }}{{ end }}", {"A"}),
        ("{{/* .Params.A */}}", set[str]()),
    ],
)
def test_parameters(template: str, parameters: set[str]) -> None:
    use = template_use(template)
    assert use.fault is None
    assert set(use.parameters) == parameters
    assert not use.all_parameters


@pytest.mark.parametrize(
    "template",
    [
        "{{ .Params }}",
        "{{ toYaml .Params }}",
        "{{ .Params | toYaml }}",
        "{{ range $k, $v := .Params }}{{ end }}",
        "{{ range $k, $v := . }}{{ end }}",
        "{{ toYaml . }}",
        "{{ $p := .Params }}{{ toYaml $p }}",
        "{{ index .Params .Name }}",
    ],
)
def test_all_parameters(template: str) -> None:
    assert template_use(template).all_parameters


def test_what_is_looked_up_may_be_absent() -> None:
    use = template_use('{{ index .Params "A" }}{{ hasKey .Params "B" }}{{ get .Pipes "C" }}')
    assert use.looked_up == {"A", "B", "C"}
    assert not use.parameters
    assert not use.all_parameters


def test_lines_are_those_of_the_first_use() -> None:
    use = template_use("é\n{{ .Params.A }}\n{{ .Name }}{{ .Pipes.P }}\n{{ .Params.A }}{{ .Nope }}")
    assert use.parameters == {"A": 2}
    assert use.pipes == {"P": 3}
    assert use.roots == {"Params": 2, "Name": 3, "Pipes": 3, "Nope": 4}


@pytest.mark.parametrize("template", ["{{ if }}", "{{ .A", "x\n{{ nope 1 }}", "{{ end }}"])
def test_syntax(template: str) -> None:
    fault = template_use(template).fault
    assert fault is not None
    assert fault[0]
    assert fault[1] == template.count("\n") + 1


@pytest.mark.parametrize(
    "template",
    [
        "{{ if true }}" * 3000 + "{{ end }}" * 3000,
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "".join(
            f"{{{{ define `t{i}` }}}}{{{{ template `t{i + 1}` . }}}}{{{{ end }}}}"
            for i in range(900)
        )
        + "{{ define `t900` }}{{ end }}{{ template `t0` . }}",
    ],
    ids=["blocks", "parentheses", "templates"],
)
def test_what_is_nested_too_deeply_is_a_fault(template: str) -> None:
    fault = template_use(template).fault
    assert fault is not None


def test_a_long_template_takes_no_longer_than_its_length() -> None:
    use = template_use("{{ .Params.A }}\n" * 20_000 + "{{ .Params.B }}")
    assert use.parameters == {"A": 1, "B": 20_001}
