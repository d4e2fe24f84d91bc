"""The user that a task runs as."""

import os
import pwd
from pathlib import Path

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Reason


class Identity(Value):
    """A user with its numeric ids and groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def identity_for(user: str | None, *, field: str, allow_root: bool) -> tuple[Identity | None, str]:
    """Return the user to switch to, or None to keep the agent's; and a note for the task's status.

    Only root can switch. An agent that isn't root runs every task as its own user; the note says
    so. Raises TaskRefused for a user that doesn't exist, and for root if it is not allowed.
    """
    if os.geteuid() != 0:
        return None, _no_switch_note(user)
    if user is None:
        user = pwd.getpwuid(0).pw_name
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise TaskRefused(
            Reason(
                field=field,
                problem=f"there is no user {user!r} on this agent",
                fix="create it or name another user",
            )
        ) from None
    if entry.pw_uid == 0 and not allow_root:
        raise TaskRefused(
            Reason(
                field=field,
                problem="this agent runs no tasks as root",
                fix="name another user",
            )
        )
    return identity_of(entry), ""


def identity_of(entry: pwd.struct_passwd) -> Identity:
    """Return the identity of a user of this machine."""
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Identity(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups)


def first_closed_parent(path: Path, identity: Identity) -> Path | None:
    """Return the first directory above ``path``, from the root, that the user may not traverse.

    A task of that user still starts in its sandbox, but can't reach it by its absolute path.
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


def _no_switch_note(user: str | None) -> str:
    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        own = str(os.geteuid())  # common in containers
    if user is None or user == own:
        return ""
    return f"runs as {own}, not as {user}: the agent is not root"
