"""The process that forks commands and agents for a process of tests (``forked``).

It is asked on a socket that it inherits, by packets with a command line, an environment and a
directory as JSON and with files to write to; and on one that it is sent, by ``launcher``.
"""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

Run = Callable[[Sequence[str]], int]
"""Carries out the arguments of a command line; returns its exit code."""

_MESSAGE_LIMIT = 200_000
"""Bytes of a request: what a packet may have, and more than arguments and variables have here."""

_FILES_LIMIT = 256
"""Descriptors that the process that forks has at most."""

_PACKAGES = (
    "temporal_plans.cli.terminal",
    "temporal_plans.cli.actions",
    "temporal_plans.client",
    "temporal_plans.activities.agent",
)
"""What commands and agents import when they are run, in part."""

_PR_SET_PDEATHSIG = 1


def serve(requests: socket.socket) -> None:
    """Fork a keeper for each request, until nobody can ask any more."""
    run = importlib.import_module("temporal_plans.cli.main").run
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    gc.freeze()  # what is never collected is not copied by those who are forked
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    with selectors.DefaultSelector() as asked:
        asked.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in asked.select():
                if key.fileobj is not requests:
                    _fork_for_a_script(run, key.fileobj)
                    continue
                message, files, _, _ = socket.recv_fds(requests, _MESSAGE_LIMIT, 3)
                if not message:
                    return
                if message == b"listen":
                    asked.register(socket.socket(fileno=files[0]), selectors.EVENT_READ)
                    continue
                if os.fork() == 0:
                    requests.close()
                    _keep(run, json.loads(message), [0, *files[:2]], files[2])
                for one in files:
                    os.close(one)


def _fork_for_a_script(run: Run, listening: Any) -> None:
    connection, _ = listening.accept()
    with connection:
        if os.fork() == 0:
            message, files, _, _ = socket.recv_fds(connection, _MESSAGE_LIMIT, 3)
            _keep(run, json.loads(message), files, connection.detach())


def _keep(run: Run, request: Mapping[str, Any], files: Sequence[int], teller: int) -> None:
    """Run a command in a process of its own; tell its id, and at its end its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _end_with_the_parent(signal.SIGKILL)
    pid = os.fork()
    if pid == 0:
        _end_with_the_parent(signal.SIGTERM)
        os.setsid()
        os.close(teller)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(len(files), _FILES_LIMIT)
        _carry_out(run, request["argv"], request["env"], request["cwd"])
    for file in files:
        os.close(file)
    with socket.socket(fileno=teller) as told, suppress(BrokenPipeError):
        told.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        told.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _end_with_the_parent(how: signal.Signals) -> None:
    """As the children of our programs do (``worker.child_process``)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, how)


def _carry_out(run: Run, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv[:] = argv
    code = 1
    try:
        code = run(argv[1:])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        serve(channel)
