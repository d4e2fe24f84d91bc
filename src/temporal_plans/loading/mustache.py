"""Mustache as service files and config templates use it (reference 12.2).

Values are texts by name, usually an environment. ``true`` and ``false`` (in any case) and the
empty text decide sections; ``{{X}}`` escapes HTML, ``{{{X}}}`` and ``{{&X}}`` don't. Partials are
refused: there is no place to take them from. The agent renders config templates with the same
function.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn, Protocol, cast

from pystache.parser import ParsingError, parse  # type: ignore[import-untyped]

from temporal_plans.domain.errors import Problem, SpecError

_MARK = "\x1f"
"""Stands between a name and its line while rendering; no name of a variable contains it."""

_INTERPOLATION = re.compile(r"(\{\{[{&]?\s*)([^\s{}!>&/#^=\x1f]+)(?=\s*\}\})")

_TAG = re.compile(r"\{\{[{&#^]?\s*([^\s{}!>&/#^=]+)\s*\}\}")

_DELIMITER_CHANGE = "{{="


class TemplateError(SpecError):
    """A template is malformed or, when strict, names values that nobody gave."""


def render(template: str, values: Mapping[str, str], *, strict: bool, name: str) -> str:
    """The template with the values filled in.

    ``strict``: a value that is missing where its text is wanted is an error; otherwise its text is
    empty. Missing in a section is never an error, it counts as false. ``name`` is the template's,
    for messages.

    Raises TemplateError with every missing value and its line.
    """
    try:
        parsed = cast(_Parsed, parse(_with_lines(template), raise_on_mismatch=True))
    except ParsingError as error:
        raise TemplateError([_malformed(error, template)], source=name) from error
    engine = _Engine(values, name)
    text = parsed.render(engine, _Sections())
    if strict and engine.missing:
        raise TemplateError((_missing(*use) for use in engine.missing), source=name)
    return text


def names_in(template: str) -> frozenset[str] | None:
    """The values that a template may ask for; None when it changes delimiters, and nobody knows."""
    return None if _DELIMITER_CHANGE in template else frozenset(_TAG.findall(template))


class _Parsed(Protocol):
    def render(self, engine: object, context: object) -> str: ...


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
    """What pystache's parsed templates ask while they render.

    Instead of pystache's own engine, which resolves dotted names and Python attributes, can't tell
    a section's missing value from a tag's, and knows no lines.
    """

    def __init__(self, values: Mapping[str, str], template: str) -> None:
        self._values = values
        self._template = template
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
        problem = Problem(
            path="",
            message="partials are not supported",
            value=f"{{{{>{key}}}}}",
            fix="write it out",
        )
        raise TemplateError([problem], source=self._template)

    def escape(self, text: str) -> str:
        return html.escape(text)

    def literal(self, text: str) -> str:
        return text


def _with_lines(template: str) -> str:
    """The template with the line of each plain tag marked behind its name.

    Not when it changes delimiters: then ``{{X}}`` may be ordinary text.
    """
    return template if _DELIMITER_CHANGE in template else "".join(_marked(template))


def _marked(template: str) -> Iterator[str]:
    line, done = 1, 0
    for tag in _INTERPOLATION.finditer(template):
        passed = template[done : tag.end()]
        line += passed.count("\n")
        done = tag.end()
        yield f"{passed}{_MARK}{line}"
    yield template[done:]


def _missing(name: str, line: int | None) -> Problem:
    return Problem(
        path=name, message="the template needs this value", fix=f"give {name} a value", line=line
    )


class _Details(Protocol):
    tag_type: str
    position: int
    tag_key: str


def _malformed(error: ParsingError, template: str) -> Problem:
    info = cast(_Details, error.info)
    before = _with_lines(template)[: info.position]
    if info.tag_type != "/" and before.endswith("\n"):
        before = before[:-1]  # the position is behind an opening tag and the end of its line
    return Problem(
        path="",
        message="a section is not opened and closed in pairs",
        value=f"{{{{{info.tag_type}{info.tag_key}}}}}",
        line=before.count("\n") + 1,
    )
