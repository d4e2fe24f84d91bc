"""``bootstrap``: the program in the sandbox that renders a task's config templates."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox import templates
from temporal_plans.activities.agent.sandbox.bootstrap_program import Template, TemplateFault
from temporal_plans.activities.agent.sandbox.identity import Identity
from temporal_plans.activities.agent.sandbox.templates import (
    calls_bootstrap,
    install_bootstrap,
    missing_note,
    render_configs,
)
from temporal_plans.domain.services.spec import ConfigTemplate
from temporal_plans.loading.text.mustache import TemplateError, render_leniently

PYTHON = Path(sys.executable).resolve()


@pytest.fixture(params=["short", "with spaces, and 'quotes'", "long" * 40])
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A sandbox with the program; the path of its Python is of that kind."""
    directory = tmp_path / "a sandbox"
    (directory / "config-templates").mkdir(parents=True)
    python = PYTHON
    if request.param != "short":
        python = tmp_path / request.param / "python3"
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
        python.chmod(0o755)
    assert install_bootstrap(directory, python)
    return directory


def run(
    sandbox: Path, *arguments: str, cmd: str = "./bootstrap", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'{cmd} "$@"', "sh", *arguments],
        cwd=sandbox,
        env={"PATH": "/usr/bin:/bin", "MESOS_SANDBOX": str(sandbox), **env},
        capture_output=True,
        text=True,
        check=False,
    )


# --- the program ----------------------------------------------------------------------------------


def test_it_renders_with_what_the_command_exported(sandbox: Path) -> None:
    (sandbox / "config-templates/server").write_text("root={{ZK_ROOT}}\nheap={{HEAP}}\n")
    (sandbox / "config-templates/log").write_text("{{#DEBUG}}debug{{/DEBUG}}")
    done = run(
        sandbox,
        cmd="export HEAP=$((2 * 512)); ./bootstrap",
        CONFIG_TEMPLATE_SERVER="config-templates/server,conf/deep/server.conf",
        CONFIG_TEMPLATE_LOG="config-templates/log,log.conf",
        DEBUG="TRUE",
    )
    assert done.returncode == 0, done.stderr
    assert (sandbox / "conf/deep/server.conf").read_text() == "root=\nheap=1024\n"
    assert (sandbox / "log.conf").read_text() == "debug"
    assert done.stderr.splitlines() == [
        "bootstrap: wrote log.conf",
        "bootstrap: wrote conf/deep/server.conf; no value for ZK_ROOT: empty text",
    ]
    assert done.stdout == ""  # which `$(./bootstrap --get-task-ip)` reads
    assert (sandbox / "log.conf").stat().st_mode & 0o777 == 0o640


def test_the_variable_of_the_instance_is_there_in_every_shell(sandbox: Path) -> None:
    """dash passes on no variable with such a name."""
    (sandbox / "config-templates/c").write_text("{{#name-0-node}}first{{/name-0-node}}")
    env = {"TASK_NAME": "name-0-node", "name-0-node": "true"}
    run(sandbox, CONFIG_TEMPLATE_C="config-templates/c,c", **env)
    assert (sandbox / "c").read_text() == "first"


def test_it_works_from_any_directory_and_replaces_a_link(sandbox: Path, tmp_path: Path) -> None:
    (sandbox / "config-templates/c").write_text("new")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("old")
    (sandbox / "c.conf").symlink_to(elsewhere)
    done = run(
        sandbox,
        cmd='cd / && "$MESOS_SANDBOX"/bootstrap',
        CONFIG_TEMPLATE_C="config-templates/c,c.conf",
    )
    assert done.returncode == 0, done.stderr
    assert ((sandbox / "c.conf").read_text(), elsewhere.read_text()) == ("new", "old")


