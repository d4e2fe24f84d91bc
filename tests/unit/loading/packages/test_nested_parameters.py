"""Parameters of nested packages, and secrets among them."""

from collections.abc import Mapping

import pytest

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.nested_parameters import nested_parameters

REFERENCES = {"PASSWORD": "store/password", "TOKEN": "store/token"}


class File:
    """A parameter file with ``{NAME}`` for parameters; it keeps the texts that it was given."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.given: list[Mapping[str, str]] = []

    def __call__(self, texts: Mapping[str, str]) -> str:
        self.given.append(texts)
        rendered = self.text
        for name, text in texts.items():
            rendered = rendered.replace(f"{{{name}}}", text)
        return rendered


def test_without_secrets_a_file_is_rendered_once() -> None:
    file = File("SIZE: 3\nZONES: [a]\n")
    found = nested_parameters(file, {}, "it")
    assert found == ({"SIZE": "3", "ZONES": "- a\n"}, {})
    assert file.given == [{}]


def test_a_secret_is_handed_on_as_its_reference() -> None:
    file = File("SIZE: 3\nADMIN: '{PASSWORD}'\nOTHER: {TOKEN}\nAGAIN: {PASSWORD}\n")
    found = nested_parameters(file, REFERENCES, "it")
    assert found.texts == {"SIZE": "3"}
    assert found.secrets == {
        "ADMIN": "store/password",
        "OTHER": "store/token",
        "AGAIN": "store/password",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A: x-{PASSWORD}", "A: is made of the value of a secret parameter"),
        ("A: {PASSWORD}{TOKEN}", "A: is made of the value of a secret parameter"),
        ("A: ['{PASSWORD}']", "A: is made of the value of a secret parameter"),
        ("'{PASSWORD}': 1", "its names depend on a secret"),
    ],
)
def test_what_is_made_of_a_secret_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        nested_parameters(File(text), REFERENCES, "it")
    assert problem in str(refused.value)
    assert "secret-a" not in str(refused.value)


def test_a_secret_that_is_only_asked_for_is_no_secret() -> None:
    found = nested_parameters(File("# {PASSWORD}\nHAS_PASSWORD: true\n"), REFERENCES, "it")
    assert found == ({"HAS_PASSWORD": "true"}, {})
