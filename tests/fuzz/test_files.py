"""Malformed files are refused with the reasons, and no other exception."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from fuzz.mutations import mutated
from properties import tries
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.folder import read_folder
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.loading.packages.structures import decode
from temporal_plans.loading.packages.verification import verify
from temporal_plans.loading.plans import load_plan_text
from temporal_plans.loading.services.service import load_service_text
from temporal_plans.loading.text.env_file import parse_env_file

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = sorted(EXAMPLES.glob("plans/*.yml"))
SERVICES = sorted(EXAMPLES.glob("*/svc.yml"))
PACKAGE = EXAMPLES / "packages" / "store"
TRIES = 60
VALUES: Mapping[str, str] = {
    "FRAMEWORK_NAME": "fuzz",
    "HELLO_COUNT": "1",
    "WORLD_COUNT": "1",
}


def load_service(text: str) -> object:
    return load_service_text(text, VALUES, templates=lambda name: "{{A}}")


def load_part(name: str) -> Callable[[str], object]:
    """Return a function that verifies the example package with another text for one of its
    files."""
    files = read_folder(PACKAGE)

    def load(text: str) -> object:
        read = read_files({**files, name: text.encode()}, "fuzz")
        result = verify(read, rendering=False)
        if not result.valid:
            raise SpecError([one.as_reason() for one in result.errors])
        return read.package.parameter_values({}, decode)

    return load


PARTS = {
    PACKAGE / name: load_part(name)
    for name in ("operator.yaml", "params.yaml", "templates/statefulset.yaml")
}


def _document(path: Path) -> Any:
    """Return the file's content, with 1 in the place of the values that its template takes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    plain = "\n".join(line for line in lines if not re.search(r"\{\{[#/^]", line))
    document = yaml.load(re.sub(r"\{\{\w+\}\}", "1", plain), yaml.CSafeLoader)
    return json.loads(json.dumps(document, default=str))


def _refusals(load: Callable[[str], object], text: str) -> int:
    """Return how many reasons there are against the text. Other exceptions are faults."""
    try:
        load(text)
    except SpecError as error:
        return len(error.reasons) or pytest.fail(f"refused without a reason: {text!r}")
    return 0


@pytest.mark.parametrize(
    ("path", "load"),
    [
        *(pytest.param(path, load_plan_text, id=f"plan-{path.stem}") for path in PLANS),
        *(pytest.param(path, load_service, id=f"service-{path.parent.name}") for path in SERVICES),
        *(pytest.param(path, PARTS[path], id=f"package-{path.stem}") for path in list(PARTS)[:2]),
    ],
)
def test_a_malformed_file_is_refused_with_reasons(
    path: Path, load: Callable[[str], object]
) -> None:
    document, random = _document(path), Random(path.name)
    refused = 0
    for _ in range(tries(TRIES)):
        text = yaml.safe_dump(mutated(document, random))
        refused += _refusals(load, text) > 0
    assert refused > tries(TRIES) // 4


@pytest.mark.parametrize(
    "path", [*PLANS, *SERVICES, *PARTS], ids=lambda path: path.parent.name + path.stem
)
def test_garbled_text_is_refused_with_reasons(path: Path) -> None:
    text, random = path.read_text(encoding="utf-8"), Random(path.name)
    load = PARTS.get(path, load_plan_text if path in PLANS else load_service)
    for _ in range(tries(TRIES)):
        _refusals(load, garbled(text, random))


def garbled(text: str, random: Random) -> str:
    """Return the text with some characters dropped, doubled, swapped or replaced."""
    letters = list(text)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(letters))
        strange = random.choice(("\t", "\x00", "{", "}", "[", ":", "&a", "*a", "!!python"))
        letters[at] = random.choice(("", letters[at] * 2, strange, random.choice(letters)))
    return "".join(letters)


def test_env_files() -> None:
    random = Random(1)
    for _ in range(tries(20 * TRIES)):
        text = garbled("A=1\nB='x y'\nexport C=\"d\"\n# comment\n", random)
        _refusals(parse_env_file, text)
