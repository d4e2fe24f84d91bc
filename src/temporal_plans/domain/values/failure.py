"""Errors whose text is written for users."""

from typing import ClassVar


class UserFacingError(Exception):
    """The base of errors that are not bugs: their text names the problem and the fix, and a command
    prints it without a traceback. ``usage``: the command line or the environment is wrong."""

    usage: ClassVar[bool] = False
