"""What the documents below ``docs`` promise: sections that are cited are there, pages that are made
from code are up to date, and pages that list what code has list all of it."""

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest

from documents import carried_out
from temporal_plans import sdk
from temporal_plans.activities.agent.sandbox.environment import (
    PAUSE_COMMAND,
    HostContext,
    base_environment,
    task_environment,
)
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.kinds import KINDS
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    PodSpec,
    PortSpec,
    ResourceSet,
    TaskSpec,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.loading.schema import Schema, json_schema
from tools import schemas
from tools.reference import PAGES, Page, fields_without_description, page_text
from tools.sections import DOCS, DOCUMENTS, Citation, anchor, citations, headings, sections

ROOT = DOCS.parent
SOURCES = [
    path
    for folder in (
        "src",
        "workflows",
        "activities",
        "worker",
        "tests",
        "bench",
        "tools",
        "examples",
    )
    for path in sorted((ROOT / folder).rglob("*.py"))
]
PAGES_OF_DOCS = sorted(DOCS.rglob("*.md"))
CITED_FROM = [*SOURCES, *PAGES_OF_DOCS]

# --- citations ------------------------------------------------------------------------------------

TEXTS = [
    pytest.param("(behaviour 9.4)", ["behaviour 9.4"], id="one"),
    pytest.param("behaviour 5.8 and 5.9", ["behaviour 5.8", "behaviour 5.9"], id="and"),
    pytest.param("Behaviour 5.1-5.4.", ["behaviour 5.1", "behaviour 5.4"], id="range"),
    pytest.param(
        "behaviour 6.2 to 6.10, 7.3", ["behaviour 6.2", "behaviour 6.10", "behaviour 7.3"]
    ),
    pytest.param("(behaviour\n    6.4)", ["behaviour 6.4"], id="over-two-lines"),
    pytest.param("(behaviour 4.2, design 4)", ["behaviour 4.2", "design 4"], id="two-documents"),
    pytest.param("behaviour 7, 8", ["behaviour 7", "behaviour 8"], id="chapters"),
    pytest.param("compatibility 14.5", ["compatibility 14.5"], id="compatibility"),
    pytest.param("its behaviour, 3 times", [], id="no-citation"),
]


@pytest.mark.parametrize(("text", "cited"), TEXTS)
def test_citations_are_found(text: str, cited: list[str]) -> None:
    assert [f"{one.document} {one.number}" for one in citations(text)] == cited


KNOWN = {document: frozenset(sections(document)) for document in DOCUMENTS}


def _missing(text: str) -> list[Citation]:
    """What a text cites and no document has."""
    return [one for one in citations(text) if one.number not in KNOWN[one.document]]


def test_what_is_cited_is_there() -> None:
    missing = {
        path.relative_to(ROOT): found
        for path in CITED_FROM
        if path != Path(__file__) and (found := _missing(path.read_text()))
    }
    assert missing == {}


def test_a_citation_of_what_is_not_there_is_seen() -> None:
    assert _missing("behaviour 9.4 and 9.99") == [Citation("behaviour", "9.99")]


OUTSIDE = re.compile(r"\breference\s+\d|\bDESIGN\s+\d|\b(temporal|dcos-plans|codebases)\.md\b")


def test_nothing_outside_is_cited() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in CITED_FROM
        if path != Path(__file__)
        for match in OUTSIDE.finditer(path.read_text())
    ]
    assert found == []


def test_sections_have_one_number_each() -> None:
    for document, files in DOCUMENTS.items():
        if document == "compatibility":
            continue  # it goes through a document of others
        numbered = [
            title
            for file in files
            for title in headings(file)
            if re.match(r"\d+(\.\d+)?\.? ", title)
        ]
        assert len(numbered) == len(sections(document)), document


# --- links ----------------------------------------------------------------------------------------

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def _broken(page: Path) -> Iterator[str]:
    for match in _LINK.finditer(page.read_text()):
        path, _, fragment = match["target"].partition("#")
        if "://" in match["target"]:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (fragment and fragment not in map(anchor, headings(target))):
            yield match["target"]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *PAGES_OF_DOCS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(_broken(page)) == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#a-title) [b](#b) [c](other.md) [d](https://example.org/x#y)\n")
    assert list(_broken(page)) == ["#b", "other.md"]


# --- the references of files ----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.kind)
def test_the_reference_is_up_to_date(page: Page) -> None:
    assert page.file.read_text() == page_text(page), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.kind)
def test_every_field_is_described(page: Page) -> None:
    assert fields_without_description(json_schema(page.kind)) == []


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_the_schema_is_up_to_date_and_describes_every_field(
    kind: Literal["fleet", "fleet-decision"],
) -> None:
    assert (schemas.FOLDER / f"{kind}.schema.json").read_text() == schemas.text_of(kind), (
        "run `make docs`"
    )
    assert fields_without_description(json_schema(kind)) == []


