"""Record the witnesses behind each normalized row: one row per witness and its contribution.

A use event that is anchored in the syntax tree has two:

| dataset_name | evidence_key | witness | role | confidence |
|---|---|---|---|---|
| py_bc_def_use_events_v1 | event:... | bytecode | use | 1.0 |
| py_bc_def_use_events_v1 | event:... | ast | anchor | 1.0 |

Confidence is on the scale of the graph: 1 is what a parser or compiler states directly; a value that flows
along control flow is 0.9, because a path may never be taken; through a cell or a global 0.7, because nothing
orders the code units. The parts of a type share the row of their expression.

The rows are made with the rows they describe: column by column in Arrow for the files of a chunk together,
and row by row for diagnostics and span errors, which are few.

Tests: `tests/spark/test_normalize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.file_view import FILES, FileView
from codeanatomy.normalize.table_rows import sort_rows

EVIDENCE = "normalize_evidence_v1"
CERTAIN, ALONG_FLOW, BETWEEN_UNITS = 1.0, 0.9, 0.7
WITNESSES = ("ast", "symtable", "bytecode", "libcst", "tree_sitter", "scip")
NANOSECONDS_PER_MS = 1_000_000


class Contribution(NamedTuple):
    """The contribution of one witness to the rows of a table; confidence 1 unless given by role."""

    table: str
    family: str
    key: str
    witness: str
    # A column of the table, or a fixed role.
    role: str
    # Only for rows where this column is 0, or is not null.
    where_zero: str | None = None
    where_present: str | None = None
    confidence: Mapping[str, float] = {}


CONTRIBUTIONS = (
    Contribution("type_exprs_norm_v1", "type", "expr_id", "libcst", "expr_role"),
    Contribution("type_nodes_v1", "type", "expr_id", "libcst", "structure", where_zero="node_index"),
    Contribution("py_bc_blocks_norm_v1", "control_flow", "bc_block_id", "bytecode", "bc_block_kind"),
    Contribution("py_bc_cfg_edges_norm_v1", "control_flow", "bc_edge_id", "bytecode", "bc_edge_kind"),
    Contribution("py_bc_def_use_events_v1", "data_flow", "bc_event_id", "bytecode", "bc_event_kind"),
    Contribution(
        "py_bc_def_use_events_v1", "data_flow", "bc_event_id", "ast", "anchor", where_present="bstart"
    ),
    Contribution(
        "py_bc_reaches_v1",
        "data_flow",
        "bc_reach_id",
        "bytecode",
        "bc_reach_kind",
        confidence={"local": ALONG_FLOW, "closure": BETWEEN_UNITS, "global": BETWEEN_UNITS},
    ),
)


def evidence_rows(
    files: Sequence[FileView], rows: Mapping[str, pa.RecordBatch], reported: Sequence[Mapping[str, Any]]
) -> pa.RecordBatch:
    """Return the evidence for rows of files of one repository, given by table, with that for reports."""
    schema = arrow_schema(catalog.table(EVIDENCE))
    file_ids = pa.array([file.file_id for file in files], pa.string())
    times = pa.array(map(_milliseconds, files), pa.int64())
    parts = [
        _contributed(each, rows[each.table], file_ids, times, schema)
        for each in CONTRIBUTIONS
        if rows[each.table].num_rows
    ]
    of_reports = pa.RecordBatch.from_pylist(reported, schema=schema)
    return sort_rows(EVIDENCE, pa.concat_batches([of_reports, *parts]))


def _contributed(
    contribution: Contribution, rows: pa.RecordBatch, file_ids: pa.Array, times: pa.Array, schema: pa.Schema
) -> pa.RecordBatch:
    if contribution.where_zero is not None:
        rows = rows.filter(pc.equal(rows.column(contribution.where_zero), 0))
    if contribution.where_present is not None:
        rows = rows.filter(pc.is_valid(rows.column(contribution.where_present)))
    is_column = contribution.role in rows.schema.names
    role = rows.column(contribution.role) if is_column else pa.repeat(contribution.role, rows.num_rows)
    confidence = pa.repeat(CERTAIN, rows.num_rows)
    for name, value in contribution.confidence.items():
        confidence = pc.if_else(pc.equal(role, name), value, confidence)
    columns = {
        **{name: rows.column(name) for name in FILE_COLUMN_NAMES},
        "dataset_name": pa.repeat(contribution.table, rows.num_rows),
        "evidence_key": rows.column(contribution.key),
        "evidence_family": pa.repeat(contribution.family, rows.num_rows),
        "witness": pa.repeat(contribution.witness, rows.num_rows),
        "role": role,
        "confidence": confidence,
        "bstart": rows.column("bstart"),
        "bend": rows.column("bend"),
        "timestamp_ms": times.take(pc.index_in(rows.column("file_id"), file_ids)),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def diagnostic_evidence(
    file: FileView, span_errors: Sequence[Mapping[str, Any]], diagnostics: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the evidence for span errors and diagnostics: the witnesses that report them."""
    rows = [
        _row(file, "span_errors_v1", "span", row["span_error_id"], row["witness"], "position", row)
        for row in span_errors
    ]
    return rows + [
        _row(file, "diagnostics_norm_v1", "diagnostic", row["diag_id"], witness, row["diag_severity"], row)
        for row in diagnostics
        for witness in _reporting_witnesses(row)
    ]


def _reporting_witnesses(diagnostic: Mapping[str, Any]) -> list[str]:
    """Return the witnesses named in the details, else the kind of the diagnostic."""
    named = [name for name in diagnostic.get("details") or {} if name in WITNESSES]
    return named or [diagnostic["diag_kind"]]


def _row(
    file: FileView, dataset: str, family: str, key: str, witness: str, role: str, row: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        **file.key._asdict(),
        "dataset_name": dataset,
        "evidence_key": key,
        "evidence_family": family,
        "witness": witness,
        "role": role,
        "confidence": CERTAIN,
        "bstart": row.get("bstart"),
        "bend": row.get("bend"),
        "timestamp_ms": _milliseconds(file),
    }


def _milliseconds(file: FileView) -> int | None:
    changed = file.row(FILES).get("mtime_ns")
    return None if changed is None else changed // NANOSECONDS_PER_MS
