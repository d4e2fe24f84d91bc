"""Versions of packages, of applications and of Kubernetes."""

import re

_PART = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(rf"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-({_PART}))?(?:\+({_PART}))?", re.ASCII)


def is_version(text: str) -> bool:
    """Return whether a text is a semantic version. One to three numbers are enough, and it may
    begin with ``v``: ``1.15``, ``v2``, ``3.6.2-rc.1+linux``."""
    return _VERSION.fullmatch(text) is not None
