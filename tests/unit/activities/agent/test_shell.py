"""The shell of commands and checks, and the machine's address."""

from ipaddress import ip_address
from pathlib import Path

import pytest

from temporal_plans.activities.agent.host.address import machine_address
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox import shell
from temporal_plans.activities.agent.sandbox.shell import shell_for


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in the place of the machine's directories of programs."""
    monkeypatch.setattr(shell, "_FOLDERS", (str(tmp_path),))
    return tmp_path


def test_auto_is_bash_where_the_machine_has_it(folder: Path) -> None:
    assert shell_for(None, "auto", field="f") == "/bin/sh"
    bash = folder / "bash"
    bash.touch()
    assert shell_for(None, "auto", field="f") == str(bash)


def test_the_service_wins_over_the_agent(folder: Path) -> None:
    for name in ("bash", "sh"):
        (folder / name).touch()
    assert shell_for("sh", "bash", field="f") == str(folder / "sh")
    assert shell_for(None, "bash", field="f") == str(folder / "bash")
    assert shell_for(str(folder / "sh"), "auto", field="f") == str(folder / "sh")


def test_a_shell_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(TaskRefused, match=r'scheduler.shell: .*"ksh"'):
        shell_for("ksh", "auto", field="scheduler.shell")


def test_the_address_is_one_of_this_machine() -> None:
    assert ip_address(machine_address())
