"""Sort rows as Arrow, in ranges that fit into a task, for tables whose order is not that of the files.

    rows               [n7 n1 n4] [n2 n9] [n3]       as tasks made them
    samples            n1 n4 n9                      keys of every so many rows, which came with them
    cut                before n4                     into ranges that fit into a task
    split              0:[n1 n2] 1:[n7 n4 n9] 0:[n3]
    sort and write     part-...: n1 n2 n3            part-...: n4 n7 n9

A file has one range or several, in their order, so files do not overlap and a task holds a range at a time.
Keys are the table's order and its primary key, so the same rows make the same files. Text is ordered by its
bytes and null comes first, as Spark has it. Rows that make a single range need neither sample nor exchange.

The range of a row is found by the first bytes of the last column of the table's order, a node id, with one
search in the cuts (0.08 s for a million rows; comparing whole keys with each cut took 1.4 s).

The exchange between split and write is that of `spark_tables`. Tests: `tests/spark/test_sorted_tables.py`,
`tests/unit/pipeline/test_sorted_tables.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.arrow import number_values, rank_values, with_texts
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.write.data_files import Batches, write_files

MB = 1024 * 1024
# Bytes that a range takes on disk; in memory it is five times that, and there twice while it is sorted.
RANGE_BYTES = 16 * MB
# Rows for each sampled key: some hundreds of keys for a range make ranges about equal.
SAMPLE_STEP = 512
# Packed bytes that are split at a time: pieces of single source files would be a few rows each. Packed, as
# Arrow takes 40 microseconds to measure a batch with codes.
SPLIT_BYTES = 12 * MB
# Rows that leave a sorted range at a time.
STEP_ROWS = 64 * 1024
# Bytes of a key that decide its range: the prefix of a kind and the beginning of a definition key.
PREFIX_BYTES = 16


class Cut(NamedTuple):
    """Where a range begins: values of the leading columns, and first bytes of the last one."""

    # Null is before all texts.
    lead: tuple[tuple[bool, str], ...]
    prefix: bytes


def complete_rows(
    table: Table, batches: Iterable[pa.RecordBatch], constants: Mapping[str, str] = {}
) -> Batches:
    """Yield rows with the columns of the table: with the constants, in the table's order of columns."""
    names = table.column_names
    for batch in batches:
        arrays = [
            pa.repeat(constants[name], batch.num_rows) if name in constants else batch.column(name)
            for name in names
        ]
        yield pa.RecordBatch.from_arrays(arrays, names)


def write_in_order(
    folder: NewFiles,
    table: Table,
    batches: Iterable[pa.RecordBatch],
    constants: Mapping[str, str] = {},
    *,
    is_copy: bool = False,
) -> list[DataFile]:
    """Write rows that fit into memory as data files in the table's order."""
    ordered = in_order(table.sort_keys, complete_rows(table, batches, constants))
    return write_files(folder, table, ordered, is_copy=is_copy)


def range_keys(table: Table, known: Collection[str]) -> tuple[str, ...]:
    """Return the columns that decide the range of a row: the first of the table's order, as far as texts."""
    is_text = (name in known and table.column(name).type == "string" for name in table.ordering)
    return table.ordering[: sum(takewhile(bool, is_text))]


