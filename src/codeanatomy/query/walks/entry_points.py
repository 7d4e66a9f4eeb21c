"""Read the definitions that frameworks call: the edges that `graph.entry_points` has made.

    read_entry_points(reader, "shop")[0]
    # EntryPoint(symbol="shop.web.items", kind="http", name="/items", framework="flask", confidence=0.7,
    #            evidence="@app.route", path="shop/web.py", line=12, ...)

Tests: `tests/unit/query/test_entry_points.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from codeanatomy.catalog.entry_points import DECLARATION_KINDS, ROOT_KINDS
from codeanatomy.catalog.views import ENTRY_POINTS
from codeanatomy.query.engines.statements import Query, Reader, Relation, Slice, of_repository

COLUMNS = (
    "repo_id, defined_path, defined_line, symbol_id, symbol, kind, name, framework, confidence, evidence"
)


class EntryPoint(Struct, frozen=True, order=True):
    """A definition that a framework calls."""

    repo_id: str
    path: str
    line: int | None
    node_id: str
    symbol: str
    kind: str
    # What it is called by: the route, command or event; else its own name.
    name: str
    framework: str
    confidence: float
    evidence: str

    @property
    def is_root(self) -> bool:
        """Whether it is called from outside: a request, a command, a test runner."""
        return self.kind in ROOT_KINDS

    @property
    def is_declaration(self) -> bool:
        """Whether it is a signature and not code that runs."""
        return self.kind in DECLARATION_KINDS


def read_entry_points(
    reader: Reader, repo_id: str | None = None, ids: Collection[str] | None = None
) -> list[EntryPoint]:
    """Return the entry points of the lake, of one repository, or of some definitions, by file and line."""
    relations = view_relations(repo_id)
    if ids is not None:
        relations["e"] = Slice("cpg_edges_by_dst", edge_kind=("ENTRY_POINT",), dst_node_id=sorted(ids))
    rows = reader.rows(Query(f"SELECT DISTINCT {COLUMNS} FROM ({ENTRY_POINTS.sql}) AS v", relations))
    return sorted(EntryPoint(*row) for row in rows)


def view_relations(repo_id: str | None) -> dict[str, Relation]:
    """Return what the names in the view of entry points stand for."""
    reads = ENTRY_POINTS.reads.items()
    return {name: of_repository(table, repo_id, **wanted) for name, (table, wanted) in reads}


def by_definition(entries: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    """Return the most certain entry point of each definition, roots first."""
    chosen: dict[str, EntryPoint] = {}
    for each in sorted(entries, key=lambda entry: (not entry.is_root, -entry.confidence, entry)):
        chosen.setdefault(each.node_id, each)
    return chosen
