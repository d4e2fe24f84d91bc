"""Malformed variants of a JSON document: what a hostile or a hasty sender may write."""

import copy
import json
import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

Json = Any

STRANGE: Sequence[Json] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**30,
    10**400,
    0.5,
    -0.0,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "a",
    "\x00",
    "a\x00b",
    "\u202e",
    "\ud800",
    "😀" * 50,
    "../../etc/passwd",
    "/",
    "a/b/c",
    "${A}",
    "{{A}}",
    "x" * 2000,
    "1h30m",
    "-5s",
    "99999999999999d",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    [],
    [[]],
    [None],
    {},
    {"": ""},
    {"compressed": ""},
    {"compressed": "hello"},
    {"compressed": 7},
    {"kind": "sleep", "duration": -1},
    {"kind": "nothing"},
)
"""Values that may stand in the place of any other."""


TEXT_LIMIT, LIST_LIMIT = 20_000, 20
"""Characters and items of what is repeated: repetitions of repetitions must stay small."""


def mutated(document: Json, random: Random) -> Json:
    """Return a copy of the document with one to three mutations at random places."""
    result = json.loads(json.dumps(document))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        result = _mutate(result, random)
    return result


def _mutate(document: Json, random: Random) -> Json:
    holder, key = random.choice(_places(document))
    if holder is None:
        return _copied((*STRANGE, [document], {"input": document}, _nested(document)), random)
    random.choice(_CHANGES)(holder, key, random)
    return document


def _copied(values: Sequence[Json], random: Random) -> Json:
    """Return one of the values, the document's own: what changes it later must not change
    ``STRANGE``, which would grow from document to document."""
    return copy.deepcopy(random.choice(values))


def _places(document: Json) -> list[tuple[Any, Any]]:
    """All places of the document: the holder and the key or index in it; the document itself has no
    holder."""
    found: list[tuple[Any, Any]] = [(None, None)]
    left = [document]
    while left:
        holder = left.pop()
        if isinstance(holder, dict):
            entries = cast("dict[str, Json]", holder)
            found += [(entries, key) for key in entries]
            left += entries.values()
        elif isinstance(holder, list):
            items: list[Json] = holder  # pyright: ignore[reportUnknownVariableType]
            found += [(items, index) for index in range(len(items))]
            left += items
    return found


def _replace(holder: Any, key: Any, random: Random) -> None:
    holder[key] = _copied(STRANGE, random)


def _drop(holder: Any, key: Any, random: Random) -> None:
    del holder[key]


def _rename(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder, dict):
        holder[random.choice(("", "extra", f"{key}s", str(key).upper(), "kind"))] = holder[key]


def _nest(holder: Any, key: Any, random: Random) -> None:
    holder[key] = random.choice(([holder[key]], {"a": holder[key]}, _nested(holder[key])))


def _repeat(holder: Any, key: Any, random: Random) -> None:
    value = holder[key]
    if isinstance(value, list):
        holder[key] = (value * random.choice((2, 50)))[:LIST_LIMIT]
    elif isinstance(value, str):
        holder[key] = (value * random.choice((2, 500)))[:TEXT_LIMIT]
    elif isinstance(value, int):
        holder[key] = -value


def _nested(value: Json) -> Json:
    for _ in range(60):
        value = [value]
    return value


_CHANGES: Sequence[Callable[[Any, Any, Random], None]] = (
    _replace,
    _replace,
    _replace,
    _drop,
    _rename,
    _nest,
    _repeat,
)
