"""Lists that are kept sorted."""

from bisect import insort
from collections.abc import Callable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def insert(items: list[_Item], item: _Item, key: Callable[[_Item], str]) -> None:
    """Insert an item into a sorted list, after those with the same key."""
    if not items or key(items[-1]) <= key(item):
        items.append(item)
    else:
        insort(items, item, key=key)


def together(lists: Sequence[Sequence[_Item]]) -> Sequence[_Item]:
    """Return the items of lists, each item once."""
    filled = [one for one in lists if one]
    if len(filled) < 2:
        return filled[0] if filled else ()
    return tuple({id(item): item for one in filled for item in one}.values())
