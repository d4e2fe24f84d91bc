"""The dependencies between the entities of an environment, and what is wrong with them."""

from builders.fleets import entity, needs, release, running_plan, snapshot
from temporal_plans.cli.terminal.fleet_graph import dot, graph_lines, mermaid
from temporal_plans.domain.fleets.entity_graph import EntityGraph, GraphEdge, entity_graph
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.world import World

CHAIN = snapshot(
    {
        "web": entity("g:web"),
        "db": entity("g:db", "1.0.0", state={"active_plan": running_plan("2.0.0")}),
        "cache": entity("g:cache", None),
    },
    {
        "g:web": [
            release(
                "1.0.0",
                dependencies=[
                    needs("g:db", "1.0.0", "1.x.x"),
                    needs("g:cache", optional=True),
                    needs("g:log", "3.0.0"),
                ],
            )
        ],
        "g:db": [release("1.0.0"), release("2.0.0")],
        "g:cache": [release("1.0.0", dependencies=[needs("g:db")])],
    },
)

CYCLE = snapshot(
    {"a": entity("g:a"), "b": entity("g:b"), "c": entity("g:c")},
    {
        "g:a": [release("1.0.0", dependencies=[needs("g:b")])],
        "g:b": [release("1.0.0", dependencies=[needs("g:a"), needs("g:c", optional=True)])],
        "g:c": [release("1.0.0", dependencies=[needs("g:a", "2.0.0")])],
    },
)


def graph(given: Snapshot) -> EntityGraph:
    return entity_graph(World(given))


def edges(found: EntityGraph) -> dict[tuple[str, str], GraphEdge]:
    return {(one.source, one.target): one for one in found.edges}


def test_edges_have_the_range_and_what_breaks_it() -> None:
    found = edges(graph(CHAIN))
    assert {pair: one.problem for pair, one in found.items()} == {
        ("web", "db"): "2.0.0 is out of range",
        ("web", "cache"): "",
        ("web", "g:log"): "nothing in its groups provides it",
        ("cache", "db"): "",
    }
    assert found["web", "db"].required == "1.0.0 to 1.x.x"
    assert found["web", "cache"].optional


def test_entities_have_their_version_and_that_of_the_running_plan() -> None:
    found = {one.name: one for one in graph(CHAIN).entities}
    assert (found["db"].version, found["db"].target) == ("1.0.0", "2.0.0")
    assert found["cache"].version is None


def test_cycles_are_of_required_dependencies_only() -> None:
    found = graph(CYCLE)
    assert found.cycles == (("a", "b"),)
    assert {pair for pair, one in edges(found).items() if one.cycle} == {("a", "b"), ("b", "a")}


def test_what_is_ignored_is_no_dependency() -> None:
    ignoring = snapshot(
        {"a": entity("g:a", ignored_dependencies=["g:b"])},
        {"g:a": [release("1.0.0", dependencies=[needs("g:b")])]},
    )
    assert graph(ignoring).edges == ()


def test_as_text() -> None:
    assert [str(line) for line in graph_lines(graph(CHAIN))] == [
        "cache not installed (g:cache)",
        "  needs db 1.0.0 -> 2.0.0 (any version)",
        "db 1.0.0 -> 2.0.0 (g:db)",
        "web 1.0.0 (g:web)",
        "  needs db 1.0.0 -> 2.0.0 (1.0.0 to 1.x.x): 2.0.0 is out of range",
        "  needs cache not installed (any version, optional)",
        "  needs g:log (3.0.0 or newer): nothing in its groups provides it",
    ]
    assert str(list(graph_lines(graph(CYCLE)))[-1]) == "cycle: a -> b -> a"
    assert list(graph_lines(EntityGraph(environment="e"))) == ["no entities"]


def test_as_dot() -> None:
    lines = list(dot(graph(CHAIN)))
    assert lines[0] == 'digraph "prod" {'
    assert '  "db" [label="db\\n1.0.0 -> 2.0.0"];' in lines
    assert (
        '  "web" -> "db" [label="1.0.0 to 1.x.x", color=red, tooltip="2.0.0 is out of range"];'
        in lines
    )
    assert '  "web" -> "cache" [label="any version", style=dashed];' in lines
    assert lines[-1] == "}"


def test_as_mermaid() -> None:
    lines = list(mermaid(graph(CYCLE)))
    assert lines[:2] == ["graph LR", '  e0["a<br/>1.0.0"]']
    assert '  e0 ==>|"any version"| e1' in lines
    assert '  e1 -.->|"any version"| e2' in lines
    assert "  linkStyle 3 stroke:red" in lines
