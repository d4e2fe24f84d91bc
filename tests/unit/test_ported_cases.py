"""The checklist of the original's tests of packages: each test that it names exists, and each
reason against one is in the page for people."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from repository import ROOT

CHECKLIST = (ROOT / "docs" / "package-tests.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests"

_ROW = re.compile(r"^\| (?P<case>.+?) \| (?P<answer>.+) \|$", re.MULTILINE)
_NOT_APPLICABLE = "N/A: "


class Row(NamedTuple):
    case: str
    answer: str

    @property
    def tests(self) -> list[str]:
        if self.answer.startswith(_NOT_APPLICABLE):
            return []
        return [one.strip().strip("`") for one in self.answer.split("; ")]


def rows() -> Iterator[Row]:
    for section in CHECKLIST.split("\n## ")[1:]:
        for found in _ROW.finditer(section):
            if found["case"] != "Case":
                yield Row(found["case"], found["answer"])


ROWS = list(rows())


def file_of(name: str) -> str:
    """The one test file whose path ends like this."""
    path = f"/{name.partition('::')[0]}.py"
    found = [one for one in TESTS.rglob("test_*.py") if f"/{one}".endswith(path)]
    assert len(found) == 1, f"{name}: {len(found)} files end with {path}"
    return str(found[0].relative_to(TESTS))


@cache
def collected() -> frozenset[str]:
    """All tests in the files that the checklist names."""
    files = sorted({file_of(test) for row in ROWS for test in row.tests})
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *files],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return frozenset(
        line.removeprefix("tests/") for line in ran.stdout.splitlines() if "::" in line
    )


def test_the_checklist_has_all_sections() -> None:
    assert len(re.findall(r"^## ", CHECKLIST, re.MULTILINE)) == 6
    assert len(ROWS) > 150
    assert len({row.case for row in ROWS}) == len(ROWS)


def test_every_test_exists() -> None:
    known = collected()
    functions = {name.partition("[")[0] for name in known}
    named = [f"{file_of(test)}::{test.partition('::')[2]}" for row in ROWS for test in row.tests]
    assert [name for name in named if name not in known | functions] == []


def test_a_test_that_is_not_there_is_seen() -> None:
    name = "unit/test_ported_cases.py::test_nothing"
    assert name not in collected()
    with pytest.raises(AssertionError, match="0 files end with"):
        file_of("test_nowhere::test_nothing")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row.tests], ids=lambda row: row.case[:40]
)
def test_what_can_not_apply_is_in_the_page(row: Row) -> None:
    reason = row.answer.removeprefix(_NOT_APPLICABLE)
    assert f"| {row.case} | {reason} |" in PAGE
