"""Reading logs in pieces."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temporal_plans.activities.agent.host.logs import read_chunk
from temporal_plans.messages.tasks import LogChunk


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200), limit=st.integers(min_value=1, max_value=64))
def test_pieces_together_are_the_whole_text(tmp_path: Path, text: str, limit: int) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(text.encode())
    found, offset = "", 0
    while not (piece := read_chunk(path, offset, limit, ended=True)).ended:
        assert piece.next_offset > offset
        found, offset = found + piece.text, piece.next_offset
    assert found + piece.text == text
    assert piece.next_offset == len(text.encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=50), back=st.integers(min_value=1, max_value=60))
def test_any_bytes_can_be_read_to_their_end(tmp_path: Path, data: bytes, back: int) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(data)
    piece = read_chunk(path, -back, 1000, ended=True)
    assert piece.ended
    assert piece.next_offset == len(data)


EURO = "€".encode()


@pytest.mark.parametrize(
    ("data", "offset", "ended", "expected"),
    [
        pytest.param(b"ab", 0, False, LogChunk(text="ab", next_offset=2), id="not over yet"),
        pytest.param(b"ab", 2, False, LogChunk(next_offset=2), id="nothing new"),
        pytest.param(b"ab", 2, True, LogChunk(next_offset=2, ended=True), id="nothing more"),
        pytest.param(b"a" + EURO[:2], 0, False, LogChunk(text="a", next_offset=1), id="half"),
        pytest.param(
            b"a" + EURO[:2], 0, True, LogChunk(text="a�", next_offset=3, ended=True), id="broken"
        ),
        pytest.param(b"a" + EURO, -2, False, LogChunk(next_offset=4), id="into a character"),
        pytest.param(b"abc", -2, False, LogChunk(text="bc", next_offset=3), id="from the end"),
        pytest.param(b"abc", 9, False, LogChunk(next_offset=3), id="beyond the end"),
        pytest.param(b"\xffa", 0, False, LogChunk(text="�a", next_offset=2), id="no text"),
    ],
)
def test_edges(tmp_path: Path, data: bytes, offset: int, ended: bool, expected: LogChunk) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(data)
    assert read_chunk(path, offset, 1000, ended) == expected


def test_a_file_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert read_chunk(tmp_path / "stdout", -10, 100, ended=False) == LogChunk()
