"""A table in words: what the command line and the generated pages show of it.

>>> from codeanatomy.catalog import table
>>> policy_facts(table("cpg_nodes"))["partition"]
'node_kind'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codeanatomy.catalog.spec import MB, Column, Table


def type_text(column: Column) -> str:
    """The type as a person writes it: `struct[]` for a list of structs."""
    return f"{column.type}[]" if column.array else column.type


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
        "file size": f"{write.target_file_size // MB} MB, {write.writer.compression}",
        "bloom filters": ", ".join(bloom.column for bloom in write.writer.bloom_filters),
        "features": ", ".join(write.enable_features),
        "schema mode": table.schema.schema_mode or "refuse any change",
        "cache": table.cache,
    }
    return {name: value for name, value in facts.items() if value}
