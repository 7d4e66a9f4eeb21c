"""Format a table or a kind as labelled texts, for the command line and the generated pages.

>>> from codeanatomy.catalog import table
>>> describe_table(table("cpg_nodes"))["partition"]
'node_kind'

Tests: `tests/unit/cli/test_docs.py`, `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codeanatomy.catalog.kinds.spec import EdgeKind, Ends, NodeKind, Prop
from codeanatomy.catalog.spec import MB, Column, DeltaFeatureGate, Table


def type_text(column: Column) -> str:
    """Format a column type; a list of structs is `struct[]`."""
    return f"{column.type}[]" if column.array else column.type


def size_text(size: int) -> str:
    """Format a size in the largest unit that divides it.

    >>> size_text(64 * MB), size_text(1536), size_text(1000)
    ('64 MB', '1536 B', '1000 B')
    """
    units = ((1024 * MB, "GB"), (MB, "MB"), (1024, "KB"))
    return next((f"{size // unit} {name}" for unit, name in units if size % unit == 0), f"{size} B")


def nested_columns(columns: Sequence[Column], depth: int = 0) -> Iterator[tuple[Column, int]]:
    """Iterate over columns and their nested fields, depth first, with the nesting depth."""
    for column in columns:
        yield column, depth
        yield from nested_columns(column.fields, depth + 1)


def describe_table(table: Table) -> dict[str, str]:
    """Return the keys, inputs and policies of a table by label; unset ones are omitted."""
    write = table.write
    keys = (f"{', '.join(key.columns)} -> {key.table}({', '.join(key.target)})" for key in table.foreign_keys)
    facts = {
        "path": f"<lake>/{table.path}",
        "primary key": ", ".join(table.primary_key),
        "foreign keys": "; ".join(keys),
        "derived, not stored": "; ".join(f"{each.column.name} = {each.expression}" for each in table.derived),
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
        "upkeep": _upkeep_text(table),
    }
    return {name: value for name, value in facts.items() if value}


def _gate_text(gate: DeltaFeatureGate) -> str:
    versions = (("reader", gate.min_reader_version), ("writer", gate.min_writer_version))
    features = dict.fromkeys((*gate.required_reader_features, *gate.required_writer_features))
    return ", ".join((*(f"{side} >= {least}" for side, least in versions if least is not None), *features))


def _upkeep_text(table: Table) -> str:
    """Format the maintenance policy as one line."""
    upkeep = table.upkeep
    how = "Z-order" if upkeep.z_order_cols else "sort"
    order = f"{how} {upkeep.z_order_when.replace('_', ' ')} by {', '.join(table.z_order)}"
    return ", ".join(
        (
            f"compact from {upkeep.compact_files} small files",
            order if table.z_order else "no sorting",
            f"vacuum after {upkeep.vacuum_hours:g} h",
            f"log {upkeep.log_hours:g} h",
            f"checkpoint every {upkeep.checkpoint_interval}",
        )
    )


def ends_text(ends: Sequence[Ends]) -> str:
    """Format the allowed source and target kinds of an edge.

    >>> ends_text([Ends(("CALLSITE",), ("ARGUMENT",))])
    'CALLSITE -> ARGUMENT'
    """
    return "; ".join(f"{', '.join(pair.src)} -> {', '.join(pair.dst)}" for pair in ends)


def describe_kind(kind: NodeKind | EdgeKind) -> dict[str, str]:
    """Return the declarations of a kind by label, without its doc; unset ones are omitted."""
    facts = _node_facts(kind) if isinstance(kind, NodeKind) else _edge_facts(kind)
    facts |= {
        "properties": "; ".join(map(_prop_text, kind.props)),
        "sources": ", ".join(kind.sources),
        "made of": f"{kind.made_of.of} (codeanatomy.graph.facts)",
        "owner": {"file": "its file", "repository": "the repository"}.get(kind.owner, "file or repository"),
        "profiles": ", ".join(kind.profiles),
    }
    return {name: value for name, value in facts.items() if value}


def _node_facts(kind: NodeKind) -> dict[str, str]:
    return {
        "id": id_text(kind),
        "subkind": kind.subkind,
        "name": kind.named,
        "qualname": kind.qualified,
        "span": kind.placed,
    }


def id_text(kind: NodeKind) -> str:
    """Format what the ids of a kind are made of.

    >>> from codeanatomy.catalog.kinds import NODE_KINDS
    >>> id_text(NODE_KINDS["CALLSITE"]), id_text(NODE_KINDS["PACKAGE"])
    ('callsite:<definition key>.<number>', 'package:<repo_id>:<qualname>')
    """
    first, *others = kind.key
    is_defined = first == "definition"
    parts = ["<definition key>" if is_defined else f"<{first}>", *(f"<{part}>" for part in others)]
    return f"{kind.prefix}:{('.' if is_defined else ':').join(parts)}"


def _edge_facts(kind: EdgeKind) -> dict[str, str]:
    counts = (
        f"{count} {end}" for count, end in ((kind.per_src, "from a source"), (kind.per_dst, "to a target"))
    )
    return {
        "ends": ends_text(kind.ends),
        "cardinality": ", ".join(counts),
        "role": kind.role,
        "ordinal": kind.ordinal,
        "origin": f"{kind.origin}, rule {kind.rule}" if kind.rule else "as of the relation",
    }


def _prop_text(prop: Prop) -> str:
    return f"{prop.name} {prop.type}{', required' if prop.required else ''}: {prop.doc.rstrip('.')}"
