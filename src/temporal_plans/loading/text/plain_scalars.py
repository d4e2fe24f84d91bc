"""The types of plain scalars (those without quotes) in YAML, by two rules."""

import re

NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_TRUE_11 = _TRUE | {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE_11 = _FALSE | {"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_INT_11 = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_OCTAL_11 = re.compile(r"([-+]?0)([0-7]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGITS_LIMIT = 100


def core(text: str) -> bool | int | float | str:
    """Return a plain scalar that is not null, by the core schema of YAML 1.2."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text) and len(text) < _DIGITS_LIMIT:
        return int(text)
    if _BASED.fullmatch(text) and len(text) < _DIGITS_LIMIT:
        return int(text, 0)
    return _float(text)


def yaml_1_1(text: str) -> bool | int | float | str:
    """Return a plain scalar that is not null, by YAML 1.1 as Go programs read it.

    ``y`` and ``off`` are booleans; ``010`` is 8, ``0o17`` 15 and ``1_000`` 1000; ``12:30``,
    ``2020-01-01`` and ``=`` are texts. Integers are exact, whatever their length.
    """
    if text in _TRUE_11 or text in _FALSE_11:
        return text in _TRUE_11
    if not text or text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _INT_11.fullmatch(digits) and len(digits) < _DIGITS_LIMIT:
        octal = _OCTAL_11.fullmatch(digits)
        return int(f"{octal[1]}o{octal[2]}" if octal else digits, 0)
    found = _float(digits)
    return found if isinstance(found, float) else text


def _float(text: str) -> float | str:
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text
