"""Text of bounded length."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

LONGEST_TEXT = 1000
"""Characters kept of a text from outside: states are carried in payloads of bounded size."""


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the text, or its beginning and ``...``: never more than ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: max(limit - 3, 0)]}..."[:limit]


def listed(texts: Sequence[str], limit: int, separator: str = ", ") -> str:
    """Return the texts in a line: all, or the first ``limit`` and the number of the others. A few
    above the limit are listed, too: "and 1 more" is no shorter than the name."""
    if len(texts) <= limit + max(1, limit // 2):
        return separator.join(texts)
    return f"{separator.join(texts[:limit])} and {len(texts) - limit} more"


_VALUE_LIMIT = 80
"""Characters of a value in a message: the field's path says where to find all of it."""


def shown(value: object) -> str:
    """Return a value as JSON on one line, cut when long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _VALUE_LIMIT else f"{text[: _VALUE_LIMIT - 3]}..."


def as_text(value: object) -> object:
    """Return scalars as text, everything else as it is: environment variables are texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, int | float) else value
    except ValueError:  # Python refuses to print numbers of thousands of digits
        return value


def as_texts(value: object) -> object:
    """Return a mapping with its scalars as texts; everything else as it is."""
    if not isinstance(value, Mapping):
        return value
    return {name: as_text(entry) for name, entry in cast(Mapping[str, object], value).items()}
