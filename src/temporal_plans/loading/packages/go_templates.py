"""Go's text/template with the functions of packages, on ``gotpl``: the only module that imports it,
also for the nodes of syntax trees.

It runs in the process that calls it, so the caller bounds time and memory (``render_program``).
The functions are those of sprig 2.22 and ``toYaml``. A template is rendered again whenever a step
is retried, and must give the same text again: functions that read the clock, chance, the
environment or the network are refused, wherever they stand in the template.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from typing import Any, cast

from gotpl import (
    BudgetExceededError,
    Environment,
    ExecutionBudget,
    SandboxPolicy,
    SandboxViolationError,
    TemplateExecutionError,
    TemplateSyntaxError,
)
from gotpl.funcs.sprig import hermetic_text_func_map
from gotpl.parse.nodes import (
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
    VariableNode,
    WithNode,
)
from gotpl.parse.parser import parse_template
from gotpl.runtime.gofmt import sprintf
from gotpl.runtime.values import UNTYPED_NIL

from temporal_plans.loading.packages.go_yaml import to_yaml

__all__ = [
    "REFUSED",
    "ActionNode",
    "BlockNode",
    "CommandNode",
    "DotNode",
    "FieldNode",
    "IdentifierNode",
    "IfNode",
    "ListNode",
    "ParenthesizedNode",
    "ParsedTemplate",
    "PipeNode",
    "RangeNode",
    "StringNode",
    "TemplateCallNode",
    "TemplateFault",
    "VariableNode",
    "WithNode",
    "functions",
    "parse",
    "render_template",
]

OUTPUT_LIMIT = 4_000_000
"""Characters that one template may give."""

ITERATION_LIMIT = 200_000
"""Rounds of all ``range`` of one template together."""

CALL_LIMIT = 200_000
"""Calls of functions in one template."""

DEPTH_LIMIT = 1_000
"""Templates that call each other, at once."""

Function = Callable[..., object]


Place = tuple[int | None, int | None]
"""A line and a column, both from 1."""


class TemplateFault(Exception):
    """A template that can't be rendered: the problem, and its place where known.

    ``missing`` is the path of the missing key (``Params``, ``NODE_COUNT``), if that is the problem.
    """

    def __init__(
        self,
        problem: str,
        place: Place = (None, None),
        *,
        fix: str = "",
        missing: tuple[str, ...] = (),
    ) -> None:
        super().__init__(problem)
        self.problem, self.fix, self.missing = problem, fix, missing
        self.line, self.column = place


def parse(name: str, source: str) -> ParsedTemplate:
    """Return the syntax tree of a template, in which refused functions may stand.

    Raises TemplateFault.
    """
    try:
        return parse_template(source, name=name, functions=_function_names())
    except TemplateSyntaxError as error:
        text = str(error).removeprefix(f"template:{error.line}:{error.column}: ")
        raise TemplateFault(text, (error.line, error.column)) from error


def render_template(name: str, source: str, data: Mapping[str, object]) -> str:
    """Return the text of a template.

    ``name`` is its own name in ``define`` and ``template``; ``data`` what ``.`` is: text, numbers,
    booleans, None, lists and mappings.

    Raises TemplateFault. MemoryError and RecursionError pass through.
    """
    parsed = parse(name, source)
    _refuse_functions(source, parsed)
    template = _environment().from_string(source, name=name)
    try:
        return template.render(_fields(data, ()))
    except TemplateExecutionError as error:
        raise _fault(error, source, parsed) from error


_BUDGET = ExecutionBudget(
    max_output_chars=OUTPUT_LIMIT,
    max_iterations=ITERATION_LIMIT,
    max_template_depth=DEPTH_LIMIT,
    max_function_calls=CALL_LIMIT,
)

_SMALLER = f"make less in one template: {OUTPUT_LIMIT:,} characters in {ITERATION_LIMIT:,} rounds"

_UNSTABLE = "it does not give the same text twice"
_OUTSIDE = "it reads what is outside of the package"
_CERTIFICATE = "it makes another key each time; make keys in a Pipe task"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("env", "expandenv", "getHostByName"), _OUTSIDE),
    **dict.fromkeys(("base", "dir", "clean", "ext", "isAbs"), _OUTSIDE),
    **dict.fromkeys(("osBase", "osDir", "osClean", "osExt", "osIsAbs"), _OUTSIDE),
    **dict.fromkeys(("now", "ago", "date", "dateInZone", "date_in_zone", "dateModify"), _UNSTABLE),
    **dict.fromkeys(("date_modify", "mustDateModify", "must_date_modify"), _UNSTABLE),
    **dict.fromkeys(("htmlDate", "htmlDateInZone", "durationRound", "unixEpoch"), _UNSTABLE),
    **dict.fromkeys(("toDate", "mustToDate"), _UNSTABLE),
    **dict.fromkeys(("uuidv4", "shuffle", "randInt", "randBytes", "randAlpha"), _UNSTABLE),
    **dict.fromkeys(("randAlphaNum", "randAscii", "randNumeric"), _UNSTABLE),
    **dict.fromkeys(("bcrypt", "htpasswd", "encryptAES", "decryptAES"), _CERTIFICATE),
    **dict.fromkeys(("derivePassword", "buildCustomCert", "genPrivateKey", "genCA"), _CERTIFICATE),
    **dict.fromkeys(("genCAWithKey", "genSelfSignedCert", "genSignedCert"), _CERTIFICATE),
    **dict.fromkeys(("genSelfSignedCertWithKey", "genSignedCertWithKey"), _CERTIFICATE),
}
"""Functions that no template may use, and why."""

_WHOLE = ("int", "int64", "add", "add1", "sub", "mul", "div", "mod", "min", "max", "biggest")
"""Functions of sprig that take any value for a whole number."""

_COLLECTING = ("list", "tuple", "dict", "set", "append", "push", "prepend")
"""Functions that put their arguments into lists and mappings."""

_DECIMAL = re.compile(r"[-+]?[0-9]+", re.ASCII)

_VERSION_FIELDS = ("Major", "Minor", "Patch")
_VERSION_METHODS = ("Prerelease", "Metadata", "Original", "Compare")


@cache
def functions() -> Mapping[str, Function]:
    """Return the functions of templates by name, but those of Go itself."""
    functions: dict[str, Function] = {
        name: function for name, function in hermetic_text_func_map().items() if name not in REFUSED
    }
    functions |= {name: _of_decimals(functions[name]) for name in _WHOLE}
    functions |= {name: _with_none(functions[name]) for name in _COLLECTING}
    return {**functions, "printf": _printf, "print": _print, "println": _println, "toYaml": to_yaml}


def _of_decimals(function: Function) -> Function:
    """Return a function that reads texts as decimal numbers: sprig 2 takes "010" for 10, and what
    is not a number for 0, where sprig 3 reads octal and hexadecimal."""

    @wraps(function)
    def call(*arguments: object) -> object:
        return function(*(_decimal(each) if isinstance(each, str) else each for each in arguments))

    return call


def _with_none(function: Function) -> Function:
    """Return a function that collects the word ``nil`` as None, as which it stands in data."""

    @wraps(function)
    def call(*arguments: object) -> object:
        return function(*(None if each is UNTYPED_NIL else each for each in arguments))

    return call


def _printf(form: str, *values: object) -> str:
    return sprintf(form, *map(_nil, values))


def _print(*values: object) -> str:
    """Return the values with a blank between two of which neither is a text."""
    parts: list[str] = []
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(values[index - 1], str):
            parts.append(" ")
        parts.append(sprintf("%v", _nil(value)))
    return "".join(parts)


def _println(*values: object) -> str:
    return " ".join(sprintf("%v", _nil(value)) for value in values) + "\n"


def _nil(value: object) -> object:
    """Return what gotpl prints as ``<nil>``; the None of data would be ``<no value>``, which Go
    prints outside of functions only."""
    return UNTYPED_NIL if value is None else value


def _decimal(text: str) -> int:
    value = int(text) if _DECIMAL.fullmatch(text) and len(text) < 30 else 0
    return value if -(2**63) <= value < 2**63 else 0


@cache
def _function_names() -> frozenset[str]:
    return frozenset(functions()) | frozenset(REFUSED)


@cache
def _environment() -> Environment:
    # without a policy a template would reach the attributes of Python's values
    policy = SandboxPolicy(
        allow_attributes=_VERSION_FIELDS,
        allow_methods=_VERSION_METHODS,
        allow_functions=functions(),
        max_template_chars=10_000_000,
        default_budget=_BUDGET,
    )
    return Environment(functions=functions(), missing_key="error", sandbox=policy, budget=_BUDGET)


class _MissingKey(TemplateExecutionError):
    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(f"there is no {''.join(f'.{key}' for key in path)}")
        self.path = path


class _Fields(dict[str, object]):
    """A mapping of the data, which knows its path to say what is missing."""

    path: tuple[str, ...] = ()

    def __gotemplate_lookup__(self, key: str) -> object:
        if key not in self:
            raise _MissingKey((*self.path, key))
        return self[key]


def _fields(value: object, path: tuple[str, ...]) -> object:
    """Return a copy of the data, so that ``set`` and ``merge`` change nothing but this template."""
    if isinstance(value, Mapping):
        mapping = cast(Mapping[str, object], value)
        known = _Fields({key: _fields(entry, (*path, key)) for key, entry in mapping.items()})
        known.path = path
        return known
    if isinstance(value, list | tuple):
        items = cast(list[object], value)
        return [_fields(item, (*path, str(index))) for index, item in enumerate(items)]
    return value


def _refuse_functions(source: str, parsed: ParsedTemplate) -> None:
    for node in _nodes(parsed):
        if isinstance(node, IdentifierNode) and node.name in REFUSED:
            raise TemplateFault(
                f"the function {node.name!r} is not available: {REFUSED[node.name]}",
                _place(source, node.start),
                fix="use a parameter in its place",
            )


def _fault(error: TemplateExecutionError, source: str, parsed: ParsedTemplate) -> TemplateFault:
    place = error.line, error.column
    if isinstance(error, _MissingKey):
        start = _start_of(error.path, parsed, since=error.position or 0)
        place = place if start is None else _place(source, start)
        return TemplateFault(error.message, place, missing=error.path)
    if isinstance(error, BudgetExceededError):
        return TemplateFault(error.message, place, fix=_SMALLER)
    if isinstance(error, SandboxViolationError):
        return TemplateFault("texts, numbers and lists have no fields", place)
    if isinstance(error.__cause__, MemoryError | RecursionError):
        raise error.__cause__
    return TemplateFault(error.message, place)


def _start_of(path: tuple[str, ...], parsed: ParsedTemplate, *, since: int) -> int | None:
    """Return where the expression stands that names a path: the error has the place of its
    pipeline."""
    starts = (
        node.start
        for node in _nodes(parsed)
        if node.start >= since and path[-1] in getattr(node, "fields", ())
    )
    return min(starts, default=None)


def _nodes(node: Any) -> Iterator[Any]:
    """Yield all nodes below one, in no order of use."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, tuple):
            waiting += current
        elif is_dataclass(current):
            if hasattr(current, "start"):
                yield current
            waiting += [getattr(current, field.name) for field in fields(current)]


def _place(source: str, position: int) -> Place:
    """Return the place of a position in bytes."""
    before = source.encode()[:position].decode(errors="replace")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
