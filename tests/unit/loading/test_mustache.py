"""Mustache as behaviour 12.2 has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.loading.text.mustache import TemplateError, names_in, render

VALUES = {
    "NAME": "db",
    "EMPTY": "",
    "YES": "True",
    "NO": "FALSE",
    "JSON": '[["hostname", "UNIQUE"]]',
    "MARKUP": "<a & b>",
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("a {{NAME}} b", "a db b", id="value"),
        pytest.param("{{ NAME }}", "db", id="spaces"),
        pytest.param("{{MARKUP}}", "&lt;a &amp; b&gt;", id="escaped"),
        pytest.param("{{{MARKUP}}}{{&MARKUP}}", "<a & b><a & b>", id="not-escaped"),
        pytest.param("'{{{JSON}}}'", """'[["hostname", "UNIQUE"]]'""", id="json-in-quotes"),
        pytest.param("{{YES}} {{NO}}", "true false", id="booleans-as-text"),
        pytest.param("{{#YES}}x{{/YES}}{{^YES}}y{{/YES}}", "x", id="true-in-any-case"),
        pytest.param("{{#NO}}x{{/NO}}{{^NO}}y{{/NO}}", "y", id="false-in-any-case"),
        pytest.param("{{#EMPTY}}x{{/EMPTY}}{{^EMPTY}}y{{/EMPTY}}", "y", id="empty-is-false"),
        pytest.param("{{#GONE}}x{{/GONE}}{{^GONE}}y{{/GONE}}", "y", id="missing-is-false"),
        pytest.param("{{#NAME}}x{{.}}{{/NAME}}", "xdb", id="text-is-true"),
        pytest.param("{{#GONE}}{{ALSO_GONE}}{{/GONE}}", "", id="not-rendered-is-not-missing"),
        pytest.param("a\n  {{#YES}}\n  b\n  {{/YES}}\nc\n", "a\n  b\nc\n", id="tag-lines-vanish"),
        pytest.param("a\n{{! {{GONE}} }}\n", "a\n }}\n", id="comment-ends-at-first-braces"),
        pytest.param("{{=<% %>=}}<%NAME%> {{NAME}}", "db {{NAME}}", id="other-delimiters"),
        pytest.param("$NAME ${NAME} {NAME}", "$NAME ${NAME} {NAME}", id="not-mustache"),
    ],
)
def test_renders(template: str, expected: str) -> None:
    assert render(template, VALUES, strict=True, name="t") == expected


def test_strict_names_every_missing_value_with_its_line() -> None:
    template = "{{ONE}}\n{{#YES}}\n{{{TWO}}}\n{{/YES}}\n{{NAME}} {{ONE}}"
    with pytest.raises(TemplateError) as raised:
        render(template, VALUES, strict=True, name="svc.yml")
    found = [(problem.field, problem.line) for problem in raised.value.reasons]
    assert found == [("ONE", 1), ("TWO", 3), ("ONE", 5)]
    assert "svc.yml:3: TWO: the template needs this value" in str(raised.value)


def test_lenient_leaves_missing_values_empty() -> None:
    assert render("<{{GONE}}>", {}, strict=False, name="t") == "<>"


@pytest.mark.parametrize(
    ("template", "line", "value"),
    [
        pytest.param("a\n{{#X}}\nb", 2, "{{#X}}", id="not-closed"),
        pytest.param("a\nb\n{{/X}}", 3, "{{/X}}", id="not-opened"),
        pytest.param("{{N}}\n{{#X}}{{/Y}}", 2, "{{/Y}}", id="crossed"),
        pytest.param("{{>part}}", None, "{{>part}}", id="partial"),
    ],
)
def test_refuses_malformed_templates(template: str, line: int | None, value: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render(template, {"N": "1"}, strict=False, name="t")
    (problem,) = raised.value.reasons
    assert (problem.line, problem.value) == (line, value)


@given(st.text().filter(lambda text: "{{" not in text and "\r" not in text))
def test_text_without_tags_stays(text: str) -> None:
    assert render(text, {}, strict=True, name="t") == text


@given(st.text(), st.text().filter(lambda value: value.lower() not in ("true", "false")))
def test_values_are_never_templates(before: str, value: str) -> None:
    template = f"{before.replace('{', '')}{{{{{{X}}}}}}"
    rendered = render(template, {"X": value, "Y": "never"}, strict=True, name="t")
    assert rendered == f"{before.replace('{', '')}{value}"


@pytest.mark.parametrize(
    ("template", "names"),
    [
        pytest.param("a {{X}} {{ Y }}", {"X", "Y"}, id="plain"),
        pytest.param("{{{X}}} {{& Y}}", {"X", "Y"}, id="unescaped"),
        pytest.param("{{#X}}{{.}}{{/X}}{{^Y}}no{{/Y}}", {"X", "Y", "."}, id="sections"),
        pytest.param("{{! X }} {X} {{>X}}", set[str](), id="none"),
        pytest.param("{{=<% %>=}} <% X %>", None, id="other-delimiters"),
    ],
)
def test_the_names_in_a_template(template: str, names: set[str] | None) -> None:
    assert names_in(template) == names
