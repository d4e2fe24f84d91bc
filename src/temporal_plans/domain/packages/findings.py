"""What the verification of a package finds: errors and warnings, each with its place."""

from enum import StrEnum

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Reason


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Finding(Reason):
    """An error or a warning. ``check`` is the check that found it; ``file`` the path of the file
    in the package, and ``field`` the path in that file (``parameters.NODE_COUNT.default``)."""

    severity: Severity
    check: str = ""
    file: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}: {super().__str__()}" if self.file else super().__str__()

    def as_reason(self) -> Reason:
        """Return it as the reason of a refusal; its field begins with the file."""
        field = ": ".join(part for part in (self.file, self.field) if part)
        return Reason(
            field=field, problem=self.problem, value=self.value, fix=self.fix, line=self.line
        )


class Verification(CompactValue):
    """The result of a verification."""

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.errors


def error(file: str, field: str, problem: str, *, value: object = None, fix: str = "") -> Finding:
    """Return an error."""
    return Finding(
        severity=Severity.ERROR, file=file, field=field, problem=problem, value=value, fix=fix
    )


def warning(file: str, field: str, problem: str, *, value: object = None, fix: str = "") -> Finding:
    """Return a warning."""
    return Finding(
        severity=Severity.WARNING, file=file, field=field, problem=problem, value=value, fix=fix
    )


def of(reason: Reason, severity: Severity, file: str) -> Finding:
    """Return a reason as a finding in a file."""
    return Finding(
        severity=severity,
        file=file,
        field=reason.field,
        problem=reason.problem,
        value=reason.value,
        fix=reason.fix,
        line=reason.line,
    )
