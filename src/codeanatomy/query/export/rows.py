"""Hand rows to a format in batches.

    nodes = ExportRows(NODES, props=(Prop("text", "string", "The comment."),), batches=...)
    for batch in nodes:                 # a list of some thousand tuples
        for row in batch:
            row[:-1]                    # the columns of the table, as the catalogue has them
            row[-1]                     # {"text": "# why"}, or None

At most one batch is in memory. Formats that need to know all columns beforehand write a column for each
property that the catalogue declares (`flat`); the others write what there is.

Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, TypeAlias

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.kinds.spec import Prop, PropType
from codeanatomy.catalog.spec import Column, ColumnType

Row: TypeAlias = tuple[Any, ...]
Batch: TypeAlias = list[Row]

NODES = catalog.table("cpg_nodes").columns
EDGES = catalog.table("cpg_edges").readable_columns
# The type of a column that holds a property of a type.
COLUMN_TYPES: Mapping[PropType, ColumnType] = {
    "string": "string",
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "json": "string",
}


class Counts(Struct, frozen=True):
    """How many rows a format has written."""

    nodes: int
    edges: int


class ExportRows:
    """Batches, to be read once."""

    def __init__(self, columns: tuple[Column, ...], props: Iterable[Prop], batches: Iterable[Batch]) -> None:
        self.columns = columns
        # Properties that some row may have.
        self.props = tuple({prop.name: prop for prop in props}.values())
        self.count = 0
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[Batch]:
        for batch in self._batches:
            self.count += len(batch)
            yield batch

    @property
    def flat_columns(self) -> tuple[Column, ...]:
        """The columns, and one for each property."""
        return (*self.columns, *(Column(prop.name, COLUMN_TYPES[prop.type], prop.doc) for prop in self.props))

    def flat(self, batch: Batch) -> Iterator[Row]:
        """Rows with a value for each flat column."""
        names = tuple(prop.name for prop in self.props)
        nothing = (None,) * len(names)
        for row in batch:
            props = row[-1]
            yield (*row[:-1], *(map(props.get, names) if props else nothing))


class Counting:
    """A stream that knows how much was written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.bytes = 0

    def write(self, data: bytes) -> None:
        """Write all of it."""
        self.bytes += len(data)
        self._stream.write(data)


def place_of(columns: tuple[Column, ...], *names: str) -> tuple[int, ...]:
    """Where columns are in a row.

    >>> place_of(NODES, "node_id", "node_kind")
    (1, 2)
    """
    known = [column.name for column in columns]
    return tuple(map(known.index, names))
