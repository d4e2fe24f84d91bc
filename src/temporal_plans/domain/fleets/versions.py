"""Versions of releases, their order, and the bounds of ranges.

Five kinds: release ``1.2.3``, release snapshot ``1.2.3-4-gabc``, candidate ``1.2.3-rc1``, candidate
snapshot ``1.2.3-rc1-4-gabc``, and any other ``1.2.3-word.dirty``, which has no order.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, StringConstraints

NUMBER_LIMIT = 2_147_483_647
"""The greatest number in a version."""

_ORDERABLE = re.compile(
    r"([0-9]{1,10})\.([0-9]{1,10})\.([0-9]{1,10})(?:-rc([0-9]{1,10}))?(?:-([0-9]{1,10})-g([0-9a-f]{1,64}))?"
)
_OTHER = re.compile(r"([0-9]{1,10})\.([0-9]{1,10})\.([0-9]{1,10})(?:-[a-z0-9-]+)?(?:\.dirty)?")
_MATCHER = re.compile(r"x\.x\.x|([0-9]{1,10})\.x\.x|([0-9]{1,10})\.([0-9]{1,10})\.x")


class VersionKind(StrEnum):
    RELEASE = "release"
    RELEASE_SNAPSHOT = "release-snapshot"
    CANDIDATE = "candidate"
    CANDIDATE_SNAPSHOT = "candidate-snapshot"
    OTHER = "other"


class Version(NamedTuple):
    """A version. ``key`` orders versions: (major, minor, patch, class, a, b), a candidate below its
    release and a release below its snapshots; the hash of a snapshot does not count. It is None for
    a version without an order."""

    text: str
    kind: VersionKind
    base: tuple[int, int, int]
    key: tuple[int, int, int, int, int, int] | None

    @property
    def orderable(self) -> bool:
        return self.key is not None


@lru_cache(maxsize=100_000)
def parse_version(text: str) -> Version | None:
    """Return the version that a text is; None for any other text."""
    if match := _ORDERABLE.fullmatch(text):
        return _orderable(text, match)
    if match := _OTHER.fullmatch(text):
        base = (int(match[1]), int(match[2]), int(match[3]))
        return None if max(base) > NUMBER_LIMIT else Version(text, VersionKind.OTHER, base, None)
    return None


def _orderable(text: str, match: re.Match[str]) -> Version | None:
    base = (int(match[1]), int(match[2]), int(match[3]))
    candidate = None if match[4] is None else int(match[4])
    snapshot = None if match[5] is None else int(match[5])
    if max(*base, candidate or 0, snapshot or 0) > NUMBER_LIMIT:
        return None
    if candidate is not None:
        kind = VersionKind.CANDIDATE if snapshot is None else VersionKind.CANDIDATE_SNAPSHOT
        return Version(
            text, kind, base, (*base, 0, candidate, -1 if snapshot is None else snapshot)
        )
    if snapshot is not None:
        return Version(text, VersionKind.RELEASE_SNAPSHOT, base, (*base, 2, snapshot, 0))
    return Version(text, VersionKind.RELEASE, base, (*base, 1, 0, 0))


def compare(one: Version, other: Version) -> int:
    """Return -1, 0 or 1, as ``one`` is older than, as old as or newer than ``other``. Both must be
    orderable."""
    if one.key is None or other.key is None:
        raise ValueError(f"{one.text} and {other.text} have no order")
    return (one.key > other.key) - (one.key < other.key)


@lru_cache(maxsize=10_000)
def _bound(maximum: str) -> tuple[int, ...] | Version | None:
    """Return a maximum as the numbers that it fixes (``9.6.x``: 9 and 6), or as a version."""
    if match := _MATCHER.fullmatch(maximum):
        return tuple(int(number) for number in match.groups() if number is not None)
    version = parse_version(maximum)
    return version if version and version.kind is VersionKind.RELEASE else None


@lru_cache(maxsize=200_000)
def in_range(version: str, minimum: str | None, maximum: str | None) -> bool:
    """Return whether a version is in a range; one without an order is in none.

    ``minimum`` is any orderable version, inclusive: 1.0.0 does not admit 1.0.0-rc1. ``maximum`` is
    ``x.x.x``, ``1.x.x``, ``1.2.x`` or ``1.2.3``; the first three compare the numbers that they fix,
    the last the whole order: 1.2.3 admits 1.2.3-rc4 and not 1.2.3-4-gabc. None is open.
    """
    found = parse_version(version)
    if found is None or found.key is None:
        return False
    if minimum is not None:
        least = parse_version(minimum)
        if least is None or least.key is None or found.key < least.key:
            return False
    if maximum is None:
        return True
    bound = _bound(maximum)
    if isinstance(bound, Version):
        return bound.key is not None and found.key <= bound.key
    return bound is not None and found.base[: len(bound)] <= bound


def _checked_version(text: str) -> str:
    if parse_version(text) is None:
        raise ValueError("must be a version such as 1.2.3, 1.2.3-rc1 or 1.2.3-4-gabc")
    return text


def _checked_orderable(text: str) -> str:
    version = parse_version(text)
    if version is None or version.key is None:
        raise ValueError("must be a version with an order: 1.2.3, 1.2.3-rc1 or a snapshot of those")
    return text


def _checked_matcher(text: str) -> str:
    if _bound(text) is None:
        raise ValueError("must be a bound such as 1.2.3, 1.2.x, 1.x.x or x.x.x")
    return text


_Short = StringConstraints(max_length=120)
VersionText = Annotated[str, _Short, AfterValidator(_checked_version)]
"""Any version."""
OrderableVersion = Annotated[str, _Short, AfterValidator(_checked_orderable)]
"""A version with an order."""
VersionBound = Annotated[str, _Short, AfterValidator(_checked_matcher)]
"""The maximum of a range; see ``in_range``."""
