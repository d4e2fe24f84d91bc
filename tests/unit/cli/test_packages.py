"""`temporal plan package`, and what other commands say of packages."""

import json
import re
import shlex
from pathlib import Path

import pytest

from builders.packages import OPERATOR, package_files, write_package
from repository import ROOT
from unit.cli.kit import Run

STORE = ROOT / "examples" / "packages" / "store"


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(write_package(tmp_path / "web"))


@pytest.fixture
def bad(tmp_path: Path) -> str:
    operator = OPERATOR.replace("[app]", "[app, nope]").replace("1.25", "x")
    return str(write_package(tmp_path / "bad", package_files(f"{operator}urll: 1\n")))


def test_verify(run: Run, good: str, bad: str) -> None:
    ran = run("package", "verify", good)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "package web 1.0.0: 1 plan, 1 task, 1 parameter, 1 template",
        "",
        "The package is valid.",
    ]
    ran = run("package", "verify", bad)
    assert ran.code == 1
    assert [line for line in ran.out.splitlines() if line.startswith("-")] == [
        '- operator.yaml:4: kubernetesVersion: is not a version (found "x"); '
        "write a semantic version such as 1.2.3",
        "- operator.yaml:18: plans.deploy.phases.main.steps.app.tasks: names no task "
        '(found "nope"); use one of: app',
        "- operator.yaml:19: urll: unknown key (found 1); did you mean url?",
    ]
    assert ran.out.splitlines()[-1] == "The package is not valid."


