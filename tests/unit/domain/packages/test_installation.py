"""What is installed."""

from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import Installation
from unit.domain.packages.installations import definition, installed, plans


def test_installations_of_a_package_have_one_definition() -> None:
    found = installed(definition(plans=plans("deploy"), SIZE={"default": "3"}))
    text = found.model_dump_json()
    first, second = (Installation.model_validate_json(text) for _ in range(2))
    assert first == found
    assert first.package is second.package
    request = ChangeRequest(package=first.package).model_dump_json()
    assert ChangeRequest.model_validate_json(request).package is first.package


def test_another_definition_of_the_same_content_is_kept_as_it_is() -> None:
    """Two versions of the project may make different definitions of a package."""
    old, new = (
        installed(definition(plans=plans("deploy"), SIZE={"default": size})) for size in ("3", "4")
    )
    text = old.model_dump_json()
    assert Installation.model_validate_json(new.model_dump_json()) == new
    assert Installation.model_validate_json(text) == old
