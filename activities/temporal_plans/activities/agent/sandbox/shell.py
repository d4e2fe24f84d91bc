"""The shell that executes the commands and checks of a task."""

from pathlib import Path

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.values.refusal import Reason

SH = "/bin/sh"

_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin")


def shell_for(wanted: str | None, default: str, *, field: str) -> str:
    """Return the path of the shell that a pod wants (None: the agent's ``default``). Raises
    TaskRefused when it does not exist."""
    path = usable_shell(wanted, default)
    if path is None:
        raise TaskRefused(
            Reason(
                field=field,
                problem="no such shell on this agent",
                value=wanted or default,
                fix="install it",
            )
        )
    return path


def usable_shell(wanted: str | None, default: str) -> str | None:
    """Return the path of a shell by name or absolute path; None when it does not exist. ``auto`` is
    bash where the machine has it, else sh."""
    name = wanted or default
    if name == "auto":
        return usable_shell("bash", "") or SH
    candidates = [Path(name)] if name.startswith("/") else [Path(f, name) for f in _FOLDERS]
    return next((str(path) for path in candidates if path.exists()), None)
