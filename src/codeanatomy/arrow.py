r"""Convert Python values to Arrow arrays by the catalogue's column types, and back.

>>> from codeanatomy.catalog.tables.columns import LINE, structs
>>> column = structs("marks", "Marks.", LINE)
>>> array(column, [{"line": [1, 2]}, None, {"line": []}]).to_pylist()
[[{'line': 1}, {'line': 2}], None, []]

A list of structs is given as one Python list per field; the lists of all rows are concatenated field by field
and become one Arrow array each. No object is made per nested row, which is what makes four million syntax
nodes affordable. Text that UTF-8 cannot encode (lone surrogates in an evaluated string) is stored as its
escape, `\\ud800`.

`to_python` converts back, and returns lists of structs as dictionaries of lists too.

`pack_rows` serializes rows that Spark only carries from one Python step to the next: as bytes they cost it a
fraction of what nested rows do.

Tests: `tests/unit/test_arrow.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
# Most files have some empty lists; making an array of no values takes 3 microseconds.
EMPTY: Mapping[str, pa.Array] = {name: pa.array([], kind) for name, kind in SCALARS.items()}


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column."""
    single = pa.struct(map(arrow_field, column.fields)) if column.type == "struct" else SCALARS[column.type]
    return pa.list_(single) if column.array else single


def arrow_field(column: Column) -> pa.Field:
    """Return the Arrow field of a column; all fields are nullable, since commits check NOT NULL."""
    return pa.field(column.name, arrow_type(column))


def arrow_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema(map(arrow_field, table.columns))


def array(column: Column, values: Sequence[Any]) -> pa.Array:
    """Build the Arrow array of a column from one value per row."""
    if not column.array:
        return _structs(column, values) if column.type == "struct" else _scalars(column.type, values)
    present = [value for value in values if value is not None]
    if column.type == "struct":
        _check_lengths(column, present)
        parts = [
            array(field, _concatenate(value[field.name] for value in present)) for field in column.fields
        ]
        # With names, not fields: to make the fields again would take as long as the arrays of a small file.
        inner = pa.StructArray.from_arrays(parts, names=[field.name for field in column.fields])
        lengths = [_length(column, value) if value is not None else 0 for value in values]
    else:
        inner = _scalars(column.type, _concatenate(present))
        lengths = [len(value) if value is not None else 0 for value in values]
    offsets = list(accumulate(lengths, initial=0))
    mask = pa.array([value is None for value in values], pa.bool_()) if len(present) < len(values) else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, mask=mask)


def _concatenate(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


def _length(column: Column, value: Mapping[str, Sequence[Any]]) -> int:
    return len(value[column.fields[0].name])


def _check_lengths(column: Column, present: Sequence[Mapping[str, Sequence[Any]]]) -> None:
    """Raise ValueError if a field is missing or shorter: it would shift the rows of other files."""
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
    return pa.StructArray.from_arrays(parts, names=[field.name for field in column.fields], mask=mask)


def _scalars(name: str, values: Sequence[Any]) -> pa.Array:
    if len(values) == 0:
        return EMPTY[name]
    kind = SCALARS[name]
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([value if value is None else _encodable(value) for value in values], kind)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def encode_texts(rows: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Give texts of few values as codes: they are packed, moved and sorted in less time.

    >>> rows = pa.RecordBatch.from_pydict({"path": ["a.py", "a.py"], "line": [1, 2]})
    >>> encode_texts(rows, {"path"}).schema.field("path").type
    DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
    >>> decode_texts(encode_texts(rows, {"path"}).column("path"))[1].as_py()
    'a.py'
    """
    columns = [
        column.dictionary_encode() if name in names else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def decode_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column with texts in place of their codes."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def number_values(
    columns: Iterable[pa.Array],
) -> tuple[np.ndarray[Any, np.dtype[Any]], list[tuple[Any, ...]]]:
    """Number the combinations of values that rows have, which are few; return each row's, and the values.

    >>> numbers, values = number_values([pa.array(["a", "b", "a"]), pa.array(["x", None, "x"])])
    >>> numbers.tolist(), values
    ([0, 1, 0], [('a', 'x'), ('b', None)])
    """
    numbers: np.ndarray[Any, np.dtype[Any]] = np.zeros(1, np.int64)
    combinations: list[tuple[Any, ...]] = [()]
    for column in columns:
        encoded = column.dictionary_encode()
        values = [*encoded.dictionary.to_pylist(), None]
        own = pc.fill_null(encoded.indices, len(values) - 1).to_numpy(zero_copy_only=False)
        codes = numbers * len(values) + own
        counts = np.bincount(codes, minlength=len(combinations) * len(values))
        numbers = (np.cumsum(counts > 0) - 1)[codes]
        pairs = (divmod(code, len(values)) for code in np.flatnonzero(counts).tolist())
        combinations = [(*combinations[before], values[value]) for before, value in pairs]
    return numbers, combinations


def with_texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with texts in place of codes in all columns."""
    return pa.RecordBatch.from_arrays([decode_texts(column) for column in rows.columns], rows.schema.names)


def pack_rows(rows: pa.RecordBatch, compression: str | None = "lz4") -> bytes:
    """Serialize rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def unpack_rows(stream: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow IPC stream."""
    with pa.ipc.open_stream(stream) as reader:
        yield from reader


def to_python(column: pa.Array) -> list[Any]:
    """Return the values of an array; lists of structs, at any depth, as dictionaries of lists.

    >>> to_python(pa.array([[{"a": 1, "b": ["x"]}, {"a": 2, "b": None}], None]))
    [{'a': [1, 2], 'b': [['x'], None]}, None]
    """
    kind = column.type
    if pa.types.is_list(kind):
        return _nested(column)
    if pa.types.is_struct(kind):
        rows = zip(*(to_python(column.field(index)) for index in range(kind.num_fields)), strict=True)
        names = [field.name for field in kind]
        structs: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
        return _set_nulls(structs, column)
    if pa.types.is_string(kind):
        # Opcodes, kinds and names repeat: each distinct text is converted once and shared.
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return [texts[index] for index in encoded.indices.fill_null(-1).to_numpy().tolist()]
    if pa.types.is_integer(kind) and column.null_count:
        # Twice as fast as `to_pylist`.
        return _set_nulls(column.fill_null(0).to_numpy().tolist(), column)
    plain: list[Any] = (
        column.to_pylist() if column.null_count else column.to_numpy(zero_copy_only=False).tolist()
    )
    return plain


def _nested(column: pa.ListArray) -> list[Any]:
    offsets = column.offsets.to_numpy()
    # A slice of a longer array still holds the values of the whole array.
    inner = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    bounds = (offsets - offsets[0]).tolist()
    ranges = list(pairwise(bounds))
    if pa.types.is_struct(inner.type):
        names = [field.name for field in inner.type]
        columns = [to_python(inner.field(index)) for index in range(len(names))]
        lists: list[Any] = [
            {name: column[start:end] for name, column in zip(names, columns, strict=True)}
            for start, end in ranges
        ]
    else:
        items = to_python(inner)
        lists = [items[start:end] for start, end in ranges]
    return _set_nulls(lists, column)


def _set_nulls(items: list[Any], column: pa.Array) -> list[Any]:
    """Replace the items by None where the array is null."""
    if not column.null_count:
        return items
    present = column.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [item if is_valid else None for item, is_valid in zip(items, present, strict=True)]
