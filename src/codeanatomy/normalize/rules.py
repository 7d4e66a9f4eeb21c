"""The rules that work on one file at a time, and how their rows are packed.

    rows = file_rows(file)                     # Arrow rows by table
    rows["py_bc_blocks_norm_v1"].column("bc_block_kind")

A family reads a file once, and each of its tables is made from what was read by the function of the table's
name. What the witnesses complain about, `diagnostics_norm_v1` and `span_errors_v1`, is made of all of them,
in modules of their own; to the diagnostics this module adds what the rules themselves have to say:
`not_normalized`, `too_many_reaches`. Evidence is made with the rows it is about.

A family that fails on a file costs the rows of that family and that file, and is told as a diagnostic.
Tests: `tests/unit/normalize/test_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, pack_rows
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.ids import stable_id
from codeanatomy.normalize.anchors import AST_LISTS, KINDS
from codeanatomy.normalize.diagnostics import diagnostics_norm_v1
from codeanatomy.normalize.evidence import EVIDENCE, evidence_of, evidence_of_told, in_order
from codeanatomy.normalize.file_view import Columns, File, Lists, Reads
from codeanatomy.normalize.flow.tables import (
    EXCEPTION_FIELDS,
    INSTRUCTION_FIELDS,
    UNIT_FIELDS,
    flow_of,
    flow_problems,
    py_bc_blocks_norm_v1,
    py_bc_cfg_edges_norm_v1,
    py_bc_def_use_events_v1,
    py_bc_reaches_v1,
)
from codeanatomy.normalize.span_errors import span_errors_v1
from codeanatomy.normalize.topics import CAPTURE
from codeanatomy.normalize.types.tables import (
    LIBCST_LISTS,
    type_expressions,
    type_exprs_norm_v1,
    type_nodes_v1,
)

DIAGNOSTICS, SPAN_ERRORS = "diagnostics_norm_v1", "span_errors_v1"
MESSAGE_CHARS = 1000

ERROR = ("severity", "stage", "error_type", "message", "col", "bstart", "bend", "line")
NUMBERS = ("start_line", "start_col", "end_line", "end_col", "bstart")
IMPORT = ("kind", "level", "module", "name", "asname")


def _both(first: Lists, second: Lists) -> Lists:
    """All lists, each with the fields of both."""
    names = dict.fromkeys((*first, *second))
    return {name: tuple(dict.fromkeys((*first.get(name, ()), *second.get(name, ())))) for name in names}


READS = Reads(
    ast_kinds=sorted(KINDS),
    ast_nodes=AST_LISTS["nodes"],
    ast=_both(
        {name: fields for name, fields in AST_LISTS.items() if name != "nodes"},
        {
            "defs": ("kind", "name", "bstart"),
            "imports": (*IMPORT, "bstart"),
            "calls": ("bstart", "bend"),
            "errors": ERROR,
        },
    ),
    libcst=_both(
        LIBCST_LISTS,
        {
            "defs": ("kind", "name", "def_bstart"),
            "imports": (*IMPORT, "alias_bstart"),
            "callsites": ("call_bstart", "call_bend"),
            "parse_errors": ERROR,
        },
    ),
    unit=tuple(dict.fromkeys((*UNIT_FIELDS, "name", "flags", "argcount", "kwonlyargcount", "varnames"))),
    instructions=INSTRUCTION_FIELDS,
    exception_table=EXCEPTION_FIELDS,
    bytecode={"errors": ERROR},
    symtable={"blocks": ("type", "name", "parameters"), "errors": ERROR},
    tree_sitter={
        "errors": ("parent_kind", "text", "bstart", "bend"),
        "missing": ("kind", "parent_kind", "bstart", "bend"),
        "parse_errors": ERROR,
    },
    packs=("defs", "imports"),
    captures=CAPTURE,
    occurrences=(*NUMBERS, *(f"enclosing_{name}" for name in NUMBERS)),
    scip={
        "diagnostics": ("severity", "code", "message", "source", "tags", *NUMBERS, "bend"),
        "errors": ERROR,
    },
)


class Family(NamedTuple):
    """Tables that are made from one reading of a file."""

    # Whose testimony is read; the kind of diagnostic when that fails.
    witness: str
    read: Callable[[File], Any]
    tables: Mapping[str, Callable[[Any], Columns]]
    # What was left out: code and message.
    problems: Callable[[Any], Iterator[tuple[str, str]]] = lambda _: iter(())


class Complaint(NamedTuple):
    """What goes into a diagnostic about a file."""

    kind: str
    code: str
    message: str


FAMILIES = (
    Family(
        "cpython",
        flow_of,
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


def file_rows(file: File) -> dict[str, pa.RecordBatch]:
    """The rows of a file, by table and in its order."""
    made: dict[str, pa.RecordBatch] = {}
    evidence: list[pa.RecordBatch] = []
    complaints: list[Complaint] = []
    for family in FAMILIES if file.ast or file.libcst or file.bytecode else ():
        try:
            found = family.read(file)
            rows = {name: _batch(name, file, make(found)) for name, make in family.tables.items()}
            evidence += evidence_of(file, rows)
            made.update(rows)
            complaints += [Complaint(family.witness, *problem) for problem in family.problems(found)]
        # A bug of ours, or a file that nobody imagined, costs these rows and no more.
        except Exception as error:  # noqa: BLE001
            complaints.append(_failure(family.witness, error))
    told = _told(file, complaints)
    made.update({name: _batch(name, file, _columns(name, rows)) for name, rows in told.items()})
    made.update({name: _batch(name, file, {}) for name in FILE_TABLES if name not in made})
    made[EVIDENCE] = in_order([*evidence, *evidence_of_told(file, told[SPAN_ERRORS], told[DIAGNOSTICS])])
    return made


def _told(file: File, complaints: list[Complaint]) -> dict[str, list[dict[str, Any]]]:
    """What the witnesses have to say about the file and each other, and the rules about themselves."""
    tables: dict[str, Callable[..., list[dict[str, Any]]]] = {
        SPAN_ERRORS: span_errors_v1,
        DIAGNOSTICS: diagnostics_norm_v1,
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for name, make in tables.items():
        said = {table: file.said(table) for table in catalog.table(name).inputs}
        try:
            found[name] = make(file.place, **said)
        except Exception as error:  # noqa: BLE001
            found[name] = []
            complaints = [*complaints, _failure("cpython", error)]
    found[DIAGNOSTICS] += [_diagnostic(file, complaint) for complaint in complaints]
    return found


def _failure(witness: str, error: Exception) -> Complaint:
    return Complaint(witness, "not_normalized", f"{type(error).__name__}: {error}"[:MESSAGE_CHARS])


def _diagnostic(file: File, complaint: Complaint) -> dict[str, Any]:
    """A complaint about the whole file, as a row."""
    kind, code, message = complaint
    identity = (file.repo_id, file.file_id, kind, code, None, None, None, message)
    return {
        # As `diagnostics` makes it, of a complaint without a place.
        "diag_id": stable_id("diag", *identity),
        "diag_kind": kind,
        "diag_severity": "error",
        "diag_code": code,
        "message": message,
    }


def _columns(name: str, rows: list[dict[str, Any]]) -> Columns:
    names = [column for column in catalog.table(name).column_names if column not in FILE_COLUMN_NAMES]
    return {column: [row.get(column) for row in rows] for column in names}


def packed_rows(file: File) -> tuple[dict[str, bytes], dict[str, int]]:
    """The rows of a file as streams, and their counts."""
    made = file_rows(file)
    streams = {name: pack_rows(made[name]) for name in FILE_TABLES}
    return streams, {name: made[name].num_rows for name in FILE_TABLES}


def _batch(name: str, file: File, columns: Columns) -> pa.RecordBatch:
    table = catalog.table(name)
    unknown = columns.keys() - set(table.column_names)
    if unknown:
        raise ValueError(f"{name} has no columns {sorted(unknown)}")
    size = len(next(iter(columns.values()), ()))
    place = {"repo_id": file.repo_id, "file_id": file.file_id, "path": file.path}
    arrays = [
        pa.repeat(place[column.name], size)
        if column.name in place
        else array(column, columns.get(column.name, []))
        for column in table.columns
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))
    inner = [(key, "ascending") for key in table.ordering if key not in place]
    return batch.sort_by(inner) if inner and size > 1 else batch
