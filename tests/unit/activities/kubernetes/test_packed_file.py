"""Streams of tar: what is taken of them, and what is refused."""

import io
import struct
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.activities.kubernetes.packed_file import (
    PackedFileError,
    TornFileError,
    packed_file,
)

CONTENT = b"\x00\xff binary\n" * 100


def entry(name: str = "./password", **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def packed(
    *entries: tuple[tarfile.TarInfo, bytes], style: int = tarfile.GNU_FORMAT, **options: object
) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=style, **options) as archive:  # type: ignore[call-overload]
        for made, content in entries:
            if made.isreg():
                made.size = len(content)
            archive.addfile(made, io.BytesIO(content))
    return stream.getvalue()


@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("content", [b"", b"a", CONTENT, b"\0" * 512, b"\0" * 1_048_576])
def test_the_one_file_is_taken(style: int, content: bytes) -> None:
    assert packed_file(packed((entry(), content), style=style), len(content)) == content


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../a", "a" * 250, "name with \n", "x/" * 100 + "x", "é" * 60]
)
@pytest.mark.parametrize("style", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_no_name_matters(style: int, name: str) -> None:
    assert packed_file(packed((entry(name), CONTENT), style=style), len(CONTENT)) == CONTENT


def test_a_stream_without_padding_is_complete() -> None:
    stream = packed((entry(), b"abc"))
    assert packed_file(stream[: 512 + 512 + 1024], 3) == b"abc"


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        pytest.param(entry(type=tarfile.SYMTYPE, linkname="/etc/passwd"), "it is a link", id="sym"),
        pytest.param(entry(type=tarfile.LNKTYPE, linkname="b"), "it is a link", id="hard"),
        pytest.param(entry(type=tarfile.DIRTYPE), "it is a folder", id="folder"),
        pytest.param(entry(type=tarfile.CHRTYPE), "it is no ordinary file", id="device"),
        pytest.param(entry(type=tarfile.FIFOTYPE), "it is no ordinary file", id="pipe"),
    ],
)
def test_only_ordinary_files_are_taken(made: tarfile.TarInfo, problem: str) -> None:
    with pytest.raises(PackedFileError, match=f"^{problem}$"):
        packed_file(packed((made, b"")), 0)


def test_a_second_file_is_refused() -> None:
    with pytest.raises(PackedFileError, match="more than one file"):
        packed_file(packed((entry(), b"abc"), (entry("b"), b"")), 3)


def test_a_file_behind_the_end_is_refused() -> None:
    with pytest.raises(PackedFileError, match="more than one file"):
        packed_file(packed((entry(), b"abc")) + packed((entry("b"), b"def")), 3)


@pytest.mark.parametrize("cut", [0, 1, 511, 512, 513, 1024, 1600, 2047])
def test_an_incomplete_stream_may_be_read_again(cut: int) -> None:
    stream = packed((entry(), b"a" * 513))
    with pytest.raises(TornFileError):
        packed_file(stream[:cut], 513)


@pytest.mark.parametrize("size", [2, 4, 0])
def test_a_file_that_changed_its_size_may_be_read_again(size: int) -> None:
    with pytest.raises(TornFileError, match=f"it has 3 bytes, and had {size} a moment ago"):
        packed_file(packed((entry(), b"abc")), size)


def header(size: bytes, kind: bytes = b"0") -> bytes:
    """A header with any size, as the text of its field."""
    block = bytearray(512)
    block[0:1] = b"a"
    block[124:136] = size.ljust(12, b"\0")
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


END = bytes(1024)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(header(b"77777777777") + END, id="more-than-there-is"),
        pytest.param(header(b"\xff" * 12) + END, id="negative"),
        pytest.param(header(b"\x80" + struct.pack(">QH", 2**60, 0) + b"\0") + END, id="enormous"),
        pytest.param(header(b"-0000000001") + END, id="minus"),
        pytest.param(header(b"nonsense") + END, id="no-number"),
        pytest.param(header(b"77777777777", b"x") + END, id="pax-header-without-end"),
        pytest.param(header(b"\xff" * 12, b"x") + END, id="pax-header-of-negative-size"),
        pytest.param(header(b"\xff" * 12, b"L") + END, id="long-name-of-negative-size"),
        pytest.param(header(b"0", b"x") * 2000 + END, id="headers-of-headers"),
        pytest.param(b"nothing of the kind" * 100, id="no-archive"),
        pytest.param(END, id="empty"),
    ],
)
def test_a_wrong_header_is_no_file(stream: bytes) -> None:
    with pytest.raises((TornFileError, PackedFileError)):
        packed_file(stream, 3)


def _gnu_sparse() -> bytes:
    return packed((entry(type=tarfile.GNUTYPE_SPARSE), b""))


def _pax_sparse(*fields: tuple[str, str]) -> bytes:
    made = entry()
    made.pax_headers = dict(fields)
    return packed((made, b"abc"), style=tarfile.PAX_FORMAT)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_gnu_sparse, id="gnu"),
        pytest.param(
            lambda: _pax_sparse(("GNU.sparse.map", "0,1"), ("GNU.sparse.size", "1099511627776")),
            id="pax-0.1",
        ),
        pytest.param(
            lambda: _pax_sparse(
                ("GNU.sparse.major", "1"),
                ("GNU.sparse.minor", "0"),
                ("GNU.sparse.realsize", "1099511627776"),
            ),
            id="pax-1.0",
        ),
    ],
)
def test_a_sparse_file_is_refused(made: Callable[[], bytes]) -> None:
    with pytest.raises((TornFileError, PackedFileError)):
        packed_file(made(), 3)


def test_a_size_of_a_pax_header_is_not_believed() -> None:
    with pytest.raises((TornFileError, PackedFileError)):
        packed_file(_pax_sparse(("size", "-512")), 3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"0", b"\0", b"1", b"5", b"x", b"g", b"L", b"K", b"S", b"7"]),
            st.sampled_from([b"0", b"1", b"1000", b"777777", b"\xff" * 12, b"\x80", b""]),
            st.binary(max_size=600),
        ),
        max_size=5,
    ),
    st.integers(0, 2000),
)
def test_any_stream_is_a_file_or_refused(
    parts: list[tuple[bytes, bytes, bytes]], size: int
) -> None:
    stream = b"".join(header(length, kind) + content for kind, length, content in parts) + END
    try:
        content = packed_file(stream, size)
    except (TornFileError, PackedFileError):
        return
    assert len(content) == size
