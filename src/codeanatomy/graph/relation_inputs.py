"""What the graph takes from relations, beside the edges that they become.

    told(rows)                  # of some relations of a file, as a set
    told(old) == told(new)      # then only edges differ: the rest of the file's graph is as it was

When a function moves, files that call it have other relations, since ids are made of places: their calls lead
elsewhere, and nothing else of them is another thing. A refresh then swaps these edges (`rows.link_rows`)
and leaves the file alone. Tests: `tests/unit/graph/test_relation_inputs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.graph.context import LISTED_KINDS, NAMED_KIND, RELATIONS
from codeanatomy.graph.file_view import READS, SPAN, Columns, each

RELATION = tuple(READS[RELATIONS])
# What is outside of the repository becomes nodes that all files tell of.
OUTSIDE = frozenset({"EXTERNAL_MODULE", "QUALIFIED_NAME"})
USED = ("relation_kind", "src_kind", "src_id", "dst_kind", "dst_id", "dst_qname", "role", "reason")


def told(rows: Columns) -> frozenset[tuple[Any, ...]]:
    """What lists of nodes and other edges are made of, in any order."""
    listed = (row for row in each(rows, *RELATION) if row[0] in LISTED_KINDS)
    return frozenset((*listed, *_used(rows)))


def _used(rows: Columns) -> Iterator[tuple[Any, ...]]:
    for kind, src_kind, src, dst_kind, dst, name, role, reason, *place in each(rows, *USED, *SPAN):
        # A node that only relations know of.
        yield "source", src_kind, src, *place
        if dst is None:
            yield "unresolved", src, reason
        if dst_kind in OUTSIDE:
            yield "outside", kind, dst_kind, dst, name, role
        if kind == NAMED_KIND:
            yield "named", src, name
