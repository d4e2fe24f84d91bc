"""The address of this machine, for tasks."""

import contextlib
import socket

_REMOTE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses for documentation: the kernel selects the machine's own address for a route to them."""


def machine_address() -> str:
    """Return the address by which other machines most likely reach this one: that of the default
    route, else that of the host name, else the loopback address. Nothing is sent."""
    for family, remote in _REMOTE.items():
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((remote, 9))
            return str(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        return socket.gethostbyname(socket.gethostname())
    return "127.0.0.1"
