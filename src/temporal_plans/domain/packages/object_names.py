"""Which names can be those of objects in a cluster.

A name is a part of the path of a request. With other characters than names have it would change
the path, or the options behind it: a deletion of ``..`` is one of the whole namespace.
"""

import re

_WRONG = re.compile(r"[/\\%?#;&=]|[^\x21-\x7e]")


def object_name_fault(name: str) -> str | None:
    """Return why a text can't name an object or a namespace; None when the API server may take
    it, which has stricter rules for most kinds."""
    if not name:
        return "a name must not be empty"
    if name in (".", ".."):
        return f"a name must not be {name!r}"
    if wrong := _WRONG.search(name):
        return f"a name must not contain {wrong[0]!r}"
    return None
