"""Texts of files."""

from pathlib import Path

from temporal_plans.domain.values.refusal import Reason, SpecError


def read_text(path: Path) -> str:
    """Return the text of a file. Raises SpecError when it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError([Reason(field="", problem=reason)], source=str(path)) from error
    except UnicodeDecodeError as error:
        raise SpecError([Reason(field="", problem="is not UTF-8")], source=str(path)) from error