def test_a_field_without_a_description_is_seen() -> None:
    schema: Schema = {
        "properties": {"a": {"description": "said"}, "b": {"type": "string"}},
        "$defs": {"Kind": {"anyOf": [{"type": "string"}, {"properties": {"c": {}}}]}},
    }
    assert fields_without_description(schema) == [".b", "Kind.c"]


# --- pages that list what code has ----------------------------------------------------------------


def _first_cells(page: Path) -> list[str]:
    """What stands in the first cells of a page's tables, headers aside."""
    lines = page.read_text().splitlines()
    return [
        line.split(" | ")[0].removeprefix("| ")
        for line, above in zip(lines[1:], lines, strict=False)
        if line.startswith("| ") and above.startswith("|")
    ]


def _environment() -> dict[str, str]:
    """The environment of a task that has everything."""
    task = TaskSpec(
        name="server",
        goal=Goal.RUNNING,
        cmd="true",
        resource_set="main",
        env={"<name in env>": "", "<K>": ""},  # TASKCFG values are among it since the file was read
        configs=(ConfigTemplate(name="config", template="", dest="x"),),
    )
    port = PortSpec(name="http", env_key="<env-key of a port>")
    reserved = ReservedResource(id="r", set="main", kind="port", value=1, name="http")
    return task_environment(
        service="s",
        pod=PodSpec(
            type="hello",
            count=1,
            tasks=(task,),
            resource_sets=(ResourceSet(id="main", ports=(port,)),),
        ),
        index=0,
        task=task,
        reservation=Reservation(
            id="r",
            owner="service/s",
            pod="hello",
            index=0,
            agent="a",
            queue="q",
            hostname="h",
            region="r",
            zone="z",
            resources=(reserved,),
            created=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        parameters={"<parameter>": ""},
        secrets={"<env-key of a secret>": ""},
        host=HostContext(
            sandbox="/",
            address="192.0.2.7",
            dns_domain="d",
            api_hostname="h",
            api_port=1,
            base=base_environment("/bin", "/", "nobody"),
        ),
    )


def test_the_environment_of_tasks_is_listed() -> None:
    written = {
        "hello-0-server": "<task instance>",
        "CONFIG_TEMPLATE_CONFIG": "CONFIG_TEMPLATE_<CONFIG>",
    }
    names = {written.get(name, name) for name in _environment()} | {PAUSE_COMMAND}
    listed = [cell.strip("`") for cell in _first_cells(DOCS / "task-environment.md")]
    assert sorted(listed) == sorted(names)


def test_the_glossary_is_in_order_and_has_the_words_of_the_engine() -> None:
    terms = _first_cells(DOCS / "glossary.md")
    assert terms == sorted(terms, key=str.lower)
    assert {status.value for status in Status} <= set(terms)
    page = (DOCS / "glossary.md").read_text()
    [kind] = [line for line in page.splitlines() if line.startswith("| kind |")]
    [command] = [line for line in page.splitlines() if line.startswith("| command |")]
    assert [one.name() for one in KINDS if one.name() not in kind] == []
    assert [verb for verb in Verb if verb.replace("_", "-") not in command] == []


SDK_PAGE = DOCS / "sdk.md"


def test_the_sdk_page_has_every_public_name_and_no_other() -> None:
    listed = [cell.strip("`") for cell in _first_cells(SDK_PAGE)]
    assert sorted(listed) == sorted(sdk.__all__)


def test_every_public_name_says_what_it_is() -> None:
    undocumented = [
        name
        for name in sdk.__all__
        if (inspect.isclass(thing := getattr(sdk, name)) or inspect.isroutine(thing))
        and not vars(thing).get("__doc__", thing.__doc__ if inspect.isroutine(thing) else None)
    ]
    assert undocumented == []


def test_the_examples_of_the_sdk_page_run() -> None:
    """What they define to be run on a server is run by ``tests/workflows/test_sdk_page.py``."""
    assert {"BACKUP", "PLUGIN", "test_a_release"} <= carried_out(SDK_PAGE).keys()


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("temporal_plans.client", ("PlansClient", "connect")),
        ("temporal_plans.worker.plugin", ("PlansPlugin",)),
        ("temporal_plans.build", ("activity", "phase", "plan")),
        ("temporal_plans.testing", ("PlanEnvironment",)),
    ],
)
def test_the_modules_that_were_public_before_sdk_remain(
    module: str, names: tuple[str, ...]
) -> None:
    assert module in SDK_PAGE.read_text(encoding="utf-8").split("\n\n")[1].replace("`", "")
    assert [name for name in names if not hasattr(import_module(module), name)] == []
