"""Declare the tables, kinds, views, semantic types and settings of the lake as data.

    describe        format a table or a kind for the command line and the generated pages
    entry_points    rules by which frameworks call definitions
    kinds           node and edge kinds of the graph
    readers         programs that read tables, by the features that they support
    semantic_types  meanings of values beyond their physical type, with SQL checks
    settings        options of extraction, refreshes, tables and observation
    spec            struct types that tables, columns and policies are written in
    tables          table literals, one module per stage
    validation      check that the table literals are consistent
    views           relations that SQL queries read, as SELECT statements over the graph

>>> table("cpg_edges_by_src").inputs
('cpg_edges',)
>>> [step.name for step in derivation_order()][:3]
['repo_files_v1', 'repo_file_blobs_v1', 'file_line_index_v1']

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from codeanatomy.catalog.spec import Table
from codeanatomy.catalog.tables import (
    extract,
    extract_cpython,
    extract_program,
    extract_trees,
    graph,
    meta,
    normalize,
    observe,
    relate,
)
from codeanatomy.errors import UnknownName

# Modules that hold table literals; the extractors' come first because `extract` re-exports their tables.
MODULES = (extract_cpython, extract_trees, extract_program, extract, normalize, relate, graph, meta, observe)
# In derivation order: each table after its inputs.
TABLES: tuple[Table, ...] = (
    *extract.TABLES,
    *normalize.TABLES,
    *relate.TABLES,
    *graph.TABLES,
    *meta.TABLES,
    *observe.TABLES,
)


def names() -> tuple[str, ...]:
    """Return the names of all tables, in derivation order."""
    return tuple(known.name for known in TABLES)


def table(name: str, tables: Iterable[Table] = TABLES) -> Table:
    """Return the table called `name`; raise UnknownName, which lists the known names."""
    known = {each.name: each for each in tables}
    if name not in known:
        raise UnknownName("table", name, known)
    return known[name]


def declared_in(name: str) -> str:
    """Return the path of the module that holds a table's literal.

    >>> declared_in("symtable_files_v1")
    'src/codeanatomy/catalog/tables/extract_cpython.py'
    """
    for module in MODULES:
        if any(isinstance(value, Table) and value.name == name for value in vars(module).values()):
            return f"src/{module.__name__.replace('.', '/')}.py"
    raise UnknownName("table", name, names())


def derivation_order(tables: Sequence[Table] = TABLES) -> tuple[Table, ...]:
    """Sort tables topologically by their inputs; ties keep the given order."""
    position = {step.name: number for number, step in enumerate(tables)}
    sorter = TopologicalSorter(
        {step.name: [name for name in step.inputs if name in position] for step in tables}
    )
    sorter.prepare()
    ready: list[int] = []
    order: list[Table] = []
    while sorter:
        for name in sorter.get_ready():
            heappush(ready, position[name])
        step = tables[heappop(ready)]
        order.append(step)
        sorter.done(step.name)
    return tuple(order)
