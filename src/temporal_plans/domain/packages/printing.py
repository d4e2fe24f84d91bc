"""The texts of values: all parameters are stored as text.

Numbers are exact: an integer has all its digits, also where it was written as a float
(``1e6`` is ``1000000``).
"""

from collections.abc import Mapping
from typing import cast

_PLAIN_LIMIT = 1e21
"""From here floats are written with an exponent, as in JSON."""


def printed(value: object) -> str:
    """Return the text of a value of YAML: scalars as JSON has them, texts as they are, lists as
    ``[a b]`` and mappings as ``map[a:1 b:2]`` with sorted keys."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list | tuple):
        return f"[{' '.join(printed(item) for item in cast(list[object], value))}]"
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, object], value)
        pairs = (f"{key}:{printed(entry)}" for key, entry in sorted(entries.items()))
        return f"map[{' '.join(pairs)}]"
    return str(value)


def _float(number: float) -> str:
    if number.is_integer() and abs(number) < _PLAIN_LIMIT:
        return str(int(number))
    return repr(number)
