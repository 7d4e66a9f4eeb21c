"""Rows of tools are compared with the stored ones, file by file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.chunks import rows_by_owner
from codeanatomy.pipeline.tasks.pieces import OUTCOME, STORED, Piece, row_pieces
from codeanatomy.pipeline.tasks.tool_rows import DifferingRows, ToolOutcome
from support.row_sink import RowSink, written

A, B = (file_id("r", path) for path in ("a.py", "b.py"))
ABSENT = file_id("r", "absent.py")


def rows(name: str, *cells: dict[str, Any]) -> pa.RecordBatch:
    """Rows of a table; other columns are null."""
    schema = arrow_schema(catalog.table(name))
    arrays = [pa.array([each.get(field.name) for each in cells], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([field.with_nullable(True) for field in schema])
    )


def checker_row(path: str, version: str = "1") -> dict[str, Any]:
    return {"repo_id": "r", "file_id": file_id("r", path), "path": path, "witness_version": version}


def document(path: str, owner: str | None, text: str = "x") -> dict[str, Any]:
    return {
        "repo_id": "r",
        "index_id": "i",
        "row_kind": "document",
        "path": path,
        "file_id": owner,
        "witness_version": text,
    }


def compared(now: dict[str, pa.RecordBatch], before: dict[str, pa.RecordBatch]) -> list[Piece]:
    pieces = [
        piece
        for side, tables in (("", now), (STORED, before))
        for name, batch in tables.items()
        for piece in row_pieces("r", "", side + name, batch)
    ]
    return list(DifferingRows(frozenset({"r"}), RowSink())(iter([Group("r", "", pieces)])))


def outcome_of(pieces: list[Piece]) -> ToolOutcome:
    [outcome] = [msgpack.decode(piece.data, type=ToolOutcome) for piece in pieces if piece.name == OUTCOME]
    return outcome


def test_rows_are_parted_by_their_owner() -> None:
    owners = ["b", "a", None, "b", "c"]
    table = pa.table({"owner_file_id": pa.array(owners), "node_id": [str(number) for number in range(5)]})
    parts = rows_by_owner(pa.concat_tables([table.slice(0, 2), table.slice(2)]), "owner_file_id")
    assert {owner: part.column("node_id").to_pylist() for owner, part in parts.items()} == {
        "a": ["1"],
        "b": ["0", "3"],
        "c": ["4"],
        None: ["2"],
    }
    assert rows_by_owner(table.slice(0, 0), "owner_file_id") == {}


def test_equal_rows_in_another_order_are_no_change() -> None:
    one, other = checker_row("a.py"), checker_row("b.py")
    pieces = compared({TYPES: rows(TYPES, one, other)}, {TYPES: rows(TYPES, other, one)})
    assert outcome_of(pieces) == ToolOutcome({SCIP: [], TYPES: []})
    assert [piece.name for piece in pieces] == [OUTCOME]


def test_only_files_with_other_rows_are_kept() -> None:
    now = rows(TYPES, checker_row("a.py"), checker_row("b.py", "2"))
    before = rows(TYPES, checker_row("a.py"), checker_row("b.py"), checker_row("gone.py"))
    pieces = compared({TYPES: now}, {TYPES: before})
    assert outcome_of(pieces).owners[TYPES] == sorted([B, file_id("r", "gone.py")])
    [kept] = written(pieces)[TYPES]
    assert kept.column("witness_version").to_pylist() == ["2"]


def test_rows_of_no_file_and_documents_of_files_that_are_absent() -> None:
    index = {"repo_id": "r", "index_id": "i", "row_kind": "index"}
    now = rows(SCIP, index, document("a.py", A), document("absent.py", None))
    before = rows(SCIP, index, document("a.py", A))
    outcome = outcome_of(compared({SCIP: now}, {SCIP: before}))
    assert outcome.missing == [ABSENT]
    assert outcome.owners[SCIP] == []
    assert outcome.shared == [SCIP]
    # Also one that was there before.
    assert outcome_of(compared({SCIP: before}, {SCIP: now})).missing == [ABSENT]
    assert outcome_of(compared({SCIP: now}, {SCIP: now})) == ToolOutcome({SCIP: [], TYPES: []}, [], [ABSENT])
