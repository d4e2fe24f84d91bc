"""The numbered sections of the documents, which code cites as ``behaviour 9.4``."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"

DOCUMENTS = {
    "behaviour": sorted((DOCS / "behaviour").glob("*.md")),
    "design": [DOCS / "design.md"],
    "compatibility": [DOCS / "compatibility.md"],
}
"""The files of each cited document."""

_HEADING = re.compile(r"^#{1,6} +(?P<title>.*\S)\s*$", re.MULTILINE)
_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?)\.? ")
_CITATION = re.compile(
    r"\b(?P<document>behaviour|design|compatibility)\s+(?P<numbers>\d+(?:\.\d+)?"
    r"(?:(?:,| and| to|-)\s*\d+(?:\.\d+)?(?!\d*-\d))*)",
    re.IGNORECASE,
)


class Section(NamedTuple):
    """A heading of a file, and its anchor in GitHub links."""

    file: Path
    title: str

    @property
    def anchor(self) -> str:
        return anchor(self.title)


class Citation(NamedTuple):
    """A citation in a text: the name of a document and the number of a section."""

    document: str
    number: str


def anchor(title: str) -> str:
    """Return GitHub's anchor of a heading."""
    plain = re.sub(r"[`*]", "", title).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def headings(file: Path) -> list[str]:
    """Return the titles of a file's headings, in order, without those in code blocks."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [match["title"] for match in _HEADING.finditer(text)]


def sections(document: str) -> dict[str, Section]:
    """Return the numbered sections of a document by their number."""
    return {
        number["number"]: Section(file, title)
        for file in DOCUMENTS[document]
        for title in headings(file)
        if (number := _NUMBER.match(title)) is not None
    }


def citations(text: str) -> Iterator[Citation]:
    """Yield the citations in a text: two for ``behaviour 5.8 and 5.9``, and for ``5.1 to 5.4``."""
    for match in _CITATION.finditer(text):
        for number in re.findall(r"\d+(?:\.\d+)?", match["numbers"]):
            yield Citation(match["document"].lower(), number)
