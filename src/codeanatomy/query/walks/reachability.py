"""Search breadth first over edges of given kinds.

    reach(reader, {"function:3f...": 1.0}, CALL_GRAPH, "dst", depth=2)
    # [Hop("function:9a...", depth=1, via="function:3f...", path="requests/api.py", line=59, ...), ...]

Each level reads the edges that arrive at (`dst`) or leave (`src`) the nodes of the level: for a few nodes
from the copy of the edges that is sorted by that end, for many by a scan of the folder of each edge kind. A
node is reached once, at its smallest depth, by the path of the highest confidence; that of a path is the
lowest of its edges and of its start node. A start node is reached too if a cycle leads back to it.

Tests: `tests/unit/query/test_reachability.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct, structs

from codeanatomy.query.engines.statements import Query, Reader, Slice, edges

# Nodes that a search may reach before it stops.
MAX_REACHED = 100_000
# Nodes looked up in the sorted copy: one row group each, about 6 ms whatever the size of the lake. A scan of
# the folder of a kind takes 3 to 10 ms in a lake of django, and more in a larger one.
MAX_LOOKUPS = 2
# Edges from callers to callees; and from call sites to functions, external names and classes.
CALL_GRAPH = ("CALL_GRAPH",)
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")

End = Literal["src", "dst"]


class Hop(Struct, frozen=True):
    """A node that was reached, and the edge that led to it."""

    node_id: str
    depth: int
    # The node one step nearer.
    via: str
    edge_kind: str
    path: str | None
    line: int | None
    # Lowest confidence on the path.
    confidence: float
    method: str | None

    def reversed(self) -> Hop:
        """Return the same edge seen from its other end."""
        return structs.replace(self, node_id=self.via, via=self.node_id)


def reach(
    reader: Reader, start: Mapping[str, float], kinds: Collection[str], end: End, depth: int
) -> tuple[list[Hop], bool]:
    """Return the nodes reached within `depth` edges, and whether the search is complete.

    `start` maps node ids to confidences. Follow edges backwards (`dst`) or forwards (`src`).
    """
    confidences = dict(start)
    level, reached = sorted(confidences), dict[str, Hop]()
    for distance in range(1, depth + 1):
        new: dict[str, Hop] = {}
        for edge in neighbours(reader, level, kinds, end):
            node, confidence = edge.node_id, min(edge.confidence, confidences[edge.via])
            if node not in reached and (node not in new or confidence > new[node].confidence):
                new[node] = structs.replace(edge, depth=distance, confidence=confidence)
        if not new or len(reached) + len(new) > MAX_REACHED:
            return list(reached.values()), not new
        reached |= new
        # A start node may be reached by a cycle, but was expanded already.
        level = sorted(node for node in new if node not in confidences)
        confidences.update({node: new[node].confidence for node in level})
    return list(reached.values()), True


def neighbours(reader: Reader, level: Collection[str], kinds: Collection[str], end: End) -> list[Hop]:
    """Return the edges that have one of the nodes at the given end, each as a hop to its other end."""
    if not level:
        return []
    other = "src" if end == "dst" else "dst"
    near, far = f"{end}_node_id", f"{other}_node_id"
    query = Query(
        "SELECT * FROM e",
        {"e": edges_at(level, kinds, end)},
        order=(near, far, "edge_kind", "path", "line", "repeat"),
        columns=(far, near, "edge_kind", "path", "line", "confidence", "resolution_method"),
    )
    return [Hop(node, 1, via, *edge) for node, via, *edge in reader.rows(query)]


def edges_at(ids: Collection[str], kinds: Collection[str], end: End) -> Slice:
    """Return the slice of edges that have one of the nodes at an end, from the table that is read fastest."""
    at_end = {f"{end}_node_id": tuple(ids)}
    if len(ids) > MAX_LOOKUPS:
        return edges(kinds, None, **at_end)
    return Slice(f"cpg_edges_by_{end}", edge_kind=kinds, **at_end)
