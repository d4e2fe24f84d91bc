"""Opening what is below a directory that tasks may write to."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from temporal_plans.activities.agent.host.logs import read_chunk
from temporal_plans.activities.agent.host.records import KillRecord
from temporal_plans.activities.agent.sandbox.beneath import Folder, LeadsOutside, NotRegular
from temporal_plans.activities.agent.sandbox.files import UnreadableFile, read_value, write_value


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "outside" / "secret")


def make_device_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_folder(path: Path) -> None:
    path.mkdir()


KINDS = pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_fifo, "a FIFO"),
        (make_link, "a link"),
        (make_device_link, "a link"),
        (make_socket, "a socket"),
        (make_folder, "a directory"),
    ],
)


@KINDS
@pytest.mark.timeout(20)
def test_only_regular_files_are_read_and_nothing_is_waited_for(
    inside: Path, make: Callable[[Path], None], kind: str
) -> None:
    make(inside / "stdout")
    with pytest.raises(NotRegular, match=rf"is no regular file \({kind}\)"):
        read_chunk(inside / "stdout", 0, 1000, ended=False)


@KINDS
@pytest.mark.timeout(20)
def test_records_are_no_exception(inside: Path, make: Callable[[Path], None], kind: str) -> None:
    make(inside / "kill.json")
    with pytest.raises(UnreadableFile, match=kind):
        read_value(inside / "kill.json", KillRecord)


def test_a_record_replaces_a_link(inside: Path) -> None:
    make_link(inside / "kill.json")
    make_link(inside / f".kill.json.{os.getpid()}.new")
    write_value(inside / "kill.json", KillRecord(grace=1))
    assert (inside.parent / "outside" / "secret").read_text() == "secret"
    found = read_value(inside / "kill.json", KillRecord)
    assert found == KillRecord(grace=1)
    assert (inside / "kill.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("link", "path"),
    [
        pytest.param("../outside", "link/deeper", id="up"),
        pytest.param("{outside}", "link/deeper", id="absolute"),
        pytest.param("a/b/../../../outside", "link/deeper", id="down and up"),
        pytest.param("inside", "../outside", id="no link"),
    ],
)
def test_no_directory_outside_is_opened_or_created(inside: Path, link: str, path: str) -> None:
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "link").symlink_to(link.format(outside=inside.parent / "outside"))
    with Folder.open(inside) as folder, pytest.raises(LeadsOutside):
        folder.folder(path.split("/"), create=True)
    assert not (inside.parent / "outside" / "deeper").exists()


def test_links_that_stay_inside_are_followed(inside: Path) -> None:
    (inside / "app-1.2" / "conf").mkdir(parents=True)
    (inside / "opt").mkdir()
    (inside / "opt" / "app").symlink_to("../app-1.2")
    with (
        Folder.open(inside) as folder,
        folder.folder(["opt", "app", "conf"]) as conf,
        conf.create_file("app.conf", mode=0o640) as file,
    ):
        file.write(b"x")
    assert (inside / "app-1.2" / "conf" / "app.conf").read_text() == "x"
    assert (inside / "app-1.2" / "conf" / "app.conf").stat().st_mode & 0o777 == 0o640


def test_links_in_a_circle_end(inside: Path) -> None:
    (inside / "a").symlink_to("b")
    (inside / "b").symlink_to("a")
    with Folder.open(inside) as folder, pytest.raises(OSError, match="symbolic links"):
        folder.folder(["a"])


def test_a_new_file_replaces_links_and_fifos(inside: Path) -> None:
    make_link(inside / "link")
    make_fifo(inside / "fifo")
    with Folder.open(inside) as folder:
        for name in ("link", "fifo"):
            with folder.create_file(name) as file:
                file.write(b"new")
            assert (inside / name).read_text() == "new"
    assert (inside.parent / "outside" / "secret").read_text() == "secret"


def test_no_file_is_created_outside_while_a_directory_is_swapped_for_a_link(inside: Path) -> None:
    """The race between a look and a use, with a task that does nothing else."""
    outside = inside.parent / "outside"
    (inside / "real").mkdir()
    (inside / "trap").symlink_to(outside)
    stopped = threading.Event()

    def swap() -> None:
        place = inside / "conf"
        while not stopped.is_set():
            for source in ("real", "trap"):
                os.rename(inside / source, place)
                os.rename(place, inside / source)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(3000):
            try:
                with Folder.open(inside) as top, top.folder(["conf"]) as conf:
                    conf.create_file("app.conf").close()
            except OSError:
                continue
    finally:
        stopped.set()
        swapping.join()
    assert [path.name for path in outside.iterdir()] == ["secret"]
