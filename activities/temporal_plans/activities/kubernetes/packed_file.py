"""One file in a tar stream that a container printed. Nothing in it is trusted: no name is used, and
nothing but the one ordinary file is taken."""

import io
import tarfile

PACKING_LIMIT = 64 * 1024
"""Bytes of a stream beside the file's: headers, and the padding to a whole record."""

_BLOCK = 512
_DAMAGE = (tarfile.TarError, ValueError, OSError, EOFError, OverflowError, RecursionError)


class PackedFileError(Exception):
    """The stream has no ordinary file, or more than one; the text says what."""


class TornFileError(Exception):
    """The stream is incomplete, or the file changed while it was read: reading again may help."""


def packed_file(stream: bytes, size: int) -> bytes:
    """Return the content of the only file of a tar stream, which must have ``size`` bytes.

    Raises PackedFileError or TornFileError.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(stream), mode="r:") as archive:
            entry = archive.next()
            start = entry.offset_data if entry else 0
    except _DAMAGE as error:
        raise TornFileError("the archive can't be read") from error
    if entry is None:
        raise TornFileError("the archive is empty")
    if problem := _problem(entry):
        raise PackedFileError(problem)
    if entry.size != size:
        raise TornFileError(f"it has {entry.size} bytes, and had {size} a moment ago")
    end = start + size
    rest = stream[end + -size % _BLOCK :]
    if len(rest) < 2 * _BLOCK:
        raise TornFileError("the archive is incomplete")
    if any(rest):
        raise PackedFileError("the archive has more than one file")
    return stream[start:end]


def _problem(entry: tarfile.TarInfo) -> str | None:
    if entry.issym() or entry.islnk():
        return "it is a link"
    if entry.isdir():
        return "it is a folder"
    if not entry.isreg() or entry.issparse():
        return "it is no ordinary file"
    return None
