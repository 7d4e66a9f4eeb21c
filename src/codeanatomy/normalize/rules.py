"""The rules that work on one file at a time, and how their rows are packed.

    rows = file_rows(file)                     # Arrow rows by table
    rows["py_bc_blocks_norm_v1"].column("bc_block_kind")

A family reads a file once, and each of its tables is made from what was read by the function of the table's
name. Evidence is made with the rows it is about. The tables that need no loop over a file are made by Spark
from whole tables, `diagnostics_norm_v1` and `span_errors_v1`, in modules of their own. To the diagnostics
this module adds what the rules themselves have to say: `not_normalized`, `too_many_reaches`.

A family that fails on a file costs the rows of that family and that file, and is told as a diagnostic.
Tests: `tests/test_normalize_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, packed
from codeanatomy.catalog.columns import PLACE_NAMES
from codeanatomy.ids import stable_id
from codeanatomy.normalize.anchors import AST_LISTS, KINDS
from codeanatomy.normalize.evidence import EVIDENCE, evidence_of, in_order
from codeanatomy.normalize.files import Columns, File, Reads
from codeanatomy.normalize.flow_tables import (
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
from codeanatomy.normalize.type_tables import (
    LIBCST_LISTS,
    type_expressions,
    type_exprs_norm_v1,
    type_nodes_v1,
)

DIAGNOSTICS = "diagnostics_norm_v1"
MESSAGE_CHARS = 1000

READS = Reads(
    ast_kinds=sorted(KINDS),
    ast=AST_LISTS,
    libcst=LIBCST_LISTS,
    unit=UNIT_FIELDS,
    instructions=INSTRUCTION_FIELDS,
    exception_table=EXCEPTION_FIELDS,
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
FILE_TABLES = (*(name for family in FAMILIES for name in family.tables), EVIDENCE)
# Those, and the diagnostics about the rules themselves.
PACKED_TABLES = (*FILE_TABLES, DIAGNOSTICS)


def file_rows(file: File) -> dict[str, pa.RecordBatch]:
    """The rows of a file, by table and in its order; of diagnostics only those about these rules."""
    made: dict[str, pa.RecordBatch] = {}
    evidence: list[pa.RecordBatch] = []
    complaints: list[Complaint] = []
    for family in FAMILIES:
        try:
            found = family.read(file)
            rows = {name: _batch(name, file, make(found)) for name, make in family.tables.items()}
            evidence += evidence_of(file, rows)
            made.update(rows)
            complaints += [Complaint(family.witness, *problem) for problem in family.problems(found)]
        # A bug of ours, or a file that nobody imagined, costs these rows and no more.
        except Exception as error:  # noqa: BLE001
            made.update({name: _batch(name, file, {}) for name in family.tables})
            said = f"{type(error).__name__}: {error}"[:MESSAGE_CHARS]
            complaints.append(Complaint(family.witness, "not_normalized", said))
    made[EVIDENCE] = in_order(evidence)
    made[DIAGNOSTICS] = _batch(DIAGNOSTICS, file, _diagnostics(file, complaints))
    return made


def _diagnostics(file: File, complaints: list[Complaint]) -> Columns:
    """Complaints about the whole file, as rows."""
    found: Columns = {name: [] for name in catalog.table(DIAGNOSTICS).column_names if name not in PLACE_NAMES}
    for kind, code, message in complaints:
        identity = (file.repo_id, file.file_id, kind, code, None, None, None, message)
        row = {
            # As `diagnostics` makes it, of a complaint without a place.
            "diag_id": stable_id("diag", *identity),
            "diag_kind": kind,
            "diag_severity": "error",
            "diag_code": code,
            "message": message,
        }
        for name, values in found.items():
            values.append(row.get(name))
    return found


def packed_rows(file: File) -> tuple[dict[str, bytes], dict[str, int]]:
    """The rows of a file as streams, and their counts."""
    made = file_rows(file)
    streams = {name: packed(made[name]) for name in PACKED_TABLES}
    return streams, {name: made[name].num_rows for name in PACKED_TABLES}


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
