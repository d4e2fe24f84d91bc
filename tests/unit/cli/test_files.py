"""Files and values from the command line."""

from pathlib import Path

import pytest
import typer

from repository import ROOT
from temporal_plans.cli.inputs.files import (
    FileKind,
    ServiceFileOptions,
    environment,
    kind_of,
    service_file,
)
from temporal_plans.cli.inputs.pairs import pairs
from temporal_plans.domain.values.refusal import SpecError


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
    assert environment(ServiceFileOptions(service, ["C=3"], [one, two])) == {
        "A": "1",
        "B": "2",
        "C": "3",
    }


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
        service_file(ServiceFileOptions(path))


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
    assert environment(ServiceFileOptions(path, [given], [many]))["UNUSED"] == "1"
    out, err = capsys.readouterr()
    assert (out, told in err, bool(err)) == ("", True, bool(told))


def test_with_other_delimiters_nobody_knows_what_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "svc.yml"
    path.write_text("{{=<% %>=}}\nname: <% NAME %>\npods: {}\n")
    environment(ServiceFileOptions(path, ["NAME=x", "OTHER=y"]))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("names", "verbose", "lines"),
    [
        pytest.param("UA UB", False, ["Note: svc.yml does not use the values UA, UB"], id="few"),
        pytest.param(
            "UA UB UC UD",
            False,
            ["Note: svc.yml does not use 4 of the values; -v names them"],
            id="a-package",
        ),
        pytest.param(
            "UA UB UC UD",
            True,
            [f"Note: svc.yml does not use the value {name}" for name in ("UA", "UB", "UC", "UD")],
            id="verbose",
        ),
    ],
)
def test_many_values_without_use_are_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    names: str,
    verbose: bool,
    lines: list[str],
) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(SERVICE)
    values = [f"{name}=1" for name in names.split()]
    environment(ServiceFileOptions(path, values, verbose=verbose))
    assert capsys.readouterr().err.splitlines() == lines


# --- fields without effect, unknown keys ----------------------------------------------------------

FIELD_FILE = """
name: svc
pods:
  hello:
    count: 1
    colour: red
    tasks:
      server:
        goal: RUNNING
        cmd: run
        cpus: 1
        discovery: {prefix: hello}
        ports:
          http: {port: 0, advertise: true, vip: {port: 80}}
"""


def test_each_field_without_effect_has_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(FIELD_FILE.replace("    colour: red\n", ""))
    service_file(ServiceFileOptions(path))
    noted = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    assert noted == [
        "pods.hello.tasks.server.ports.http.vip",
        "pods.hello.tasks.server.ports.http.advertise",
        "pods.hello.tasks.server.discovery",
    ]


def test_lenient_ignores_unknown_keys_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(FIELD_FILE)
    with pytest.raises(SpecError, match=r"pods\.hello\.colour: unknown key"):
        service_file(ServiceFileOptions(path))
    capsys.readouterr()
    assert service_file(ServiceFileOptions(path, lenient=True)).pods[0].count == 1
    assert 'pods.hello.colour: unknown key (found "red")' in capsys.readouterr().err


def test_lenient_hides_no_other_problem(tmp_path: Path) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(FIELD_FILE.replace("hello:", "he/llo:"))
    with pytest.raises(SpecError) as raised:
        service_file(ServiceFileOptions(path, lenient=True))
    assert [reason.field for reason in raised.value.reasons] == ["pods.he/llo"]
