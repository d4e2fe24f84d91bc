"""Fetching uris: from disk and from a real HTTP server."""

import functools
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from temporal_plans.activities.agent.fetch import Fetcher, file_name, without_secrets
from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.task import TaskState


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
    return Fetcher(5.0, (progress if progress is not None else []).append)


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
        pytest.param("{server}/short", "broke off after 9 of 1000 bytes", id="broken off"),
        pytest.param("http://127.0.0.1:1/x", "could not be reached", id="no server"),
        pytest.param("{shelf}/broken.tar", "could not be opened", id="no archive"),
        pytest.param("{shelf}/evil.tgz", "outside the destination", id="out of the sandbox"),
        pytest.param("ftp://host/x", "is neither a path nor", id="other scheme"),
        pytest.param("plain.txt", "relative path", id="relative"),
        pytest.param("{server}/", "names no file", id="no name"),
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
    with pytest.raises(TaskRefused, match=r"has a 'plain\.txt' already"):
        fetcher().fetch(f"{server}/plain.txt", sandbox)


def test_a_stopped_fetch_ends(shelf: Path, sandbox: Path) -> None:
    stopped = fetcher()
    stopped.stop()
    with pytest.raises(TaskRefused, match="was stopped"):
        stopped.fetch(f"{shelf}/plain.txt", sandbox)


@pytest.mark.parametrize(
    ("uri", "shown", "name"),
    [
        ("https://u:p@host/a/b%20c.txt?token=x#y", "https://host/a/b%20c.txt", "b c.txt"),
        ("/plain/path.txt", "/plain/path.txt", "path.txt"),
        ("file:///a/b", "file:///a/b", "b"),
    ],
)
def test_names_and_what_is_shown(uri: str, shown: str, name: str) -> None:
    assert without_secrets(uri) == shown
    assert file_name(uri) == name
