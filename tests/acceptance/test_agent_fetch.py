"""Fetching uris: from disk and from a real HTTP server."""

import functools
import gzip
import io
import os
import shutil
import socket
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from acceptance.agent_processes import as_root
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox.fetch import (
    Fetcher,
    FetchLimits,
    file_name,
    redacted_uri,
)
from temporal_plans.activities.agent.sandbox.identity import identity_for
from temporal_plans.domain.tasks.statuses import TaskState


class QuietFiles(SimpleHTTPRequestHandler):
    """Serves a directory; /short breaks off in the middle of its answer."""

    def do_GET(self) -> None:
        if self.path != "/short":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"only this")
        return None

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A directory of things to fetch."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "plain.txt").write_text("plain")
    (shelf / "run.sh").write_text("#!/bin/sh\necho hi\n")
    (shelf / "run.sh").chmod(0o755)
    with tarfile.open(shelf / "tree.tar.gz", "w:gz") as tar:
        tar.add(shelf / "run.sh", "tree/bin/run.sh")
    with zipfile.ZipFile(shelf / "tree.zip", "w") as packed:
        packed.write(shelf / "run.sh", "zipped/run.sh")
    with tarfile.open(shelf / "evil.tgz", "w:gz") as tar:
        member = tarfile.TarInfo("../evil")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    (shelf / "broken.tar").write_text("this is no archive")
    return shelf


@pytest.fixture
def server(shelf: Path) -> Iterator[str]:
    handler = functools.partial(QuietFiles, directory=str(shelf))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    return sandbox


def fetcher(progress: list[str] | None = None) -> Fetcher:
    return Fetcher(FetchLimits(timeout=5.0), (progress if progress is not None else []).append)


@pytest.mark.parametrize("scheme", ["path", "file", "http"])
def test_what_is_fetched(shelf: Path, server: str, sandbox: Path, scheme: str) -> None:
    base = {"path": str(shelf), "file": f"file://{shelf}", "http": server}[scheme]
    progress: list[str] = []
    for name in ("plain.txt", "run.sh", "tree.tar.gz", "tree.zip"):
        fetcher(progress).fetch(f"{base}/{name}", sandbox)
    assert (sandbox / "plain.txt").read_text() == "plain"
    assert (sandbox / "tree/bin/run.sh").stat().st_mode & 0o111
    assert (sandbox / "zipped/run.sh").stat().st_mode & 0o111
    assert not list(sandbox.glob("tree.*"))  # archives themselves don't stay
    assert bool((sandbox / "run.sh").stat().st_mode & 0o100) == (scheme != "http")
    assert f"fetching {base}/plain.txt: 5 bytes" in progress


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        pytest.param("{shelf}/none", "No such file or directory", id="no file"),
        pytest.param("{server}/none", "the server answered 404", id="not found"),
        pytest.param("{server}/short", "ended after 9 of 1000 bytes", id="broken off"),
        pytest.param("http://127.0.0.1:1/x", "could not be reached", id="no server"),
        pytest.param("{shelf}/broken.tar", "could not be opened", id="no archive"),
        pytest.param("{shelf}/evil.tgz", "outside the destination", id="out of the sandbox"),
        pytest.param("/a%00b", "contains a zero byte", id="zero byte"),
        pytest.param("ftp://host/x", "unsupported uri", id="other scheme"),
        pytest.param("plain.txt", "relative path", id="relative"),
        pytest.param("{server}/", "has no file name", id="no name"),
    ],
)
def test_what_is_not(shelf: Path, server: str, sandbox: Path, uri: str, message: str) -> None:
    uri = uri.format(shelf=shelf, server=server)
    with pytest.raises(TaskRefused, match=message) as caught:
        fetcher().fetch(uri, sandbox)
    assert str(caught.value).startswith(f"uris: {uri}: ")
    assert caught.value.state is TaskState.FAILED
    assert not (sandbox.parent / "evil").exists()


def test_two_files_of_one_name_are_refused(shelf: Path, server: str, sandbox: Path) -> None:
    fetcher().fetch(f"{shelf}/plain.txt", sandbox)
    with pytest.raises(TaskRefused, match=r"already has a 'plain\.txt'"):
        fetcher().fetch(f"{server}/plain.txt", sandbox)


def test_a_stopped_fetch_ends(shelf: Path, sandbox: Path) -> None:
    stopped = fetcher()
    stopped.stop()
    with pytest.raises(TaskRefused, match="was cancelled"):
        stopped.fetch(f"{shelf}/plain.txt", sandbox)


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made, data


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def directory(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.DIRTYPE)


