r"""Cells into Arrow, column by column, by the catalogue's types.

>>> from codeanatomy.catalog.tables.columns import LINE, structs
>>> column = structs("marks", "Marks.", LINE)
>>> array(column, [{"line": [1, 2]}, None, {"line": []}]).to_pylist()
[[{'line': 1}, {'line': 2}], None, []]

A list of structs arrives as one Python list per field (`testimony`); the lists of all rows are joined field
by field and become one Arrow array each. No object is made per nested row: that is what makes four million
syntax nodes affordable. Text that UTF-8 cannot hold (lone surrogates in an evaluated string) is kept as its
escape, `\\ud800`.

The way back, `values`, makes lists of structs into dictionaries of lists too.

Rows that Spark only carries from one Python step to the next are `packed` into streams: as bytes they cost it
a fraction of what nested rows do.

Tests: `tests/unit/test_arrow.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import pyarrow as pa

from codeanatomy.catalog.spec import Column, Table

SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column."""
    single = pa.struct(map(arrow_field, column.fields)) if column.type == "struct" else SCALARS[column.type]
    return pa.list_(single) if column.array else single


def arrow_field(column: Column) -> pa.Field:
    """The column with its name; everything may be null, NOT NULL is checked where rows are committed."""
    return pa.field(column.name, arrow_type(column))


def arrow_schema(table: Table) -> pa.Schema:
    """The schema of a table's rows."""
    return pa.schema(map(arrow_field, table.columns))


def array(column: Column, values: Sequence[Any]) -> pa.Array:
    """The values of a column, one per row."""
    if not column.array:
        return _structs(column, values) if column.type == "struct" else _scalars(SCALARS[column.type], values)
    present = [value for value in values if value is not None]
    if column.type == "struct":
        _refuse_ragged(column, present)
        parts = [array(field, _joined(value[field.name] for value in present)) for field in column.fields]
        inner = pa.StructArray.from_arrays(parts, fields=list(map(arrow_field, column.fields)))
        lengths = [_length(column, value) if value is not None else 0 for value in values]
    else:
        inner = _scalars(SCALARS[column.type], _joined(present))
        lengths = [len(value) if value is not None else 0 for value in values]
    offsets = list(accumulate(lengths, initial=0))
    mask = pa.array([value is None for value in values], pa.bool_()) if len(present) < len(values) else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, mask=mask)


def _joined(lists: Any) -> list[Any]:
    return list(chain.from_iterable(lists))


def _length(column: Column, value: Mapping[str, Sequence[Any]]) -> int:
    return len(value[column.fields[0].name])


def _refuse_ragged(column: Column, present: Sequence[Mapping[str, Sequence[Any]]]) -> None:
    """A witness that forgets a field, or fills it unevenly, would shift the rows of other files."""
    names = {field.name for field in column.fields}
    for value in present:
        if value.keys() != names or len({len(values) for values in value.values()}) != 1:
            sizes = {name: len(values) for name, values in value.items()}
            raise ValueError(f"{column.name} needs equally long lists for {sorted(names)}, got {sizes}")


def _structs(column: Column, values: Sequence[Mapping[str, Any] | None]) -> pa.Array:
    names = {field.name for field in column.fields}
    for value in values:
        if value is not None and value.keys() != names:
            raise ValueError(f"{column.name} needs the fields {sorted(names)}, got {sorted(value)}")
    parts = [
        array(field, [None if value is None else value[field.name] for value in values])
        for field in column.fields
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(map(arrow_field, column.fields)), mask=mask)


def _scalars(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([value if value is None else _encodable(value) for value in values], kind)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def packed(rows: pa.RecordBatch) -> bytes:
    """Rows as a compressed stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def unpacked(stream: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """The rows in a stream."""
    with pa.ipc.open_stream(stream) as reader:
        yield from reader


def values(column: pa.Array) -> list[Any]:
    """The values of an array; lists of structs, at any depth, as dictionaries of lists.

    >>> values(pa.array([[{"a": 1, "b": ["x"]}, {"a": 2, "b": None}], None]))
    [{'a': [1, 2], 'b': [['x'], None]}, None]
    """
    kind = column.type
    if pa.types.is_list(kind):
        return _nested(column)
    if pa.types.is_struct(kind):
        rows = zip(*(values(column.field(place)) for place in range(kind.num_fields)), strict=True)
        names = [field.name for field in kind]
        found: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
        return _without(found, column)
    if pa.types.is_string(kind):
        # Opcodes, kinds and names repeat: one object for each of them, and one conversion.
        encoded = column.dictionary_encode()
        words = [*encoded.dictionary.to_pylist(), None]
        return [words[index] for index in encoded.indices.fill_null(-1).to_numpy().tolist()]
    if pa.types.is_integer(kind) and column.null_count:
        # Twice as fast as asking Arrow for each of them.
        return _without(column.fill_null(0).to_numpy().tolist(), column)
    plain: list[Any] = (
        column.to_pylist() if column.null_count else column.to_numpy(zero_copy_only=False).tolist()
    )
    return plain


def _nested(column: pa.ListArray) -> list[Any]:
    offsets = column.offsets.to_numpy()
    # A slice of a longer array holds the values of all of it.
    inner = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    bounds = (offsets - offsets[0]).tolist()
    pieces = list(pairwise(bounds))
    if pa.types.is_struct(inner.type):
        names = [field.name for field in inner.type]
        columns = [values(inner.field(place)) for place in range(len(names))]
        found: list[Any] = [
            {name: column[start:end] for name, column in zip(names, columns, strict=True)}
            for start, end in pieces
        ]
    else:
        items = values(inner)
        found = [items[start:end] for start, end in pieces]
    return _without(found, column)


def _without(found: list[Any], column: pa.Array) -> list[Any]:
    """Null where the array is null."""
    if not column.null_count:
        return found
    present = column.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [each if there else None for each, there in zip(found, present, strict=True)]
