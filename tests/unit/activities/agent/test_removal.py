"""Deleting what tasks leave, however they left it."""

import os
import threading
from pathlib import Path

import pytest

from temporal_plans.activities.agent.sandbox.removal import remove_tree


def test_a_tree_is_deleted_with_everything_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    top = tmp_path / "top"
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "b" / "file").write_text("x")
    (top / "a" / "b" / "link").symlink_to(outside)
    (top / "link").symlink_to(outside)
    os.mkfifo(top / "a" / "fifo")
    os.close(os.open(os.fsencode(top) + b"/a/\xff", os.O_CREAT | os.O_WRONLY))
    (top / "a" / "b" / "c").chmod(0)
    (top / "a" / "b").chmod(0o500)
    remove_tree(top)
    assert not top.exists()
    assert (outside / "kept").read_text() == "kept"


def test_links_and_files_are_deleted_themselves(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to("outside")
    (tmp_path / "file").touch()
    for name in ("link", "file", "missing"):
        remove_tree(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


def test_a_tree_of_any_depth_is_deleted(tmp_path: Path) -> None:
    """Deeper than the stack of Python, open files and the length of a path allow."""
    top = tmp_path / "top"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=descriptor)
        below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    remove_tree(top)
    assert not top.exists()


@pytest.mark.timeout(60)
def test_nothing_outside_is_deleted_while_directories_are_swapped_for_links(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    stopped = threading.Event()

    def swap(top: int) -> None:
        while not stopped.is_set():
            try:
                os.rename("dir", "was", src_dir_fd=top, dst_dir_fd=top)
                os.symlink(outside, "dir", dir_fd=top)
                os.unlink("dir", dir_fd=top)
                os.rename("was", "dir", src_dir_fd=top, dst_dir_fd=top)
                os.mkfifo("dir2", dir_fd=top)
                os.unlink("dir2", dir_fd=top)
            except OSError:
                continue

    for number in range(30):
        top = tmp_path / f"top{number}"
        (top / "dir" / "below").mkdir(parents=True)
        for name in range(20):
            (top / "dir" / "below" / str(name)).touch()
        descriptor = os.open(top, os.O_RDONLY)
        stopped.clear()
        swapping = threading.Thread(target=swap, args=(descriptor,))
        swapping.start()
        try:
            for _ in range(1000):
                try:
                    remove_tree(top)
                    break
                except OSError:
                    continue
        finally:
            stopped.set()
            swapping.join()
            os.close(descriptor)
    assert (outside / "kept").read_text() == "kept"