def test_links_and_modes_of_a_tar(tmp_path: Path, sandbox: Path) -> None:
    archive = tar_of(
        tmp_path / "app.tar",
        directory("app-1.2/bin"),
        link("app", "app-1.2"),
        member("/app/bin/run", b"run", mode=0o4777),
        member("app/same", type=tarfile.LNKTYPE, linkname="app-1.2/bin/run"),
        member("app-1.2/data", b"old", mode=0o666),
        member("app-1.2/data", b"data", mode=0o666, mtime=1000),
        member("app-1.2/key", b"key", mode=0o400, mtime=1e300),
    )
    fetcher().fetch(str(archive), sandbox)
    assert (sandbox / "app").readlink() == Path("app-1.2")
    assert (sandbox / "app-1.2" / "same").read_text() == "run"
    assert (sandbox / "app-1.2" / "data").read_text() == "data"
    assert (sandbox / "app-1.2" / "data").stat().st_mtime == 1000
    modes = [
        (sandbox / "app-1.2" / name).stat().st_mode & 0o7777 for name in ("same", "data", "key")
    ]
    assert modes == [0o755, 0o644, 0o600]


def long_path() -> list[tuple[tarfile.TarInfo, bytes]]:
    """CVE-2025-4517: links of a path longer than ``realpath`` resolves."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    path = ""
    for letter in "abcdefghijklmnop":
        members += [directory(f"{path}{'d' * 247}"), link(f"{path}{letter}", "d" * 247)]
        path += f"{'d' * 247}/"
    up = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    return [
        *members,
        link(up, "../" * 16),
        link("escape", f"{up}/.."),
        member("escape/evil", b"evil"),
    ]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param([member("a/../../evil", b"x")], "outside the destination", id="up"),
        pytest.param([link("l", "/etc")], "outside the destination", id="absolute link"),
        pytest.param([link("a/l", "../../evil")], "outside the destination", id="link up"),
        pytest.param(
            [
                directory("a/b"),
                link("a/b/up", ".."),
                link("up", "a/b/up/../.."),
                member("up/evil", b"x"),
            ],
            "outside the destination",
            id="links of links",
        ),
        pytest.param(
            [
                directory("a/b"),
                link("c", "a/b"),
                link("c/d", ".."),
                link("e", "c/d/../.."),
                member("h", type=tarfile.LNKTYPE, linkname="e/secret"),
            ],
            "outside the destination",
            id="hard link through a link",
        ),
        pytest.param(long_path(), "outside the destination", id="long path"),
        pytest.param([member("f", type=tarfile.FIFOTYPE)], "is a device or FIFO", id="FIFO"),
        pytest.param([member("d", type=tarfile.CHRTYPE)], "is a device or FIFO", id="device"),
        pytest.param(
            [member(str(number)) for number in range(11)], "more than 10 members", id="members"
        ),
        pytest.param([member("big", b"0" * 2_000_000)], "more than 1 MB", id="bytes"),
    ],
)
def test_archives_that_are_refused(
    tmp_path: Path, sandbox: Path, members: list[tuple[tarfile.TarInfo, bytes]], message: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = tar_of(tmp_path / "app.tar", *members)
    limits = FetchLimits(timeout=5, size=1024 * 1024, members=10 if len(members) == 11 else 1000)
    with pytest.raises(TaskRefused, match=message):
        Fetcher(limits, lambda text: None).fetch(str(archive), sandbox)
    assert {path.name for path in tmp_path.iterdir()} == {"sandbox", "secret", "app.tar"}


@pytest.mark.parametrize(
    ("name", "message"), [("../evil", "outside the destination"), ("x" * 5, "more than 1 MB")]
)
def test_zips_that_are_refused(tmp_path: Path, sandbox: Path, name: str, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, b"0" * 2_000_000)
    limits = FetchLimits(timeout=5, size=1024 * 1024)
    with pytest.raises(TaskRefused, match=message):
        Fetcher(limits, lambda text: None).fetch(str(tmp_path / "app.zip"), sandbox)
    assert {path.name for path in tmp_path.iterdir()} == {"sandbox", "app.zip"}


def test_a_header_of_any_size_takes_no_more_memory_than_allowed(
    tmp_path: Path, sandbox: Path
) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2 * 1024**3
    with gzip.open(tmp_path / "app.tar.gz", "wb", compresslevel=1) as file:
        file.write(header.tobuf())
        for _ in range(1200):
            file.write(bytes(1024 * 1024))
    with pytest.raises(TaskRefused, match="needs more memory than the agent allows"):
        fetcher().fetch(str(tmp_path / "app.tar.gz"), sandbox)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("/proc/self/environ", "nothing below /proc"),
        ("file:///dev/zero", "nothing below /proc, /sys, /dev"),
        ("{tmp}/environ", "nothing below /proc"),
        ("{tmp}/fifo", "is no regular file"),
        ("{tmp}", "is no regular file"),
    ],
)
def test_only_regular_files_are_fetched(
    tmp_path: Path, sandbox: Path, uri: str, message: str
) -> None:
    (tmp_path / "environ").symlink_to("/proc/self/environ")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TaskRefused, match=message):
        fetcher().fetch(uri.format(tmp=tmp_path), sandbox)
    assert not list(sandbox.iterdir())


@pytest.mark.timeout(60)
def test_the_program_ends_with_its_agent(sandbox: Path) -> None:
    """A server that sends nothing more must not keep it, when its agent is killed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        uri = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        own = Fetcher(FetchLimits(timeout=1000), lambda text: None)
        found: list[str] = []

        def fetch() -> None:
            try:
                own.fetch(uri, sandbox)
            except TaskRefused as problem:
                found.append(str(problem))

        fetching = threading.Thread(target=fetch)
        fetching.start()
        connection, _ = listening.accept()
        program = own.program
        assert program is not None
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(20) == 1
        connection.close()
        fetching.join()
    assert found == [f"uris: {uri}: the program that fetches it ended without an answer"]


