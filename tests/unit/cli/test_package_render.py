"""`temporal plan package render`."""

import json
from pathlib import Path

import pytest

from unit.cli.kit import Run

OPERATOR = """\
name: shop
operatorVersion: 1.2.3
tasks:
- {name: app, kind: Apply, spec: {resources: [app.yaml, sub/config.yaml]}}
- {name: make, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /x, kind: Secret, key: cert}]}}
plans:
  deploy:
    strategy: serial
    phases: [{name: main, strategy: serial, steps: [{name: one, tasks: [make, app]}]}]
  backup:
    strategy: serial
    phases: [{name: saving, strategy: serial, steps: [{name: all, tasks: [app]}]}]
"""
PARAMETERS = "parameters: [{name: COUNT, type: integer, default: 3}]\n"
APP = (
    "{{ .Name }} {{ .Namespace }} {{ .PlanName }}/{{ .PhaseName }}/{{ .StepName }}\r\n"
    "n: {{ .Params.COUNT }}"
)
CONFIG = "cert: {{ .Pipes.cert }}\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "templates" / "sub").mkdir(parents=True)
    (folder / "operator.yaml").write_text(OPERATOR)
    (folder / "params.yaml").write_text(PARAMETERS)
    (folder / "templates" / "app.yaml").write_bytes(APP.encode())
    (folder / "templates" / "sub" / "config.yaml").write_text(CONFIG)
    (folder / "templates" / "pod.yaml").write_text("kind: Pod\n")
    return folder


def test_all_templates_are_printed_as_one_stream(run: Run, package: Path) -> None:
    ran = run("package", "render", str(package))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "# templates/app.yaml\nshop default deploy/main/one\r\nn: 3\n"
        "---\n# templates/pod.yaml\nkind: Pod\n"
        "---\n# templates/sub/config.yaml\ncert: shop.deploy.main.one.make.cert\n"
    )


def test_one_template_is_printed_byte_for_byte(run: Run, package: Path) -> None:
    options = ("--name", "mine", "--namespace", "prod", "--plan", "backup", "-p", "COUNT=7")
    ran = run("package", "render", str(package), "--template", "app.yaml", *options)
    assert (ran.code, ran.out) == (0, "mine prod backup/saving/all\r\nn: 7")


def test_templates_are_written_byte_for_byte(run: Run, package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    ran = run("package", "render", str(package), "--output", str(folder), "--pipe", "cert=other")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        str(folder / key) for key in ("app.yaml", "pod.yaml", "sub/config.yaml")
    ]
    assert (folder / "app.yaml").read_bytes() == b"shop default deploy/main/one\r\nn: 3"
    assert (folder / "sub" / "config.yaml").read_bytes() == b"cert: other\n"


def test_as_json(run: Run, package: Path) -> None:
    ran = run("package", "render", str(package), "--template", "sub/config.yaml", "--json")
    assert json.loads(ran.out) == {
        "package": "shop",
        "templates": {"sub/config.yaml": "cert: shop.deploy.main.one.make.cert\n"},
        "problems": [],
    }


def test_a_template_that_fails_is_named_beside_what_the_others_give(
    run: Run, package: Path
) -> None:
    (package / "templates" / "pod.yaml").write_text("a: 1\nb: {{ .Params.COUNTS }}\n")
    ran = run("package", "render", str(package))
    assert ran.code == 1
    assert ran.err == ("Error: pod.yaml:2:7: there is no .Params.COUNTS; did you mean COUNT?\n")
    assert "# templates/app.yaml" in ran.out
    assert "pod.yaml" not in ran.out
    as_json = run("package", "render", str(package), "--json")
    assert as_json.code == 1
    assert [each["line"] for each in json.loads(as_json.out)["problems"]] == [2]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-p", "COUNTS=1"), "COUNTS: is not a parameter of the package"),
        (("-p", "COUNT=x"), "COUNT: must be a whole number"),
        (("--template", "ap.yaml"), "app.yaml"),
        (("--output", "/dev/null/folder"), "name another folder with --output"),
    ],
)
def test_what_can_not_be_rendered_is_refused(
    run: Run, package: Path, options: tuple[str, ...], text: str
) -> None:
    ran = run("package", "render", str(package), *options)
    assert (ran.code, ran.out) == (1, "")
    assert text in ran.err


def test_a_pair_that_is_none_is_a_usage_error(run: Run, package: Path) -> None:
    assert run("package", "render", str(package), "--pipe", "cert").code == 2


def test_a_step_that_the_package_does_not_have_is_a_note(run: Run, package: Path) -> None:
    options = ("--template", "app.yaml", "--phase", "phase", "--step", "step")
    ran = run("package", "render", str(package), *options)
    assert (ran.code, ran.out) == (0, "shop default deploy/phase/step\r\nn: 3")
    assert ran.err.startswith("Note: The package has no such step")


def test_what_is_no_package_is_refused(run: Run, tmp_path: Path) -> None:
    ran = run("package", "render", str(tmp_path))
    assert ran.code == 1
    assert "operator.yaml: is missing" in ran.err
