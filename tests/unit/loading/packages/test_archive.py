"""Archives of packages: what comes back, and what is refused."""

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest

from builders.packages import package_files
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.archive import read_archive, write_archive
from temporal_plans.loading.packages.limits import FILE_COUNT_LIMIT, SIZE_LIMIT
from temporal_plans.loading.packages.reader import read_files


def tgz(*entries: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                archive.addfile(info, io.BytesIO(entry[1]))
    return gzip.compress(raw.getvalue())


def special(kind: bytes, name: str = "templates/x.yaml", target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def refusal(data: bytes) -> str:
    with pytest.raises(SpecError) as raised:
        read_archive(data, "x.tgz")
    return str(raised.value)


def test_files_come_back() -> None:
    files = package_files()
    assert read_archive(write_archive(files), "x.tgz") == files


def test_equal_files_give_equal_archives() -> None:
    files = package_files()
    assert write_archive(dict(reversed(files.items()))) == write_archive(files)


def test_a_leading_dot_and_folders_are_nothing_special() -> None:
    folder = special(tarfile.DIRTYPE, "./templates/")
    data = tgz(special(tarfile.DIRTYPE, "./"), folder, ("./templates/x.yaml", b"x"))
    assert read_archive(data, "x.tgz") == {"templates/x.yaml": b"x"}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (("../operator.yaml", b""), "leaves the package"),
        (("templates/../../x.yaml", b""), "leaves the package"),
        (("/etc/x.yaml", b""), "is not a relative path"),
        (("a\\b", b""), "is not a relative path"),
        (("a\nb", b""), "is not a relative path"),
        (special(tarfile.SYMTYPE, target="/etc/passwd"), "is a link"),
        (special(tarfile.LNKTYPE, target="operator.yaml"), "is a link"),
        (special(tarfile.CHRTYPE), "is neither a file nor a folder"),
        (special(tarfile.FIFOTYPE), "is neither a file nor a folder"),
        (special(tarfile.GNUTYPE_SPARSE), "is neither a file nor a folder"),
        (special(tarfile.DIRTYPE, "../out"), "leaves the package"),
    ],
)
def test_hostile_entries(entry: tarfile.TarInfo | tuple[str, bytes], problem: str) -> None:
    assert problem in refusal(tgz(entry))


def test_a_path_twice() -> None:
    assert "is in the archive twice" in refusal(tgz(("a", b"1"), ("./a", b"2")))


def test_all_hostile_entries_are_named_at_once() -> None:
    text = refusal(tgz(("../a", b""), ("b", b""), special(tarfile.SYMTYPE, "c", "b")))
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: gzip.compress(bytes(2**25)), id="gzip-bomb"),
        pytest.param(lambda: tgz(("big", bytes(SIZE_LIMIT + 1))), id="one-file"),
        pytest.param(lambda: tgz(*((f"f{i}", bytes(2**20)) for i in range(11))), id="many"),
        pytest.param(lambda: bytes(SIZE_LIMIT + 1), id="compressed"),
    ],
)
def test_more_than_ten_megabytes(data: Callable[[], bytes]) -> None:
    assert "has more than 10 MB" in refusal(data())


def test_too_many_files() -> None:
    data = tgz(*((f"f{i}", b"") for i in range(FILE_COUNT_LIMIT + 1)))
    assert f"has more than {FILE_COUNT_LIMIT} files" in refusal(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PK\x03\x04 a zip file", id="zip"),
        pytest.param(gzip.compress(b"no tar" * 200), id="no-tar"),
        pytest.param(write_archive(package_files())[:-20], id="cut"),
        pytest.param(gzip.compress(b"\xff" * 1024), id="rubbish"),
    ],
)
def test_damage(data: bytes) -> None:
    assert "is not a .tgz archive" in refusal(data)


def test_files_in_a_folder_of_the_archive_are_found_for_the_message() -> None:
    files = {f"web/{path}": content for path, content in package_files().items()}
    with pytest.raises(SpecError) as raised:
        read_files(files, "x.tgz")
    assert [(one.field, one.value) for one in raised.value.reasons] == [
        ("operator.yaml", "web/operator.yaml"),
        ("params.yaml", "web/params.yaml"),
    ]