def sample_rows(rows: pa.RecordBatch, columns: Sequence[str], step: int = SAMPLE_STEP) -> pa.RecordBatch:
    """Return some columns of every so many rows, of a few rows of one."""
    places = range(min(step, rows.num_rows) // 2, rows.num_rows, step)
    return with_texts(rows.select(list(columns)).take(pa.array(places, pa.int64())))


def choose_cuts(samples: pa.Table, table: Table, ranges: int) -> list[Cut]:
    """Choose the keys at which all ranges but the first begin."""
    keys = range_keys(table, samples.column_names)
    if not keys or not samples.num_rows:
        return []
    ordered = _sorted(keys, samples.select(list(keys)))
    places = sorted({ordered.num_rows * number // ranges for number in range(1, ranges)} - {0})
    chosen = ordered.take(pa.array(places, pa.int64())).to_pylist()
    cuts = (
        Cut(tuple(_rank(row[key]) for key in keys[:-1]), (row[keys[-1]] or "").encode()[:PREFIX_BYTES])
        for row in chosen
    )
    return sorted(set(cuts))


def _rank(value: str | None) -> tuple[bool, str]:
    return (value is not None, value or "")


def split_rows(
    rows: pa.RecordBatch, keys: Sequence[str], cuts: Sequence[Cut]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield number and rows of each range that has any."""
    numbers = range_numbers(rows, keys, cuts)
    # Numbers of 16 bits are sorted by radix.
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    together, counts = rows.take(pa.array(order)), np.bincount(numbers, minlength=len(cuts) + 1)
    start = 0
    for number, size in enumerate(counts.tolist()):
        if size:
            yield number, together.slice(start, size)
            start += size


def range_numbers(
    rows: pa.RecordBatch, keys: Sequence[str], cuts: Sequence[Cut]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the range of each row: the number of cuts that are not after it."""
    *lead, last = keys
    prefixes = key_prefixes(rows.column(last))
    codes, combinations = number_values([rows.column(name) for name in lead])
    numbers = np.zeros(rows.num_rows, np.int64)
    cut_leads = [cut.lead for cut in cuts]
    for code, values in enumerate(combinations):
        value = tuple(map(_rank, values))
        first, end = bisect_left(cut_leads, value), bisect_right(cut_leads, value)
        own = np.array([cut.prefix for cut in cuts[first:end]], f"S{PREFIX_BYTES}")
        of_lead = codes == code if len(combinations) > 1 else slice(None)
        numbers[of_lead] = first + np.searchsorted(own, prefixes[of_lead], side="right")
    return numbers


def key_prefixes(column: pa.StringArray, width: int = PREFIX_BYTES) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the first bytes of each text, which order texts as far as they go; none for null."""
    count = len(column)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + count + 1]
    content = column.buffers()[2]
    data = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    padded = np.concatenate([data, np.zeros(width, np.uint8)])
    prefixes = np.lib.stride_tricks.sliding_window_view(padded, width)[offsets[:-1]]
    prefixes[np.arange(width) >= (offsets[1:] - offsets[:-1])[:, None]] = 0
    return np.ascontiguousarray(prefixes).view(f"S{width}").ravel()


def in_order(keys: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield the rows of a range in order."""
    parts = list(batches)
    if not parts:
        return
    rows = pa.concat_batches(parts)
    del parts
    order = sort_order(keys, rows)
    # In slices, so that memory does not hold all rows twice.
    for start in range(0, rows.num_rows, STEP_ROWS):
        yield rows.take(order.slice(start, STEP_ROWS))


def sort_order(keys: Sequence[str], rows: pa.RecordBatch) -> pa.Array:
    """Return the indexes of rows in the order of some columns.

    Codes, and the first column of texts, are compared as ranks of their values: 0.14 s for a million edges,
    all compared as texts 0.39 s. Texts after them are only compared where the others are equal; ranks of the
    other end of edges took 0.16 s.
    """
    columns: dict[str, pa.Array] = {}
    is_ranked = False
    for key in keys:
        column = rows.column(key)
        if pa.types.is_dictionary(column.type) or (pa.types.is_string(column.type) and not is_ranked):
            codes = column.dictionary_encode()
            if len(codes.dictionary) == 1 and not codes.null_count:
                continue
            is_ranked |= pa.types.is_string(column.type)
            column = rank_values(codes)
        columns[key] = column
    if not columns:
        return pa.array(np.arange(rows.num_rows))
    compared = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return pc.sort_indices(compared, sort_keys=_ascending(columns))


def _sorted(keys: Sequence[str], rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows, sort_keys=_ascending(keys)))


def _ascending(keys: Iterable[str]) -> list[tuple[str, str, str]]:
    return [(key, "ascending", "at_start") for key in keys]
