"""Removing secrets from texts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.activities.agent.sandbox.redaction import values_in_files
from temporal_plans.activities.mechanics.redaction import Redactor


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("a b c", [b"b"], "a ***** c"),
        ("abc ab", [b"ab", b"abc"], "***** *****"),
        ("a b", [b"", b" "], "a b"),
        ("it is s3cr3t!", [b"s3cr3t\n"], "it is *****!"),
        ("1abcd2", [b"abc", b"bcd"], "1*****2"),
        ("pw hunter2 {", [b"user: x\nhunter2\r\n{\n"], "pw ***** {"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", ["\xe9".encode()], "caf*****"),
    ],
    ids=["one", "longest first", "blank", "last line end", "overlapping", "lines", "not ASCII"],
)
def test_redaction(text: str, values: list[bytes], expected: str) -> None:
    assert Redactor(values).text(text) == expected


@pytest.mark.parametrize("after", [0, 1, 5, 9, 10, 11, 20])
def test_the_part_of_a_value_before_the_cut_is_hidden_with_it(after: int) -> None:
    redactor = Redactor([b"0123456789"])
    output = b"x" * 50 + b"0123456789" + b"y" * after
    shown = redactor.tail(output[-(10 + redactor.longest) :], 10)
    expected = "*****" if after < 10 else ""
    assert shown == expected + "y" * min(after, 10)


@given(
    pieces=st.lists(st.sampled_from([b"secret", b"s", b"secre", b"ret", b" "]), max_size=30),
    limit=st.integers(min_value=1, max_value=40),
)
def test_no_part_of_a_value_is_in_a_tail(pieces: list[bytes], limit: int) -> None:
    """Whatever is cut off: what is shown of an output is shown of the whole output, too."""
    redactor = Redactor([b"secret"])
    output = b"".join(pieces)
    tail = redactor.tail(output[-(limit + redactor.longest) :], limit)
    assert redactor.text(output.decode()).endswith(tail)


def test_values_of_files_that_a_task_replaced_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    sandbox = tmp_path / "sandbox"
    (sandbox / "keys").mkdir(parents=True)
    (sandbox / "keys" / "k").write_bytes(b"a\xff")
    (sandbox / "link").symlink_to("../outside")
    assert values_in_files(sandbox, ("keys/k", "link", "missing", "no/k")) == [b"a\xff"]
