"""Limits and checks of names, and suggestions for unknown names."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from uuid import NAMESPACE_URL, uuid5

from temporal_plans.domain.values.text import listed

MAX_NAME = 200
"""Characters of a plan's, phase's or step's name. Three of them and the service's name make a
workflow id, which Temporal limits to 1,000 characters."""

MAX_POD_STEP_NAME = 500
"""Step names of pods list all their tasks (``hello-0:[a, b]``), so they may be longer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def name_fault(name: str, limit: int = MAX_NAME) -> str | None:
    """Return why a text can't name a plan, a phase or a step; None when it can."""
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
    """Return the name, or its beginning and a hash of all of it: never more than ``limit``
    characters, and different names stay different."""
    if len(name) <= limit:
        return name
    suffix = f"... {uuid5(NAMESPACE_URL, name).hex[:8]}"
    return name[: limit - len(suffix)] + suffix


SUGGESTIONS_LIMIT = 10
"""The number of known names that are listed when none resembles the given name."""

DNS_LABEL_LIMIT = 63
"""Characters of one label of a DNS name."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the known words that resemble an unknown word, as a question; empty without any."""
    names = sorted(set(known))
    close = [name for name in names if name.casefold() == word.casefold()]
    close = close or get_close_matches(word, names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown word: the close words, else the first of all;
    empty when nothing is known."""
    options = list(dict.fromkeys(known))
    if question := did_you_mean(word, options):
        return question
    if not options:
        return ""
    return f"use one of: {listed(sorted(options), SUGGESTIONS_LIMIT)}"
