"""Suggest symbols and files by a part of their name, while a visitor types.

    index = SearchIndex(reader)
    index.suggest("sess send")[0]     # Suggestion(kind="FUNCTION", name="send", symbol="requests...", ...)

All names of a snapshot are copied once into a table of DuckDB in memory, because a scan of the lake's files
for each letter would take several times as long. Every term must occur in the qualified name or path, in any
case; a name that equals the text comes first, then beginnings, then the rest.

Tests: `tests/unit/serve/test_search.py`.
"""

from __future__ import annotations

import os

from msgspec import Struct

from codeanatomy.delta.read.duck import GB, connect, spill_folder, translate_errors
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, edges, nodes
from codeanatomy.query.symbols import DEFINITIONS

MAX_CHARS = 200
MAX_TERMS = 8
# Lines of variables: that of their first assignment.
NAMES = Query(
    "SELECT n.repo_id, n.node_kind AS kind, n.subkind, n.name, coalesce(n.qualname, n.name) AS symbol,"
    " n.path, n.line FROM n"
    " UNION ALL SELECT b.repo_id, b.node_kind, b.subkind, b.name, b.qualname, b.path, min(e.line)"
    " FROM b JOIN o ON o.repo_id = b.repo_id AND o.path = b.path"
    " AND o.qualname = left(b.qualname, length(b.qualname) - length(b.name) - 1)"
    " LEFT JOIN n ON n.repo_id = b.repo_id AND n.qualname = b.qualname AND n.path = b.path"
    " LEFT JOIN e ON e.dst_node_id = b.node_id AND e.path = b.path"
    " WHERE b.subkind NOT IN ('import', 'free', 'global') AND n.node_id IS NULL"
    " GROUP BY b.repo_id, b.node_kind, b.subkind, b.name, b.qualname, b.path"
    " UNION ALL SELECT f.repo_id, 'FILE', NULL, regexp_extract(f.path, '[^/]*$'), f.path, f.path, 1 FROM f",
    {
        "n": nodes(DEFINITIONS),
        "b": nodes(("BINDING",)),
        "o": nodes(("CLASS", "MODULE")),
        "e": edges(("DEFINES_BINDING",)),
        "f": nodes(("FILE",)),
    },
)
# Kinds in the order in which equal matches are listed; of one kind, test code comes last.
RANK = (
    "CASE kind WHEN 'CLASS' THEN 0 WHEN 'FUNCTION' THEN 1 WHEN 'FILE' THEN 3 WHEN 'BINDING' THEN 4 ELSE 2 END"
    " + CASE WHEN regexp_matches(path, '(^|/)(tests?/|test_|conftest)') THEN 5 ELSE 0 END"
)
MEMORY = GB


class Suggestion(Struct, frozen=True):
    """A symbol or file whose name matches."""

    repo_id: str
    kind: str
    subkind: str | None
    name: str
    # Qualified name, or the path of a file.
    symbol: str
    path: str | None
    line: int | None


class SearchIndex:
    """The names of one snapshot; safe to use in several threads."""

    def __init__(self, reader: LightReader) -> None:
        self._database = connect(spill_folder(os.getpid()), memory=MEMORY)
        with translate_errors():
            columns = f"*, lower(name) AS lowered, lower(symbol) AS whole, {RANK} AS rank"
            # Overloads, and a property with its setter, have one page: the first is listed.
            self._database.execute(
                f"CREATE TABLE names AS SELECT {columns} FROM ({NAMES.text(reader.relation)})"
                " QUALIFY row_number() OVER (PARTITION BY repo_id, kind, symbol, path ORDER BY line) = 1"
            )

    def __len__(self) -> int:
        rows = self._database.cursor().execute("SELECT count(*) FROM names").fetchall()
        return int(rows[0][0])

    def suggest(self, text: str, limit: int = 12, repo_id: str | None = None) -> list[Suggestion]:
        """Return the best matches of a text, at most `limit`."""
        typed = text[:MAX_CHARS].split()[:MAX_TERMS]
        if not typed:
            return []
        terms = [term.lower() for term in typed]
        last = terms[-1].rpartition(".")[2] or terms[-1]
        conditions = " AND ".join(["contains(whole, ?)"] * len(terms)) + " AND (? IS NULL OR repo_id = ?)"
        whole = " ".join(terms)
        with translate_errors():
            rows = (
                self._database.cursor()
                .execute(
                    "SELECT repo_id, kind, subkind, name, symbol, path, line FROM names"
                    f" WHERE {conditions} ORDER BY whole = ? DESC, lowered = ? DESC,"
                    " ends_with(symbol, ?) DESC,"
                    " starts_with(lowered, ?) DESC, contains(lowered, ?) DESC,"
                    " rank, length(symbol), symbol, repo_id, path, line LIMIT ?",
                    [*terms, repo_id, repo_id, whole, last, typed[-1], last, last, limit],
                )
                .fetchall()
            )
        return [Suggestion(*row) for row in rows]
