"""Where packages come from: folders, archives, addresses."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from builders.packages import package_files, write_package
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.download import download
from temporal_plans.loading.packages.folder import read_folder, visible
from temporal_plans.loading.packages.limits import SIZE_LIMIT
from temporal_plans.loading.packages.reader import load_package, read_package

# --- folders --------------------------------------------------------------------------------------


def refusal(source: Path | str) -> str:
    with pytest.raises(SpecError) as raised:
        read_package(source)
    return str(raised.value)


def test_a_folder_and_its_archive_give_the_same_package(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "web")
    archive = tmp_path / "web.tgz"
    archive.write_bytes(write_archive(package_files()))
    assert load_package(folder) == load_package(archive)


def test_other_files_are_not_read(tmp_path: Path) -> None:
    others = {".git/x": b"\xff", "README.md": b"\xff", "docs/big": bytes(SIZE_LIMIT + 1)}
    folder = write_package(tmp_path, {**package_files(), **others})
    assert set(load_package(folder).templates) == {"app.yaml"}


def test_templates_have_their_paths_as_keys(tmp_path: Path) -> None:
    templates = {"a/b.yaml": b"", "a/templates/c.yaml": b"", "d.yml": b"\xff", "e.txt": b"\xff"}
    files = {f"templates/{path}": text for path, text in templates.items()}
    child = {"child/templates/f.yaml": b"", "templates-old/g.yaml": b""}
    folder = write_package(tmp_path, {**package_files(), **files, **child})
    assert set(load_package(folder).templates) == {"app.yaml", "a/b.yaml", "c.yaml"}


def test_what_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "web")
    (tmp_path / "secret.yaml").write_text("secret")
    (folder / "templates/out.yaml").symlink_to("../../secret.yaml")
    (folder / "templates/none.yaml").symlink_to("nothing")
    (folder / "templates/loop.yaml").symlink_to("loop.yaml")
    (folder / "templates/dir").symlink_to("..")
    os.mkfifo(folder / "templates/pipe.yaml")
    text = refusal(folder)
    assert text.count("\n") == 4
    for problem in (
        "templates/dir: is a link to a folder",
        "templates/loop.yaml: is a link to nothing",
        "templates/none.yaml: is a link to nothing",
        "templates/out.yaml: is a link that leaves the package",
        "templates/pipe.yaml: is neither a file nor a folder",
    ):
        assert problem in text


def test_a_link_in_the_folder_is_read(tmp_path: Path) -> None:
    folder = write_package(tmp_path)
    (folder / "..data").mkdir()
    (folder / "operator.yaml").rename(folder / "..data/operator.yaml")
    (folder / "operator.yaml").symlink_to("..data/operator.yaml")
    assert load_package(folder).name == "web"


def test_too_much(tmp_path: Path) -> None:
    big = {"templates/big.yaml": bytes(SIZE_LIMIT)}
    assert "has more than 10 MB" in refusal(write_package(tmp_path, {**package_files(), **big}))


def test_hidden_files_are_not_packed(tmp_path: Path) -> None:
    others = {".git/config": b"", "a/.b/c": b"", "child/operator.yaml": b"x", "README.md": b"y"}
    folder = write_package(tmp_path, {**package_files(), **others})
    packed = read_folder(folder, visible)
    assert set(packed) == {*package_files(), "child/operator.yaml", "README.md"}


@pytest.mark.parametrize(
    ("files", "problems"),
    [
        ({}, ["operator.yaml: is missing", "params.yaml: is missing"]),
        ({"operator.yaml": b"", "params.yaml": b""}, ["operator.yaml: is empty"]),
        ({"operator.yaml": b"\xff", "params.yaml": b""}, ["operator.yaml: is not UTF-8"]),
        (
            {"operator.yaml": b"a: [", "params.yaml": b"a: b: c"},
            ["operator.yaml: is not YAML", "params.yaml: is not YAML"],
        ),
    ],
)
def test_what_is_no_package(tmp_path: Path, files: dict[str, bytes], problems: list[str]) -> None:
    text = refusal(write_package(tmp_path, files))
    assert len(text.splitlines()) == len(problems)
    assert all(problem in text for problem in problems)


@pytest.mark.parametrize("parameters", [b"", b"# nothing\n", b"parameters:\n", b"---\n"])
def test_params_may_be_empty(tmp_path: Path, parameters: bytes) -> None:
    folder = write_package(tmp_path, {**package_files(templates={}), "params.yaml": parameters})
    assert load_package(folder).parameters == ()


def test_a_path_that_is_not_there() -> None:
    assert "No such file or directory; name a folder" in refusal("not/there")


# --- addresses ------------------------------------------------------------------------------------


class _Answers(BaseHTTPRequestHandler):
    def __init__(self, stop: Event, *arguments: object) -> None:
        self._stop = stop
        super().__init__(*arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def do_GET(self) -> None:
        match self.path:
            case "/web.tgz":
                self._answer(write_archive(package_files()))
            case "/moved":
                self.send_response(302)
                self.send_header("Location", "/web.tgz")
                self.end_headers()
            case "/file":
                self.send_response(302)
                self.send_header("Location", "file:///etc/passwd")
                self.end_headers()
            case "/big":
                self._answer(bytes(SIZE_LIMIT + 2))
            case "/slow":
                self.send_response(200)
                self.end_headers()
                while not self._stop.wait(0.02):
                    self.wfile.write(b"x")
                    self.wfile.flush()
            case _:
                self.send_error(404)

    def _answer(self, data: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):  # the client had enough
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _served() -> Generator[str]:
    stop = Event()
    with HTTPServer(("127.0.0.1", 0), partial(_Answers, stop)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            stop.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with _served() as address:
        yield address


@pytest.mark.parametrize("path", ["/web.tgz", "/moved"])
def test_an_archive_from_the_web(server: str, path: str) -> None:
    assert load_package(f"{server}{path}").name == "web"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/nothing", "404"),
        ("/file", "redirect"),
        ("/big", "has more than 10 MB"),
    ],
)
def test_what_the_web_answers_instead(server: str, path: str, problem: str) -> None:
    assert problem.lower() in refusal(f"{server}{path}").lower()


def test_an_answer_that_never_ends_is_given_a_limit(server: str) -> None:
    with pytest.raises(SpecError, match="takes longer than"):
        download(f"{server}/slow", timeout=0.3)


def test_an_address_without_a_server() -> None:
    with _served() as address:
        pass
    assert "can't be downloaded" in refusal(f"{address}/web.tgz")
