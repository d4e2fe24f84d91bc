"""The graph of products to be installed, kept up to date while entities change."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from temporal_plans.domain.fleets.graph import ProductGraph

_Key = TypeVar("_Key")


class Share(NamedTuple):
    """What one entity adds to the graph: its product requires others."""

    product: str
    requires: frozenset[str]
    installed: bool


class InstallGraph:
    """Counts of what entities require; the graph is computed when it is asked for."""

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._shares: dict[str, Share] = {}
        self._edges: Counter[tuple[str, str]] = Counter()
        self._installed: Counter[str] = Counter()
        self._graph: ProductGraph | None = None
        for name, share in shares.items():
            self._put(name, share)

    @property
    def graph(self) -> ProductGraph:
        if self._graph is None:
            requires: dict[str, set[str]] = {}
            for product, needed in self._edges:
                requires.setdefault(product, set()).add(needed)
            self._graph = ProductGraph(requires, set(self._installed))
        return self._graph

    def change(self, shares: Iterable[tuple[str, Share | None]]) -> tuple[ProductGraph, bool]:
        """Change what entities add (None: they are gone); returns the graph before, and whether
        other products require each other now."""
        before = self.graph
        edges, installed = set(self._edges), set(self._installed)
        for name, share in shares:
            self._put(name, share)
        changed = edges != set(self._edges)
        if changed or installed != set(self._installed):
            self._graph = None
        return before, changed

    def _put(self, name: str, share: Share | None) -> None:
        old = self._shares.pop(name, None)
        if old is not None:
            self._count(old, -1)
        if share is not None:
            self._shares[name] = share
            self._count(share, 1)

    def _count(self, share: Share, by: int) -> None:
        for needed in share.requires:
            _add(self._edges, (share.product, needed), by)
        if share.installed:
            _add(self._installed, share.product, by)


def _add(counts: Counter[_Key], key: _Key, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
