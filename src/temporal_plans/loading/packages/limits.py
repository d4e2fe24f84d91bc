"""The limits of packages, in one place, and the refusals of what exceeds them."""

from temporal_plans.domain.values.refusal import Reason

SIZE_LIMIT = 10 * 1024 * 1024
"""Bytes of all files of a package together, and of an archive."""

FILE_COUNT_LIMIT = 5_000

REASON_LIMIT = 20
"""Reasons that the refusal of one archive lists."""


def too_large(name: str) -> Reason:
    """Return the reason against a package, or an archive, above the limit."""
    return Reason(
        field=name,
        problem=f"has more than {SIZE_LIMIT // 2**20} MB",
        fix="keep large files out of the package",
    )


def too_many(name: str) -> Reason:
    """Return the reason against a package with too many files."""
    return Reason(
        field=name,
        problem=f"has more than {FILE_COUNT_LIMIT} files",
        fix="keep other files out of the package",
    )
