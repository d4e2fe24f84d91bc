"""The very commands that README.md prints run, and end and print as it says.

The walk-through has a test of its own, ``test_walkthrough``; how the text is read: ``readme``.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acceptance.cluster import ROOT, Cluster, running_cluster
from acceptance.readme import (
    README,
    WALKTHROUGH,
    commands,
    missing,
    run_all,
    section,
    without_section,
)

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


def test_the_commands_of_one_reason() -> None:
    """Another ring runs what this one can't."""
    text = (
        "```console\n$ a\n```\n<!-- not run: needs x -->\n```console\n$ b\n```\n"
        "<!-- not run: never ends -->\n```console\n$ c\n```\n"
    )
    assert [command.text for command in commands(text, "needs x")] == ["b"]
    assert [command.text for command in commands(text)] == ["a"]


LASTS = [
    pytest.param("temporal plan worker --kubernetes main", True, id="worker"),
    pytest.param("temporal-plan agent --id db-1", True, id="agent"),
    pytest.param("temporal plan agents", False, id="agents"),
]


@pytest.mark.parametrize(("text", "lasts"), LASTS)
def test_what_runs_beside_the_others(text: str, lasts: bool) -> None:
    [command] = commands(f"```console\n$ {text}\n```\n")
    assert command.lasts is lasts


def test_an_exit_code_that_is_told() -> None:
    [command] = commands("```console\n$ temporal plan restart x  # refused, exit code 1\n```\n")
    assert command.code == 1


def test_what_a_command_is_said_to_print() -> None:
    first, second = commands("```console\n$ a\nsaid\n…\n$ b\n```\n")
    assert (first.says, second.says) == (("said", "…"), ())


LOOKS = [
    pytest.param("temporal plan show deploy", True, id="show"),
    pytest.param("temporal plan schedule list", True, id="schedule-list"),
    pytest.param("temporal plan fleet status prod", True, id="fleet-status"),
    pytest.param("temporal plan fleet recall shop:web 1.0.0", False, id="fleet-recall"),
    pytest.param("temporal plan show deploy --watch", False, id="watch"),
    pytest.param("temporal plan continue deploy", False, id="command"),
    pytest.param("temporal plan schedule trigger x", False, id="schedule-trigger"),
]


@pytest.mark.parametrize(("text", "looks"), LOOKS)
def test_what_may_be_repeated(text: str, looks: bool) -> None:
    [command] = commands(f"```console\n$ {text}\n```\n")
    assert command.looks is looks


PRINTED = [
    pytest.param("a b\nc", None, id="all"),
    pytest.param("a   b\nmore\nc  ", None, id="spaces-and-more"),
    pytest.param("c\na b", "c", id="another-order"),
    pytest.param("a b c", "a b", id="part-of-a-line"),
]


@pytest.mark.parametrize(("printed", "absent"), PRINTED)
def test_what_was_not_printed(printed: str, absent: str | None) -> None:
    assert missing(("a b", "…", "c"), printed) == absent


def test_dots_stand_for_anything() -> None:
    assert missing(("web-0 … COMPLETE …",), "web-0 (1.5s) COMPLETE at last") is None
    assert missing(("web-0 … COMPLETE",), "web-1 (1.5s) COMPLETE") == "web-0 … COMPLETE"


def test_sections() -> None:
    text = "# T\n```console\n$ a\n```\n## B\n```console\n$ b\n```\n## C\n```console\n$ c\n```\n"
    assert [(c.text, c.line) for c in commands(section(text, "B"))] == [("b", 7)]
    assert [(c.text, c.line) for c in commands(without_section(text, "B"))] == [("a", 3), ("c", 11)]
    with pytest.raises(LookupError, match="'D'"):
        section(text, "D")


MISTAKES = [
    pytest.param("```console\ntemporal plan list\n```\n", "below a `\\$ ` line", id="no-dollar"),
    pytest.param("```console\n```\n", "without a `\\$ ` line", id="empty"),
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


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_the_commands_of_the_readme(cluster_of_its_own: Cluster, workplace: Path) -> None:
    markdown = without_section(README.read_text(), WALKTHROUGH)
    await run_all(markdown, cluster_of_its_own.env, workplace)
