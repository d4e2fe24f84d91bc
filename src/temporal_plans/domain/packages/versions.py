"""Versions of packages, of applications and of Kubernetes."""

import re

_PART = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(rf"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-({_PART}))?(?:\+({_PART}))?", re.ASCII)


def is_version(text: str) -> bool:
    """Return whether a text is a semantic version. One to three numbers are enough, and it may
    begin with ``v``: ``1.15``, ``v2``, ``3.6.2-rc.1+linux``."""
    return _VERSION.fullmatch(text) is not None


def is_older(found: str, needed: str) -> bool:
    """Return whether a version is below another one by its first two numbers: ``v1.24.9`` is below
    ``1.25.3``, and ``1.25.0`` is not. A text that is no version is never below."""
    pair = [_VERSION.match(text) for text in (found, needed)]
    first, second = [(int(one[1]), int(one[2] or 0)) if one else None for one in pair]
    return first is not None and second is not None and first < second


def is_lower(text: str, other: str) -> bool:
    """Return whether a version precedes another; False where one of them is no version."""
    one, two = _VERSION.fullmatch(text), _VERSION.fullmatch(other)
    return one is not None and two is not None and _order(one) < _order(two)


_Part = tuple[int, int, str]


def _order(version: re.Match[str]) -> tuple[list[_Part], bool, list[_Part]]:
    """Return a key: numbers, then a release after its pre-releases, then the parts of those."""
    numbers = [_part(version[group] or "0") for group in (1, 2, 3)]
    return numbers, version[4] is None, [_part(part) for part in (version[4] or "").split(".")]


def _part(text: str) -> _Part:
    """Return a key for a part: numbers by size, which their length and digits give without a
    limit, before words."""
    digits = text.lstrip("0")
    return (0, len(digits), digits) if text.isdigit() else (1, 0, text)
