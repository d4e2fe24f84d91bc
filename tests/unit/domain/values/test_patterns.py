"""Regular expressions that people write."""

import pytest

from temporal_plans.domain.values import patterns

SLOW = "([a-z0-9]+[.-]?)+[.]internal"
HOST = "ip-10-20-30-40-eu-west-1a-production.example"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param("(one|two).example", "two.example", True, id="all-of-it"),
        pytest.param("one", "one.example", False, id="a-part"),
        pytest.param(r"\d+", "42", True, id="a-class"),
        pytest.param("ü.", "üß", True, id="unicode"),
        pytest.param(".*", "\ud800", False, id="no-text"),
        pytest.param(SLOW, HOST, False, id="what-would-take-python-for-ever"),
        pytest.param(".?" * 60, "a" * 60, True, id="likewise"),
    ],
)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    assert patterns.matches(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["(", "*", "(?=a)b", r"(a)\1", "a{1001}", "\ud800"])
def test_what_is_no_expression(pattern: str) -> None:
    with pytest.raises(patterns.PatternError):
        patterns.check(pattern)
