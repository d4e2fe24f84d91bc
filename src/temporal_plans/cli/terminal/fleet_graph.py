"""The dependencies of an environment's entities: as text, and for programs that draw graphs."""

import json
from collections.abc import Iterator

from rich.text import Text

from temporal_plans.domain.fleets.entity_graph import EntityGraph, GraphEdge, GraphEntity


def graph_lines(graph: EntityGraph) -> Iterator[str | Text]:
    """Yield each entity with what it needs, then the cycles."""
    if not graph.entities:
        yield "no entities"
        return
    needs: dict[str, list[GraphEdge]] = {}
    for edge in graph.edges:
        needs.setdefault(edge.source, []).append(edge)
    versions = {one.name: _version(one) for one in graph.entities}
    for entity in graph.entities:
        yield Text(f"{entity.name} {_version(entity)} ({entity.product})", style="bold")
        for edge in needs.get(entity.name, ()):
            style = "bold red" if edge.problem else "dim" if edge.optional else ""
            yield Text(f"  needs {_edge_text(edge, versions)}", style=style)
    for cycle in graph.cycles:
        yield f"cycle: {' -> '.join((*cycle, cycle[0]))}"
    if graph.truncated:
        yield f"only the first {len(graph.edges)} dependencies are shown"


def _version(entity: GraphEntity) -> str:
    version = entity.version or "not installed"
    return f"{version} -> {entity.target}" if entity.target else version


def _edge_text(edge: GraphEdge, versions: dict[str, str]) -> str:
    words = [f"{edge.target} {versions.get(edge.target, '')}".rstrip(), f"({edge.required}"]
    text = " ".join(words) + (", optional)" if edge.optional else ")")
    text += ", in a cycle" if edge.cycle else ""
    return f"{text}: {edge.problem}" if edge.problem else text


def dot(graph: EntityGraph) -> Iterator[str]:
    """Yield the graph in the language of Graphviz."""
    yield f"digraph {json.dumps(graph.environment)} {{"
    yield "  node [shape=box];"
    for entity in graph.entities:
        label = json.dumps(f"{entity.name}\n{_version(entity)}")
        yield f"  {json.dumps(entity.name)} [label={label}];"
    for product in _missing(graph):
        yield f"  {json.dumps(product)} [style=dashed, color=red];"
    for edge in graph.edges:
        styles = [f"label={json.dumps(edge.required)}"]
        styles += ["style=dashed"] if edge.optional else []
        styles += ["color=red", f"tooltip={json.dumps(edge.problem)}"] if edge.problem else []
        styles += ["penwidth=2"] if edge.cycle else []
        yield f"  {json.dumps(edge.source)} -> {json.dumps(edge.target)} [{', '.join(styles)}];"
    yield "}"


def mermaid(graph: EntityGraph) -> Iterator[str]:
    """Yield the graph in the language of Mermaid."""
    names = [*(one.name for one in graph.entities), *_missing(graph)]
    ids = {name: f"e{number}" for number, name in enumerate(names)}
    yield "graph LR"
    for entity in graph.entities:
        yield f'  {ids[entity.name]}["{entity.name}<br/>{_version(entity)}"]'
    for product in _missing(graph):
        yield f'  {ids[product]}["{product}"]:::problem'
    for edge in graph.edges:
        arrow = "-.->" if edge.optional else "==>" if edge.cycle else "-->"
        yield f'  {ids[edge.source]} {arrow}|"{edge.required}"| {ids[edge.target]}'
    for number, edge in enumerate(graph.edges):
        if edge.problem:
            yield f"  linkStyle {number} stroke:red"
    yield "  classDef problem stroke:red,stroke-dasharray:4"


def _missing(graph: EntityGraph) -> list[str]:
    """Return the products that nothing provides."""
    known = {one.name for one in graph.entities}
    return sorted({one.target for one in graph.edges} - known)
