"""YAML and JSON texts as plain values, read strictly, with the line of every entry.

Strict: one document, no key twice, no tags, text keys only. YAML 1.1's surprises are left out
(``no`` is text, ``12:30`` is text). Merge keys (``<<``) and aliases work, within bounds.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

import yaml
from yaml.reader import Reader, ReaderError

from temporal_plans.domain.errors import Problem, SpecError

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:  # the C parser is ten times as fast, and plans may be long
    _SafeLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

Scalars = Literal["text", "typed"]
"""``text``: every scalar but null stays as written, for schemas that know their own types (``1.20``
is a version, not a number). ``typed``: numbers and booleans of YAML 1.2's core schema, as JSON."""

MAX_DEPTH = 100
MAX_NODES = 200_000
"""Bounds for texts whose aliases multiply."""

_TAGS = "tag:yaml.org,2002:"
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UNREADABLE = re.compile(Reader.NON_PRINTABLE.pattern + "|[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """``value``: dicts with text keys, lists and scalars. ``lines``: from the path of an entry
    (``pods.hello.count``, list items by number and, where they have one, by name) to its line.
    ``problems``: faults that left the rest readable.
    """

    value: object
    lines: Mapping[str, int]
    problems: tuple[Problem, ...] = ()

    def line(self, path: str) -> int | None:
        """The line of an entry, or of the closest one around it that is known."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path.rpartition(".")[0]
        return None


def read_yaml(text: str, *, scalars: Scalars, source: str) -> Document:
    """The one YAML document in a text. Raises SpecError when it can't be read at all."""
    try:
        root = _compose(text)
        builder = _Builder(scalars)
        value = None if root is None else builder.build(root, "", 0)
    except yaml.YAMLError as error:
        raise SpecError([_syntax_problem(error, text)], source=source) from error
    except RecursionError as error:
        raise SpecError([Problem(path="", message="is nested too deep")], source=source) from error
    if root is None:
        raise SpecError([_empty(text)], source=source)
    return Document(value, builder.lines, tuple(builder.problems))


def read_json(text: str, *, source: str) -> Document:
    """A JSON text. Raises SpecError when it isn't one; a key that is there twice is a problem."""
    problems: list[Problem] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries: dict[str, object] = {}
        for key, value in pairs:
            if key in entries:
                problems.append(_duplicate(key, None))
            entries.setdefault(key, value)
        return entries

    if not text.strip():
        raise SpecError([_empty(text)], source=source)
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = Problem(path="", message=f"is not JSON: {error.msg}", line=error.lineno)
        raise SpecError([problem], source=source) from error
    except (ValueError, RecursionError) as error:
        raise SpecError(
            [Problem(path="", message=f"is not JSON: {error}")], source=source
        ) from error
    return Document(value, {}, tuple(problems))


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


class _Loader(_SafeLoader):
    """Leaves every scalar a text: what it means is decided here, not by YAML 1.1."""

    yaml_implicit_resolvers = {}


class _Unfit(yaml.MarkedYAMLError):
    """YAML, but more than is read here."""

    def __init__(self, fault: str, node: yaml.Node) -> None:
        super().__init__(problem=fault, problem_mark=node.start_mark)


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _empty(text: str) -> Problem:
    return Problem(path="", message="has only comments" if text.strip() else "is empty")


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    """What the parser says and where. The text itself is not shown: it may hold secrets."""
    if isinstance(error, ReaderError):
        return _unreadable_character(error, text)
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(path="", message=f"is not YAML: {' '.join(str(error).split())}")
    said = ", ".join(part for part in (error.context, error.problem) if part)
    said = said if isinstance(error, _Unfit) else f"is not YAML: {said}"
    mark, start = error.problem_mark, error.context_mark
    if mark is None:
        return Problem(path="", message=said)
    if start is not None and start.line != mark.line:
        said += f" (it begins in line {start.line + 1})"
    return Problem(path="", message=said, fix=_syntax_fix(text, mark), line=mark.line + 1)


def _unreadable_character(error: ReaderError, text: str) -> Problem:
    """YAML allows no control characters; half a surrogate pair isn't text at all."""
    found = _UNREADABLE.search(text)
    return Problem(
        path="",
        message=f"is not YAML: {error.reason}",
        value=f"U+{ord(found[0]):04X}" if found else None,
        fix="remove the character",
        line=text.count("\n", 0, found.start()) + 1 if found else None,
    )


def _syntax_fix(text: str, mark: yaml.Mark) -> str:
    lines = text.split("\n")
    before = lines[mark.line] if mark.line < len(lines) else ""
    return "indent with spaces, not tabs" if before[mark.column :].startswith("\t") else ""


@dataclass
class _Builder:
    """From composed nodes to values; the nodes' lines and faults gather on the way."""

    scalars: Scalars
    lines: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[Problem] = field(default_factory=list[Problem])
    _open: set[int] = field(default_factory=set[int])
    _built: int = 0

    def build(self, node: yaml.Node, path: str, depth: int) -> object:
        self._built += 1
        if depth > MAX_DEPTH or self._built > MAX_NODES:
            raise _Unfit(f"the text unfolds to more than {MAX_NODES} values or too deep", node)
        if id(node) in self._open:
            raise _Unfit(f"{path} refers to itself", node)
        self.lines.setdefault(path, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return self._sequence(node, path, depth)
            return self._mapping(cast(yaml.MappingNode, node), path, depth)
        finally:
            self._open.discard(id(node))

    def _sequence(self, node: yaml.SequenceNode, path: str, depth: int) -> list[object]:
        self._check_tag(node, "seq", path)
        items = cast(list[yaml.Node], node.value)
        values: list[object] = []
        for index, item in enumerate(items):
            value = self.build(item, _join(path, str(index)), depth + 1)
            values.append(value)
            name = cast(dict[str, object], value).get("name") if isinstance(value, dict) else None
            if isinstance(name, str):
                self.lines.setdefault(_join(path, name), _line(item))
        return values

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, object]:
        self._check_tag(node, "map", path)
        entries: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key, value in cast(list[tuple[yaml.Node, yaml.Node]], node.value):
            if not isinstance(key, yaml.ScalarNode) or _is_null(key):
                self._refuse_key(key, path)
            elif key.value == "<<" and not key.style:
                for name, entry in self._merged(value, path, depth).items():
                    merged.setdefault(name, entry)
            elif key.value in entries:
                self.problems.append(_duplicate(_join(path, str(key.value)), _line(key)))
            else:
                name = str(key.value)
                self.lines.setdefault(_join(path, name), _line(key))
                entries[name] = self.build(value, _join(path, name), depth + 1)
        return {**merged, **entries} if merged else entries

    def _merged(self, node: yaml.Node, path: str, depth: int) -> dict[str, object]:
        """What ``<<`` brings: a mapping, or a list of them, the first one winning."""
        built = self.build(node, _join(path, "<<"), depth + 1)
        sources = cast(list[object], built) if isinstance(built, list) else [built]
        entries: dict[str, object] = {}
        for source in sources:
            if not isinstance(source, dict):
                message = "<< takes a mapping or a list of mappings"
                self.problems.append(
                    Problem(path=path, message=message, value=source, line=_line(node))
                )
                continue
            for name, entry in cast(dict[str, object], source).items():
                entries.setdefault(name, entry)
        return entries

    def _scalar(self, node: yaml.ScalarNode, path: str) -> object:
        self._check_tag(node, "str", path)
        text = str(node.value)
        if node.style:
            return text
        if text in _NULL:
            return None
        return _typed(text) if self.scalars == "typed" else text

    def _check_tag(self, node: yaml.Node, expected: str, path: str) -> None:
        if node.tag == _TAGS + expected:
            return
        tag = node.tag.replace(_TAGS, "!!")
        self.problems.append(
            Problem(
                path=path,
                message="tags are not supported",
                value=tag,
                fix="remove it",
                line=_line(node),
            )
        )

    def _refuse_key(self, key: yaml.Node, path: str) -> None:
        self.problems.append(
            Problem(
                path=path,
                message="a key must be text",
                fix="quote it; a {{NAME}} that stands here was not replaced",
                line=_line(key),
            )
        )


def _is_null(key: yaml.ScalarNode) -> bool:
    return not key.style and key.value in _NULL


def _typed(text: str) -> object:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text) and len(text) < 100:
        return int(text)
    if _BASED.fullmatch(text) and len(text) < 100:
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text


def _duplicate(path: str, line: int | None) -> Problem:
    return Problem(
        path=path,
        message="the key is there twice",
        value=path.rpartition(".")[2],
        fix="remove or rename one of them",
        line=line,
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
