"""What templates refer to, found in their syntax trees.

The dot is followed: inside ``range`` and ``with`` it is another value, and `$` stays the root.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from temporal_plans.domain.packages.template_use import TemplateUse
from temporal_plans.loading.packages.go_templates import (
    ActionNode,
    BlockNode,
    CommandNode,
    DotNode,
    FieldNode,
    IdentifierNode,
    IfNode,
    ListNode,
    ParenthesizedNode,
    ParsedTemplate,
    PipeNode,
    RangeNode,
    StringNode,
    TemplateCallNode,
    TemplateFault,
    VariableNode,
    WithNode,
    parse,
)

_ROOT = "$"
_LOOKUPS = frozenset({"index", "get", "hasKey", "dig"})
"""Functions that take a mapping and the name of an entry, which may be absent."""


class _Kind(Enum):
    """What a value is, as far as it matters."""

    ROOT = auto()
    PARAMS = auto()
    PIPES = auto()
    OTHER = auto()


_OF_ROOT = {"Params": _Kind.PARAMS, "Pipes": _Kind.PIPES}
_Scope = dict[str, _Kind]


def template_use(source: str) -> TemplateUse:
    """Return what a template refers to; of one with an error of syntax, the error."""
    try:
        parsed = parse("", source)
    except TemplateFault as fault:
        return TemplateUse(fault=(fault.problem, fault.line))
    except RecursionError:
        return _TOO_DEEP
    walk = _Walk(_ends_of_lines(source), parsed)
    try:
        walk.block(parsed.root, _Kind.ROOT, {_ROOT: _Kind.ROOT})
    except RecursionError:
        return _TOO_DEEP
    return TemplateUse(
        roots=walk.roots,
        parameters=walk.found[_Kind.PARAMS],
        pipes=walk.found[_Kind.PIPES],
        looked_up=frozenset(walk.looked_up),
        all_parameters=_Kind.PARAMS in walk.whole,
        all_pipes=_Kind.PIPES in walk.whole,
    )


_TOO_DEEP = TemplateUse(fault=("is nested too deeply", None))


def _ends_of_lines(source: str) -> list[int]:
    """Return the positions of the line breaks, in bytes."""
    return [found.start() for found in re.finditer(b"\n", source.encode())]


@dataclass
class _Walk:
    line_ends: Sequence[int]
    parsed: ParsedTemplate
    roots: dict[str, int] = field(default_factory=dict[str, int])
    found: dict[_Kind, dict[str, int]] = field(
        default_factory=lambda: {_Kind.PARAMS: {}, _Kind.PIPES: {}}
    )
    looked_up: set[str] = field(default_factory=set[str])
    whole: set[_Kind] = field(default_factory=set[_Kind])
    _called: set[tuple[str, _Kind]] = field(default_factory=set[tuple[str, _Kind]])

    def block(self, nodes: ListNode | None, dot: _Kind, scope: _Scope) -> None:
        """Walk the nodes of a block, which has variables of its own."""
        if nodes is None:
            return
        inner = dict(scope)
        for node in nodes.nodes:
            self._node(node, dot, inner)

    def _node(self, node: object, dot: _Kind, scope: _Scope) -> None:
        match node:
            case ActionNode():
                kind = self._pipe(node.pipeline, dot, scope)
                if not node.pipeline.declarations:
                    self._consume(kind)
            case IfNode():
                inner = dict(scope)
                self._pipe(node.pipeline, dot, inner)
                self.block(node.body, dot, inner)
                self.block(node.else_body, dot, inner)
            case WithNode():
                inner = dict(scope)
                kind = self._pipe(node.pipeline, dot, inner)
                self.block(node.body, kind, inner)
                self.block(node.else_body, dot, inner)
            case RangeNode():
                inner = dict(scope)
                self._consume(self._pipe(node.pipeline, dot, inner))
                inner |= {one.name: _Kind.OTHER for one in node.pipeline.declarations}
                self.block(node.body, _Kind.OTHER, inner)
                self.block(node.else_body, dot, inner)
            case TemplateCallNode():
                kind = _Kind.OTHER
                if node.pipeline is not None:
                    kind = self._pipe(node.pipeline, dot, scope)
                self._call(node.name, kind)
            case BlockNode():
                kind = self._pipe(node.pipeline, dot, scope)
                self.block(node.body, kind, {_ROOT: kind})
            case _:
                pass

    def _call(self, name: str, kind: _Kind) -> None:
        if (name, kind) in self._called:
            return
        self._called.add((name, kind))
        for definition in self.parsed.definitions:
            if definition.name == name:
                self.block(definition.body, kind, {_ROOT: kind})

    def _pipe(self, pipe: PipeNode, dot: _Kind, scope: _Scope) -> _Kind:
        """Return what a pipeline gives, and keep it in the variables that it declares."""
        kind = _Kind.OTHER
        for number, command in enumerate(pipe.commands):
            if number:
                self._consume(kind)
            kind = self._command(command, dot, scope)
        for variable in pipe.declarations:
            known = scope.get(variable.name, kind) if pipe.is_assignment else kind
            scope[variable.name] = kind if known is kind else _Kind.OTHER
        return kind

    def _command(self, command: CommandNode, dot: _Kind, scope: _Scope) -> _Kind:
        first, *rest = command.arguments
        if not isinstance(first, IdentifierNode):
            for argument in rest:
                self._consume(self._term(argument, dot, scope))
            return self._term(first, dot, scope)
        kinds = [self._term(argument, dot, scope) for argument in rest]
        if first.name in _LOOKUPS and len(rest) > 1:
            name = next((one for one in rest if isinstance(one, StringNode)), None)
            if name is not None and kinds[0] in self.found:
                self.looked_up.add(name.value)
                return _Kind.OTHER
        for kind in kinds:
            self._consume(kind)
        return _Kind.OTHER

    def _term(self, term: object, dot: _Kind, scope: _Scope) -> _Kind:
        match term:
            case DotNode():
                return dot
            case FieldNode():
                return self._fields(dot, term.fields, term.start)
            case VariableNode():
                kind = scope.get(term.name, _Kind.OTHER)
                return self._fields(kind, term.fields, term.start)
            case ParenthesizedNode():
                kind = self._pipe(term.pipeline, dot, scope)
                return self._fields(kind, term.fields, term.start)
            case _:
                return _Kind.OTHER

    def _fields(self, kind: _Kind, fields: tuple[str, ...], start: int) -> _Kind:
        """Return what a chain of fields of a value is, and note the fields that matter."""
        for name in fields:
            if kind is _Kind.ROOT:
                self.roots.setdefault(name, self._line(start))
                kind = _OF_ROOT.get(name, _Kind.OTHER)
            elif kind in self.found:
                self.found[kind].setdefault(name, self._line(start))
                kind = _Kind.OTHER
        return kind

    def _consume(self, kind: _Kind) -> None:
        """Note that a whole mapping is printed, ranged over, or handed to a function."""
        if kind is _Kind.ROOT:
            self.whole |= {_Kind.PARAMS, _Kind.PIPES}
        elif kind in self.found:
            self.whole.add(kind)

    def _line(self, position: int) -> int:
        return bisect_left(self.line_ends, position) + 1
