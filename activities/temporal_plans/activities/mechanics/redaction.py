"""Removes the values of secrets from texts that leave the process."""

from collections.abc import Iterable

_SHOWN = "*****"

_LINE_MINIMUM = 4
"""Shorter lines of a value of several lines stay: a ``}`` is no secret."""


class Redactor:
    """Replaces every occurrence of the values; of a value of several lines, also its lines.

    Blank values are never replaced. Values are bytes, as the output of commands is.
    """

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        found: set[bytes] = set()
        for value in values:
            found.add(value.strip())
            lines = [line.strip() for line in value.splitlines()]
            if len(lines) > 1:
                found.update(line for line in lines if len(line) >= _LINE_MINIMUM)
        self._values = sorted(found - {b""}, key=len, reverse=True)

    @property
    def longest(self) -> int:
        """The length of the longest value."""
        return len(self._values[0]) if self._values else 0

    def text(self, text: str) -> str:
        """Return a text without the values."""
        if not self._values:
            return text
        return self._shown(text.encode("utf-8", "replace"), 0)

    def tail(self, output: bytes, limit: int) -> str:
        """Return the last ``limit`` bytes of an output without the values, also without the part of
        a value that they begin in.

        ``output`` needs its last ``limit + longest`` bytes only.
        """
        return self._shown(output, max(0, len(output) - limit))

    def _shown(self, data: bytes, start: int) -> str:
        parts: list[str] = []
        for begin, end in self._spans(data):
            if end > start:
                parts += [_decoded(data[start:begin]) if begin > start else "", _SHOWN]
                start = end
        return "".join([*parts, _decoded(data[start:])])

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return the places of all values in order, with those that overlap in one."""
        spans: list[tuple[int, int]] = []
        for value in self._values:
            at = data.find(value)
            while at >= 0:
                spans.append((at, at + len(value)))
                at = data.find(value, at + 1)
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(spans):
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
