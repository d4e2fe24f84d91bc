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
from types import FrameType

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)


def behind_a_front() -> int:
    """Go on in a child; there, the file descriptor that becomes readable when the front is gone.

    Call it before there are threads. In the front it raises SystemExit with the child's exit code,
    128 + N for one that was ended by signal N.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    gone, held = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    child = os.fork()
    if child == 0:
        os.close(held)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return gone
    os.close(gone)
    raise SystemExit(_wait_for(child, before))


def _wait_for(child: int, mask: set[int | signal.Signals]) -> int:
    """Until it has ended; signals that came since the fork are passed on, too."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(child, number)  # not reaped yet, so the id is still its own

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code
