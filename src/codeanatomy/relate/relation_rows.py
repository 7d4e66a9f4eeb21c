"""Collect rows of `relations_v1` for one file and convert them to Arrow.

    rows = RelationRows(repo_id, file_id, path)
    rows.add(Relation("READS", "NAME_REF", ref, "BINDING", binding, 4, 5, 1, "symtable", "scope"))
    rows.add(Relation("CALLS", "CALLSITE", call, None, None, 4, 9, 1, "values", "call", reason="no_value"))
    rows.batch()         # as Arrow, in insertion order

The file owns all of its rows: a relation belongs to the file of its source node. Rows that differ only in
their evidence are one row. Tests: `tests/unit/relate/test_relation_rows.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_field, arrow_schema
from codeanatomy.catalog.spec import Column
from codeanatomy.relate.program import Place

RELATIONS = "relations_v1"
TABLE = catalog.table(RELATIONS)
ENCODER = msgpack.Encoder()
NOWHERE: Place = (None, None, None)


class Evidence(NamedTuple):
    """A witness of a relation, the key of the row it rests on, and whether the witness agrees."""

    witness: str
    key: str
    agrees: bool = True


class RelationDiagnostic(NamedTuple):
    """A diagnostic of the relate stage, before it becomes a row of `relate_diagnostics_v1`."""

    kind: str
    code: str
    message: str
    place: Place = NOWHERE
    severity: str = "warning"


class Relation(NamedTuple):
    """A row of `relations_v1`, without the columns that all rows of a file share.

    One without a target is an unresolved reference and has a reason. Evidence that is a text is the key of
    the only witness, the origin: nearly all rows have only this.
    """

    relation_kind: str
    src_kind: str
    src_id: str
    dst_kind: str | None
    dst_id: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    origin: str
    rule_name: str
    resolution_method: str | None = None
    confidence: float | None = None
    score: float | None = None
    src_qname: str | None = None
    dst_qname: str | None = None
    role: str | None = None
    ordinal: int | None = None
    ambiguity_group_id: str | None = None
    symbol_roles: int | None = None
    evidence: str | Sequence[Evidence] = ()
    reason: str | None = None


FIELDS = Relation._fields
# Columns that all rows of a file share, and what they are of `RelationRows`.
OF_FILES = {"repo_id": "repo_id", "owner_file_id": "file_id", "path": "path"}
# What identifies a row of a file.
IDENTITY = ("relation_kind", "src_id", "dst_id", "rule_name", "role", "ordinal", "reason", "bstart", "bend")
_identity = itemgetter(*map(FIELDS.index, IDENTITY))


class RelationRows:
    """The relations and diagnostics of one file."""

    def __init__(self, repo_id: str, file_id: str, path: str) -> None:
        self.repo_id = repo_id
        self.file_id = file_id
        self.path = path
        # Tuples by what identifies them: the standard library has two million rows.
        self._rows: dict[tuple[Any, ...], Relation] = {}
        self.diagnostics: list[RelationDiagnostic] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, relation: Relation) -> None:
        """Add a relation; rows that differ only in other columns than those that identify them are one."""
        self._rows.setdefault(_identity(relation), relation)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, in insertion order, without the columns that all of them share."""
        rows = [row._asdict() for row in self._rows.values()]
        for row in rows:
            row["evidence"] = _evidence_columns([row["evidence"]], [row["origin"]])
        return rows

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the rows by column, without the columns that all of them share, as they were given."""
        columns = zip(*self._rows.values(), strict=True) if self._rows else [()] * len(FIELDS)
        return dict(zip(FIELDS, columns, strict=True))

    def packed(self) -> bytes:
        """Return bytes that are equal for equal rows, in whatever order they were added."""
        return b"".join(sorted(map(ENCODER.encode, self._rows.values())))

    def batch(self) -> pa.RecordBatch:
        return relation_batch([self])


def relation_batch(files: Sequence[RelationRows]) -> pa.RecordBatch:
    """Return the rows of files one after the other, each in insertion order."""
    rows = [row for each in files for row in each._rows.values()]  # noqa: SLF001
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    cells: dict[str, Sequence[Any]] = dict(zip(FIELDS, columns, strict=True))
    shared = {name: [getattr(each, of) for each in files] for name, of in OF_FILES.items()}
    owners = pa.array(np.repeat(np.arange(len(files)), [len(each) for each in files]))
    arrays = [
        array(column, shared[column.name]).take(owners)
        if column.name in shared
        else _evidence_array(column, cells["evidence"], cells["origin"])
        if column.name == "evidence"
        else array(column, cells[column.name])
        for column in TABLE.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema())


@cache
def _schema() -> pa.Schema:
    return arrow_schema(TABLE)


def _evidence_array(
    column: Column, cells: Sequence[str | Sequence[Evidence]], origins: Sequence[str]
) -> pa.ListArray:
    """Build the evidence column at once: a dictionary per element would take a tenth of the stage's time."""
    columns = _evidence_columns(cells, origins)
    parts = [array(field, columns[field.name]) for field in column.fields]
    inner = pa.StructArray.from_arrays(parts, fields=list(map(arrow_field, column.fields)))
    lengths = (1 if isinstance(cell, str) else len(cell) for cell in cells)
    return pa.ListArray.from_arrays(pa.array(accumulate(lengths, initial=0), pa.int32()), inner)


def _evidence_columns(
    cells: Sequence[str | Sequence[Evidence]], origins: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the evidence of rows one after the other, as one list per field."""
    every = [
        each
        for cell, origin in zip(cells, origins, strict=True)
        for each in (((origin, cell, True),) if isinstance(cell, str) else cell)
    ]
    return {name: [each[at] for each in every] for at, name in enumerate(Evidence._fields)}
