"""Define a rule for each foreign key of the catalogue: values that are no key of the table they refer to.

    key_rules(TABLES, VIEWS)["cpg_edges(src_node_id)"]
    # SELECT ..., 'src_node_id function:... is not a node_id of cpg_nodes' FROM edges a ANTI JOIN nodes b ...

A null in a column of the key refers to nothing. Both rows have to be of one repository. The queries are for
DuckDB, over the views of `query.checks.verify`: those of `verify_rules.VIEWS`, and one of each other table,
under the table's name.

Keys of the copies of a table are not looked up: rules compare the copies with the table row by row.

Tests: `tests/unit/query/test_key_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codeanatomy import catalog
from codeanatomy.catalog.spec import ForeignKey, Table

# Compared with their tables by the rules `by_src_equal`, `by_dst_equal` and `props_map_equal`.
COPIES = ("cpg_edges_by_src", "cpg_edges_by_dst", "cpg_props_map")
REPOSITORY = "repo_id"
KINDS = ("edge_kind", "node_kind")
IDS = ("edge_id", "node_id", "entity_id")
FILES = ("file_id", "owner_file_id")


def key_rules(tables: Iterable[Table], views: Mapping[str, str]) -> dict[str, str]:
    """Return the rule of each foreign key; `views` has the view of a table, if that has another name."""
    return {
        f"{table.name}({', '.join(key.columns)})": _lost_references(table, key, views)
        for table in tables
        if table.name not in COPIES
        for key in table.foreign_keys
    }


def key_tables(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the tables that the rules read."""
    keys = ((table.name, key.table) for table in tables for key in table.foreign_keys)
    return tuple(dict.fromkeys(name for pair in keys for name in pair if name not in COPIES))


def _lost_references(table: Table, key: ForeignKey, views: Mapping[str, str]) -> str:
    """Return SQL for the location and message of each row whose reference has no target."""
    shared = (REPOSITORY,) if REPOSITORY in catalog.table(key.table).column_names else ()
    pairs = [*zip(shared, shared, strict=True), *zip(key.columns, key.target, strict=True)]
    values = f"concat_ws(', ', {', '.join(f'a.{name}' for name in key.columns)})"
    message = f"{', '.join(key.columns)} {{}} is not a {', '.join(key.target)} of {key.table}"
    return f"""
SELECT {_place(table)}, format('{message}', {values})
FROM {views.get(table.name, table.name)} a
ANTI JOIN {views.get(key.table, key.table)} b
  ON {" AND ".join(f"b.{other} = a.{name}" for name, other in pairs)}
WHERE {" AND ".join(f"a.{name} IS NOT NULL" for name in key.columns)}"""


def _place(table: Table) -> str:
    """Return the columns of a finding up to the message."""
    names = {column.name for column in table.readable_columns}

    def first(choices: tuple[str, ...]) -> str:
        return next((f"a.{name}" for name in choices if name in names), "NULL")

    files = [f"a.{name}" for name in FILES if name in names]
    key = f"concat_ws(', ', {', '.join(f'a.{name}' for name in table.primary_key)})"
    return ", ".join(
        (
            f"'{table.name}'",
            first((REPOSITORY,)),
            first(KINDS),
            first(IDS) if names.intersection(IDS) else key,
            f"coalesce({', '.join(files)})" if files else "NULL",
            first(("path",)),
            first(("bstart",)),
        )
    )