def test_a_file_keeps_its_mode(sandbox: Path) -> None:
    (sandbox / "config-templates/c").write_text("#!/bin/sh\n")
    (sandbox / "setup.sh").touch(0o755)
    (sandbox / "setup.sh").chmod(0o755)
    assert run(sandbox, CONFIG_TEMPLATE_C="config-templates/c,setup.sh").returncode == 0
    assert (sandbox / "setup.sh").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("option", ["--get-task-ip", "-get-task-ip", "--get-task-ip=true"])
def test_it_prints_the_address_and_renders_nothing(sandbox: Path, option: str) -> None:
    env = {"CONFIG_TEMPLATE_C": "not there,c"}
    done = run(sandbox, option, MESOS_CONTAINER_IP="192.0.2.7", **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "192.0.2.7\n", "")
    assert run(sandbox, option).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "renders"),
    [(["--resolve=false"], True), (["-template=false"], False), (["--help"], False)],
)
def test_options(sandbox: Path, arguments: list[str], renders: bool) -> None:
    (sandbox / "config-templates/c").write_text("x")
    done = run(sandbox, *arguments, CONFIG_TEMPLATE_C="config-templates/c,c")
    assert (done.returncode, (sandbox / "c").exists()) == (0, renders)


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        pytest.param("config-templates/gone,c", "", "config-templates/gone", id="no-template"),
        pytest.param("nonsense", "", "CONFIG_TEMPLATE_C: not <template>,<file>", id="variable"),
        pytest.param("config-templates/c,c", "{{#A}}", "{{#A}} is not closed", id="malformed"),
        pytest.param("config-templates/c,c", "{{>A}}", "partials", id="partial"),
    ],
)
def test_a_failure_ends_the_command(sandbox: Path, variable: str, text: str, problem: str) -> None:
    (sandbox / "config-templates/c").write_text(text)
    done = run(sandbox, cmd="set -e; ./bootstrap; touch later #", CONFIG_TEMPLATE_C=variable)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert not (sandbox / "later").exists()


def test_bytes_that_are_no_text_survive(sandbox: Path) -> None:
    (sandbox / "config-templates/c").write_bytes(b"\xff{{A}}\xfe")
    done = subprocess.run(
        [sandbox / "bootstrap"],
        env={b"A": b"\xc3\xa4\xff", b"CONFIG_TEMPLATE_C": b"config-templates/c,c", b"LC_ALL": b"C"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (sandbox / "c").read_bytes() == b"\xff\xc3\xa4\xff\xfe"


# --- the same mustache ----------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        *("{{A}}", "{{ A }}", "{{{B}}}", "{{&B}}", "{{{ B }}}", "{{GONE}}", "{{.}}", "{{a.b}}"),
        *("{{#A}}", "{{/A}}", "{{^A}}", "{{#NO}}", "{{^NO}}", "{{/NO}}", "{{#YES}}", "{{/YES}}"),
        *("{{! note }}", "{{=<% %>=}}", "<%A%>", "<%={{ }}=%>", "{{>P}}", "}}", "}"),
        *("\n", "\r\n", " ", "\t", "x", "<&>'\"", "{{#B}}", "{{/B}}", "{{#EMPTY}}", "{{/EMPTY}}"),
    ]
)
VALUES = {"A": "<a>", "B": "'b' & \"c\"", "YES": "True", "NO": "FALSE", "EMPTY": "", "a.b": "dot"}


@given(st.lists(PARTS, max_size=14).map("".join))
@examples(500)
def test_it_renders_as_the_agent_does(text: str) -> None:
    try:
        expected = render_leniently(text, VALUES, name="t")
    except TemplateError:
        with pytest.raises(TemplateFault):
            _render(text)
        return
    assert _render(text) == expected


def _render(text: str) -> tuple[str, tuple[str, ...]]:
    template = Template(text)
    return template.render(VALUES), tuple(template.missing)


# --- in the sandbox -------------------------------------------------------------------------------


