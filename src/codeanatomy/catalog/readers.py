"""List the programs that read tables, by the protocol features that they support.

>>> [reader.name for reader in READERS if not reader.opens(("deletionVectors",))]
['deltalake to_pyarrow_dataset, to_pandas', 'DuckDB on the files']
>>> len(readers_of(())) == len(READERS)
True

Tables whose rows are replaced by owner have deletion vectors if `delta.readers` is "modern". The cells of the
table of readers in `docs/storage.md` are tested in `tests/unit/delta/test_copy_on_write.py` and
`tests/spark/test_copy_on_write.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct, structs

from codeanatomy.catalog.spec import FeatureName, Table

VECTORS: FeatureName = "deletion_vectors"
# The same in Delta's protocol.
VECTORS_NAME = "deletionVectors"
# Features that require more of a reader than Parquet.
READER_FEATURES: tuple[FeatureName, ...] = (VECTORS, "column_mapping", "v2_checkpoints")


class TableReader(Struct, frozen=True):
    """A program that reads tables, and the reader features that it supports, by their names in Delta."""

    name: str
    features: tuple[str, ...] = ()

    def opens(self, features: Collection[str]) -> bool:
        """Return whether it reads the rows of a table with these reader features."""
        return set(features) <= set(self.features)


READERS = (
    TableReader("Spark with Delta", (VECTORS_NAME, "columnMapping", "v2Checkpoint")),
    TableReader("codeanatomy without Spark", (VECTORS_NAME, "v2Checkpoint")),
    TableReader("deltalake QueryBuilder", (VECTORS_NAME,)),
    TableReader("Polars 2", (VECTORS_NAME,)),
    TableReader("deltalake to_pyarrow_dataset, to_pandas"),
    TableReader("DuckDB on the files"),
)


def readers_of(features: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the readers that open a table with these features, of readers and writers."""
    known = {name for reader in READERS for name in reader.features}
    required = known.intersection(features)
    return tuple(reader.name for reader in READERS if reader.opens(required))


def readers_text(features: Iterable[str]) -> str:
    """Format the readers of a table in a few words.

    >>> readers_text(()), readers_text(("appendOnly", "deletionVectors"))
    ('all', 'not deltalake to_pyarrow_dataset, to_pandas, DuckDB on the files')
    """
    names = readers_of(features)
    missing = [reader.name for reader in READERS if reader.name not in names]
    return f"not {', '.join(missing)}" if missing else "all"


def without_vectors(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables without deletion vectors in their policies."""
    return tuple(_without_vectors(table) for table in tables)


def _without_vectors(table: Table) -> Table:
    features = tuple(name for name in table.write.enable_features if name != VECTORS)
    if features == table.write.enable_features:
        return table
    return structs.replace(table, write=structs.replace(table.write, enable_features=features))
