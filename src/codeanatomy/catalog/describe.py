"""A table in words: what the command line and the generated pages show of it.

>>> from codeanatomy.catalog import table
>>> policy_facts(table("cpg_nodes"))["partition"]
'node_kind'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codeanatomy.catalog.spec import MB, Column, DeltaFeatureGate, Table


def type_text(column: Column) -> str:
    """The type as a person writes it: `struct[]` for a list of structs."""
    return f"{column.type}[]" if column.array else column.type


def size_text(size: int) -> str:
    """Bytes in the largest unit that tells them exactly.

    >>> size_text(64 * MB), size_text(1536), size_text(1000)
    ('64 MB', '1536 B', '1000 B')
    """
    units = ((1024 * MB, "GB"), (MB, "MB"), (1024, "KB"))
    return next((f"{size // unit} {name}" for unit, name in units if size % unit == 0), f"{size} B")


def flattened(columns: Sequence[Column], depth: int = 0) -> Iterator[tuple[Column, int]]:
    """The columns and, below each, its fields; with their depth."""
    for column in columns:
        yield column, depth
        yield from flattened(column.fields, depth + 1)


def policy_facts(table: Table) -> dict[str, str]:
    """What is declared about a table beside its columns; only what is set."""
    write = table.write
    keys = (f"{', '.join(key.columns)} -> {key.table}({', '.join(key.target)})" for key in table.foreign_keys)
    facts = {
        "path": f"<lake>/{table.path}",
        "primary key": ", ".join(table.primary_key),
        "foreign keys": "; ".join(keys),
        "owner": table.owner or "",
        "inputs": ", ".join(table.inputs),
        "partition": ", ".join(write.partition_by),
        "cluster": ", ".join(write.zorder_by),
        "ordering": ", ".join(table.ordering),
        "statistics": f"{write.stats_policy} {', '.join(write.stats_columns)}".strip(),
        "file size": f"{size_text(write.target_file_size)}, {write.writer.compression}",
        "bloom filters": ", ".join(bloom.column for bloom in write.writer.bloom_filters),
        "features": ", ".join(write.enable_features),
        "schema mode": table.schema.schema_mode or "refuse any change",
        "column mapping": table.schema.column_mapping_mode or "",
        "gate": _gate_text(table.gate),
        "cache": table.cache,
    }
    return {name: value for name, value in facts.items() if value}


def _gate_text(gate: DeltaFeatureGate) -> str:
    versions = (("reader", gate.min_reader_version), ("writer", gate.min_writer_version))
    features = dict.fromkeys((*gate.required_reader_features, *gate.required_writer_features))
    return ", ".join((*(f"{side} >= {least}" for side, least in versions if least is not None), *features))
