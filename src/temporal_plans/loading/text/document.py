"""YAML and JSON texts as plain values, read strictly, with the line of every entry.

Strict: one document, no duplicate keys, no tags, text keys only. The implicit types of YAML 1.1 are
used on demand only (else ``no`` is text). Merge keys (``<<``) and aliases work, within limits.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml
from yaml.reader import Reader, ReaderError

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.domain.values.text import as_text
from temporal_plans.loading.text import plain_scalars

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:  # the C parser is ten times as fast, and plans may be long
    _SafeLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

Scalars = Literal["text", "typed", "yaml-1.1"]
"""``text``: every scalar but null stays a text, for schemas that have their own types (``1.20`` may
be a version), and none may have a zero byte. ``typed``: numbers and booleans of YAML 1.2's core
schema, as in JSON; texts may be data of any kind. ``yaml-1.1``: as Go programs read YAML
(``plain_scalars.yaml_1_1``): keys that are numbers or booleans become texts, and of two equal keys
the last has precedence, though it is a problem."""

DEPTH_LIMIT = 100
NODE_LIMIT = 200_000
"""Limits for texts in which aliases multiply the values."""

_TAGS = "tag:yaml.org,2002:"
_UNREADABLE = re.compile(Reader.NON_PRINTABLE.pattern + "|[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a text.

    ``value`` has dicts with text keys, lists and scalars. ``lines`` maps the path of an entry
    (``pods.hello.count``; list items by number, and by name if they have one) to its line, from 1.
    ``problems`` are faults that left the rest readable. ``plain`` maps the paths of entries that
    YAML 1.1 made numbers or booleans to their text in the file.
    """

    value: object
    lines: Mapping[str, int]
    problems: tuple[Reason, ...] = ()
    plain: Mapping[str, str] = field(default_factory=dict[str, str])

    def line(self, path: str) -> int | None:
        """Return the line of an entry, or of the closest entry around it with a known line."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path.rpartition(".")[0]
        return None


def read_yaml(text: str, *, scalars: Scalars, source: str) -> Document:
    """Read the single YAML document of a text. Raises SpecError when it can't be read at all."""
    try:
        root = _compose(text, scalars)
        builder = _Builder(scalars)
        value = None if root is None else builder.build(root, "", 0)
    except yaml.YAMLError as error:
        raise SpecError([_syntax_problem(error, text)], source=source) from error
    except RecursionError as error:
        raise SpecError(
            [Reason(field="", problem="is nested too deeply")], source=source
        ) from error
    if root is None:
        raise SpecError([_empty(text)], source=source)
    if scalars == "text":
        builder.problems += _zero_bytes(value, "", builder.lines)
    return Document(value, builder.lines, tuple(builder.problems), builder.plain)


def read_yaml_stream(text: str, *, source: str) -> tuple[Document, ...]:
    """Read the YAML documents of a text, divided by ``---``, with typed scalars. A document without
    content is left out. Raises SpecError when the text can't be read, or has nothing in it."""
    documents: list[Document] = []
    loader = _Loader(text)
    try:
        while loader.check_node():
            builder = _Builder("typed")
            root = cast(yaml.Node, loader.get_node())
            if not (isinstance(root, yaml.ScalarNode) and _is_null(root)):
                value = builder.build(root, "", 0)
                documents.append(Document(value, builder.lines, tuple(builder.problems)))
    except yaml.YAMLError as error:
        raise SpecError([_syntax_problem(error, text)], source=source) from error
    except RecursionError as error:
        raise SpecError(
            [Reason(field="", problem="is nested too deeply")], source=source
        ) from error
    finally:
        loader.dispose()
    if not documents:
        raise SpecError([_empty(text)], source=source)
    return tuple(documents)


def read_json(text: str, *, source: str) -> Document:
    """Read a JSON text. Raises SpecError when it is not JSON; a duplicate key is a problem of the
    document."""
    problems: list[Reason] = []

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
        problem = Reason(field="", problem=f"is not JSON: {error.msg}", line=error.lineno)
        raise SpecError([problem], source=source) from error
    except (ValueError, RecursionError) as error:
        raise SpecError(
            [Reason(field="", problem=f"is not JSON: {error}")], source=source
        ) from error
    return Document(value, {}, tuple(problems))


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


class _Loader(_SafeLoader):
    """Leaves every scalar a text, so that its type is decided here, not by YAML 1.1."""

    yaml_implicit_resolvers = {}


_PLAIN = _TAGS + "plain"
_COLLECTIONS: Mapping[type[yaml.Node], str] = {yaml.SequenceNode: "seq", yaml.MappingNode: "map"}


