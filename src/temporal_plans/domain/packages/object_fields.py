"""Fields of Kubernetes objects as plain dicts.

Objects come from outside: a field of another type is as good as none.
"""

from collections.abc import Mapping
from typing import Any, cast

Object = Mapping[str, Any]


def at(found: Object, *path: str) -> Object:
    """Return the mapping at a path; an empty one where there is none."""
    for name in path:
        inner: Any = found.get(name)
        found = cast(Object, inner) if isinstance(inner, Mapping) else {}
    return found


def text(found: Object, name: str) -> str:
    """Return the text of a field; an empty one where there is none."""
    value = found.get(name)
    return value if isinstance(value, str) else ""


def number(found: Object, name: str, default: int = 0) -> int:
    """Return the integer of a field."""
    value = found.get(name)
    return value if isinstance(value, int) else default


def entries(found: Object, name: str) -> list[Object]:
    """Return the mappings in the list of a field."""
    value = found.get(name)
    inner: list[Any] = cast(Any, value) if isinstance(value, list) else []
    return [cast(Object, one) for one in inner if isinstance(one, Mapping)]
