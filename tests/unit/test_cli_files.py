"""Files and values from the command line."""

from pathlib import Path

import pytest
import typer

from temporal_plans.cli.files import FileKind, environment, kind_of, service_file
from temporal_plans.cli.pairs import pairs
from temporal_plans.domain.errors import SpecError


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([], {}),
        (["A=1"], {"A": "1"}),
        (["A=b=c", "B="], {"A": "b=c", "B": ""}),
        (["A=1", "A=2"], {"A": "2"}),
        ([" A =x "], {"A": "x "}),
    ],
)
def test_pairs(given: list[str], values: dict[str, str]) -> None:
    assert pairs(given, "-p") == values


@pytest.mark.parametrize("text", ["A", "", "=x", " =x"])
def test_what_is_no_pair_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="one variable name and one variable value"):
        pairs([text], "-p")


def test_single_values_win_over_files_and_later_files_over_earlier(tmp_path: Path) -> None:
    one, two = tmp_path / "one.env", tmp_path / "two.env"
    one.write_text("A=1\nB=1\nC=1\n")
    two.write_text("B=2\nC=2\n")
    service = tmp_path / "svc.yml"
    service.write_text("name: {{A}}{{B}}{{C}}\n")
    assert environment(service, ["C=3"], [one, two]) == {"A": "1", "B": "2", "C": "3"}


SERVICE = "name: x\npods:\n  hello: {count: {{COUNT}}}\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(SERVICE, FileKind.SERVICE, id="service-template"),
        pytest.param("name: x\nphases: {}\n", FileKind.PLAN, id="plan"),
        pytest.param('{"name": "x", "phases": {}}', FileKind.PLAN, id="plan-as-json"),
        pytest.param('{"pods": {}}', FileKind.SERVICE, id="service-as-json"),
        pytest.param("plans:\n  d:\n    phases: {}\npods: {}\n", FileKind.SERVICE, id="own-plans"),
    ],
)
def test_kind_of(tmp_path: Path, text: str, kind: FileKind) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert kind_of(path) is kind


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("name: x\n", "is neither a service nor a plan file", id="neither"),
        pytest.param("pods: {}\nphases: {}\n", "has both pods and phases", id="both"),
        pytest.param("", "is empty", id="empty"),
        pytest.param("[1, 2]", "is neither a service nor a plan file", id="list"),
    ],
)
def test_a_file_of_no_kind(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "file.yml"
    path.write_text(text)
    with pytest.raises(SpecError, match=f"file.yml: {fault}"):
        kind_of(path)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        pytest.param("f.yml", "name: x\n  pods: [\n", "f.yml:2: is not YAML", id="yaml"),
        pytest.param("f.json", '{"name": "n", "phases": ', "f.json:1: is not JSON", id="json"),
    ],
)
def test_a_file_that_can_not_be_read_says_where(
    tmp_path: Path, name: str, text: str, fault: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SpecError, match=fault):
        kind_of(path)


def test_missing_values_are_told_with_how_to_give_them(tmp_path: Path) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(SERVICE)
    with pytest.raises(SpecError, match=r"COUNT(.|\n)*give values with -e NAME=VALUE"):
        service_file(path, [], [])


ROOT = Path(__file__).parents[2]


def test_the_demo_deploys_the_example() -> None:
    """They are two copies because the wheel has no examples."""
    example, packaged = (
        {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}
        for directory in (
            ROOT / "examples/hello-world",
            ROOT / "src/temporal_plans/cli/demo_service",
        )
    )
    assert packaged == example


# --- values that nothing uses ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("COUNT=2", "", id="used"),
        pytest.param("COUMT=2", "use the value COUMT; did you mean COUNT?", id="mistyped"),
        pytest.param("OTHER=2", "use the value OTHER\n", id="like-none"),
        pytest.param("FRAMEWORK_INITIAL_BACKOFF=2", "", id="back-off"),
        pytest.param("MIN_REPLACE_DELAY_SECS=2", "", id="recovery"),
        pytest.param("TASKCFG_ALL_OTHER=2", "", id="for-tasks"),
    ],
)
def test_a_value_that_the_file_does_not_use_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, told: str
) -> None:
    path, many = tmp_path / "svc.yml", tmp_path / "many.env"
    path.write_text(SERVICE)
    many.write_text("COUNT=1\nUNUSED=1\n")  # a file may be for several services
    assert environment(path, [given], [many])["UNUSED"] == "1"
    out, err = capsys.readouterr()
    assert (out, told in err, bool(err)) == ("", True, bool(told))


def test_with_other_delimiters_nobody_knows_what_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "svc.yml"
    path.write_text("{{=<% %>=}}\nname: <% NAME %>\npods: {}\n")
    environment(path, ["NAME=x", "OTHER=y"], None)
    assert capsys.readouterr().err == ""
