"""Versions: their kinds, their order, ranges."""

import random

import pytest
from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.fleets.versions import (
    VersionBound,
    VersionKind,
    compare,
    in_range,
    parse_version,
)

CHAIN = (
    "1.0.0-rc1",
    "1.0.0-rc2",
    "1.0.0-rc2-4-gabc123",
    "1.0.0",
    "1.0.1",
    "2.0.0",
    "2.0.0-3-gabc123",
    "2.1.0-rc1",
    "2.1.0",
)


def test_t200_the_documented_chain_is_in_order() -> None:
    versions = [parse_version(text) for text in CHAIN]
    shuffled = random.Random(1).sample(versions, len(versions))
    keys = [one.key for one in versions if one is not None and one.key is not None]
    assert len(keys) == len(CHAIN)
    assert sorted(shuffled, key=lambda one: one.key if one and one.key else ()) == versions


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.2.3", VersionKind.RELEASE),
        ("1.2.3-4-gabc", VersionKind.RELEASE_SNAPSHOT),
        ("1.2.3-rc4", VersionKind.CANDIDATE),
        ("1.2.3-rc4-5-gabc", VersionKind.CANDIDATE_SNAPSHOT),
        ("1.0.0-foo", VersionKind.OTHER),
        ("1.0.0.dirty", VersionKind.OTHER),
        ("1.0.0-foo.dirty", VersionKind.OTHER),
        ("2147483647.0.0", VersionKind.RELEASE),
        pytest.param("2147483648.0.0", None, id="T202"),
        ("1.0.0-rc2147483648", None),
        ("5.0", None),
        ("1.1.2.3", None),
        ("1.0.0-FOO", None),
        ("", None),
        ("1.2.3\n", None),
        ("\N{ARABIC-INDIC DIGIT ONE}.2.3", None),
    ],
)
def test_a_text_is_a_version(text: str, kind: VersionKind | None) -> None:
    version = parse_version(text)
    assert (version.kind if version else None) == kind
    assert version is None or version.orderable == (kind is not VersionKind.OTHER)


def test_snapshots_of_equal_age_differ_in_text_only() -> None:
    one, other = parse_version("1.0.0-4-gabc"), parse_version("1.0.0-4-gdef")
    assert one is not None
    assert other is not None
    assert compare(one, other) == 0
    assert one != other


@pytest.mark.parametrize(
    ("version", "minimum", "maximum", "inside"),
    [
        ("1.2.3", None, "1.2.3", True),
        ("1.2.3-rc4", None, "1.2.3", True),
        ("1.2.4", None, "1.2.3", False),
        ("1.2.3-4-gabc", None, "1.2.3", False),
        ("9.6.1-22-gabc", None, "9.6.x", True),
        ("9.7.0-rc1", None, "9.6.x", False),
        ("10.0.0-rc1", None, "9.x.x", False),
        ("99.0.0", None, "x.x.x", True),
        ("1.0.0-rc1", "1.0.0", None, False),
        ("1.0.0", "1.0.0", "1.x.x", True),
        ("1.0.0-foo", None, None, False),
        ("1.2.3", None, "x.y.z", False),
    ],
)
def test_in_range(version: str, minimum: str | None, maximum: str | None, inside: bool) -> None:
    assert in_range(version, minimum, maximum) is inside


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        *((text, True) for text in ("1.x.x", "2.0.x", "x.x.x", "1.2.3")),
        *((text, False) for text in ("x.y.z", "x.0.0", "0.x.3", "x.x.2", "1.x")),
    ],
)
def test_t203_a_text_is_a_bound(text: str, valid: bool) -> None:
    bounds = TypeAdapter[str](VersionBound)
    if valid:
        assert bounds.validate_python(text) == text
    else:
        with pytest.raises(ValidationError):
            bounds.validate_python(text)
