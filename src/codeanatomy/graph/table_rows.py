"""Collect the rows of a table, file by file and kind by kind, and convert them to Arrow at once.

>>> rows = TableRows("cpg_nodes", ("repo_id", "file_id", "path", "owner_file_id"))
>>> rows.add({"node_id": ["class:b", "class:a"], "bstart": [7, 7]}, range(2), 2, {"node_kind": "CLASS"})
>>> rows.end_file({"repo_id": "shop", "path": "shop/cart.py"})
>>> rows.ordered().select(["path", "node_kind", "node_id", "name"]).to_pylist()[0]
{'path': 'shop/cart.py', 'node_kind': 'CLASS', 'node_id': 'class:a', 'name': None}

Half of the cells of edges are equal in all rows of a kind: they are stored once, and repeated when rows are
put in order. Texts of few values are codes from the beginning, so that nothing repeats the texts. Many files
share one conversion, because half of them are small: an Arrow array costs some microseconds even if it is
empty, and a file has sixty. On django's sdist all three together save a third of the time of graph rows.

Tests: `tests/unit/graph/test_rows.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, arrow_type, decode_texts, rank_values
from codeanatomy.catalog.spec import Column
from codeanatomy.file_view import Cells, Columns

Indexes: TypeAlias = npt.NDArray[np.int64]
# The values of a column in a part: number of the part, index of its first value, and 1; 0 if the part has
# one value for all of its rows.
Run: TypeAlias = tuple[int, int, int]
# Name of the sort key that keeps the rows of a file together.
FILE_NUMBER = ""
# By table: texts that repeat. As codes, a million edges take half the bytes and half the time to sort.
OWNERS = ("repo_id", "owner_file_id")
CODED: Mapping[str, Collection[str]] = {
    "cpg_nodes": (*OWNERS, "node_kind", "subkind", "file_id", "path"),
    "cpg_edges": (*OWNERS, "edge_kind", "path", "origin", "resolution_method", "rule_name"),
    "cpg_props": (*OWNERS, "entity_kind", "node_kind", "prop_key", "value_type"),
    "cpg_props_map": (*OWNERS, "entity_kind", "node_kind"),
}


class Values:
    """The values of a column, given as lists and as Arrow arrays."""

    def __init__(self) -> None:
        self._chunks: list[Cells] = []
        self.count = 0

    def add(self, cells: Cells) -> int:
        """Add values; return the index of the first."""
        first = self.count
        if isinstance(cells, pa.Array) or not (self._chunks and isinstance(self._chunks[-1], list)):
            self._chunks.append(cells if isinstance(cells, pa.Array) else list(cells))
        else:
            self._chunks[-1] += cells
        self.count += len(cells)
        return first

    def array(self, column: Column) -> pa.Array:
        """Return the values as one array."""
        kind = arrow_type(column)
        arrays = [
            chunk.cast(kind) if isinstance(chunk, pa.Array) else array(column, chunk)
            for chunk in self._chunks
        ]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


class TableRows:
    """Collect the rows of a table in parts: the rows of a kind of a file."""

    def __init__(self, name: str, of_files: Sequence[str]) -> None:
        self._table = catalog.table(name)
        # Columns with one value for all rows of a file, by file.
        self._of_files: dict[str, list[Any]] = {column: [] for column in of_files}
        # The values of the other columns, and their places; a part without a run is null.
        names = [column for column in self._table.column_names if column not in of_files]
        self._values = {column: Values() for column in names}
        self._runs: dict[str, list[Run]] = {column: [] for column in names}
        # Rows and file of each part; rows of each file.
        self._sizes: list[int] = []
        self._files: list[int] = []
        self.counts: list[int] = []
        self.count = 0

    def add(self, facts: Columns, kept: Sequence[int], count: int, constants: Mapping[str, Any]) -> None:
        """Add the `kept` rows of a list of `count` rows; `constants` are columns with one value for all."""
        part, is_whole = len(self._sizes), len(kept) == count
        at = None
        for name, cells in facts.items():
            values = self._values.get(name)
            if values is None or not len(cells) or name in constants:
                continue
            own = cells
            if not is_whole and isinstance(cells, pa.Array):
                at = pa.array(kept, pa.int64()) if at is None else at
                own = cells.take(at)
            elif not is_whole:
                own = [cells[index] for index in kept]
            self._runs[name].append((part, values.add(own), 1))
        for name, value in constants.items():
            self._runs[name].append((part, self._values[name].add([value]), 0))
        self._sizes.append(len(kept))
        self._files.append(len(self.counts))
        self.count += len(kept)

    def end_file(self, constants: Mapping[str, Any]) -> None:
        """End the rows of a file; `constants` are columns with one value for all of them."""
        for name, values in self._of_files.items():
            values.append(constants.get(name))
        self.counts.append(self.count - sum(self.counts))

    def ordered(self) -> pa.RecordBatch:
        """Return the rows of all files, in the table's order in each."""
        if not self.count:
            return no_rows(self._table.name)
        # Columns that have values in the same parts are put in order together.
        groups: defaultdict[tuple[Run, ...], list[str]] = defaultdict(list)
        for name, runs in self._runs.items():
            if runs:
                is_full = len(runs) == len(self._sizes) and all(step for _, _, step in runs)
                groups[() if is_full else tuple(runs)].append(name)
        arrays = {name: self._array(name) for names in groups.values() for name in names}
        places = self._places([runs for runs in groups if runs])
        by_column = {name: places[runs] for runs, names in groups.items() if runs for name in names}
        order = self._order(arrays, by_column)
        columns = {
            name: repeated(values, self._table.column(name), self.counts)
            for name, values in self._of_files.items()
        }
        for group, names in groups.items():
            rows = pa.RecordBatch.from_arrays([arrays[name] for name in names], names)
            taken = rows.take(pa.array(places[group][order] if group else order))
            columns.update(zip(names, taken.columns, strict=True))
        schema = schema_of(self._table.name)
        cells = [
            columns[field.name] if field.name in columns else pa.nulls(self.count, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(cells, schema=schema)

    def _array(self, name: str) -> pa.Array:
        values = self._values[name]
        if len(self._runs[name]) < len(self._sizes):
            values.add([None])
        cells = values.array(self._table.column(name))
        return cells.dictionary_encode() if name in CODED[self._table.name] else cells

    def _places(self, groups: Iterable[tuple[Run, ...]]) -> dict[tuple[Run, ...], Indexes]:
        """Return the index of the value of each row, for columns with these runs; null is the last value."""
        sizes = np.array(self._sizes)
        rows, firsts = np.arange(self.count), sizes.cumsum() - sizes
        places = {}
        for runs in groups:
            part, start, step = runs[-1]
            starts = np.full(len(sizes), start + (self._sizes[part] if step else 1))
            steps = np.zeros(len(sizes), np.int64)
            parts, part_starts, part_steps = np.array(runs).T
            starts[parts], steps[parts] = part_starts, part_steps
            places[runs] = (starts - steps * firsts).repeat(sizes) + steps.repeat(sizes) * rows
        return places

    def _order(self, arrays: Mapping[str, pa.Array], places: Mapping[str, Indexes]) -> Indexes:
        """Return the indexes of the rows, those of a file together and in the table's order."""
        keys: dict[str, pa.Array] = {}
        if len(self.counts) > 1:
            keys[FILE_NUMBER] = pa.array(np.repeat(self._files, self._sizes))
        for name in self._table.sort_keys:
            if name in arrays:
                keys[name] = arrays[name].take(pa.array(places[name])) if name in places else arrays[name]
        return sort_order(keys).to_numpy() if keys else np.arange(self.count)


@cache
def schema_of(name: str) -> pa.Schema:
    """Return the Arrow schema of a table, with codes in place of texts that repeat."""
    codes = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        field.with_type(codes) if field.name in CODED[name] else field
        for field in arrow_schema(catalog.table(name))
    )


@cache
def no_rows(name: str) -> pa.RecordBatch:
    """Return no rows of a table."""
    return pa.RecordBatch.from_pylist([], schema_of(name))


def sort_order(keys: Mapping[str, pa.Array]) -> pa.Array:
    """Return the indexes of rows in the order of these columns; of codes, in the order of their texts."""
    columns = [rank_values(key) if pa.types.is_dictionary(key.type) else key for key in keys.values()]
    rows = pa.RecordBatch.from_arrays(columns, list(keys))
    return pc.sort_indices(rows, sort_keys=[(key, "ascending", "at_start") for key in keys])


def sort_rows(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in a table's order."""
    return rows.take(sort_order({key: rows.column(key) for key in catalog.table(name).sort_keys}))


def sort_files(name: str, rows: pa.RecordBatch, files: Sequence[str]) -> list[pa.RecordBatch]:
    """Return the rows of each file in a table's order, from rows of all of these files."""
    numbers = pc.index_in(decode_texts(rows.column("file_id")), value_set=pa.array(files, pa.string()))
    keys = {FILE_NUMBER: numbers, **{key: rows.column(key) for key in catalog.table(name).sort_keys}}
    counts = np.bincount(numbers.to_numpy(), minlength=len(files)).tolist()
    return split(rows.take(sort_order(keys)), counts)


def repeated(values: Sequence[Any], column: Column, counts: Sequence[int]) -> pa.Array:
    """Return a column of codes that has the values of files in all of their rows, from the rows of each."""
    return array(column, values).dictionary_encode().take(pa.array(np.arange(len(counts)).repeat(counts)))


def split(rows: pa.RecordBatch, counts: Sequence[int]) -> list[pa.RecordBatch]:
    """Return the first rows, the next ones, and so on; nothing is copied."""
    starts = accumulate(counts, initial=0)
    return [rows.slice(start, count) for start, count in zip(starts, counts, strict=False)]
