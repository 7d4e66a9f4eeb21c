"""Extract the part of a file's relations that rows other than relation edges depend on.

    relation_inputs(rows)                               # of the file's relations, as a set
    relation_inputs(old) == relation_inputs(new)        # then only edges differ

When a function moves, the relations of files that call it change, since ids are made of spans: the targets
of their calls change, and nothing else. A refresh then replaces only these edges (`rows.relation_edge_rows`).
Tests: `tests/unit/graph/test_relation_inputs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.graph.context import LISTED_KINDS, NAMED_KIND, RELATIONS
from codeanatomy.graph.file_view import READS, SPAN, Columns, iter_rows

RELATION = tuple(READS[RELATIONS])
# Targets outside of the repository become nodes that all files contribute to.
EXTERNAL_KINDS = frozenset({"EXTERNAL_MODULE", "QUALIFIED_NAME"})
USED = ("relation_kind", "src_kind", "src_id", "dst_kind", "dst_id", "dst_qname", "role", "reason")


def relation_inputs(rows: Columns) -> frozenset[tuple[Any, ...]]:
    """Return what lists of nodes and other edges are made from, in no order."""
    listed = (row for row in iter_rows(rows, *RELATION) if row[0] in LISTED_KINDS)
    return frozenset((*listed, *_used(rows)))


def _used(rows: Columns) -> Iterator[tuple[Any, ...]]:
    for kind, src_kind, src, dst_kind, dst, name, role, reason, *span in iter_rows(rows, *USED, *SPAN):
        # The source may be a node that only relations have.
        yield "source", src_kind, src, *span
        if dst is None:
            yield "unresolved", src, reason
        if dst_kind in EXTERNAL_KINDS:
            yield "outside", kind, dst_kind, dst, name, role
        if kind == NAMED_KIND:
            yield "named", src, name
