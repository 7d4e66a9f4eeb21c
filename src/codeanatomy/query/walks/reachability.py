"""What can be reached over edges of some kinds, nearest first.

    reach(reader, {"function:3f...": 1.0}, CALL_GRAPH, "dst", depth=2)
    # [Step("function:9a...", depth=1, via="function:3f...", path="requests/api.py", line=59, ...), ...]

Level by level: the edges that arrive at (`dst`) or leave (`src`) the nodes of a level. Those of a few nodes
are looked up in the copy of the edges that is sorted by that end; for many, the folder of each kind is read
and sifted. A node is reached once, at its smallest depth, by the way that is trusted most: as much as the
least trusted edge on it, and no more than where it started. What was started from is reached too, if a cycle
leads back. Tests: `tests/unit/normalize/test_reaching.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct, structs

from codeanatomy.query.engines.statements import Query, Reader, Slice, edges

# Whoever reaches more than this has asked about everything.
REACHED = 100_000
# So many nodes are looked up in the sorted copy: a row group for each, about 6 ms, whatever the lake holds.
# To read the folder of a kind takes 3 to 10 ms in a lake of django, and more in a larger one.
FEW = 2
# From who calls to what is called; and from call sites to functions, names outside and classes.
CALL_GRAPH = ("CALL_GRAPH",)
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")

End = Literal["src", "dst"]


class Step(Struct, frozen=True):
    """A node that was reached, and the edge by which."""

    node_id: str
    depth: int
    # The node one step nearer.
    via: str
    edge_kind: str
    path: str | None
    line: int | None
    # Of the least trusted edge on the way.
    confidence: float
    method: str | None

    def turned(self) -> Step:
        """The same edge, from its other end."""
        return structs.replace(self, node_id=self.via, via=self.node_id)


def reach(
    reader: Reader, start: Mapping[str, float], kinds: Collection[str], end: End, depth: int
) -> tuple[list[Step], bool]:
    """What is reached from nodes, of which each is trusted so much, and whether that is all.

    Against the edges (`dst`) or along them (`src`).
    """
    trust = dict(start)
    level, found = sorted(trust), dict[str, Step]()
    for distance in range(1, depth + 1):
        steps: dict[str, Step] = {}
        for edge in neighbours(reader, level, kinds, end):
            node, trusted = edge.node_id, min(edge.confidence, trust[edge.via])
            if node not in found and (node not in steps or trusted > steps[node].confidence):
                steps[node] = structs.replace(edge, depth=distance, confidence=trusted)
        if not steps or len(found) + len(steps) > REACHED:
            return list(found.values()), not steps
        found |= steps
        # What was started from may be reached too, by a cycle, but leads to nothing new.
        level = sorted(node for node in steps if node not in trust)
        trust.update({node: steps[node].confidence for node in level})
    return list(found.values()), True


def neighbours(reader: Reader, level: Collection[str], kinds: Collection[str], end: End) -> list[Step]:
    """The edges that have one of the nodes at an end, each as one step from there."""
    if not level:
        return []
    other = "src" if end == "dst" else "dst"
    near, far = f"{end}_node_id", f"{other}_node_id"
    query = Query(
        "SELECT * FROM e",
        {"e": edges_at(level, kinds, end)},
        order=(near, far, "edge_kind", "path", "line", "edge_id"),
        columns=(far, near, "edge_kind", "path", "line", "confidence", "resolution_method"),
    )
    return [Step(node, 1, via, *edge) for node, via, *edge in reader.rows(query)]


def edges_at(ids: Collection[str], kinds: Collection[str], end: End) -> Slice:
    """The edges of some kinds that have one of some nodes at an end, from where they are read fastest."""
    at_end = {f"{end}_node_id": tuple(ids)}
    if len(ids) > FEW:
        return edges(kinds, None, **at_end)
    return Slice(f"cpg_edges_by_{end}", edge_kind=kinds, **at_end)
