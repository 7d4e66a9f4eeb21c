"""Extract files in memory, and derive the rows of a normalize table from their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.spec import Table
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import extract_file, table_batches
from codeanatomy.file_view import FileView, load_views
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import READS
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading

# By table.
Rows: TypeAlias = dict[str, list[dict[str, Any]]]
FSTRING = "x = f'{a, f(), (lambda: 1)}'\n"


def witnessed(sources: Mapping[str, bytes]) -> Rows:
    """Extract files, and return rows by table."""
    tables = [table.name for table in catalog.TABLES if table.stage == "extract"]
    files = [
        extract_file("r", _reading(path, raw), EXTRACTORS, ExtractOptions(), {}, lambda _: None)
        for path, raw in sources.items()
    ]
    return {name: batch.to_pylist() for name, batch in table_batches(tables, files).items()}


def _reading(path: str, raw: bytes) -> Reading:
    return Reading(Entry(path, f"/{path}", len(raw), 0, False, None), raw, 0, None)


def files_of(rows: Rows) -> list[FileView]:
    """Group rows by file, as the rules get them."""
    batches = {
        name: [pa.RecordBatch.from_pylist(of_table, arrow_schema(catalog.table(name)))]
        for name, of_table in rows.items()
    }
    return list(load_views(batches, READS).values())


def derived_rows(
    files: Iterable[FileView], table: Table, make: Callable[..., list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the rows of a table that is derived file by file from its inputs."""
    return [
        row
        for file in files
        for row in make(file.key, **{name: file.evidence_in(name) for name in table.inputs})
    ]


def document(path: str, **cells: Any) -> dict[str, Any]:
    """Return a document row of a SCIP index."""
    known = {
        "repo_id": "r",
        "index_id": "index:1",
        "index_path": "index.scip",
        "index_sha256": "",
        "row_kind": "document",
        "path": path,
        "file_id": file_id("r", path),
        "witness_version": "",
        "position_encoding": "utf16",
        "occurrences": [],
        "diagnostics": [],
        "errors": [],
    }
    return known | cells
