"""The graph of required dependencies between products: its cycles, and the order of installation.

Products that need each other have no order among themselves (they are one strongly connected
component, found by Tarjan's algorithm without recursion).
"""

from collections.abc import Iterator, Mapping, Set


class ProductGraph:
    """``requires`` are the needed products of each; ``installed`` those that are there already."""

    def __init__(self, requires: Mapping[str, Set[str]], installed: Set[str]) -> None:
        self._requires = {name: sorted(needs) for name, needs in requires.items()}
        self._component: dict[str, tuple[str, ...]] = {}
        self._depth: dict[str, int] = {}
        for component in self._components():
            members = tuple(sorted(component))
            own = set(component)
            needed = {n for name in members for n in self._requires.get(name, ())} - own
            depth = max((self._depth[n] + 1 for n in needed if n not in installed), default=0)
            for name in members:
                self._component[name], self._depth[name] = members, depth

    def cycle(self, product: str) -> tuple[str, ...]:
        """Return the products that need a product and are needed by it; it is one of them."""
        return self._component.get(product, (product,))

    def share_cycle(self, one: str, other: str) -> bool:
        """Return whether two products need each other, as every product does itself."""
        return one == other or self._component.get(one) is self._component.get(other, ())

    def depth(self, product: str) -> int:
        """Return the length of the longest path to a needed product that is not installed."""
        return self._depth.get(product, 0)

    def _components(self) -> Iterator[list[str]]:
        """Yield the strongly connected components, needed ones first."""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        on_stack: set[str] = set()
        for root in sorted(self._requires):
            if root in index:
                continue
            work: list[tuple[str, Iterator[str]]] = []
            self._enter(root, index, low, stack, on_stack, work)
            while work:
                name, needs = work[-1]
                for need in needs:
                    if need not in index:
                        self._enter(need, index, low, stack, on_stack, work)
                        break
                    if need in on_stack:
                        low[name] = min(low[name], index[need])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[name])
                    if low[name] == index[name]:
                        at = stack.index(name)
                        yield stack[at:]
                        on_stack -= set(stack[at:])
                        del stack[at:]

    def _enter(
        self,
        name: str,
        index: dict[str, int],
        low: dict[str, int],
        stack: list[str],
        on_stack: set[str],
        work: list[tuple[str, Iterator[str]]],
    ) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        on_stack.add(name)
        work.append((name, iter(self._requires.get(name, ()))))
