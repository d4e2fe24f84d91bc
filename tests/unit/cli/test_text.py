"""The small things that output is made of."""

from datetime import timedelta

import pytest
from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import about, duration
from temporal_plans.cli.terminal.output import printable


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0s"),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.9, "1m 00s"),
        (125, "2m 05s"),
        (3599.6, "1h 00m"),
        (7380, "2h 03m"),
        (90_000, "1d 01h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1s"),
        (9.4, "about 9s"),
        (12, "about 10s"),
        (56, "about 55s"),
        (58, "about 1m"),
        (130, "about 2m"),
        (5000, "about 83m"),
        (7300, "about 2h"),
        (200_000, "about 2d"),
    ],
)
def test_an_expected_duration_is_not_more_exact_than_it_is(seconds: float, text: str) -> None:
    assert about(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode ├─", "plain, ünïcode ├─"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("csi\x9b2J del\x7f", "csi\ufffd2J del\ufffd"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_columns_are_aligned_and_empty_ones_left_out() -> None:
    rows: list[tuple[str | Text, ...]] = [
        ("a", "", Text("RUNNING", style="green")),
        ("longer", "", "x\ny"),
    ]
    lines = columns(("NAME", "MESSAGE", "STATE"), rows)
    assert [line.plain for line in lines] == ["NAME    STATE", "a       RUNNING", "longer  x y"]


def test_wide_characters_take_two_columns() -> None:
    lines = columns(("A", "B"), [("日本", "x"), ("abcd", "y")])
    assert [line.plain for line in lines] == ["A     B", "日本  x", "abcd  y"]
