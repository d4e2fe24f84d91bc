"""What can be looked up in a package, and names and versions."""

import pytest

from builders.packages import package_files
from temporal_plans.domain.packages.package import Package, package_name_fault
from temporal_plans.domain.packages.tasks import TASK_KINDS
from temporal_plans.domain.packages.versions import is_version
from temporal_plans.domain.values.refusal import Code, RefusedError
from temporal_plans.loading.packages.reader import read_files

PACKAGE = read_files(package_files(), "test").package


def test_elements_are_found_by_name() -> None:
    assert PACKAGE.plan("deploy").phases[0].name == "main"
    assert PACKAGE.phase("deploy", "main").steps[0].name == "app"
    assert PACKAGE.step("deploy", "main", "app").tasks == ("app",)
    assert PACKAGE.task("app").templates == ("app.yaml",)
    assert "ConfigMap" in PACKAGE.template("app.yaml")


@pytest.mark.parametrize(
    "look",
    [
        lambda: PACKAGE.plan("deplo"),
        lambda: PACKAGE.phase("deploy", "mian"),
        lambda: PACKAGE.step("deploy", "main", "ap"),
        lambda: PACKAGE.task("ap"),
        lambda: PACKAGE.template("ap.yaml"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_resemble_it(look: object) -> None:
    assert callable(look)
    with pytest.raises(RefusedError) as raised:
        look()
    assert raised.value.refusal.code == Code.NOT_FOUND
    assert raised.value.reasons[0].fix.startswith("did you mean")


def test_a_package_survives_a_message() -> None:
    assert Package.model_validate_json(PACKAGE.model_dump_json()) == PACKAGE


@pytest.mark.parametrize(
    ("text", "good"),
    [
        *((text, True) for text in ("1", "1.15", "5.7", "v2", "3.6.2-rc.1+linux", "0.0.0")),
        *((text, False) for text in ("1.", "0.12.", "1.2.3.4", "", "x", "1.2-", "1 ", "٣")),
    ],
)
def test_versions(text: str, good: bool) -> None:
    assert is_version(text) is good


@pytest.mark.parametrize("name", ["", "Web", "-web", "web-", "a/b", "..", "w" * 64, "a b"])
def test_names_that_objects_can_not_have(name: str) -> None:
    assert package_name_fault(name) is not None


def test_every_kind_of_task_says_what_it_does_and_what_each_field_is() -> None:
    for kind in TASK_KINDS:
        assert kind.__doc__
        fields = {name: field.description for name, field in kind.model_fields.items()}
        assert [name for name, text in fields.items() if not text and name != "kind"] == []
