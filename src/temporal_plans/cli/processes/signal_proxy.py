"""A proxy process for commands that need time to stop in order.

The `temporal` CLI runs this command for `temporal plan dev`, and kills it with SIGKILL at Ctrl-C; a
closed terminal has nearly the same effect. So a child in a session of its own does the work, and
the process that was started only passes signals on and waits. The child has one end of a pipe
whose other end only the proxy holds: when the proxy ends, for whatever reason, the child reads the
end of the file and stops in order.
"""

import os
import signal
import sys

_PASSED_ON = frozenset({signal.SIGINT, signal.SIGTERM})
_AWAITED = _PASSED_ON | {signal.SIGCHLD}


def fork_behind_proxy() -> int:
    """Fork. Returns in the child, with a file descriptor that becomes readable when the proxy ends.

    Call it before any thread is started. In the proxy it raises SystemExit with the child's exit
    code, 128 + N for a child that was killed by signal N.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, exit codes are lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return read_end
    os.close(read_end)
    raise SystemExit(_wait_for(child))


def _wait_for(child: int) -> int:
    """Wait for the child and pass signals on, including those since the fork; return its exit code.

    The signals stay blocked and are taken one by one: Python runs signal handlers only between two
    instructions, so a signal just before a blocking call would be passed on too late.
    """
    while True:
        number = signal.sigwait(_AWAITED)
        if number in _PASSED_ON:
            os.kill(child, number)  # not reaped yet, so the id is still its own
        elif os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return code if code >= 0 else 128 - code
