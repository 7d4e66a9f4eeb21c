"""Who stands behind each normalized row: one row per witness and what it contributed.

A use event that the syntax tree anchors has two:

| dataset_name | evidence_key | witness | role | confidence |
|---|---|---|---|---|
| py_bc_def_use_events_v1 | event:... | bytecode | use | 1.0 |
| py_bc_def_use_events_v1 | event:... | ast | anchor | 1.0 |

Confidence is on the scale of the graph: 1 is what a parser or compiler says outright; a value that flows
along control flow is 0.9, because a path may never be taken; through a cell or a global 0.7, because nothing
orders the units. The parts of a type share the row of their expression.

It is made with the rows it is about, file by file: column by column in Arrow, and row by row of complaints,
which are few.

Tests: `tests/spark/test_normalize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.tables.columns import PLACE_NAMES
from codeanatomy.normalize.file_view import File

EVIDENCE = "normalize_evidence_v1"
SURE, ALONG_FLOW, BETWEEN_UNITS = 1.0, 0.9, 0.7
WITNESSES = ("ast", "symtable", "bytecode", "libcst", "tree_sitter", "scip")
NANOSECONDS_PER_MS = 1_000_000


class Contribution(NamedTuple):
    """What one witness has to do with the rows of a table; it is sure unless its role says otherwise."""

    table: str
    family: str
    key: str
    witness: str
    # A column of the table, or a word.
    role: str
    # Of which rows: those where this column is 0, or is there.
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


def evidence_of(file: File, made: Mapping[str, pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The evidence of rows that were made of one file, by table."""
    return [_contributed(file, each, made[each.table]) for each in CONTRIBUTIONS if each.table in made]


def in_order(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The evidence of a file as one batch, in the order of the table."""
    table = catalog.table(EVIDENCE)
    whole = pa.Table.from_batches(parts, schema=arrow_schema(table))
    ordered = whole.sort_by([(key, "ascending") for key in table.ordering])
    [batch] = ordered.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=whole.schema)]
    return batch


def _contributed(file: File, each: Contribution, rows: pa.RecordBatch) -> pa.RecordBatch:
    if each.where_zero is not None:
        rows = rows.filter(pc.equal(rows.column(each.where_zero), 0))
    if each.where_present is not None:
        rows = rows.filter(pc.is_valid(rows.column(each.where_present)))
    role = rows.column(each.role) if each.role in rows.schema.names else pa.repeat(each.role, rows.num_rows)
    confidence = pa.repeat(SURE, rows.num_rows)
    for word, trust in each.confidence.items():
        confidence = pc.if_else(pc.equal(role, word), trust, confidence)
    columns = {
        **{name: rows.column(name) for name in PLACE_NAMES},
        "dataset_name": pa.repeat(each.table, rows.num_rows),
        "evidence_key": rows.column(each.key),
        "evidence_family": pa.repeat(each.family, rows.num_rows),
        "witness": pa.repeat(each.witness, rows.num_rows),
        "role": role,
        "confidence": confidence,
        "bstart": rows.column("bstart"),
        "bend": rows.column("bend"),
        "timestamp_ms": pa.repeat(pa.scalar(_milliseconds(file), pa.int64()), rows.num_rows),
    }
    schema = arrow_schema(catalog.table(EVIDENCE))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def evidence_of_told(
    file: File, span_errors: Sequence[Mapping[str, Any]], diagnostics: Sequence[Mapping[str, Any]]
) -> list[pa.RecordBatch]:
    """The evidence of what witnesses complain about: who says so."""
    rows = [
        _row(file, "span_errors_v1", "span", row["span_error_id"], row["witness"], "position", row)
        for row in span_errors
    ]
    rows += [
        _row(file, "diagnostics_norm_v1", "diagnostic", row["diag_id"], speaker, row["diag_severity"], row)
        for row in diagnostics
        for speaker in _speakers(row)
    ]
    return [pa.RecordBatch.from_pylist(rows, schema=arrow_schema(catalog.table(EVIDENCE)))] if rows else []


def _speakers(diagnostic: Mapping[str, Any]) -> list[str]:
    """The witnesses that the details name, else the one of its kind."""
    named = [name for name in diagnostic.get("details") or {} if name in WITNESSES]
    return named or [diagnostic["diag_kind"]]


def _row(
    file: File, dataset: str, family: str, key: str, witness: str, role: str, row: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        **file.place._asdict(),
        "dataset_name": dataset,
        "evidence_key": key,
        "evidence_family": family,
        "witness": witness,
        "role": role,
        "confidence": SURE,
        "bstart": row.get("bstart"),
        "bend": row.get("bend"),
        "timestamp_ms": _milliseconds(file),
    }


def _milliseconds(file: File) -> int | None:
    changed = file.listed.get("mtime_ns")
    return None if changed is None else changed // NANOSECONDS_PER_MS
