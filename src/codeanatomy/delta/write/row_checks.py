"""The catalogue's rules, held against Arrow rows where they are: on the executors that write them.

    check = RowCheck(catalog.table("cpg_nodes"))
    for batch in check.watch(batches): ...
    check.broken()       # (Broken(("span_ordered",), '{"node_id":"node:...","bstart":9,"bend":4}'),)

The rules are those of `delta.write.checks`, which Spark evaluates for rows of its own. DuckDB reads the same
conditions; NOT NULL is a count that Arrow has. A condition that is null counts as broken. Rows that break a
rule do not stop their writer: they are told with its files, and whoever adopts the files refuses them.

Tests: `tests/spark/test_adopt.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct, json

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.write.checks import SAMPLE_ROWS, is_printable, rules_for

# Arrow bytes that are looked at together: a question to DuckDB costs some milliseconds.
CHECKED_BYTES = 16 * 1024 * 1024
WORD = re.compile(r"\w+")


class BrokenRow(Struct, frozen=True):
    """A row that breaks rules."""

    rules: tuple[str, ...]
    # Its plain columns, as JSON.
    row: str


class RowCheck:
    """The rules of a table, and the first rows that break them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._required = tuple(column.name for column in table.columns if not column.nullable)
        null_rules = {f"{name}_not_null" for name in self._required}
        # Names are quoted as Spark does it.
        self._rules = {
            name: condition.replace("`", '"')
            for name, condition in rules_for(table, {}).items()
            if name not in null_rules
        }
        words = set(WORD.findall(" ".join(self._rules.values())))
        self._read = [name for name in table.column_names if name in words]
        self._kept: list[pa.RecordBatch] = []
        self._held = 0
        self._found: list[BrokenRow] = []
        self._database: duckdb.DuckDBPyConnection | None = None

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows, looked at as they pass."""
        for batch in batches:
            if len(self._found) < SAMPLE_ROWS and batch.num_rows:
                self._kept.append(batch)
                self._held += batch.nbytes
                if self._held >= CHECKED_BYTES:
                    self._look()
            yield batch
        self._look()
        if self._database is not None:
            self._database.close()

    def broken(self) -> tuple[BrokenRow, ...]:
        """Some of the rows that break a rule."""
        return tuple(self._found)

    def _look(self) -> None:
        if not self._kept:
            return
        rows = pa.Table.from_batches(self._kept)
        self._kept, self._held = [], 0
        if any(rows.column(name).null_count for name in self._required) or not self._all_hold(rows):
            self._found += self._samples(rows)[: SAMPLE_ROWS - len(self._found)]

    def _all_hold(self, rows: pa.Table) -> bool:
        if not self._rules:
            return True
        held = " AND ".join(map(_holds, self._rules.values()))
        return bool(self._asked(rows, f"SELECT coalesce(bool_and({held}), true) FROM given")[0][0])

    def _samples(self, rows: pa.Table) -> list[BrokenRow]:
        """The first rows that break a rule, and which."""
        missing = {f"{name}_not_null": f'"{name}" IS NOT NULL' for name in self._required}
        rules = {**missing, **self._rules}
        held = " AND ".join(map(_holds, rules.values()))
        answers = ", ".join(map(_holds, rules.values()))
        numbered = rows.append_column("row_number", pa.array(range(rows.num_rows), pa.int64()))
        found = self._asked(
            numbered,
            f"SELECT row_number, {answers} FROM given WHERE NOT ({held}) "
            f"ORDER BY row_number LIMIT {SAMPLE_ROWS}",
            *self._required,
            "row_number",
        )
        shown = rows.select([column.name for column in self._table.columns if is_printable(column)])
        samples = []
        for number, *holds in found:
            names = tuple(name for name, right in zip(rules, holds, strict=True) if not right)
            (row,) = shown.slice(number, 1).to_pylist()
            present = {name: value for name, value in row.items() if value is not None}
            samples.append(BrokenRow(names, json.encode(present).decode()))
        return samples

    def _asked(self, rows: pa.Table, question: str, *columns: str) -> list[Any]:
        if self._database is None:
            self._database = duckdb.connect(
                ":memory:", config={"threads": 1, "autoinstall_known_extensions": False}
            )
            self._database.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
        # Only what is asked for: nested columns would be made known to the database one by one.
        self._database.register("given", rows.select(list(dict.fromkeys((*self._read, *columns)))))
        answer = self._database.execute(question).fetchall()
        self._database.unregister("given")
        return answer


def _holds(condition: str) -> str:
    return f"coalesce(CAST(({condition}) AS BOOLEAN), false)"
