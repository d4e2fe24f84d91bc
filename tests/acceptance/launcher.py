"""The script ``temporal-plan`` of the documentation's commands: it asks a process that has imported
all commands to fork one (``forked``), with this one's files, and ends as that one does."""

import json
import os
import signal
import socket
import sys


def main() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as told:
        told.connect(os.environ["TESTS_FORK"])
        request = {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}
        socket.send_fds(told, [json.dumps(request).encode()], [0, 1, 2])
        pid = int(told.recv(100))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda caught, _: os.kill(pid, caught))
        code = int(told.recv(100))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
