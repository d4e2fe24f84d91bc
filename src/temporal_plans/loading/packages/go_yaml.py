"""YAML as Go's ``yaml.v2`` writes it: the function ``toYaml`` of package templates.

PyYAML's emitter and Go's are both libyaml's, so this module says only what differs: which texts are
quoted (YAML 1.1 as Go resolves it), which characters are escaped, how numbers are written, and in
which order the keys of a mapping stand. Lines are never folded.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, cast

import yaml
from yaml.emitter import ScalarAnalysis

_EXPONENTS = (-4, 6)
"""Go prints a float64 without an exponent from 1e-4 to below 1e6."""

_LONGEST_SIMPLE_KEY = 128
"""Bytes."""

_BREAK = re.compile("[\r\n\x85\u2028\u2029]")

_WORDS = frozenset(
    {
        *("", "~", "null", "Null", "NULL"),
        *("y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO"),
        *("true", "True", "TRUE", "false", "False", "FALSE"),
        *("on", "On", "ON", "off", "Off", "OFF"),
        *(".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF"),
        *("+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"),
    }
)
"""Texts that Go reads as a boolean, as null or as a number."""

_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d?-\d\d?)"
    r"(?: (\d\d?:\d\d?:\d\d?)(?:[.,]\d+)?"
    r"|[Tt](\d\d?:\d\d?:\d\d?)(?:[.,]\d+)?(?:Z|[-+](?:[01]\d|2[0-4]):[0-5]\d))?",
    re.ASCII,
)


def to_yaml(value: object) -> str:
    """Return text, a number, a boolean, None, or lists and mappings of them as YAML in block form,
    with the final line break.

    Raises ValueError for anything else.
    """
    return yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        width=math.inf,
    )


def float_text(number: float) -> str:
    """Return a finite float64 as Go prints it: its shortest digits, ``1e+06`` from a million on."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    power = len(digits) + cast(int, exponent) - 1 if number else 0
    text = "".join(map(str, digits))
    lead = "-" if sign else ""
    lowest, highest = _EXPONENTS
    return lead + (_plain(text, power) if lowest <= power < highest else _scientific(text, power))


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return f"0.{'0' * (-power - 1)}{digits}"
    whole, fraction = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def _scientific(digits: str, power: int) -> str:
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


_LIST, _MAPPING = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"
_TEXT = "tag:yaml.org,2002:str"
"""The tag of all scalars here: this module decides what is quoted, not PyYAML's resolver."""


class _Dumper(yaml.SafeDumper):
    """PyYAML's emitter with Go's choices."""

    yaml_representers = {}
    yaml_multi_representers = {}

    def ignore_aliases(self, data: object) -> bool:
        return True  # Go writes a value that stands in two places twice

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _TEXT
        return _LIST if kind is yaml.SequenceNode else _MAPPING

    def write_plain(self, text: str, split: bool = True) -> None:
        super().write_plain(text, split)
        self.open_ended = False  # no "..." after a scalar

    def write_literal(self, text: str) -> None:
        super().write_literal(text)
        self.open_ended = False

    def check_simple_key(self) -> bool:
        """Return whether a key stands before its colon without ``? ``."""
        assert isinstance(self.event, yaml.ScalarEvent)  # all keys are texts
        key = self.event.value
        return len(key.encode()) <= _LONGEST_SIMPLE_KEY and not _BREAK.search(key)

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        analysis = super().analyze_scalar(scalar)
        if any(map(_is_escaped, scalar)):
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis


def _is_escaped(character: str) -> bool:
    """Return whether Go writes a character as an escape where PyYAML writes it as it is."""
    return character == "\x85" or character >= "\U00010000"


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style: str | None = "|"
    else:
        style = '"' if _is_something_else(text) else None
    return dumper.represent_scalar(_TEXT, text, style=style)


def _number(dumper: _Dumper, number: float) -> yaml.ScalarNode:
    if math.isnan(number):
        text = ".nan"
    elif math.isinf(number):
        text = ".inf" if number > 0 else "-.inf"
    else:
        text = float_text(number)
    return dumper.represent_scalar(_TEXT, text)


def _integer(dumper: _Dumper, number: int) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TEXT, str(number))


def _boolean(dumper: _Dumper, value: bool) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TEXT, "true" if value else "false")


def _nothing(dumper: _Dumper, _: None) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TEXT, "null")


def _list(dumper: _Dumper, items: list[object]) -> yaml.SequenceNode:
    return dumper.represent_sequence(_LIST, items, flow_style=not items)


def _mapping(dumper: _Dumper, mapping: Mapping[str, object]) -> yaml.MappingNode:
    pairs = [(key, mapping[key]) for key in sorted(mapping, key=cmp_to_key(_compared))]
    return dumper.represent_mapping(_MAPPING, pairs, flow_style=not pairs)


def _unknown(dumper: _Dumper, value: object) -> Any:
    raise ValueError(f"a value of type {type(value).__name__} has no YAML")


def _represent(kind: type, representer: Any) -> None:
    _Dumper.add_representer(kind, representer)
    _Dumper.add_multi_representer(kind, representer)  # its subclasses


_represent(str, _text)
_represent(bool, _boolean)
_represent(int, _integer)
_represent(float, _number)
_represent(type(None), _nothing)
_represent(list, _list)
_represent(tuple, _list)
_represent(dict, _mapping)
_Dumper.add_multi_representer(object, _unknown)


def _is_something_else(text: str) -> bool:
    """Return whether YAML 1.1, as Go reads it, takes the unquoted text for anything but text."""
    if text in _WORDS or _BASE_60.fullmatch(text) or _is_time(text):
        return True
    if not text[0].isdigit() and text[0] not in "+-.":
        return False
    if text[0] == ".":
        return _is_float(text)
    digits = text.replace("_", "")
    return _INTEGER.fullmatch(digits) is not None or _is_float(digits)


def _is_float(text: str) -> bool:
    return _FLOAT.fullmatch(text) is not None and math.isfinite(float(text))


def _is_time(text: str) -> bool:
    matched = _TIMESTAMP.fullmatch(text)
    if matched is None:
        return False
    day, time, zoned = matched.groups()
    try:
        datetime.strptime(f"{day} {time or zoned or '0:0:0'}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return False
    return True


def _compared(one: str, other: str) -> int:
    """Compare two keys as Go orders them: letters after everything else, runs of digits by their
    value, so that ``a9`` stands before ``a10``."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left == right:
            continue
        if left.isalpha() or right.isalpha():
            if left.isalpha() and right.isalpha():
                return -1 if left < right else 1
            return -1 if right.isalpha() else 1
        return _compared_at(one, other, index)
    return len(one) - len(other)


def _compared_at(one: str, other: str, index: int) -> int:
    """Compare two keys that differ from ``index`` on, where neither has a letter."""
    left, right = _digits(one, index), _digits(other, index)
    lead = "1" if "0" in (one[index], other[index]) and _follows_number(one, index) else ""
    values = _int64(lead + left), _int64(lead + right)
    for a, b in (values, (len(left), len(right)), (ord(one[index]), ord(other[index]))):
        if a != b:
            return -1 if a < b else 1
    return 0


def _int64(digits: str) -> int:
    return (int(digits or "0") + 2**63) % 2**64 - 2**63  # as it overflows


def _digits(text: str, start: int) -> str:
    end = start
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[start:end]


def _follows_number(text: str, index: int) -> bool:
    """Return whether digits that are not all zero stand directly before ``index``."""
    start = index
    while start > 0 and text[start - 1].isdecimal():
        start -= 1
    return text[start:index].strip("0") != ""
