"""The very commands that README.md prints run, and end as it says.

A ``console`` block holds commands, each on a line that begins with ``$ ``, and what they print,
which is not compared. All commands of the file run in order, each in a shell of its own, in a copy
of the project's examples, with ``temporal`` and ``temporal-plan`` on the PATH and TEMPORAL_ADDRESS
set. A command ends with 0; one that is to end otherwise says so in a comment, ``# exit code 1``.

What can't be run here, because it never ends or would install things, stands in a block that
follows an HTML comment with the reason: ``<!-- not run: never ends -->``.
"""

import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from acceptance.cluster import PROGRAMS, ROOT, Cluster, running_cluster
from acceptance.programs import run

README = ROOT / "README.md"
LIMIT = 120.0

_FENCE = re.compile(r"```(?P<language>\w*)\s*")
_NOT_RUN = re.compile(r"<!--\s*not run:\s*(?P<reason>.*\S)\s*-->")
_EXIT_CODE = re.compile(r"\s#.*\bexit code (?P<code>\d+)\s*$")
_HEREDOC = re.compile(r"<<\s*'?(?P<word>\w+)'?\s*$")


@dataclass(frozen=True)
class Command:
    """A command of a console block, where it stands, and the exit code that it must have."""

    text: str
    line: int
    code: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def commands(markdown: str) -> Iterator[Command]:
    """The commands to run. ValueError for a block that would be passed over by mistake."""
    lines = iter(enumerate(markdown.splitlines(), start=1))
    skipped = ""
    for number, line in lines:
        if reason := _NOT_RUN.fullmatch(line.strip()):
            skipped = reason["reason"]
        elif fence := _FENCE.fullmatch(line.strip()):
            block = _until_fence(lines, number)
            if fence["language"] == "console":
                found = list(_commands_in(block))
                if not found:
                    raise ValueError(f"line {number}: a console block without a `$ ` line")
                yield from () if skipped else found
            elif skipped:
                raise ValueError(f"line {number}: `not run` stands before a block that never is")
            skipped = ""
        elif line.strip() and skipped:
            raise ValueError(f"line {number}: `not run` must stand right before a block")


def _until_fence(lines: Iterator[tuple[int, str]], start: int) -> list[tuple[int, str]]:
    block: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip() == "```":
            return block
        block.append((number, line))
    raise ValueError(f"line {start}: a block without an end")


def _commands_in(block: list[tuple[int, str]]) -> Iterator[Command]:
    lines = iter(block)
    for number, line in lines:
        if not line.startswith("$ "):
            continue
        text = line.removeprefix("$ ")
        while text.endswith("\\") or _open_heredoc(text):
            following = next(lines, None)
            if following is None:
                raise ValueError(f"line {number}: the command goes on, and the block ends")
            text += "\n" + following[1].removeprefix("> ")
        code = _EXIT_CODE.search(text)
        yield Command(text, number, int(code["code"]) if code else 0)


def _open_heredoc(text: str) -> bool:
    first, *rest = text.split("\n")
    word = _HEREDOC.search(first)
    return word is not None and word["word"] not in rest


# --- the runner -----------------------------------------------------------------------------------


PARSED = [
    pytest.param("text\n", [], id="no-block"),
    pytest.param("```sh\n$ rm -rf x\n```\n", [], id="another-language"),
    pytest.param("```console\n$ a b\nsaid\n$ c\n```\n", ["a b", "c"], id="two-and-output"),
    pytest.param("```console\n$ a \\\n>   b\n```\n", ["a \\\n  b"], id="continued"),
    pytest.param(
        "```console\n$ cat > f <<'END'\nx: 1\nEND\n$ b\n```\n",
        ["cat > f <<'END'\nx: 1\nEND", "b"],
        id="heredoc",
    ),
    pytest.param("<!-- not run: never ends -->\n```console\n$ a\n```\n", [], id="not-run"),
    pytest.param(
        "<!-- not run: never ends -->\n\n```console\n$ a\n```\n```console\n$ b\n```\n",
        ["b"],
        id="not-run-is-for-one-block",
    ),
]


@pytest.mark.parametrize(("markdown", "expected"), PARSED)
def test_the_commands_of_a_text(markdown: str, expected: list[str]) -> None:
    assert [command.text for command in commands(markdown)] == expected


def test_an_exit_code_that_is_told() -> None:
    [command] = commands("```console\n$ temporal plan restart x  # refused, exit code 1\n```\n")
    assert command.code == 1


MISTAKES = [
    pytest.param("```console\ntemporal plan list\n```\n", "without a `\\$ ` line", id="no-dollar"),
    pytest.param("```console\n$ a\n", "without an end", id="no-end"),
    pytest.param("<!-- not run: x -->\ntext\n```console\n$ a\n```\n", "right before", id="astray"),
    pytest.param("<!-- not run: x -->\n```python\n1\n```\n", "never is", id="needless"),
    pytest.param("```console\n$ a \\\n```\n", "goes on", id="cut-off"),
]


@pytest.mark.parametrize(("markdown", "told"), MISTAKES)
def test_mistakes_are_told(markdown: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        list(commands(markdown))


# --- README.md ------------------------------------------------------------------------------------


@pytest.fixture
async def workplace(cluster_of_its_own: Cluster) -> Path:
    """The project as a reader has it: its README's commands name files by these paths."""
    directory = cluster_of_its_own.directory / "project"
    directory.mkdir()
    shutil.copytree(ROOT / "examples", directory / "examples")
    return directory


@pytest.fixture
async def cluster_of_its_own() -> AsyncIterator[Cluster]:
    """Of its own, because the README speaks of the only service that there is."""
    async with running_cluster() as cluster:
        yield cluster


@pytest.mark.timeout(900)
async def test_the_commands_of_the_readme(cluster_of_its_own: Cluster, workplace: Path) -> None:
    to_run = list(commands(README.read_text()))
    assert to_run, "README.md prints no command that could be run"
    for command in to_run:
        said = await run(
            Path("/bin/sh"),
            *("-c", command.text),
            env={**cluster_of_its_own.env, "VIRTUAL_ENV": str(PROGRAMS.parent)},
            cwd=workplace,
            limit=LIMIT,
        )
        print(f"README.md, {command}\n{said.both}")
        assert said.code == command.code, f"README.md, {command}\n{said}"