def test_a_compiled_program_of_that_name_is_replaced_and_others_stay(tmp_path: Path) -> None:
    own = tmp_path / "bootstrap"
    own.write_bytes(b"\x7fELF and so on")
    assert install_bootstrap(tmp_path, PYTHON)
    assert (tmp_path / "bootstrap.fetched").read_bytes().startswith(b"\x7fELF")
    own.write_text("#!/bin/sh\necho the task's own\n")
    assert not install_bootstrap(tmp_path, PYTHON)
    assert "the task's own" in own.read_text()


def test_without_a_python_for_its_user_it_fails_and_says_so(tmp_path: Path) -> None:
    install_bootstrap(tmp_path, None)
    done = run(tmp_path, CONFIG_TEMPLATE_C="a,b")
    assert (done.returncode, "install /usr/bin/python3" in done.stderr) == (1, True)
    done = run(tmp_path, "--get-task-ip", MESOS_CONTAINER_IP="192.0.2.7")
    assert (done.returncode, done.stdout) == (0, "192.0.2.7\n")


def _parent(path: Path, identity: Identity) -> Path:
    """The directory of a path, as one that is closed to the user."""
    del identity
    return path.parent


def test_the_python_is_one_that_the_user_may_execute(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Identity(name="nobody", uid=65534, gid=65534, groups=(65534,))
    monkeypatch.setattr(templates, "_SYSTEM_PYTHONS", (Path("/no/python3"), Path("/bin/sh")))
    monkeypatch.setattr(templates, "first_closed_parent", _parent)
    assert templates.python_for(nobody) == Path("/bin/sh")
    assert templates.python_for(None) == PYTHON
    monkeypatch.setattr(templates, "_SYSTEM_PYTHONS", ())
    assert templates.python_for(nobody) is None


@pytest.mark.parametrize(
    ("cmd", "calls"),
    [
        ("./bootstrap", True),
        ("set -e\nexport A=1\n./bootstrap\n./server", True),
        ("export A=1 && ./bootstrap -resolve=false && ./server", True),
        ("$MESOS_SANDBOX/bootstrap; x", True),
        ('"${MESOS_SANDBOX}"/bootstrap', True),
        ('"$MESOS_SANDBOX/bootstrap"', True),
        ("(./bootstrap)", True),
        ("./server bootstrap", False),
        ("./bootstrap.sh", False),
        ("./bootstrap-all", False),
        ("bin/bootstrap", False),
        ("../bootstrap", False),
        ("./a/bootstrap", False),
        ("IP=$(./bootstrap --get-task-ip) ./server", False),
        ("IP=$(./bootstrap --get-task-ip); ./bootstrap", True),
        ("# ./bootstrap is not needed\n./server", False),
    ],
)
def test_calls_are_found(cmd: str, calls: bool) -> None:
    assert calls_bootstrap(cmd) is calls


def test_at_launch_missing_values_are_empty_and_noted() -> None:
    configs = (
        ConfigTemplate(name="a", template="{{ONE}}{{TWO}}{{ONE}}{{X}}", dest="a.conf"),
        ConfigTemplate(name="b", template="{{X}}", dest="b.conf"),
    )
    rendered = render_configs(configs, {"X": "x"})
    assert [one.text for one in rendered] == ["x", "x"]
    assert missing_note(rendered) == "config values that are not set, and empty: a.conf: ONE, TWO"
    assert missing_note(rendered[1:]) == ""


def test_a_malformed_template_is_refused_at_launch() -> None:
    with pytest.raises(TaskRefused, match=r"configs\.c"):
        render_configs((ConfigTemplate(name="c", template="{{#A}}", dest="c"),), {})


def test_the_program_needs_no_module_but_the_standard_library() -> None:
    done = subprocess.run(
        [
            sys.executable,
            *("-I", "-S", "-X", "importtime"),
            Path(__file__).parents[4]
            / "activities/temporal_plans/activities/agent/sandbox/bootstrap_program.py",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "re" in loaded
    assert not {name for name in loaded if "temporal" in name or "pystache" in name}
