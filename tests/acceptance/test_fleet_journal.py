"""The journal of the kill tests finds what was carried out twice, never, or elsewhere."""

from pathlib import Path

import pytest

from acceptance.fleet_kills.journal import Journal, Work

GOOD = Work("north/web", "INSTALL", "none", "1.0.0")
BAD = Work("north/mail", "UPGRADE", "1.0.0", "1.1.0")
WORKS = {GOOD: "web.1 SUCCEEDED", BAD: "mail.2 FAILED"}

LINES = [
    "begun INSTALL north/web switch none 1.0.0 {home}/a",
    "done INSTALL north/web switch none 1.0.0 {home}/a",
    "begun UPGRADE north/mail switch 1.0.0 1.1.0 {home}/b",
    "done UPGRADE north/mail switch 1.0.0 1.1.0 {home}/b",
    "begun UPGRADE north/mail answers 1.0.0 1.1.0 {home}/c",
]


def faults(directory: Path, lines: list[str]) -> list[str]:
    journal = Journal(directory / "journal")
    home = directory / "north"
    journal.path.write_text("".join(f"{line.format(home=home)}\n" for line in lines))
    return list(journal.faults(WORKS, {"north": home}))


def test_what_was_carried_out_once_is_right(tmp_path: Path) -> None:
    assert not faults(tmp_path, LINES)
    journal = Journal(tmp_path / "journal")
    assert journal.environment() == "north"
    assert journal.installed() == {
        "north/web": "1.0.0",
        "north/mail": "1.1.0",
    }


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([*LINES, LINES[0].replace("/a", "/d")], "wrote"),
        (LINES[2:], "web.1 SUCCEEDED"),
        ([*LINES[:1], *LINES[2:]], "wrote"),
        ([*LINES, LINES[4].replace("begun", "done")], "mail.2 FAILED"),
        ([*LINES, LINES[0].replace("none", "0.9.0")], "is not wanted"),
        ([LINES[0].replace("{home}", "/elsewhere"), *LINES[1:]], "was carried out in /elsewhere"),
    ],
    ids=["twice", "never", "not to its end", "though it failed", "of another plan", "elsewhere"],
)
def test_what_is_wrong_is_found(tmp_path: Path, lines: list[str], text: str) -> None:
    (found,) = faults(tmp_path, lines)
    assert text in found
