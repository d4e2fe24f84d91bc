"""What may be a name, and which name was probably meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from uuid import NAMESPACE_URL, uuid5

MAX_NAME = 200
"""Characters of a plan's, phase's or step's name. Three of them and the service's name make a
workflow id, of which Temporal allows 1,000."""

MAX_POD_STEP_NAME = 500
"""Step names of pods list all their tasks (``hello-0:[a, b]``), so they may be longer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def name_fault(name: str, limit: int = MAX_NAME) -> str | None:
    """Why this can't name a plan, a phase or a step, or None when it can."""
    if not name.strip():
        return "a name must not be empty"
    if "/" in name:
        return "a name must not contain '/': it separates the parts of workflow ids"
    if _CONTROL.search(name):
        return "a name must not contain control characters"
    if len(name) > limit:
        return f"a name must have at most {limit} characters, this has {len(name)}"
    return None


def bounded(name: str, limit: int = MAX_NAME) -> str:
    """The name itself, or its beginning and a mark of all of it: never more than ``limit``
    characters, and different names stay different."""
    if len(name) <= limit:
        return name
    mark = f"... {uuid5(NAMESPACE_URL, name).hex[:8]}"
    return name[: limit - len(mark)] + mark


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known words that are like an unknown one, as a question; empty when none is."""
    close = get_close_matches(word, sorted(set(known)), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown word: the close ones, else all of them."""
    options = sorted(set(known))
    if question := did_you_mean(word, options):
        return question
    return f"use one of: {', '.join(options)}" if options else ""
