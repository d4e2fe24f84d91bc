"""Regular expressions that users write, in placement rules and for parameters.

They are matched in workflows, where Python's own engine, which can take exponential time, would
stop the Pool and with it every service. RE2 takes time in proportion to the text, whatever
the expression; it has neither look-around nor back-references.
"""

from typing import Any

import re2  # type: ignore[import-untyped]

_re2: Any = re2
_OPTIONS: Any = _re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """An expression is invalid; the text says why."""


def check(pattern: str) -> None:
    """Raise PatternError for an invalid expression."""
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether the expression matches the whole text. Raises PatternError."""
    try:
        return _compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:  # a text with lone surrogates matches nothing
        return False


def _compiled(pattern: str) -> Any:
    try:
        return _re2.compile(pattern, _OPTIONS)
    except _re2.error as error:
        [detail] = error.args
        text = detail.decode() if isinstance(detail, bytes) else str(detail)
        raise PatternError(text) from None
    except UnicodeEncodeError as error:
        raise PatternError(str(error)) from None
