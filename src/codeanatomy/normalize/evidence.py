"""Who stands behind each normalized row: one row per witness and what it contributed.

A use event that the syntax tree anchors has two:

| dataset_name | evidence_key | witness | role | confidence |
|---|---|---|---|---|
| py_bc_def_use_events_v1 | event:... | bytecode | use | 1.0 |
| py_bc_def_use_events_v1 | event:... | ast | anchor | 1.0 |

Confidence is on the scale of the graph: 1 is what a parser or compiler says outright; a value that flows
along control flow is 0.9, because a path may never be taken; through a cell or a global 0.7, because nothing
orders the units. The parts of a type share the row of their expression.

Tests: `tests/test_evidence.py`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SURE, ALONG_FLOW, BETWEEN_UNITS = 1.0, 0.9, 0.7
WITNESSES = ("ast", "symtable", "bytecode", "libcst", "tree_sitter", "scip")
NANOSECONDS_PER_MS = 1_000_000


def normalize_evidence_v1(
    *,
    repo_files_v1: DataFrame,
    type_exprs_norm_v1: DataFrame,
    type_nodes_v1: DataFrame,
    py_bc_blocks_norm_v1: DataFrame,
    py_bc_cfg_edges_norm_v1: DataFrame,
    py_bc_def_use_events_v1: DataFrame,
    py_bc_reaches_v1: DataFrame,
    span_errors_v1: DataFrame,
    diagnostics_norm_v1: DataFrame,
) -> DataFrame:
    """One row per witness that stands behind a normalized row."""
    whole = type_nodes_v1.where("node_index = 0")
    anchored = py_bc_def_use_events_v1.where("bstart IS NOT NULL")
    parts = (
        _said(type_exprs_norm_v1, "type_exprs_norm_v1", "type", "expr_id", "libcst", F.col("expr_role")),
        _said(whole, "type_nodes_v1", "type", "expr_id", "libcst", F.lit("structure")),
        _said(
            py_bc_blocks_norm_v1,
            "py_bc_blocks_norm_v1",
            "control_flow",
            "bc_block_id",
            "bytecode",
            F.col("bc_block_kind"),
        ),
        _said(
            py_bc_cfg_edges_norm_v1,
            "py_bc_cfg_edges_norm_v1",
            "control_flow",
            "bc_edge_id",
            "bytecode",
            F.col("bc_edge_kind"),
        ),
        _said(
            py_bc_def_use_events_v1,
            "py_bc_def_use_events_v1",
            "data_flow",
            "bc_event_id",
            "bytecode",
            F.col("bc_event_kind"),
        ),
        _said(anchored, "py_bc_def_use_events_v1", "data_flow", "bc_event_id", "ast", F.lit("anchor")),
        _said(
            py_bc_reaches_v1,
            "py_bc_reaches_v1",
            "data_flow",
            "bc_reach_id",
            "bytecode",
            F.col("bc_reach_kind"),
            F.when(F.col("bc_reach_kind") == "local", ALONG_FLOW).otherwise(BETWEEN_UNITS),
        ),
        _said(span_errors_v1, "span_errors_v1", "span", "span_error_id", F.col("witness"), F.lit("position")),
        _said(
            _by_witness(diagnostics_norm_v1),
            "diagnostics_norm_v1",
            "diagnostic",
            "diag_id",
            F.col("speaker"),
            F.col("diag_severity"),
        ),
    )
    changed = repo_files_v1.select(
        "file_id", F.expr(f"mtime_ns div {NANOSECONDS_PER_MS}").alias("timestamp_ms")
    )
    return (
        reduce(DataFrame.unionAll, parts)
        .join(changed, "file_id", "left")
        .select(
            "repo_id",
            "file_id",
            "path",
            "dataset_name",
            "evidence_key",
            "evidence_family",
            "witness",
            "role",
            "confidence",
            "bstart",
            "bend",
            "timestamp_ms",
        )
    )


def _by_witness(diagnostics: DataFrame) -> DataFrame:
    """One row per witness of a diagnostic: those that its details name, else the one of its kind."""
    named = F.array_intersect(F.map_keys("details"), F.array(*map(F.lit, WITNESSES)))
    speakers = F.when(F.size(named) > 0, named).otherwise(F.array("diag_kind"))
    return diagnostics.select("*", F.explode(speakers).alias("speaker"))


def _said(
    rows: DataFrame,
    dataset: str,
    family: str,
    key: str,
    witness: str | Column,
    role: Column,
    confidence: Column | None = None,
) -> DataFrame:
    """The evidence of a table's rows."""
    return rows.select(
        "repo_id",
        "file_id",
        "path",
        F.lit(dataset).alias("dataset_name"),
        F.col(key).alias("evidence_key"),
        F.lit(family).alias("evidence_family"),
        (F.lit(witness) if isinstance(witness, str) else witness).alias("witness"),
        role.alias("role"),
        (F.lit(SURE) if confidence is None else confidence).alias("confidence"),
        "bstart",
        "bend",
    )
