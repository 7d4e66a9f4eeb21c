"""Rows of `relations_v1` on their way into Arrow.

    rows = Rows(repo_id, file_id, path)
    rows.add("READS", "NAME_REF", ref, "BINDING", binding, place=(4, 5, 1), origin="symtable", rule="scope",
             method="scope", confidence=0.9)
    rows.add("CALLS", "CALLSITE", call, place=(4, 9, 1), origin="values", rule="call", reason="no_value")
    rows.batch()         # in the table's order

All rows of a file are owned by it: a relation belongs to where its source stands. What is equal but for its
evidence is one row. Tests: `tests/unit/relate/test_relation_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_field, arrow_schema
from codeanatomy.catalog.spec import Column
from codeanatomy.ids import id_maker

RELATIONS = "relations_v1"
ENCODER = msgpack.Encoder()
# First byte, byte after the last, line.
Place: TypeAlias = tuple[int | None, int | None, int | None]
NOWHERE: Place = (None, None, None)
# The columns of a row as `add` writes them; the others are the same for all rows of a file.
FIELDS = (
    "relation_id",
    "relation_kind",
    "src_id",
    "src_kind",
    "src_qname",
    "dst_id",
    "dst_kind",
    "dst_qname",
    "role",
    "ordinal",
    "bstart",
    "bend",
    "line",
    "origin",
    "resolution_method",
    "confidence",
    "score",
    "symbol_roles",
    "ambiguity_group_id",
    "rule_name",
    "evidence",
    "reason",
)


class Evidence(NamedTuple):
    """Who says so, by which row, and whether it says the same."""

    witness: str
    key: str
    agrees: bool = True


class Complaint(NamedTuple):
    """What goes into a diagnostic."""

    kind: str
    code: str
    message: str
    place: Place = NOWHERE
    severity: str = "warning"


class Rows:
    """The relations of one file, and what there is to complain about."""

    def __init__(self, repo_id: str, file_id: str, path: str) -> None:
        self.repo_id = repo_id
        self.file_id = file_id
        self.path = path
        # Tuples without ids, by what ids are made of: a standard library has two million rows.
        self._rows: dict[tuple[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] = {}
        self.complaints: list[Complaint] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        kind: str,
        src_kind: str,
        src_id: str,
        dst_kind: str | None = None,
        dst_id: str | None = None,
        *,
        place: Place,
        origin: str,
        rule: str,
        method: str | None = None,
        confidence: float | None = None,
        score: float | None = None,
        src_qname: str | None = None,
        dst_qname: str | None = None,
        role: str | None = None,
        ordinal: int | None = None,
        group: str | None = None,
        symbol_roles: int | None = None,
        evidence: Sequence[Evidence] = (),
        reason: str | None = None,
    ) -> None:
        """A relation; without a target, an attempt that says why."""
        bstart, bend, line = place
        # What many rows have in common, and what makes one of them.
        key = (kind, rule, role, ordinal, reason), (src_id, dst_id, bstart, bend)
        if key in self._rows:
            return
        self._rows[key] = (
            kind,
            src_id,
            src_kind,
            src_qname,
            dst_id,
            dst_kind,
            dst_qname,
            role,
            ordinal,
            bstart,
            bend,
            line,
            origin,
            method,
            confidence,
            score,
            symbol_roles,
            group,
            rule,
            evidence,
            reason,
        )

    def rows(self) -> list[dict[str, Any]]:
        """The rows as they are, without the place that all of them share."""
        rows = [dict(zip(FIELDS, row, strict=True)) for row in self._with_ids()]
        for row in rows:
            row["evidence"] = _columns(row["evidence"])
        return rows

    def _with_ids(self) -> list[tuple[Any, ...]]:
        """The rows with what they are known by, which takes longer than to find them."""
        makers: dict[tuple[Any, ...], Callable[..., str]] = {}
        found = []
        for (shared, own), row in self._rows.items():
            made = makers.get(shared)
            if made is None:
                made = makers[shared] = id_maker("rel", *shared)
            found.append((made(*own), *row))
        return found

    def packed(self) -> bytes:
        """The rows as bytes that are the same for the same rows, in whatever order they were found."""
        return b"".join(sorted(map(ENCODER.encode, self._rows.values())))

    def batch(self) -> pa.RecordBatch:
        """The rows in the table's order."""
        table = catalog.table(RELATIONS)
        shared = {"repo_id": self.repo_id, "owner_file_id": self.file_id, "path": self.path}
        order = [FIELDS.index(name) for name in (*table.ordering, "relation_id") if name not in shared]
        rows = sorted(self._with_ids(), key=itemgetter(*order))
        columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
        cells: dict[str, Sequence[Any]] = dict(zip(FIELDS, columns, strict=True))
        arrays = [
            pa.repeat(shared[column.name], len(rows))
            if column.name in shared
            else _evidence(column, cells["evidence"])
            if column.name == "evidence"
            else array(column, cells[column.name])
            for column in table.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


def _evidence(column: Column, cells: Sequence[Sequence[Evidence]]) -> pa.ListArray:
    """The column of evidence at once: a dictionary for each of its rows would be a tenth of all the time."""
    joined = list(chain.from_iterable(cells))
    fields = zip(*joined, strict=True) if joined else [()] * len(column.fields)
    parts = [array(field, values) for field, values in zip(column.fields, fields, strict=True)]
    inner = pa.StructArray.from_arrays(parts, fields=list(map(arrow_field, column.fields)))
    offsets = pa.array(accumulate(map(len, cells), initial=0), pa.int32())
    return pa.ListArray.from_arrays(offsets, inner)


def _columns(evidence: Sequence[Evidence]) -> dict[str, list[Any]]:
    """One list per field, as cells of structs are."""
    return {
        "witness": [said.witness for said in evidence],
        "key": [said.key for said in evidence],
        "agrees": [said.agrees for said in evidence],
    }
