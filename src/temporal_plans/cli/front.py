"""A front process for commands that have much to put in order before they end.

The `temporal` CLI runs us for `temporal plan dev`, and kills us outright at Ctrl-C; a closed
terminal does nearly that. So the work is done by a child in a session of its own, and what people
and programs see as the command only passes signals on and waits. The child has one end of a pipe,
whose other end only the front holds: when the front is gone, by whatever death, the child reads the
end of the file and stops in order.
"""

import os
import signal
import sys

_PASSED_ON = frozenset({signal.SIGINT, signal.SIGTERM})
_AWAITED = _PASSED_ON | {signal.SIGCHLD}


def behind_a_front() -> int:
    """Go on in a child; there, the file descriptor that becomes readable when the front is gone.

    Call it before there are threads. In the front it raises SystemExit with the child's exit code,
    128 + N for one that was ended by signal N.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    gone, held = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, exit codes are lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child == 0:
        os.close(held)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return gone
    os.close(gone)
    raise SystemExit(_wait_for(child))


def _wait_for(child: int) -> int:
    """Until it has ended; signals that came since the fork are passed on, too.

    The signals stay blocked and are taken one by one: a handler of Python's runs only between two
    instructions, so one that came just before a call that waits would be passed on too late.
    """
    while True:
        number = signal.sigwait(_AWAITED)
        if number in _PASSED_ON:
            os.kill(child, number)  # not reaped yet, so the id is still its own
        elif os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return code if code >= 0 else 128 - code
