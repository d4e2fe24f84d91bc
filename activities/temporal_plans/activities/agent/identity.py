"""Which user a task runs as."""

import os
import pwd
from pathlib import Path

from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.model import Value


class Identity(Value):
    """A user with its groups, as numbers."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def identity_for(user: str | None, *, field: str, allow_root: bool) -> tuple[Identity | None, str]:
    """The user to switch to, or None to stay; and a note for the task's status, or "".

    Only root can switch. An agent that isn't root runs every task as itself and says so. Raises
    TaskRefused when root is asked to become somebody who doesn't exist, or root where it may not.
    """
    if os.geteuid() != 0:
        return None, _stays(user)
    if user is None:
        user = pwd.getpwuid(0).pw_name
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise TaskRefused(
            f"{field}: there is no user {user!r} on this agent; create it or name another"
        ) from None
    if entry.pw_uid == 0 and not allow_root:
        raise TaskRefused(f"{field}: this agent runs no tasks as root; name another user")
    groups = tuple(os.getgrouplist(user, entry.pw_gid))
    return Identity(name=user, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups), ""


def closed_above(path: Path, identity: Identity) -> Path | None:
    """The first directory above ``path`` that a user may not pass, from the root down; or None.

    A task starts in its sandbox all the same, but can't reach it by its absolute path.
    """
    if identity.uid == 0:
        return None
    for parent in reversed(path.parents):
        stat = parent.stat()
        if stat.st_uid == identity.uid:
            passes = stat.st_mode & 0o100
        elif stat.st_gid in identity.groups:
            passes = stat.st_mode & 0o010
        else:
            passes = stat.st_mode & 0o001
        if not passes:
            return parent
    return None


def _stays(user: str | None) -> str:
    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        own = str(os.geteuid())  # common in containers
    if user is None or user == own:
        return ""
    return f"runs as {own}, not as {user}: the agent is not root"
