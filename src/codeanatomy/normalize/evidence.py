"""Who stands behind each normalized row: one row per witness and what it contributed.

A use event that the syntax tree anchors has two:

| dataset_name | evidence_key | witness | role | confidence |
|---|---|---|---|---|
| py_bc_def_use_events_v1 | event:... | bytecode | use | 1.0 |
| py_bc_def_use_events_v1 | event:... | ast | anchor | 1.0 |

Confidence is on the scale of the graph: 1 is what a parser or compiler says outright; a value that flows
along control flow is 0.9, because a path may never be taken; through a cell or a global 0.7, because nothing
orders the units. The parts of a type share the row of their expression.

The evidence of tables that are made file by file is made with them, column by column in Arrow; of the tables
that Spark makes, by Spark.

Tests: `tests/test_normalize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.columns import PLACE_NAMES
from codeanatomy.normalize.files import File

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
        "timestamp_ms": pa.repeat(_milliseconds(file), rows.num_rows),
    }
    schema = arrow_schema(catalog.table(EVIDENCE))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _milliseconds(file: File) -> pa.Scalar:
    changed = file.mtime_ns
    return pa.scalar(None if changed is None else changed // NANOSECONDS_PER_MS, pa.int64())


def normalize_evidence_v1(
    *, repo_files_v1: DataFrame, span_errors_v1: DataFrame, diagnostics_norm_v1: DataFrame
) -> DataFrame:
    """The evidence of the rows that Spark made."""
    spans = _said(
        span_errors_v1, "span_errors_v1", "span", "span_error_id", F.col("witness"), F.lit("position")
    )
    diagnostics = _said(
        _by_witness(diagnostics_norm_v1),
        "diagnostics_norm_v1",
        "diagnostic",
        "diag_id",
        F.col("speaker"),
        F.col("diag_severity"),
    )
    changed = repo_files_v1.select(
        "file_id", F.expr(f"mtime_ns div {NANOSECONDS_PER_MS}").alias("timestamp_ms")
    )
    said = spans.unionAll(diagnostics).join(changed, "file_id", "left")
    return said.select(*catalog.table(EVIDENCE).column_names)


def _by_witness(diagnostics: DataFrame) -> DataFrame:
    """One row per witness of a diagnostic: those that its details name, else the one of its kind."""
    named = F.array_intersect(F.map_keys("details"), F.array(*map(F.lit, WITNESSES)))
    speakers = F.when(F.size(named) > 0, named).otherwise(F.array("diag_kind"))
    return diagnostics.select("*", F.explode(speakers).alias("speaker"))


def _said(rows: DataFrame, dataset: str, family: str, key: str, witness: Column, role: Column) -> DataFrame:
    """The evidence of a table's rows."""
    return rows.select(
        *PLACE_NAMES,
        F.lit(dataset).alias("dataset_name"),
        F.col(key).alias("evidence_key"),
        F.lit(family).alias("evidence_family"),
        witness.alias("witness"),
        role.alias("role"),
        F.lit(SURE).alias("confidence"),
        "bstart",
        "bend",
    )
