"""Refusals: one value for validators, admission, placement, checks and commands.

A ``Refusal`` has a code for programs and reasons for people. Each reason names the field, the
problem, the value found there and the fix. No code parses a text to find out why something was
refused; ``api.dialect`` maps codes to HTTP.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self

from pydantic import AwareDatetime

from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shown


class Code(StrEnum):
    """The codes of refusals of the engine and its wings. Developers' rules may use others."""

    INVALID = "invalid"
    """a value that can't be right, whatever the state"""
    MALFORMED = "malformed"
    """a message that can't be read"""
    VALUES_MISSING = "values-missing"
    """a template names values that were not given"""
    NOT_APPLICABLE = "not-applicable"
    """a command that this kind of element does not have"""
    MISSING_PHASE = "missing-phase"
    """a step was named without its phase"""
    NOT_FOUND = "not-found"
    AMBIGUOUS = "ambiguous"
    """the name fits several elements"""
    IN_ERROR = "in-error"
    """the element has errors that no command removes"""
    NOT_REENTRANT = "not-reentrant"
    """the plan has begun, and may be restarted or stopped by force only"""
    PARAMETERS_MISSING = "parameters-missing"
    ENDING = "ending"
    """the plan is ending; its next run may take the command"""
    SUPERSEDED = "superseded"
    """the sender, or the addressee, was superseded"""
    BY_ITSELF = "by-itself"
    """only the plan's owner starts it, when there is work for it"""
    NOT_RUNNING = "not-running"
    """the plan was never started, or has ended; start it first"""
    UNINSTALLING = "uninstalling"
    DECOMMISSIONING = "decommissioning"
    NOT_WANTED = "not-wanted"
    """the target configuration no longer has it"""
    CONFIGURATION = "configuration"
    """a configuration that can't be deployed"""
    DOES_NOT_FIT = "does-not-fit"
    """an agent can't take a requirement"""
    AGENT_LOST = "agent-lost"
    """the agent was lost since; ask the pool again"""
    IN_USE = "in-use"
    NAME_TAKEN = "name-taken"
    """the name is in use already"""
    UNAVAILABLE = "unavailable"
    """something needed is unavailable now; a retry may succeed"""
    FAILED = "failed"
    """an error without a code of its own, as of the server or of developers' code"""


class Reason(CompactValue):
    """One problem. ``field`` is its path (``pods.hello.tasks.server.cpus``; empty when it concerns
    no field), ``value`` the value found there (None without one), ``fix`` how to correct it,
    ``line`` the line in the file that was read, from 1. ``trace`` is the traceback of developers'
    code that failed, for ``explain --verbose`` and logs."""

    field: str = ""
    problem: str
    value: Any = None
    fix: str = ""
    line: int | None = None
    trace: str = ""

    def __str__(self) -> str:
        found = "" if self.value is None else f" (found {shown(self.value)})"
        fix = f"; {self.fix}" if self.fix else ""
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.problem}{found}{fix}"


class Refusal(CompactValue):
    """A refusal with its reasons. ``code`` is a kebab-case word (``not-found``, ``does-not-fit``);
    ``subject`` is the agent or rule that refuses, where several are evaluated. ``cure`` is what
    would change the answer, and ``again`` the time at which the answer may change by itself, where
    either is known."""

    code: str
    reasons: tuple[Reason, ...] = ()
    subject: str = ""
    cure: str = ""
    again: AwareDatetime | None = None

    @classmethod
    def of(cls, code: str, problem: str, *, field: str = "", fix: str = "") -> Self:
        """Return a refusal for one reason."""
        return cls(code=code, reasons=(Reason(field=field, problem=problem, fix=fix),))

    def __str__(self) -> str:
        text = "; ".join(map(str, self.reasons)) or self.code
        return f"{self.subject}: {text}" if self.subject else text


class RefusedError(UserFacingError):
    """The base of exceptions that carry a ``refusal``. As text: its reasons."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.refusal.reasons


class SpecError(RefusedError):
    """A service, a plan or its parameters can't be used; ``reasons`` lists every problem.

    As text: one reason a line, each led by the source and, where known, the line.
    """

    def __init__(
        self, reasons: Iterable[Reason], *, source: str = "", code: Code = Code.INVALID
    ) -> None:
        self.source = source
        super().__init__(Refusal(code=code, reasons=tuple(reasons)))
        self.args = ("\n".join(self._line(reason) for reason in self.reasons),)

    def _line(self, reason: Reason) -> str:
        line = "" if reason.line is None else f":{reason.line}"
        return f"{self.source}{line}: {reason}" if self.source else str(reason)
