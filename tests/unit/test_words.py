"""The project speaks plain technical English: phrases that readers stumbled over stay out of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "workflows", "activities", "worker", "bench", "tools", "examples", "docs")
INHERITED = {"docs/compatibility.md"}
"""Quotes the texts of the system that it compares with."""

PHRASES = (
    r"(?<!`)(?<!\")\bnobody\b(?!`|\")",
    r"\b(somebody|everybody|whoever)\b",
    r"\b(anew|afresh)\b",
    r"\b(for ever|for good)\b",
    r"\b(never|ever|not) heard of\b|\bunheard\b",
    r"\b(is|are|was|were) told\b",
    r"\bcalled[ _]off\b|\blet go\b|\bgives? up\b|\bgiven up\b",
    r"\b[Mm]end(s|ed|ing)? the\b",
    r"\bis no (time|length|range|disk|file|function|number|value|text)\b",
    r"\bwaits? for nobody\b|\blets? nobody\b|\bsaid nothing\b",
    r"\bbroke off\b|\bnot to be had\b|\bthe run before\b|\bno more wanted\b",
    r"\bgoes on by itself\b|\bWhat crosses\b|\bis there twice\b",
    r"\b(doomed|condemned|promised|emptied)\b",
)
WORSE = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES))


def _files() -> list[Path]:
    folders = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    named = [
        path for path in (*folders, *ROOT.glob("*.md")) if path.suffix in {".py", ".md", ".yml"}
    ]
    return sorted(path for path in named if str(path.relative_to(ROOT)) not in INHERITED)


def found_in(text: str) -> list[str]:
    """Lines with one of the phrases: number and phrase."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{number}: {match[0]}" for number, line in lines for match in WORSE.finditer(line)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("the service is told", 1),
        ("begins anew, whoever asked", 2),
        ("user: nobody waits", 1),
        ('examples=["nobody"], the user `nobody`', 0),
        ("the plan is started again", 0),
    ],
)
def test_a_phrase_is_found(text: str, count: int) -> None:
    assert len(found_in(text)) == count


def test_the_phrases_stay_out() -> None:
    files = _files()
    assert len(files) > 300
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    assert {name: found for name, text in texts.items() if (found := found_in(text))} == {}