def test_verify_for_programs(run: Run, good: str, bad: str, tmp_path: Path) -> None:
    ran = run("package", "verify", good, "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["valid"], result["name"], result["errors"]) == (0, True, "web", [])
    ran = run("package", "verify", bad, "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["valid"], len(result["warnings"])) == (1, False, 1)
    assert result["errors"][0] == {
        "check": "version",
        "file": "operator.yaml",
        "line": 4,
        "field": "kubernetesVersion",
        "problem": "is not a version",
        "value": "x",
        "fix": "write a semantic version such as 1.2.3",
    }
    ran = run("package", "verify", str(tmp_path / "none"), "--json")
    assert (ran.code, json.loads(ran.out)["valid"], ran.err) == (1, False, "")


def test_verify_what_is_no_package(run: Run, tmp_path: Path) -> None:
    ran = run("package", "verify", str(tmp_path))
    assert ran.code == 1
    assert ran.err.count("is missing") == 2


def test_verify_style(run: Run, good: str) -> None:
    ran = run("package", "verify", good, "--style", "type", "--style", "hint")
    assert ran.code == 0
    assert ran.out.count("- params.yaml:3: parameters.SIZE") == 2
    assert run("package", "verify", good, "--style", "all").out.count("- params.yaml") == 5
    assert run("package", "verify", good, "--style", "colour").code == 2


def test_lists(run: Run) -> None:
    store = str(STORE)
    plans = run("package", "plans", store).out
    assert "deploy (serial strategy)\n├─ store (serial strategy)\n│  ├─ password\n" in plans
    assert "   └─ remove: backup-remove\n" in plans
    tasks = run("package", "tasks", store).out
    assert "KudoOperator  ./cache, cache-params.yaml" in tasks
    params = run("package", "params", store).out
    assert "noeviction, allkeys-lru, volatile-lru" in params
    assert json.loads(run("package", "plans", store, "--json").out)[0]["name"] == "deploy"
    assert json.loads(run("package", "tasks", store, "--json").out)[0]["pod"] == "password.yaml"
    assert json.loads(run("package", "params", store, "--json").out)[0]["default"] == "3"


def test_what_is_created_is_valid_and_can_be_packed(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my-server"
    assert run("package", "create", str(folder)).code == 0
    assert run("package", "verify", str(folder)).out.endswith("\nThe package is valid.\n")
    first = run("package", "pack", str(folder), "--output", str(tmp_path))
    archive = tmp_path / "my-server-0.1.0.tgz"
    assert first.code == 0
    assert first.out.startswith(f"{archive}: 5 files, sha256 ")
    again = run("package", "pack", str(folder), "--output", str(tmp_path))
    assert again.code == 1
    assert "exists; use --overwrite" in again.err
    forced = run("package", "pack", str(folder), "--output", str(tmp_path), "--overwrite")
    assert forced.out == first.out, "the same files give the same archive"
    assert "Warnings" not in run("package", "verify", str(archive)).out


def test_create_refuses_what_it_would_overwrite_and_bad_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("mine")
    ran = run("package", "create", str(tmp_path / "full"))
    assert ran.code == 1
    assert "exists; name a new folder" in ran.err
    assert run("package", "create", str(tmp_path / "Bad Name")).code == 2
    assert not (tmp_path / "Bad Name").exists()
    named = run("package", "create", str(tmp_path / "Other"), "--name", "other")
    assert named.code == 0
    assert "name: other\n" in (tmp_path / "Other/operator.yaml").read_text()


def test_pack_refuses_an_invalid_package_and_a_place_in_it(
    run: Run, good: str, bad: str, tmp_path: Path
) -> None:
    refused = run("package", "pack", bad, "--output", str(tmp_path))
    assert refused.code == 1
    assert "kubernetesVersion: is not a version" in refused.err
    assert run("package", "pack", good, "--output", good).code == 2
    assert not list(tmp_path.glob("**/*.tgz"))


def test_validate_a_package(run: Run, good: str, bad: str) -> None:
    ran = run("validate", good)
    assert ran.code == 0
    assert "deploy (serial strategy)" in ran.out
    assert "SIZE  3" in ran.out
    ran = run("validate", bad)
    assert ran.code == 1
    assert "Warnings:\n- operator.yaml:19: urll: unknown key" in ran.out
    result = json.loads(run("validate", bad, "--json").out)
    assert (result["kind"], result["name"]) == ("package", "web")
    assert [plan["name"] for plan in result["plans"]] == ["deploy"]
    assert (len(result["problems"]), len(result["warnings"])) == (2, 1)


def test_schema(run: Run) -> None:
    schema = json.loads(run("schema", "package").out)
    assert {"Operator", "Parameters", "ApplyTask", "NestedTask"} <= set(schema["$defs"])


@pytest.mark.parametrize("folder", [STORE, STORE / "cache"], ids=["store", "cache"])
def test_our_packages_are_valid(run: Run, folder: Path) -> None:
    ran = run("package", "verify", str(folder), "--json")
    result = json.loads(ran.out)
    assert (result["errors"], result["warnings"]) == ([], [])


def test_our_package_has_every_kind_of_task(run: Run) -> None:
    tasks = json.loads(run("package", "tasks", str(STORE), "--json").out)
    kinds = {"Apply", "Delete", "Toggle", "Pipe", "KudoOperator", "Dummy"}
    assert {task["kind"] for task in tasks} == kinds


GOLDEN = Path(__file__).parent / "golden"
"""What each template of the package gives, byte for byte, by what it is rendered with. Written by
``package render --output`` and read by a person."""

RENDERED = {
    "defaults": (),
    "given": (
        *("-p", "REPLICAS=8", "-p", "ZONES=[a, b]", "-p", "EVICTION=allkeys-lru"),
        *("-p", 'SETTINGS={maxclients: 1000000, appendonly: "yes"}', "-p", "RESTORE=friday"),
        *("-p", 'BACKUP=say "x"', "-p", "MEMORY=1Gi"),
    ),
    "upgrade": ("--plan", "upgrade", "--template", "jobs/backup.yaml"),
}


@pytest.mark.parametrize("name", RENDERED)
def test_what_our_package_renders(run: Run, tmp_path: Path, name: str) -> None:
    where = ("--name", "shop", "--namespace", "prod", "--output", str(tmp_path))
    ran = run("package", "render", str(STORE), *where, *RENDERED[name])
    assert (ran.code, ran.err) == (0, "")
    assert _files(tmp_path) == _files(GOLDEN / name)


def test_every_template_of_our_package_has_a_golden() -> None:
    templates = _files(STORE / "templates").keys()
    assert _files(GOLDEN / "defaults").keys() == templates == _files(GOLDEN / "given").keys()


def test_our_package_has_every_plan(run: Run) -> None:
    """Those that the design names, and how a change starts them."""
    plans = {
        one["name"]: one for one in json.loads(run("package", "plans", str(STORE), "--json").out)
    }
    assert set(plans) == {"deploy", "update", "metrics", "backup", "restore", "upgrade", "cleanup"}
    assert not plans["restore"]["reentrant"]
    parameters = json.loads(run("package", "params", str(STORE), "--json").out)
    triggers = {one["name"]: one["trigger"] for one in parameters if one["trigger"]}
    assert triggers == {"METRICS": "metrics", "BACKUP": "backup", "RESTORE": "restore"}


def test_the_demo_has_our_package() -> None:
    """They are two copies because the wheel has no examples."""
    assert _files(ROOT / "src/temporal_plans/cli/demo_package") == _files(STORE)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run[^\n]*\n+```console\n.*?```", re.DOTALL)
PAGE = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_answer_as_it_says(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    page = NOT_RUN.sub("", PAGE)  # the ring of Kubernetes has these
    shown = [part for block in BLOCK.findall(page) for part in block.split("$ temporal plan ")[1:]]
    assert len(shown) > 8
    for command, _, expected in (part.partition("\n") for part in shown):
        ran = run(*shlex.split(command))
        assert (ran.code, ran.err) == (0, ""), command
        assert not expected or ran.out == expected, command
