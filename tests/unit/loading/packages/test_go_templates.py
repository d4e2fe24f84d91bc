"""Templates of packages in the process of the test: Go's semantics, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from temporal_plans.domain.packages.parameters import as_floats
from temporal_plans.loading.packages import go_templates
from temporal_plans.loading.packages.go_templates import REFUSED, TemplateFault, render_template

PROBES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "template_probes.json").read_text("utf-8")
)

_PLACE = re.compile(r"t\.yaml:(?P<line>\d+)")


DATA = cast(dict[str, object], as_floats(yaml.safe_load(PROBES["data"])))
"""As Go has it: in lists and mappings of parameters all numbers are floats."""


def fault_of(template: str, **data: object) -> TemplateFault:
    with pytest.raises(TemplateFault) as raised:
        render_template("t.yaml", template, DATA | data)
    return raised.value


@pytest.mark.parametrize("probe", PROBES["probes"], ids=lambda probe: probe["id"])
def test_a_template_gives_what_go_makes_of_it(probe: dict[str, str]) -> None:
    if "out" in probe:
        assert render_template("t.yaml", probe["template"], DATA) == probe["out"]
        return
    fault = fault_of(probe["template"])
    place = _PLACE.search(probe["error"])
    assert place is not None
    assert fault.line == int(place["line"])
    assert fault.column is not None


@pytest.mark.parametrize(
    ("template", "missing", "place"),
    [
        ("a: 1\nb: {{ .Params.NOPE }}", ("Params", "NOPE"), (2, 7)),
        ("é {{ if eq .Params.S .Params.NOPE }}{{ end }}", ("Params", "NOPE"), (1, 22)),
        ("{{ .NOPE.deeper }}", ("NOPE",), (1, 4)),
        ("{{ with .Params }}\n{{ .M.d.nope }}{{ end }}", ("Params", "M", "d", "nope"), (2, 4)),
        (
            "{{ range .Params.TOPO }}\n  {{ .nope }}{{ end }}",
            ("Params", "TOPO", "0", "nope"),
            (2, 6),
        ),
        ('{{ define "t" }}{{ .NOPE }}{{ end }}\n{{ template "t" . }}', ("NOPE",), (1, 20)),
        ("{{ .Params.NOPE | default `x` }}", ("Params", "NOPE"), (1, 4)),
    ],
)
def test_a_missing_key_is_named_with_its_place(
    template: str, missing: tuple[str, ...], place: tuple[int, int]
) -> None:
    fault = fault_of(template)
    assert (fault.missing, (fault.line, fault.column)) == (missing, place)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_functions_of_chance_time_and_the_outside_are_refused_wherever_they_stand(
    name: str,
) -> None:
    fault = fault_of(f"{{{{ if false }}}}\n{{{{ {name} }}}}{{{{ end }}}}")
    assert (fault.line, fault.column) == (2, 4)
    assert f"the function {name!r} is not available" in fault.problem


def test_no_other_function_of_chance_time_or_the_outside_is_known() -> None:
    suspicious = re.compile(
        r"rand|date|time|now|uuid|env|host|gen|crypt|pass|shuffle|aes|file", re.I
    )
    known = set(go_templates.functions())
    assert {name for name in known if suspicious.search(name)} == set()


@pytest.mark.parametrize(
    "template",
    [
        "{{ .Params.S.upper }}",
        "{{ .Params.S.format }}",
        "{{ .Params.S.__class__ }}",
        "{{ .Params.ARR.append }}",
        "{{ .Params.M.keys }}",
        "{{ .Params.__class__ }}",
        "{{ .path }}",
        "{{ (semver `1.2.3`).__class__ }}",
        "{{ call .Params.S }}",
    ],
)
def test_a_template_reaches_nothing_of_python(template: str) -> None:
    fault_of(template)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ int `0x10` }} {{ add `010` `0b1` }} {{ max `99999999999999999999` 3 }}", "0 10 3"),
        (
            "{{ add 9223372036854775807 1 }} {{ int `+5` }} {{ int `1_0` }}",
            "-9223372036854775808 5 0",
        ),
        (
            '{{ toJson (list 1 nil) }} {{ toJson (dict "a" nil) }} {{ list nil }}',
            '[1,null] {"a":null} [<nil>]',
        ),
        ('{{ toYaml (append (list "a") nil) }}', "- a\n- null\n"),
        ('{{ printf "%v|%s" .Params.NIL "a" }} {{ printf "%d" "x" }}', "<nil>|a %!d(string=x)"),
        ('{{ print .Params.NIL 1 "a" 2 3.5 true nil }}', "<nil> 1a2 3.5 true <nil>"),
        ('{{ println .Params.NIL "a" 1 }}', "<nil> a 1\n"),
        ("{{ (semver `1.2.3-rc.1`).Minor }} {{ (semver `1.2.3-rc.1`).Prerelease }}", "2 rc.1"),
    ],
)
# each text is what Go gives
def test_functions_beyond_the_probes(template: str, text: str) -> None:
    assert render_template("t.yaml", template, DATA) == text


def test_what_a_template_sets_is_gone_in_the_next() -> None:
    changed = '{{ $_ := set .Params "S" "changed" }}{{ $_ := set .Params.M "a" 1 }}{{ .Params.S }}'
    assert render_template("t.yaml", changed, DATA) == "changed"
    assert render_template("t.yaml", "{{ .Params.S }} {{ .Params.M.a }}", DATA) == "hello one"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ range 1000000000 }}{{ end }}", "iteration"),
        ("{{ range until 2000 }}{{ range until 2000 }}{{ end }}{{ end }}", "iteration"),
        ('{{ repeat 5000000 "x" }}', "output"),
        ('{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}', "depth"),
        ("{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "nesting"),
        ("{{ if true }}" * 500 + "{{ end }}" * 500, "nesting"),
    ],
)
def test_output_loops_and_nesting_are_bounded(template: str, problem: str) -> None:
    fault = fault_of(template)
    assert problem in fault.problem
    assert fault.line == 1
