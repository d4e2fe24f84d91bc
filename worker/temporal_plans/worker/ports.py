"""Free ports of this machine for servers that may be started again on the same port."""

import random
import socket

LOOPBACK = "127.0.0.1"

PORTS = range(15000, 20000)
"""Below what the kernel gives to outgoing connections: while a server is down, none of those that
try to reach it may be given the port that it will need again."""


_given: set[int] = set()


def free_port() -> int:
    """Return a port of PORTS on which no program listens. Raises OSError when all are in use.

    Those that this process was given before come last: a server may not have begun to listen yet.
    """
    ports = random.sample(PORTS, len(PORTS))
    for port in sorted(ports, key=_given.__contains__):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise OSError(f"all ports of {PORTS} on {LOOPBACK} are in use")


def free_ports(count: int) -> list[int]:
    """Return several free ports, each once. Raises OSError."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)
