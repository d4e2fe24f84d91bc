"""Who gives a command, for the plan's log."""

import getpass
import os
import socket


def whoami() -> str:
    """``user@host``. Not proof of anything: see Temporal's own authorisation for that."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
