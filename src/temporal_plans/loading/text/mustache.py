"""Mustache as service files and config templates use it (behaviour 12.2).

Values are texts by name, usually an environment. Sections depend on ``true`` and ``false`` (in any
case) and the empty text; ``{{X}}`` escapes HTML, ``{{{X}}}`` and ``{{&X}}`` don't. Partials are
refused, because there is no directory to read them from. The agent renders config templates with
the same rules, leniently.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn, Protocol, cast

from pystache.parser import ParsingError, parse  # type: ignore[import-untyped]

from temporal_plans.domain.values.refusal import Code, Reason, SpecError

_MARK = "\x1f"
"""Separates a name from its line number while rendering; no name of a variable contains it."""

_INTERPOLATION = re.compile(r"(\{\{[{&]?\s*)([^\s{}!>&/#^=\x1f]+)(?=\s*\}\})")

_TAG = re.compile(r"\{\{[{&#^]?\s*([^\s{}!>&/#^=]+)\s*\}\}")

_DELIMITER_CHANGE = "{{="


class TemplateError(SpecError):
    """A template is malformed or, when strict, needs values that are missing."""


def render(template: str, values: Mapping[str, str], *, strict: bool, name: str) -> str:
    """Render a template with values.

    ``strict``: the missing value of a tag is an error; otherwise it is an empty text. The missing
    value of a section is never an error; it counts as false. ``name`` is the template's name in
    messages.

    Raises TemplateError with every missing value and its line.
    """
    engine = _Engine(values, name)
    text = _render(template, engine)
    if strict and engine.missing:
        missing = (_missing(*use) for use in engine.missing)
        raise TemplateError(missing, source=name, code=Code.VALUES_MISSING)
    return text


def render_leniently(
    template: str, values: Mapping[str, str], *, name: str
) -> tuple[str, tuple[str, ...]]:
    """Render a template; return the text, and the names of missing values, each once: their text is
    empty. Raises TemplateError when the template is malformed."""
    engine = _Engine(values, name)
    text = _render(template, engine)
    return text, tuple(dict.fromkeys(missing for missing, _ in engine.missing))


def names_in(template: str) -> frozenset[str] | None:
    """Return the names of the values that a template may use; None for a template that changes the
    delimiters, whose names are not known."""
    return None if _DELIMITER_CHANGE in template else frozenset(_TAG.findall(template))


class _Parsed(Protocol):
    def render(self, engine: object, context: object) -> str: ...


def _render(template: str, engine: "_Engine") -> str:
    try:
        parsed = cast(_Parsed, parse(_with_lines(template), raise_on_mismatch=True))
    except ParsingError as error:
        raise TemplateError([_malformed(error, template)], source=engine.template) from error
    return parsed.render(engine, _Sections())


class _Sections:
    """The values of the sections around a tag, innermost last; ``{{.}}`` is the last one."""

    def __init__(self) -> None:
        self._values: list[str | bool] = []

    def push(self, value: str | bool) -> None:
        self._values.append(value)

    def pop(self) -> str | bool:
        return self._values.pop()

    def top(self) -> str | bool | None:
        return self._values[-1] if self._values else None


class _Engine:
    """Resolves values for pystache's parsed templates.

    It replaces pystache's own engine, which resolves dotted names and Python attributes, does not
    distinguish a section's missing value from a tag's, and has no lines.
    """

    def __init__(self, values: Mapping[str, str], template: str) -> None:
        self._values = values
        self.template = template
        self.missing: list[tuple[str, int | None]] = []

    def fetch_string(self, context: _Sections, key: str) -> str:
        name, _, line = key.partition(_MARK)
        value = self.resolve_context(context, name)
        if value is None:
            self.missing.append((name, int(line) if line else None))
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return value

    def fetch_section_data(self, context: _Sections, key: str) -> list[str | bool]:
        value = self.resolve_context(context, key)
        return [value] if value else []

    def resolve_context(self, context: _Sections, key: str) -> str | bool | None:
        if key == ".":
            return context.top()
        value = self._values.get(key)
        if value is not None and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return value

    def resolve_partial(self, key: str) -> NoReturn:
        problem = Reason(
            field="",
            problem="partials are not supported",
            value=f"{{{{>{key}}}}}",
            fix="insert its text here",
        )
        raise TemplateError([problem], source=self.template)

    def escape(self, text: str) -> str:
        return html.escape(text)

    def literal(self, text: str) -> str:
        return text


def _with_lines(template: str) -> str:
    """Return the template with the line number of each plain tag after its name. A template that
    changes delimiters is left as it is: ``{{X}}`` may be ordinary text there."""
    return template if _DELIMITER_CHANGE in template else "".join(_marked(template))


def _marked(template: str) -> Iterator[str]:
    line, done = 1, 0
    for tag in _INTERPOLATION.finditer(template):
        passed = template[done : tag.end()]
        line += passed.count("\n")
        done = tag.end()
        yield f"{passed}{_MARK}{line}"
    yield template[done:]


def _missing(name: str, line: int | None) -> Reason:
    return Reason(
        field=name, problem="the template needs this value", fix=f"give {name} a value", line=line
    )


class _Details(Protocol):
    tag_type: str
    position: int
    tag_key: str


def _malformed(error: ParsingError, template: str) -> Reason:
    info = cast(_Details, error.info)
    before = _with_lines(template)[: info.position]
    if info.tag_type != "/" and before.endswith("\n"):
        before = before[:-1]  # the position is after an opening tag and the end of its line
    return Reason(
        field="",
        problem="a section is not opened and closed in pairs",
        value=f"{{{{{info.tag_type}{info.tag_key}}}}}",
        line=before.count("\n") + 1,
    )
