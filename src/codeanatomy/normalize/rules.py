"""Run the normalize rules on one file and pack the rows.

    normalized = file_columns(file)            # lists by table and column
    rows = chunk_rows([normalized, ...])       # Arrow rows by table
    rows["py_bc_blocks_norm_v1"].column("bc_block_kind")

A family of tables reads a file once, and each of its tables is built from the result by the function of the
table's name. `diagnostics_norm_v1` and `span_errors_v1` are built from all witnesses, in modules of their
own; this module adds the diagnostics of the rules themselves: `not_normalized`, `too_many_reaches`. Evidence
is built together with the rows it describes.

A family that fails on a file costs the rows of that family and that file, and becomes a diagnostic.
Tests: `tests/unit/normalize/test_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.costs import Costs
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS
from codeanatomy.file_ids import LIBCST_FIELDS
from codeanatomy.file_view import (
    AST,
    BYTECODE,
    FILES,
    LIBCST,
    LINE_COLUMNS,
    LINES,
    SCIP,
    SYMTABLE,
    TREE_SITTER,
    Columns,
    FileView,
    Reads,
    union_reads,
)
from codeanatomy.normalize.anchors import AST_LISTS
from codeanatomy.normalize.diagnostics import diagnostics_norm_v1
from codeanatomy.normalize.evidence import EVIDENCE, diagnostic_evidence, evidence_rows
from codeanatomy.normalize.flow.conditions import FIELDS as CONDITION_FIELDS
from codeanatomy.normalize.flow.tables import (
    LIST_FIELDS,
    UNIT_FIELDS,
    analyze_flow,
    flow_problems,
    py_bc_blocks_norm_v1,
    py_bc_cfg_edges_norm_v1,
    py_bc_def_use_events_v1,
    py_bc_reaches_v1,
)
from codeanatomy.normalize.span_errors import span_errors_v1
from codeanatomy.normalize.table_rows import batch_of
from codeanatomy.normalize.topics import CAPTURE
from codeanatomy.normalize.types.tables import (
    LIBCST_LISTS,
    type_expressions,
    type_exprs_norm_v1,
    type_nodes_v1,
)

STEP = "normalize"
# Name of the conversion to Arrow among the costs.
PACK = "pack"
DIAGNOSTICS, SPAN_ERRORS = "diagnostics_norm_v1", "span_errors_v1"
MESSAGE_CHARS = 1000

ERROR = ("severity", "stage", "error_type", "message", "col", "bstart", "bend", "line")
NUMBERS = ("start_line", "start_col", "end_line", "end_col", "bstart")
IMPORT = ("kind", "level", "module", "name", "asname")


READS: Reads = union_reads(
    {
        FILES: dict.fromkeys(("skipped_reason", "encoding", "mtime_ns"), ()),
        LINES: dict.fromkeys(LINE_COLUMNS, ()),
        AST: {
            **AST_LISTS,
            "defs": ("kind", "name", "bstart"),
            "definitions": DEFINITION_FIELDS,
            "calls": ("bstart", "bend"),
            "errors": ERROR,
        },
        LIBCST: {
            **LIBCST_LISTS,
            "callsites": ("call_bstart", "call_bend"),
            "parse_errors": ERROR,
        },
        BYTECODE: {
            "python_version": (),
            "code_objects": (*UNIT_FIELDS, *LIST_FIELDS),
            "errors": ERROR,
        },
        SYMTABLE: {"blocks": ("type", "name", "parameters"), "errors": ERROR},
        TREE_SITTER: {
            "stats": (),
            "captures": CAPTURE,
            "errors": ("parent_kind", "text", "bstart", "bend"),
            "missing": ("kind", "parent_kind", "bstart", "bend"),
            "parse_errors": ERROR,
        },
        SCIP: {
            "position_encoding": (),
            "occurrences": (*NUMBERS, *(f"enclosing_{name}" for name in NUMBERS)),
            "diagnostics": ("severity", "code", "message", "source", "tags", *NUMBERS, "bend"),
            "errors": ERROR,
        },
    },
    # Of lists that several rules read.
    {
        AST: {"imports": (*IMPORT, "bstart"), "nodes": CONDITION_FIELDS},
        LIBCST: {"imports": (*IMPORT, "alias_bstart")},
    },
    # Of ids, beside the fields of nodes above.
    {LIBCST: LIBCST_FIELDS},
)


class Family(NamedTuple):
    """Tables that are built from one analysis of a file."""

    # The witness that is read, and the kind of the diagnostic when that fails.
    witness: str
    read: Callable[[FileView], Any]
    tables: Mapping[str, Callable[[Any], Columns]]
    # Diagnostics about omitted rows: code and message.
    problems: Callable[[Any], Iterator[tuple[str, str]]] = lambda _: iter(())


class RuleProblem(NamedTuple):
    """A problem of the rules with a whole file, to be reported as a diagnostic."""

    kind: str
    code: str
    message: str


FAMILIES = (
    Family(
        "cpython",
        analyze_flow,
        {
            "py_bc_blocks_norm_v1": py_bc_blocks_norm_v1,
            "py_bc_cfg_edges_norm_v1": py_bc_cfg_edges_norm_v1,
            "py_bc_def_use_events_v1": py_bc_def_use_events_v1,
            "py_bc_reaches_v1": py_bc_reaches_v1,
        },
        flow_problems,
    ),
    Family(
        "libcst",
        type_expressions,
        {"type_exprs_norm_v1": type_exprs_norm_v1, "type_nodes_v1": type_nodes_v1},
    ),
)
FILE_TABLES = (*(name for family in FAMILIES for name in family.tables), SPAN_ERRORS, DIAGNOSTICS, EVIDENCE)


class FileColumns(NamedTuple):
    """The rows of a file by table, as lists by column, and the evidence for its reports."""

    file: FileView
    tables: Mapping[str, Columns]
    evidence: Sequence[Mapping[str, Any]]


def file_rows(
    file: FileView, failure: str | None = None, costs: Costs | None = None
) -> dict[str, pa.RecordBatch]:
    """Return the rows of one file by table."""
    return chunk_rows([file_columns(file, failure, costs)], costs)


def chunk_rows(files: Sequence[FileColumns], costs: Costs | None = None) -> dict[str, pa.RecordBatch]:
    """Return the rows of files of one repository by table, each in the table's sort order.

    If they do not fit into their columns, which is a bug of ours, files lose the families with such rows.
    """
    with (costs or Costs()).timed(STEP, PACK):
        try:
            return _batches(files)
        except Exception:  # noqa: BLE001
            return _batches([_without_misfits(each) for each in files])


def _batches(files: Sequence[FileColumns]) -> dict[str, pa.RecordBatch]:
    tables = {name: _batch(name, files) for name in FILE_TABLES if name != EVIDENCE}
    tables[EVIDENCE] = evidence_rows(
        [each.file for each in files], tables, [row for each in files for row in each.evidence]
    )
    return tables


def _batch(name: str, files: Sequence[FileColumns]) -> pa.RecordBatch:
    return batch_of(name, [(each.file, each.tables[name]) for each in files if name in each.tables])


def _without_misfits(normalized: FileColumns) -> FileColumns:
    """Return the rows of a file without the families of which some do not fit into their columns."""
    failed: dict[str, Exception] = {}
    for family in FAMILIES:
        try:
            for name in family.tables:
                _batch(name, [normalized])
        except Exception as error:  # noqa: BLE001
            failed[family.witness] = error
    return file_columns(normalized.file, failed=failed)


def file_columns(
    file: FileView,
    failure: str | None = None,
    costs: Costs | None = None,
    failed: Mapping[str, Exception] = {},
) -> FileColumns:
    """Return the rows of a file.

    A file whose rules have killed a process before has only a diagnostic with this reason, `failure`. Of
    families that have `failed`, by witness, there are no rows. What each family and each table of reports
    takes is added to `costs`.
    """
    costs = costs or Costs()
    tables: dict[str, Columns] = {}
    problems: list[RuleProblem] = []
    if failure is not None:
        problems.append(RuleProblem("cpython", "not_normalized", failure))
        file = FileView(file.repo_id, file.file_id, file.path, {})
    problems += [_failure(*each) for each in failed.items()]
    has_evidence = any(map(file.row, (AST, LIBCST, BYTECODE)))
    for family in FAMILIES if has_evidence else ():
        if family.witness in failed:
            continue
        try:
            with costs.timed(STEP, family.read.__name__):
                analysis = family.read(file)
                tables |= {name: make(analysis) for name, make in family.tables.items()}
                problems += [RuleProblem(family.witness, *problem) for problem in family.problems(analysis)]
        # A bug of ours, or a file of an unforeseen shape, costs these rows and no more.
        except Exception as error:  # noqa: BLE001
            problems.append(_failure(family.witness, error))
    reported = _reported_rows(file, problems, costs)
    tables |= {name: _columns(name, rows) for name, rows in reported.items() if rows}
    return FileColumns(file, tables, diagnostic_evidence(file, reported[SPAN_ERRORS], reported[DIAGNOSTICS]))


def _reported_rows(
    file: FileView, problems: list[RuleProblem], costs: Costs
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of span errors and diagnostics: those of the witnesses and those of the rules."""
    tables: dict[str, Callable[..., list[dict[str, Any]]]] = {
        SPAN_ERRORS: span_errors_v1,
        DIAGNOSTICS: diagnostics_norm_v1,
    }
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, make in tables.items():
        inputs = {table: file.evidence_in(table) for table in catalog.table(name).inputs}
        try:
            with costs.timed(STEP, name):
                rows[name] = make(file.key, **inputs)
        except Exception as error:  # noqa: BLE001
            rows[name] = []
            problems = [*problems, _failure("cpython", error)]
    rows[DIAGNOSTICS] += map(_diagnostic, problems)
    places = [
        (row["diag_kind"], row["diag_code"], row.get("bstart"), row.get("bend")) for row in rows[DIAGNOSTICS]
    ]
    for row, diag_id in zip(rows[DIAGNOSTICS], file.ids.diagnostics(places), strict=True):
        row["diag_id"] = diag_id
    return rows


def _failure(witness: str, error: Exception) -> RuleProblem:
    return RuleProblem(witness, "not_normalized", f"{type(error).__name__}: {error}"[:MESSAGE_CHARS])


def _diagnostic(problem: RuleProblem) -> dict[str, Any]:
    """Return the row of a problem with the whole file."""
    kind, code, message = problem
    return {"diag_kind": kind, "diag_severity": "error", "diag_code": code, "message": message}


def _columns(name: str, rows: list[dict[str, Any]]) -> Columns:
    names = [column for column in catalog.table(name).column_names if column not in FILE_COLUMN_NAMES]
    return {column: [row.get(column) for row in rows] for column in names}
