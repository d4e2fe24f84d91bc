"""The author of a command, for the log of the plan."""

import getpass
import os
import socket


def whoami() -> str:
    """Return ``user@host``. It is a note and no proof; Temporal's authorisation is for that."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