class _PlainLoader(_Loader):
    """Tells plain scalars from those with quotes or the tag ``!!str``."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return _TAGS + ("str" if kind is yaml.ScalarNode else _COLLECTIONS[kind])


class _UnsupportedYaml(yaml.MarkedYAMLError):
    """The text is YAML that is not supported here."""

    def __init__(self, fault: str, node: yaml.Node) -> None:
        super().__init__(problem=fault, problem_mark=node.start_mark)


def _compose(text: str, scalars: Scalars) -> yaml.Node | None:
    loader = _PlainLoader(text) if scalars == "yaml-1.1" else _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _empty(text: str) -> Reason:
    return Reason(field="", problem="has only comments" if text.strip() else "is empty")


def _syntax_problem(error: yaml.YAMLError, text: str) -> Reason:
    """Return the parser's error and its line. The text is not shown, because it may have
    secrets."""
    if isinstance(error, ReaderError):
        return _unreadable_character(error, text)
    if not isinstance(error, yaml.MarkedYAMLError):
        return Reason(field="", problem=f"is not YAML: {' '.join(str(error).split())}")
    message = ", ".join(part for part in (error.context, error.problem) if part)
    message = message if isinstance(error, _UnsupportedYaml) else f"is not YAML: {message}"
    mark, start = error.problem_mark, error.context_mark
    if mark is None:
        return Reason(field="", problem=message)
    if start is not None and start.line != mark.line:
        message += f" (it begins in line {start.line + 1})"
    return Reason(field="", problem=message, fix=_syntax_fix(text, mark), line=mark.line + 1)


def _unreadable_character(error: ReaderError, text: str) -> Reason:
    """Return the problem of a control character, which YAML forbids, or of half a surrogate
    pair."""
    found = _UNREADABLE.search(text)
    return Reason(
        field="",
        problem=f"is not YAML: {error.reason}",
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
    """Builds values from composed nodes, and collects the lines and the problems of the nodes."""

    scalars: Scalars
    lines: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[Reason] = field(default_factory=list[Reason])
    plain: dict[str, str] = field(default_factory=dict[str, str])
    _open: set[int] = field(default_factory=set[int])
    _built: int = 0

    def build(self, node: yaml.Node, path: str, depth: int) -> object:
        self._built += 1
        if depth > DEPTH_LIMIT or self._built > NODE_LIMIT:
            raise _UnsupportedYaml(
                f"the text expands to more than {NODE_LIMIT} values, or is nested too deeply", node
            )
        if id(node) in self._open:
            raise _UnsupportedYaml(f"{path} refers to itself", node)
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
            else:
                self._entry(entries, key, value, path, depth)
        return {**merged, **entries} if merged else entries

    def _entry(
        self,
        entries: dict[str, object],
        key: yaml.ScalarNode,
        value: yaml.Node,
        path: str,
        depth: int,
    ) -> None:
        name = self._key(key)
        if name in entries:
            self.problems.append(_duplicate(_join(path, name), _line(key)))
            if self.scalars != "yaml-1.1":
                return
        self.lines.setdefault(_join(path, name), _line(key))
        entries[name] = self.build(value, _join(path, name), depth + 1)

    def _key(self, key: yaml.ScalarNode) -> str:
        text = str(key.value)
        if key.tag != _PLAIN:
            return text
        return str(as_text(plain_scalars.yaml_1_1(text)))

    def _merged(self, node: yaml.Node, path: str, depth: int) -> dict[str, object]:
        """Return the entries of a merge key: of a mapping, or of a list of them, in which the first
        has precedence."""
        built = self.build(node, _join(path, "<<"), depth + 1)
        sources = cast(list[object], built) if isinstance(built, list) else [built]
        entries: dict[str, object] = {}
        for source in sources:
            if not isinstance(source, dict):
                message = "<< takes a mapping or a list of mappings"
                self.problems.append(
                    Reason(field=path, problem=message, value=source, line=_line(node))
                )
                continue
            for name, entry in cast(dict[str, object], source).items():
                entries.setdefault(name, entry)
        return entries

    def _scalar(self, node: yaml.ScalarNode, path: str) -> object:
        text = str(node.value)
        if self.scalars == "yaml-1.1":
            return self._scalar_1_1(node, text, path)
        self._check_tag(node, "str", path)
        if node.style:
            return text
        if text in plain_scalars.NULL:
            return None
        return plain_scalars.core(text) if self.scalars == "typed" else text

    def _scalar_1_1(self, node: yaml.ScalarNode, text: str, path: str) -> object:
        if node.tag != _PLAIN:
            self._check_tag(node, "str", path)
            return text
        if text in plain_scalars.NULL:
            return None
        value = plain_scalars.yaml_1_1(text)
        if not isinstance(value, str):
            self.plain[path] = text
        return value

    def _check_tag(self, node: yaml.Node, expected: str, path: str) -> None:
        if node.tag == _TAGS + expected:
            return
        tag = node.tag.replace(_TAGS, "!!")
        self.problems.append(
            Reason(
                field=path,
                problem="tags are not supported",
                value=tag,
                fix="remove it",
                line=_line(node),
            )
        )

    def _refuse_key(self, key: yaml.Node, path: str) -> None:
        self.problems.append(
            Reason(
                field=path,
                problem="a key must be text",
                fix="quote it; {{NAME}} as a key is a template value that was not replaced",
                line=_line(key),
            )
        )


def _is_null(key: yaml.ScalarNode) -> bool:
    return not key.style and key.value in plain_scalars.NULL


def _duplicate(path: str, line: int | None) -> Reason:
    return Reason(
        field=path,
        problem="duplicate key",
        value=path.rpartition(".")[2],
        fix="remove or rename one of them",
        line=line,
    )


def _zero_bytes(value: object, path: str, lines: Mapping[str, int]) -> Iterator[Reason]:
    """Yield a problem for every text with a zero byte, which no command, variable or file name can
    have."""
    if isinstance(value, dict):
        for name, entry in cast(dict[str, object], value).items():
            yield from _zero_bytes(entry, _join(path, name), lines)
            if "\0" in name:
                yield _zero_byte(path, lines)
    elif isinstance(value, list):
        for index, entry in enumerate(cast(list[object], value)):
            yield from _zero_bytes(entry, _join(path, str(index)), lines)
    elif isinstance(value, str) and "\0" in value:
        yield _zero_byte(path, lines)


def _zero_byte(path: str, lines: Mapping[str, int]) -> Reason:
    return Reason(field=path, problem="contains a zero byte", fix="remove it", line=lines.get(path))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
