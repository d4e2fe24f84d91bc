"""Locks of files, which end with the processes that have them."""

import fcntl


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process and its heirs; return whether no other has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
