"""Write a lake of a few rows by hand with a valid graph, for tests that damage it. No JVM.

    tables = healthy()                       # rows by table
    tables["cpg_nodes"][0]["path"] = "?"
    write(lake, derived(tables))

The repository has two modules, `a.py` with the text below and `b.py`, which is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from msgspec import convert

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.lake.manifest import RunManifest, append_manifest
from codeanatomy.node_ids import KEY_CHARS, edge_id

TEXT = "def f(x): pass\nf(1)\n"
REPO, RUN = "tiny", "run-1"
GRAPH = ("cpg_nodes", "cpg_edges", "cpg_props", "cpg_props_map", "cpg_edges_by_src", "cpg_edges_by_dst")
HASH = "0123456789abcdef" * 2
STEPS = ("extract", "normalize", "relate", "graph")

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def made(prefix: str, name: str) -> str:
    """An id of the right form: of a definition, or of a part of one."""
    key = f"{prefix}:{name:-<{KEY_CHARS}}"
    return key if prefix in ("repo", "file", "module", "function", "scope") else f"{key}.0"


A, B = made("file", "a"), made("file", "b")
REPOSITORY = made("repo", "tiny")
MODULE, EMPTY = made("module", "a"), made("module", "b")
FUNCTION, PARAMETER = made("function", "f"), made("parameter", "x")
CALL, NAME, ARGUMENT = made("callsite", "f"), made("name_ref", "f"), made("argument", "1")
SCOPE, BINDING = made("scope", "a"), made("binding", "f")
# A name that only the relations know, unlike the others of its scope.
HIDDEN = made("binding", "hidden")
TREE = (made("ast", "Module"), made("ast", "Expr"), made("ast", "Call"), made("ast", "empty"))
PATHS = {A: "a.py", B: "b.py"}


def node(
    node_id: str, kind: str, file: str | None = None, span: tuple[int, int] | None = None, **more: Any
) -> Row:
    bstart, bend = span or (None, None)
    line = None if bstart is None else 1 + TEXT[:bstart].count("\n")
    place = {"file_id": file, "path": PATHS.get(file or ""), "bstart": bstart, "bend": bend, "line": line}
    return {"repo_id": REPO, "node_id": node_id, "node_kind": kind, "owner_file_id": file, **place, **more}


def edge(
    kind: str,
    src: str,
    dst: str,
    file: str | None = A,
    span: tuple[int, int] | None = None,
    role: str | None = None,
    repeat: int = 0,
) -> Row:
    """A row with its derived id, which is not written."""
    bstart, bend = span or (None, None)
    return {
        "repo_id": REPO,
        "edge_id": edge_id(kind, src, dst, repeat),
        "edge_kind": kind,
        "src_node_id": src,
        "dst_node_id": dst,
        "repeat": repeat,
        "role": role,
        "owner_file_id": file,
        "path": PATHS.get(file or ""),
        "bstart": bstart,
        "bend": bend,
        "origin": "test",
        "confidence": 1.0,
        "rule_name": "test",
    }


def prop(entity: Row, key: str, value: str | int | bool) -> Row:
    """A property of a node or edge."""
    kind = {str: "string", int: "int", bool: "bool"}[type(value)]
    return {
        "repo_id": REPO,
        "entity_kind": "node" if "node_id" in entity else "edge",
        "entity_id": entity.get("node_id") or entity["edge_id"],
        "node_kind": entity.get("node_kind"),
        "owner_file_id": entity["owner_file_id"],
        "prop_key": key,
        "value_type": kind,
        f"value_{kind}": value,
    }


def one(rows: Iterable[Row], **wanted: Any) -> Row:
    """The only row with these values."""
    [found] = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return found


def healthy() -> Tables:
    """The tables that are not made of others."""
    relations = [
        edge("DECLARES_MODULE", A, MODULE),
        edge("DECLARES_MODULE", B, EMPTY, B),
        edge("SCOPE_BINDS", SCOPE, HIDDEN),
        edge("REFERS_TO", NAME, FUNCTION, A, (15, 16)),
        edge("CALLS", CALL, FUNCTION, A, (15, 19)),
        edge("PASSES_TO", ARGUMENT, PARAMETER, A, (17, 18), "x"),
    ]
    nodes = [
        node(REPOSITORY, "REPOSITORY"),
        node(A, "FILE", A),
        node(B, "FILE", B),
        node(MODULE, "MODULE", A, (0, 20)),
        node(EMPTY, "MODULE", B, (0, 0)),
        node(FUNCTION, "FUNCTION", A, (0, 14)),
        node(PARAMETER, "PARAMETER", A, (6, 7)),
        node(CALL, "CALLSITE", A, (15, 19)),
        node(NAME, "NAME_REF", A, (15, 16)),
        node(ARGUMENT, "ARGUMENT", A, (17, 18)),
        node(SCOPE, "SCOPE", A),
        node(BINDING, "BINDING", A),
        node(HIDDEN, "BINDING", A),
        node(TREE[0], "AST_NODE", A, (0, 20)),
        node(TREE[1], "AST_NODE", A, (15, 19)),
        node(TREE[2], "AST_NODE", A, (15, 19)),
        node(TREE[3], "AST_NODE", B, (0, 0)),
        # At the very end, and so on the last line.
        node(made("ts_missing", "end"), "TS_MISSING", A, (20, 20), line=2),
    ]
    edges = [
        *relations,
        edge("CONTAINS", REPOSITORY, A),
        edge("CONTAINS", REPOSITORY, B, B),
        edge("CONTAINS", REPOSITORY, MODULE),
        edge("CONTAINS", REPOSITORY, EMPTY, B),
        edge("CONTAINS", MODULE, FUNCTION, A, (0, 14)),
        edge("HAS_PARAMETER", FUNCTION, PARAMETER, A, (6, 7)),
        edge("HAS_ARGUMENT", CALL, ARGUMENT, A, (17, 18)),
        edge("SCOPE_BINDS", SCOPE, BINDING),
        edge("AST_PARENT_OF", TREE[0], TREE[1], A, (15, 19)),
        edge("AST_PARENT_OF", TREE[1], TREE[2], A, (15, 19)),
        edge("HAS_DIAGNOSTIC", A, made("ts_missing", "end"), A, (20, 20)),
    ]
    props = [
        prop(one(nodes, node_id=A), "size_bytes", len(TEXT)),
        prop(one(nodes, node_id=A), "newline", "lf"),
        prop(one(nodes, node_id=FUNCTION), "parameter_count", 1),
        prop(one(nodes, node_id=PARAMETER), "has_default", False),
        prop(one(edges, edge_kind="CALLS"), "cut", "many"),
    ]
    return {
        "repo_files_v1": [
            {"repo_id": REPO, "file_id": file, "path": path}
            for file, path in (*PATHS.items(), (made("file", "c"), "c"))
        ],
        "file_line_index_v1": [
            {
                "repo_id": REPO,
                "file_id": A,
                "path": "a.py",
                "line_no": 0,
                "line_start_byte": 0,
                "line_end_byte": 15,
            },
            {
                "repo_id": REPO,
                "file_id": A,
                "path": "a.py",
                "line_no": 1,
                "line_start_byte": 15,
                "line_end_byte": 20,
            },
        ],
        "ast_files_v1": [
            {
                "repo_id": REPO,
                "file_id": A,
                "path": "a.py",
                "nodes": [{"ast_id": number} for number in range(3)],
            },
            {"repo_id": REPO, "file_id": B, "path": "b.py", "nodes": [{"ast_id": 0}]},
        ],
        "relations_v1": [
            *map(relation, relations),
            relation(edge("CALLS_NAME", CALL, "", A, (15, 19))) | {"dst_id": None, "reason": "unknown"},
            # Another witness agrees.
            relation(relations[-1]),
        ],
        "cpg_nodes": nodes,
        "cpg_edges": edges,
        "cpg_props": props,
    }


def relation(found: Row) -> Row:
    """The relation that becomes the edge."""
    names = {
        "edge_kind": "relation_kind",
        "src_node_id": "src_id",
        "dst_node_id": "dst_id",
    }
    return {names.get(key, key): value for key, value in found.items()}


def derived(tables: Tables) -> Tables:
    """The same with the copies of the edges, and with the manifest that counts all rows."""
    edges = tables["cpg_edges"]

    def entity(row: Row) -> tuple[str, str]:
        return row["entity_kind"], row["entity_id"]

    def by_key(row: Row) -> str:
        return str(row["prop_key"])

    maps = [
        {**found[0], "props": found}
        for _, rows in groupby(sorted(tables["cpg_props"], key=entity), entity)
        for found in [sorted(rows, key=by_key)]
    ]
    full = {
        **tables,
        "cpg_props_map": maps,
        "cpg_edges_by_src": sorted(edges, key=lambda row: str(row["src_node_id"])),
        "cpg_edges_by_dst": sorted(edges, key=lambda row: str(row["dst_node_id"])),
    }
    return {**full, "run_manifest": [manifest(full)]}


def manifest(tables: Tables, **more: Any) -> Row:
    """The row of a run that has made these tables."""
    return {
        "run_id": RUN,
        "repo_id": REPO,
        "status": "succeeded",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        "finished_at": datetime(2026, 1, 1, 0, 1, tzinfo=UTC),
        "profile_hash": HASH,
        "plan_fingerprints": dict.fromkeys(STEPS, HASH),
        "output_pins": [
            {"table_name": name, "version": 0, "rows": len(rows)} for name, rows in tables.items()
        ],
        "row_counts": {name: len(rows) for name, rows in tables.items()},
        **more,
    }


def write(lake: Path, tables: Tables, mode: Any = "error") -> None:
    """Write tables into a lake."""
    for name, rows in tables.items():
        if name == "run_manifest":
            runs = [convert(row, RunManifest) for row in rows]
            append_manifest(str(lake), runs, Commit(runs[0].run_id), after=None)
            continue
        table = catalog.table(name)
        schema = arrow_schema(table)
        known = [{key: value for key, value in row.items() if key in schema.names} for row in rows]
        write_deltalake(
            str(lake / table.path),
            pa.Table.from_pylist(known, schema),
            mode=mode,
            partition_by=list(table.write.partition_by) or None,
        )