@as_root
def test_a_user_reads_and_writes_with_its_own_rights() -> None:
    identity, _ = identity_for("nobody", field="user", allow_root=False)
    assert identity is not None
    root = Path(tempfile.mkdtemp(prefix="plans-fetch-"))
    try:
        root.chmod(0o755)
        (root / "private").touch(mode=0o600)
        (root / "public.txt").write_text("public")
        packing = {"tar": "tar", "tar.gz": "gztar", "tar.bz2": "bztar", "tar.xz": "xztar"}
        archives = [*(f"public.{kind}" for kind in packing), "public.zip"]
        for name, form in zip(archives, packing.values(), strict=False):
            (root / "in" / name).mkdir(parents=True)
            shutil.copy(root / "public.txt", root / "in" / name / f"of-{name}.txt")
            shutil.make_archive(str(root / "public"), form, root / "in" / name, f"of-{name}.txt")
        with zipfile.ZipFile(root / archives[-1], "w") as packed:
            packed.write(root / "public.txt", "of-public.zip.txt")
            packed.writestr(zipfile.ZipInfo("\u00e4.txt"), "a name that is not ASCII")
        sandbox = root / "sandbox"
        sandbox.mkdir()
        os.chown(sandbox, identity.uid, identity.gid)
        own = Fetcher(FetchLimits(timeout=5), lambda text: None, identity)
        with pytest.raises(TaskRefused) as caught:
            own.fetch(str(root / "private"), sandbox)
        assert str(caught.value) == (
            f"uris: {root}/private: Permission denied; it is read as the task's user, nobody"
        )
        for name in ("public.txt", *archives):
            own.fetch(str(root / name), sandbox)
        owners = {path.name: path.stat().st_uid for path in sandbox.iterdir()}
        names = ("public.txt", "\u00e4.txt", *(f"of-{name}.txt" for name in archives))
        assert owners == dict.fromkeys(names, identity.uid)
    finally:
        shutil.rmtree(root)


def test_a_secret_in_a_uri_is_in_no_message(sandbox: Path) -> None:
    uri = "http://127.0.0.1:1/a b?token=s3cr3t"
    with pytest.raises(TaskRefused) as caught:
        fetcher().fetch(uri, sandbox)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "shown", "name"),
    [
        ("https://u:p@host/a/b%20c.txt?token=x#y", "https://host/a/b%20c.txt", "b c.txt"),
        ("/plain/path.txt", "/plain/path.txt", "path.txt"),
        ("file:///a/b", "file:///a/b", "b"),
    ],
)
def test_names_and_what_is_shown(uri: str, shown: str, name: str) -> None:
    assert redacted_uri(uri) == shown
    assert file_name(uri) == name
