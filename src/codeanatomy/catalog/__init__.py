"""Declared data only: every table of the lake, as one literal each.

>>> table("cpg_edges_by_src").inputs
('cpg_edges',)
>>> [step.name for step in derivation_order()][:3]
['repo_files_v1', 'repo_file_blobs_v1', 'file_line_index_v1']

Where to look: `spec` says what a table is, `columns` and `semantics` what tables share, a module per stage
holds the tables (the witnesses of `extract` are beside it), `check` proves that they fit together.

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

# Where literals are; the witnesses first, because `extract` gathers their tables.
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
    """The names of all tables, in derivation order."""
    return tuple(known.name for known in TABLES)


def table(name: str, tables: Iterable[Table] = TABLES) -> Table:
    """The table of that name, or an error that lists what exists."""
    known = {each.name: each for each in tables}
    if name not in known:
        raise UnknownName("table", name, known)
    return known[name]


def declared_in(name: str) -> str:
    """The file that holds a table's literal.

    >>> declared_in("symtable_files_v1")
    'src/codeanatomy/catalog/tables/extract_cpython.py'
    """
    for module in MODULES:
        if any(isinstance(value, Table) and value.name == name for value in vars(module).values()):
            return f"src/{module.__name__.replace('.', '/')}.py"
    raise UnknownName("table", name, names())


def derivation_order(tables: Sequence[Table] = TABLES) -> tuple[Table, ...]:
    """The tables, each after its inputs among them; of those that are ready, the first given goes first."""
    place = {step.name: number for number, step in enumerate(tables)}
    sorter = TopologicalSorter(
        {step.name: [name for name in step.inputs if name in place] for step in tables}
    )
    sorter.prepare()
    ready: list[int] = []
    order: list[Table] = []
    while sorter:
        for name in sorter.get_ready():
            heappush(ready, place[name])
        step = tables[heappop(ready)]
        order.append(step)
        sorter.done(step.name)
    return tuple(order)
