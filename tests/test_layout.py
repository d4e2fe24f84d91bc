"""What the layout promises and no other tool checks.

The source roots are named in several tools' settings, which must all agree; and some rules are
finer than an import contract can say.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
WHEEL = TOOL["hatch"]["build"]["targets"]["wheel"]
SOURCE_ROOTS = {path.parent.name for path in ROOT.glob("*/temporal_plans")}
PACKAGES = {path.parent.name for path in ROOT.glob("*/temporal_plans/*/__init__.py")}


@pytest.mark.parametrize(
    "named",
    [
        pytest.param([path.split("/")[0] for path in WHEEL["packages"]], id="wheel"),
        pytest.param(WHEEL["dev-mode-dirs"], id="editable"),
        pytest.param(TOOL["pytest"]["ini_options"]["pythonpath"], id="pytest"),
        pytest.param(TOOL["mypy"]["files"], id="mypy-files"),
        pytest.param(TOOL["mypy"]["mypy_path"], id="mypy-path"),
        pytest.param(TOOL["pyright"]["include"], id="pyright-include"),
        pytest.param(TOOL["pyright"]["extraPaths"], id="pyright-path"),
        pytest.param(TOOL["ruff"]["src"], id="ruff"),
    ],
)
def test_every_tool_knows_every_source_root(named: list[str]) -> None:
    assert set(named) - {"tests", "bench", "tools", "."} == SOURCE_ROOTS


def test_the_namespace_has_no_init() -> None:
    assert not list(ROOT.glob("*/temporal_plans/__init__.py"))


def test_every_package_is_typed() -> None:
    packages = [path.parent for path in ROOT.glob("*/temporal_plans/*/__init__.py")]
    assert [path for path in packages if not (path / "py.typed").exists()] == []


def test_every_package_is_under_the_import_contracts() -> None:
    contract = TOOL["importlinter"]["contracts"][0]
    layers = {name for layer in contract["layers"] for name in layer.split(" | ")}
    names = {f"temporal_plans.{package}" for package in PACKAGES}
    assert set(TOOL["importlinter"]["root_packages"]) == layers == names


def _modules(package: str) -> list[Path]:
    return sorted(ROOT.glob(f"*/temporal_plans/{package}/**/*.py"))


def _imported(path: Path) -> Iterator[str]:
    """Every module and name that a module imports, dotted."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                pass


def _called(path: Path) -> Iterator[str]:
    """Everything that a module calls, as it is written there."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


OUTSIDE = re.compile(r"temporalio\.(client|testing)(\..+)?")
IMPURE = re.compile(r"(.+\.)?(now|utcnow|today|uuid[1467]|read_text|write_text)|open|print|input")


def test_workflows_do_not_talk_to_temporal_from_outside() -> None:
    found = {
        path: set(filter(OUTSIDE.fullmatch, _imported(path))) for path in _modules("workflows")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_the_domain_looks_at_no_clock_and_does_no_input_or_output() -> None:
    found = {path: set(filter(IMPURE.fullmatch, _called(path))) for path in _modules("domain")}
    assert {path: names for path, names in found.items() if names} == {}


AGENT_QUEUE = re.compile(r"""["']agent/""")


def test_only_agents_know_how_their_task_queues_are_called() -> None:
    """All others use the queue of the reservation, task or agent that they have."""
    own = "temporal_plans/activities/agent/"
    modules = (path for root in SOURCE_ROOTS for path in (ROOT / root).rglob("*.py"))
    found = {path.relative_to(ROOT) for path in modules if AGENT_QUEUE.search(path.read_text())}
    assert [path for path in found if own in path.as_posix()], "what the rule is about"
    assert [path for path in found if own not in path.as_posix()] == []


def test_queries_to_open_workflows_have_one_place() -> None:
    """A rejected query does not always mean that the workflow is closed; there it is known."""
    modules = (path for root in SOURCE_ROOTS for path in (ROOT / root).rglob("*.py"))
    found = [path for path in modules if "QueryRejectCondition" in path.read_text()]
    assert [path.name for path in found] == ["open_runs.py"]


def test_what_the_two_rules_look_for_is_found(tmp_path: Path) -> None:
    """They are no rules if the search overlooks what it is for."""
    module = tmp_path / "module.py"
    module.write_text(
        "import temporalio.client\n"
        "from temporalio import testing\n"
        "started = datetime.now(UTC)\n"
        "text = open('x').read()\n"
    )
    assert set(filter(OUTSIDE.fullmatch, _imported(module))) == {
        "temporalio.client",
        "temporalio.testing",
    }
    assert set(filter(IMPURE.fullmatch, _called(module))) == {"datetime.now", "open"}


DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMED_PATH = re.compile(
    r"`((?:src|workflows|activities|worker|tests|bench|examples|docs)/[^`\s<>*…]+)`"
)


@pytest.mark.parametrize("document", [pytest.param(path, id=path.name) for path in DOCUMENTS])
def test_documents_name_files_that_there_are(document: Path) -> None:
    named = NAMED_PATH.findall(document.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
