"""Regular expressions that people write, in placement rules and for parameters.

They are matched in workflows, where Python's own engine, which can take for ever over one text,
would stop the Pool and with it every service. RE2 takes time in proportion to the text, whatever
the expression; it has no look-around and no references back.
"""

from typing import Any

import re2  # type: ignore[import-untyped]

_re2: Any = re2
_OPTIONS: Any = _re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """What is wrong with an expression."""


def check(pattern: str) -> None:
    """Raises PatternError for what is no expression."""
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether it matches the whole text. Raises PatternError."""
    try:
        return _compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:  # a text that is no text matches nothing
        return False


def _compiled(pattern: str) -> Any:
    try:
        return _re2.compile(pattern, _OPTIONS)
    except _re2.error as error:
        [said] = error.args
        raise PatternError(said.decode() if isinstance(said, bytes) else str(said)) from None
    except UnicodeEncodeError as error:
        raise PatternError(str(error)) from None
