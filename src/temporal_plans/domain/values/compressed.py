"""Values that are written compressed when they are large.

Temporal takes 2 MiB as one payload. Names, ids and times repeat in large values: compressed they
are about a tenth, so that a plan of 20,000 steps can be started, carried on, read and returned.
"""

import base64
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, cast

from pydantic import (
    ModelWrapValidatorHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import to_json

from temporal_plans.domain.values.model import WITH_DEFAULTS, CompactValue

PLAIN_LIMIT = 300_000
"""Bytes of JSON up to which a value is written as it is, readable by everything."""

PAYLOAD_LIMIT = 1_900_000
"""Bytes of one payload that Temporal surely takes: its 2 MiB, less what is around a value."""

EXPANDED_LIMIT = 64 * 1024 * 1024
"""Bytes that a compressed value may expand to: more is refused unread."""

TEXT_LIMITS = (200, 40, 0)
"""Characters to which texts are cut, one limit after the other, until a value fits."""

_KEY = "compressed"

_nested: ContextVar[bool] = ContextVar("nested", default=False)
"""Whether a value is written as a part of another, which is compressed as a whole."""


class CompressibleValue(CompactValue):
    """A value that is written as ``{"compressed": text}`` when its JSON is longer than
    ``PLAIN_LIMIT``, and read from both forms: ``text`` is the JSON, deflated (zlib), in base85.
    A dump with the context ``WITH_DEFAULTS``, for programs, is never compressed.

    One that would not fit into a payload even so is written as the first of its ``shorter_forms``
    that does.
    """

    def shorter_forms(self) -> Iterator[Self]:
        """Yield the value with ever fewer of its texts, which others may have made long."""
        yield from ()

    @model_serializer(mode="wrap")
    def _without_defaults(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        if _nested.get():
            return super()._without_defaults(handler, info)
        with _as_parts():
            written = super()._without_defaults(handler, info)
        if info.mode != "json" or info.context is WITH_DEFAULTS:
            return written
        text = to_json(written)
        if len(text) <= PLAIN_LIMIT:
            return written
        return {_KEY: self._fitting(compress(text))}

    def _fitting(self, packed: str) -> str:
        """Return ``packed``, or that of the first shorter form that fits into a payload; the
        shortest when none does."""
        forms = self.shorter_forms()
        while len(packed) > PAYLOAD_LIMIT and (shorter := next(forms, None)) is not None:
            with _as_parts():
                packed = compress(shorter.model_dump_json().encode())
        return packed

    @model_validator(mode="wrap")
    @classmethod
    def _expanded(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        packed = _packed(value)
        if packed is None:
            return read(value)
        if _nested.get():
            raise ValueError(f"{_KEY}: stands in what was compressed already")
        try:
            text = expand(packed)
        except ValueError as error:
            raise ValueError(f"{_KEY}: {error}") from error
        with _as_parts():
            return cls.model_validate_json(text)


def _packed(value: object) -> str | None:
    """Return the text of a compressed value; None for a plain one."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if fields.keys() != {_KEY}:
        return None
    packed = fields[_KEY]
    if not isinstance(packed, str):
        raise ValueError(f"{_KEY}: not a text")
    return packed


@contextmanager
def _as_parts() -> Generator[None]:
    token = _nested.set(True)
    try:
        yield
    finally:
        _nested.reset(token)


def compress(text: bytes) -> str:
    """Return the bytes deflated, as a text in base85."""
    return base64.b85encode(zlib.compress(text, level=6)).decode("ascii")


def expand(text: str) -> bytes:
    """Return the bytes of a text made by ``compress``; ValueError for any other text, and for one
    that expands to more than ``EXPANDED_LIMIT`` bytes."""
    stream = zlib.decompressobj()
    try:
        expanded = stream.decompress(base64.b85decode(text), EXPANDED_LIMIT)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"can't be expanded: {error}") from error
    if not stream.eof:
        raise ValueError(f"is cut off, or expands to more than {EXPANDED_LIMIT} bytes")
    return expanded


def payload_size(value: CompressibleValue) -> int:
    """Return how many bytes the value has as a payload."""
    return len(value.model_dump_json().encode())
