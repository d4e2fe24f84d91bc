"""The errors of content stores. Each is a refusal with what to do."""

from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError
from temporal_plans.messages.contents import CONTENT_LIMIT


class ContentError(RefusedError):
    """A content can't be stored or read."""

    @classmethod
    def _of(cls, code: Code, problem: str, value: object, fix: str) -> Refusal:
        reason = Reason(field="content", problem=problem, value=value, fix=fix)
        return Refusal(code=code, reasons=(reason,))


class ContentMissing(ContentError):
    """The store does not have the content, or not all of its parts."""

    def __init__(self, digest: str, what: str = "is not in the store") -> None:
        fix = "put it again: deploy the file or package that it came from"
        super().__init__(self._of(Code.NOT_FOUND, what, digest, fix))


class ContentDamaged(ContentError):
    """The store has other bytes under this digest. ``place`` is where they are."""

    def __init__(self, digest: str, why: str, place: str) -> None:
        problem = f"is damaged: {why}"
        super().__init__(self._of(Code.FAILED, problem, digest, f"{place}, then put it again"))


class ContentTooLarge(ContentError):
    """The content has more than ``CONTENT_LIMIT`` bytes."""

    def __init__(self, size: int) -> None:
        problem = f"has more than {CONTENT_LIMIT:,} bytes"
        super().__init__(self._of(Code.INVALID, problem, size, "make it smaller, or divide it"))


class ContentUnavailable(ContentError):
    """The place of the contents does not answer, or refuses; a retry may succeed."""

    def __init__(self, place: str, error: Exception) -> None:
        problem = f"{place} can't be used: {type(error).__name__}: {error}"
        super().__init__(Refusal.of(Code.UNAVAILABLE, problem, field="content", fix="retry"))


class InvalidDigest(ContentError):
    """A text that can't be a digest."""

    def __init__(self, digest: str) -> None:
        problem = "not a digest"
        fix = "use the 64 hexadecimal digits (0-9, a-f) of a SHA-256"
        super().__init__(self._of(Code.INVALID, problem, digest, fix))
