"""What can be reached over edges of some kinds, nearest first.

    reach(reader, ids, ("CALL_GRAPH",), "dst", depth=2)
    # [Step("function:9a...", depth=1, via="function:3f...", path="requests/api.py", line=59, ...), ...]

Level by level: the edges that arrive at (`dst`) or leave (`src`) the nodes of a level. A few nodes are looked
up in the copy of the edges that is sorted by that end; of many, the edges of the kind are read, one folder.
A node is reached once, at its smallest depth, by the way that is trusted most: as much as the least trusted
edge on it. Where it started is reached too, if a cycle leads back. Tests: `tests/test_reaching.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct, structs

from codeanatomy.query.lanes.reading import Query, Reader, Slice

# Whoever reaches more than this has asked about everything.
REACHED = 100_000
# A level of up to so many nodes is looked up in the sorted copy: a file or two, whatever the lake holds.
FEW = 8

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


def reach(
    reader: Reader, start: Iterable[str], kinds: Collection[str], end: End, depth: int
) -> tuple[list[Step], bool]:
    """What is reached from some nodes against (`dst`) or along (`src`) the edges; and whether that is all."""
    trust = dict.fromkeys(start, 1.0)
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
    table = f"cpg_edges_by_{end}" if len(level) <= FEW else "cpg_edges"
    query = Query(
        f"SELECT {other}_node_id, {end}_node_id, edge_kind, path, line, confidence, resolution_method FROM e",
        {"e": Slice(table, edge_kind=tuple(kinds), **{f"{end}_node_id": tuple(level)})},
        order=(f"{end}_node_id", f"{other}_node_id", "edge_kind", "path", "line"),
    )
    return [Step(node, 1, via, *edge) for node, via, *edge in reader.rows(query)]
