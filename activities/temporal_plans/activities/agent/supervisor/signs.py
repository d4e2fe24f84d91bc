"""Signs in ``/proc`` of the task that a process belongs to."""

import os
import subprocess
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from temporal_plans.activities.agent.supervisor.environ import environ_of

_VARIABLE = b"MESOS_SANDBOX="
_TIMEOUT = 10.0  # seconds
_EXEC_TIMEOUT = 1.0  # seconds, for all processes together: a hostile task may have many

_AS_USER = """
exec 2>/dev/null
look() {
    environ=$(tr '\\0' '\\n' < /proc/$1/environ)
    sandbox=$(printf '%s\\n' "$environ" | sed -n 's/^MESOS_SANDBOX=//p' | head -n 1)
    printf '%s\\t%s\\t%s\\t%s\\t%s\\n' "$1" "$sandbox" "$(readlink /proc/$1/cwd)" \
        "$(readlink /proc/$1/fd/1)" "$(readlink /proc/$1/fd/2)"
}
again=
for pid; do
    look "$pid"
    [ -n "$environ" ] || again="$again $pid"
done
[ -z "$again" ] || sleep 0.05
for pid in $again; do
    look "$pid"
done
"""
"""Those without environment are looked at twice: they may be replacing their programs."""


class Signs(NamedTuple):
    """``sandbox``: its variable ``MESOS_SANDBOX``; ``directory``: its working directory;
    ``outputs``: the files of its standard output and error; ``groups``: its supplementary groups.
    Empty: unknown."""

    sandbox: str = ""
    directory: str = ""
    outputs: tuple[str, ...] = ()
    groups: frozenset[int] = frozenset()


def signs_of(pids: Collection[int], users: Collection[int]) -> Mapping[int, Signs]:
    """Return the signs of processes, as far as they can be read.

    An agent that is root in a container may not read those of other users. Then they are read in
    the name of each of the ``users``, whose processes they may be.
    """
    found: dict[int, Signs] = {}
    hidden: dict[_User, list[int]] = {}
    deadline = time.monotonic() + _EXEC_TIMEOUT
    for pid in pids:
        outputs = (_link(pid, "fd/1"), _link(pid, "fd/2"))
        user, groups = _user_and_groups(pid)
        found[pid] = signs = Signs(sandbox_of(pid, deadline), _link(pid, "cwd"), outputs, groups)
        is_hidden = not signs.directory and os.geteuid() == 0
        if is_hidden and user is not None and user.uid in users and user.uid != 0:
            hidden.setdefault(user, []).append(pid)
    for user, group in hidden.items():
        for pid, signs in _read_as(user, group).items():
            found[pid] = signs._replace(groups=found[pid].groups)
    return found


def user_of(pid: int) -> int | None:
    """Return the real user id of a process."""
    user, _ = _user_and_groups(pid)
    return user and user.uid


class _User(NamedTuple):
    """The real user and group of a process: only with both, another process may look into it."""

    uid: int
    gid: int


def _user_and_groups(pid: int) -> tuple[_User | None, frozenset[int]]:
    with (
        suppress(OSError),
        open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file,
    ):
        fields = dict(line.split(":", 1) for line in file if ":" in line)
        user = _User(int(fields["Uid"].split()[0]), int(fields["Gid"].split()[0]))
        return user, frozenset(map(int, fields.get("Groups", "").split()))
    return None, frozenset()


def sandbox_of(pid: int, deadline: float) -> str:
    """Return the sandbox that its environment names, or nothing (``environ_of``)."""
    with suppress(OSError):  # it has ended, or is hidden
        for entry in environ_of(pid, deadline).split(b"\0"):
            if entry.startswith(_VARIABLE):
                return os.fsdecode(entry.removeprefix(_VARIABLE))
    return ""


def _link(pid: int, name: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/{name}")
    return ""


def _read_as(user: _User, pids: Collection[int]) -> dict[int, Signs]:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["/bin/sh", "-c", _AS_USER, "signs", *map(str, pids)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            timeout=_TIMEOUT,
            check=False,
        )
        lines = [os.fsdecode(line).split("\t") for line in done.stdout.splitlines()]
        return {int(one[0]): Signs(one[1], one[2], tuple(one[3:])) for one in lines}
    return {}
