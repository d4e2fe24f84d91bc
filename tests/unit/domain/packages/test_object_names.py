"""Names that would change the path of a request are none of objects."""

import pytest

from temporal_plans.domain.packages.object_names import object_name_fault


@pytest.mark.parametrize("name", ["web", "web-1.2", "system:node", "X_Y", "...", "a" * 300])
def test_names_that_the_api_server_judges(name: str) -> None:
    assert object_name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../web",
        "a/b",
        "%2e%2e",
        "a?b",
        "a#b",
        "a;b",
        "a&b=c",
        "a b",
        "a\n",
        "\\",
        "é",
    ],
)
def test_names_that_no_object_has(name: str) -> None:
    fault = object_name_fault(name)
    assert fault is not None
    assert fault.startswith("a name must not")
