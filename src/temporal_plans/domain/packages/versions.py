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
