"""Compute derived columns, and turn values of them into conditions on stored columns.

    with_derived("cpg_edges", rows)                                 # SQL for the rows with `edge_id`
    derived_term(catalog.table("cpg_edges"), "edge_id", ids)        # edge_kind = ... AND src_node_id = ...

The engines compute a derived column only where a statement uses it. A condition on stored columns selects
data files by their statistics, which no condition on a computed value can.

Tests: `tests/unit/query/test_derived_columns.py`, `tests/spark/test_derived_columns.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from codeanatomy import catalog
from codeanatomy.catalog.spec import DerivedColumn, Table
from codeanatomy.delta.read.predicate import And, Compare, InList, Or, Term

# A number of more digits is no value of an int column.
REPEAT = re.compile(r"[1-9][0-9]{0,8}")


class EdgeKey(NamedTuple):
    """The columns that identify an edge."""

    edge_kind: str
    src_node_id: str
    dst_node_id: str
    repeat: int


def parse_edge_id(text: str) -> EdgeKey | None:
    """Return the columns of the edge with an id; None if no edge can have it.

    >>> parse_edge_id("CALLS;callsite:x.000003;qname:shop:sum")
    EdgeKey(edge_kind='CALLS', src_node_id='callsite:x.000003', dst_node_id='qname:shop:sum', repeat=0)
    >>> parse_edge_id("CALLS;a:x;b:y;2").repeat, parse_edge_id("CALLS;a:x;b:y;0"), parse_edge_id("shop.cart")
    (2, None, None)
    """
    match text.split(";"):
        case [kind, src, dst]:
            return EdgeKey(kind, src, dst, 0)
        case [kind, src, dst, repeat] if REPEAT.fullmatch(repeat):
            return EdgeKey(kind, src, dst, int(repeat))
    return None


def derived_column(table: Table, name: str) -> DerivedColumn | None:
    """Return the derived column of a name; None if the table has no such one."""
    return next((each for each in table.derived if each.column.name == name), None)


def stored_columns(table: Table, names: Iterable[str]) -> set[str]:
    """Return columns with each derived one replaced by those it is made of.

    >>> sorted(stored_columns(catalog.table("cpg_edges"), ["edge_id", "path"]))
    ['dst_node_id', 'edge_kind', 'path', 'repeat', 'src_node_id']
    """
    inputs = {each.column.name: each.inputs for each in table.derived}
    return {stored for name in names for stored in inputs.get(name, (name,))}


def with_derived(name: str, rows: str) -> str:
    """Return the SQL query `rows` of the stored columns of a table, with its derived columns, if any.

    >>> with_derived("cpg_nodes", "SELECT * FROM n")
    'SELECT * FROM n'
    """
    added = "".join(f", {each.sql}" for each in catalog.table(name).derived)
    return f"SELECT *{added} FROM ({rows}) AS stored" if added else rows


def derived_term(table: Table, name: str, values: Iterable[str]) -> Term:
    """Return the condition that a derived column has one of some values, on the columns it is made of."""
    return TERMS[name](table, values)


def _edge_id_term(table: Table, ids: Iterable[str]) -> Term:
    keys = sorted({key for key in map(parse_edge_id, ids) if key is not None})
    # The lists are compared with the statistics of files faster than each edge on its own.
    lists = [
        InList.of(table.column(name), {getattr(key, name) for key in keys}) for name in EdgeKey._fields[:3]
    ]
    edges = (
        And(tuple(Compare(table.column(name), "=", value) for name, value in key._asdict().items()))
        for key in keys
    )
    return And((*lists, Or(tuple(edges))))


# Functions that make the condition, by derived column.
TERMS: Mapping[str, Callable[[Table, Iterable[str]], Term]] = {"edge_id": _edge_id_term}
