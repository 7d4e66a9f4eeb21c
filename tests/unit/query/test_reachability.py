"""Reach over a graph at hand, against a brute force of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.query.engines.statements import Query, Row, Slice
from codeanatomy.query.walks import reachability as reaching
from codeanatomy.query.walks.reachability import CALL_GRAPH, reach
from support.marks import examples

Edge = tuple[str, str, float]


class Edges:
    """A reader that answers the one query of reach, from a list."""

    def __init__(self, edges: Sequence[Edge]) -> None:
        self.edges = edges
        self.tables: list[str] = []

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        part = query.relations["e"]
        assert isinstance(part, Slice)
        self.tables.append(part.table)
        by_dst = "dst_node_id" in part.wanted
        level = part.wanted["dst_node_id" if by_dst else "src_node_id"]
        found: list[Any] = [
            (src, dst, "CALL_GRAPH", "a.py", 1, trust, "calls")
            if by_dst
            else (dst, src, "CALL_GRAPH", "a.py", 1, trust, "calls")
            for src, dst, trust in self.edges
            if (dst if by_dst else src) in level
        ]
        return sorted(found, key=lambda row: (row[1], row[0]))


def brute(edges: Sequence[Edge], start: str, depth: int) -> dict[str, tuple[int, float]]:
    """Every walk of at most so many steps; of the shortest to a node, the most trusted."""
    best: dict[str, tuple[int, float]] = {}
    walks = [(start, 1.0)]
    for distance in range(1, depth + 1):
        walks = [
            (dst, min(trust, known)) for node, known in walks for src, dst, trust in edges if src == node
        ]
        for node, trust in walks:
            if node not in best or (best[node][0] == distance and trust > best[node][1]):
                best[node] = (distance, trust)
        walks = list({(node, trust) for node, trust in walks})
    return best


nodes = st.sampled_from("abcdef")
edges = st.lists(
    st.tuples(nodes, nodes, st.sampled_from([0.3, 0.5, 0.7, 0.9])), max_size=14, unique_by=lambda e: e[:2]
)


@given(edges, nodes, st.integers(1, 5))
@settings(max_examples=examples(200), deadline=None)
def test_the_same_as_all_walks(edges: list[Edge], start: str, depth: int) -> None:
    steps, whole = reach(Edges(edges), {start: 1.0}, CALL_GRAPH, "src", depth)
    assert whole
    # A node is reached by its nearest neighbour that was reached first; of equally near ones by the best.
    found = {step.node_id: step.depth for step in steps}
    assert found == {node: distance for node, (distance, _) in brute(edges, start, depth).items()}
    assert all(step.confidence <= brute(edges, start, depth)[step.node_id][1] for step in steps)
    assert [step.depth for step in steps] == sorted(step.depth for step in steps)


def test_against_the_edges() -> None:
    steps, _ = reach(Edges([("a", "b", 0.9), ("b", "c", 0.5)]), {"c": 1.0}, CALL_GRAPH, "dst", 9)
    assert [(step.node_id, step.depth, step.via, step.confidence) for step in steps] == [
        ("b", 1, "c", 0.5),
        ("a", 2, "b", 0.5),
    ]


def test_no_way_is_trusted_more_than_its_start() -> None:
    edges = Edges([("a", "c", 0.9), ("b", "d", 0.3), ("b", "c", 0.7)])
    steps, _ = reach(edges, {"a": 0.5, "b": 0.9}, CALL_GRAPH, "src", 1)
    assert {(step.node_id, step.via, step.confidence) for step in steps} == {("c", "b", 0.7), ("d", "b", 0.3)}


def test_a_step_from_its_other_end() -> None:
    (step,), _ = reach(Edges([("a", "b", 0.9)]), {"a": 1.0}, CALL_GRAPH, "src", 1)
    assert (step.reversed().via, step.reversed().node_id) == ("b", "a")
    assert step.reversed().reversed() == step


def test_many_nodes_are_read_from_the_folder_of_the_kind() -> None:
    wide = Edges([("a", f"b{number}", 0.9) for number in range(20)] + [("b1", "c", 0.9)])
    reach(wide, {"a": 1.0}, CALL_GRAPH, "src", 3)
    assert wide.tables == ["cpg_edges_by_src", "cpg_edges", "cpg_edges_by_src"]


def test_too_much_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(reaching, "MAX_REACHED", 3)
    wide = Edges([("a", "b", 0.9), *(("b", f"c{number}", 0.9) for number in range(5))])
    steps, whole = reach(wide, {"a": 1.0}, CALL_GRAPH, "src", 3)
    assert not whole
    assert [step.node_id for step in steps] == ["b"]
