"""List facts about the definitions and imports of a file, and its diagnostics.

    class A:                 classes: A, contained in the module
        def f(self, x=1):    functions: A.f, contained in A; parameters: self, x of A.f

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from unicodedata import normalize

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.reads import SPAN
from codeanatomy.node_ids import key_of, node_id, repository_id

# Characters of source text that are used as a name.
TEXT_CHARS = 120
NO_SPAN = (None, None, None)
NAMED = ("node_id", "name", "qualname", *SPAN, "ast_id")
INITS = ("__init__.py", "__init__.pyi")
DIAGNOSTIC_FIELDS = (
    *("diag_id", "diag_code", "diag_kind", "bstart", "bend"),
    *("diag_line_start", "diag_severity", "message"),
)
DIAGNOSTIC_NODE = ("node_id", "name", "subkind", *SPAN, "severity", "message")


def files(context: Context) -> Columns:
    """List the file itself."""
    row = context.file.rows("repo_files_v1")
    reason = row.get("skipped_reason")
    subkind = "unread" if reason else "stub" if row.get("is_stub") else "module"
    return {
        "node_id": [context.file.file_id],
        "name": [PurePosixPath(context.file.path).name],
        "subkind": [subkind],
        "sha256": [row.get("file_sha256")],
        "size_bytes": [row.get("size_bytes")],
        "encoding": [row.get("encoding")],
        "newline": [row.get("newline")],
        "unread_reason": [reason],
    }


def modules(context: Context) -> Columns:
    """List the module of the file, if the file was read; its name is added by `graph.resolution`."""
    if not context.has_module:
        return {}
    syntax = context.syntax
    is_package = PurePosixPath(context.file.path).name in INITS
    return {
        "node_id": [context.module_id],
        "qualname": [""],
        "subkind": ["package" if is_package else "module"],
        "bstart": [syntax.bstart[0] if len(syntax) else None],
        "bend": [syntax.bend[0] if len(syntax) else None],
        "line": [1 if len(syntax) and syntax.bstart[0] is not None else None],
        "ast_id": [0 if len(syntax) else None],
    }


def contained(context: Context) -> Columns:
    """List containment of the file and its definitions."""
    file = context.file
    rows: list[tuple[Any, ...]] = [(repository_id(file.repo_id), file.file_id, None, None)]
    # Several spans may lead to one definition.
    unique = {definition.node_id: definition for definition in context.definitions.values()}
    rows += [(each.container_id, each.node_id, each.bstart, each.bend) for each in unique.values()]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def classes(context: Context) -> Columns:
    """List classes."""
    syntax = context.syntax
    bases = Counter(
        parent for parent, slot in zip(syntax.parent, syntax.slot, strict=True) if slot == "bases"
    )
    rows = [
        (
            *definition.named,
            None if definition.ast_id is None else bases[definition.ast_id],
        )
        for definition in context.definitions.values()
        if definition.kind == "CLASS"
    ]
    return columns_of(rows, *NAMED, "base_count")


def functions(context: Context) -> Columns:
    """List functions, methods and lambdas."""
    counts = Counter(
        context.owner_id(start, end)
        for start, end in iter_rows(context.libcst("params"), "owner_bstart", "owner_bend")
    )
    unique = {each.node_id: each for each in context.definitions.values() if each.kind == "FUNCTION"}
    rows = [
        (
            *function.named,
            function.subkind,
            counts[function.node_id],
        )
        for function in unique.values()
    ]
    return columns_of(rows, *NAMED, "subkind", "parameter_count")


def parameters(context: Context) -> Columns:
    """List parameters with the function they belong to."""
    syntax = context.syntax
    by_start = {start: node for node in syntax.of_kinds("arg") if (start := syntax.bstart[node]) is not None}
    columns = ("owner_bstart", "owner_bend", "name", "kind", "index", "default_bstart", *SPAN)
    rows = []
    for owner_start, owner_end, name, kind, index, default, *span in iter_rows(
        context.libcst("params"), *columns
    ):
        owner = context.definitions.get((owner_start, owner_end))
        node = context.id_at("PARAMETER", span[0], span[1])
        # Normalised as by the compiler, like its binding.
        qualname = f"{owner.qualname}.{normalize('NFKC', name)}" if owner else None
        rows.append(
            (
                node,
                name,
                qualname,
                *span,
                by_start.get(span[0]),
                kind,
                kind,
                owner and owner.node_id,
                index,
                default is not None,
            )
        )
    rows += _unplaced_parameters(context)
    return columns_of(rows, *NAMED, "subkind", "kind", "owner_id", "index", "has_default")


def _unplaced_parameters(context: Context) -> list[tuple[Any, ...]]:
    """Return one row for the parameters that the tree has without a span; arguments may be passed to it."""
    syntax = context.syntax
    node = next((node for node in syntax.of_kinds("arg") if syntax.bstart[node] is None), None)
    owner = context.definitions.get((None, None))
    if node is None or owner is None:
        return []
    row = (
        context.id_at("PARAMETER", None, None),
        syntax.name[node],
        f"{owner.qualname}.{syntax.name[node]}",
        *NO_SPAN,
        node,
    )
    return [(*row, "positional", "positional", owner.node_id, None, False)]


def imports(context: Context) -> Columns:
    """List imported names."""
    rows = []
    columns = ("kind", "module", "name", "asname", "level", "is_star", "alias_bstart", "alias_bend", "line")
    for kind, module, name, asname, level, is_star, start, end, line in iter_rows(
        context.libcst("imports"), *columns
    ):
        bound = asname or (name.partition(".")[0] if kind == "import" else name)
        written = "." * (level or 0) + ".".join(filter(None, (module, name)))
        subkind = "star" if is_star else kind
        node = context.syntax.first(start, end, frozenset({"alias"}))
        alias = context.id_at("IMPORT_ALIAS", start, end)
        rows.append((alias, bound, written, start, end, line, node, subkind))
    return columns_of(rows, *NAMED, "subkind")


def decorators(context: Context) -> Columns:
    """List decorators with the definition they decorate."""
    nodes, rows = context.syntax.firsts_in(frozenset({"decorator_list"})), []
    for owner_start, owner_end, index, text, *span in iter_rows(
        context.libcst("decorators"), "owner_bstart", "owner_bend", "index", "text", *SPAN
    ):
        start, end, _ = span
        node = nodes.get((start, end))
        decorator = context.id_at("DECORATOR", start, end)
        owner = context.owner_id(owner_start, owner_end)
        rows.append(
            (
                decorator,
                text and text[:TEXT_CHARS],
                None,
                *span,
                node,
                owner,
                index,
            )
        )
    return columns_of(rows, *NAMED, "owner_id", "index")


def docstrings(context: Context) -> Columns:
    """List docstrings with the definition they document."""
    rows = []
    for owner_start, owner_end, text, start, end, line in iter_rows(
        context.libcst("docstrings"), "owner_bstart", "owner_bend", "text", *SPAN
    ):
        owner = context.owner_id(owner_start, owner_end)
        # A definition has at most one.
        docstring = node_id("DOCSTRING", key_of(owner)) if owner else context.id_at("DOCSTRING", start, end)
        written = context.syntax.first(start, end, frozenset({"Constant"}))
        rows.append((docstring, start, end, line, written, owner, text))
    return columns_of(rows, "node_id", *SPAN, "ast_id", "owner_id", "text")


def comments(context: Context) -> Columns:
    """List comments."""
    listed = context.libcst("comments")
    ids = context.ids.numbered("COMMENT", list(iter_rows(listed, "bstart", "bend")))
    files_of = [context.file.file_id] * len(ids)
    return {"node_id": ids, "file_id": files_of, **{name: listed.get(name, ()) for name in (*SPAN, "text")}}


def complaints(file_id: str, lists: Sequence[Columns]) -> Columns:
    """List the edges from a file to its diagnostics and syntax errors."""
    rows = [
        (file_id, node, start, end)
        for columns in lists
        for node, start, end in iter_rows(columns, "node_id", "bstart", "bend")
    ]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def diagnostics(context: Context) -> Columns:
    """List the diagnostics of the file, and one for each list that failed in this stage."""
    rows = list(iter_rows(context.file.rows("diagnostics_norm_v1"), *DIAGNOSTIC_FIELDS))
    failures = [("graph", "not_graphed", None, None)] * len(context.failures)
    for node, message in zip(context.ids.diagnostics(failures), context.failures, strict=True):
        rows.append((node, "not_graphed", "graph", *NO_SPAN, "error", message))
    return columns_of(rows, *DIAGNOSTIC_NODE)


def ts_errors(context: Context) -> Columns:
    """List texts that fit no rule of tree-sitter's grammar."""
    return _tree_sitter_nodes(context, "errors", "TS_ERROR", "text")


def ts_missing(context: Context) -> Columns:
    """List tokens that tree-sitter inserted."""
    return _tree_sitter_nodes(context, "missing", "TS_MISSING", "kind")


def _tree_sitter_nodes(context: Context, name: str, kind: str, text_field: str) -> Columns:
    listed = context.file.list("tree_sitter_files_v1", name)
    ids = context.ids.numbered(kind, list(iter_rows(listed, "bstart", "bend")))
    fields = {"name": text_field, "subkind": "parent_kind", **{each: each for each in SPAN}}
    return {"node_id": ids, **{each: listed.get(field, ()) for each, field in fields.items()}}
