"""Facts about what a file defines and imports, and where that is.

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

from codeanatomy.graph.context import INITS, Context
from codeanatomy.graph.file_view import SPAN, Columns, columns_of, each
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import PREFIXES

# Characters of a source text that stands in a name.
TEXT_CHARS = 120
NOWHERE = (None, None, None)
NAMED = ("node_id", "name", "qualname", *SPAN, "ast_id")


def files(context: Context) -> Columns:
    """The file itself."""
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
    """The module that the file is, if it was read."""
    if not context.listed("DECLARES_MODULE"):
        return {}
    name, syntax = context.module_name, context.syntax
    is_package = PurePosixPath(context.file.path).name in INITS
    return {
        "node_id": [context.module_id],
        "name": [name.rpartition(".")[2]],
        "qualname": [name],
        "subkind": ["package" if is_package else "module"],
        "bstart": [syntax.bstart[0] if len(syntax) else None],
        "bend": [syntax.bend[0] if len(syntax) else None],
        "line": [1 if len(syntax) and syntax.bstart[0] is not None else None],
        "ast_id": [0 if len(syntax) else None],
    }


def packages_of(context: Context) -> list[tuple[str, str, str]]:
    """The packages around the module, outermost first: name, folder, and whether this file makes it one."""
    if not context.listed("DECLARES_MODULE"):
        return []
    path = PurePosixPath(context.file.path)
    folders, is_init = path.parts[:-1], path.name in INITS
    own = () if is_init else (path.name.removesuffix(".pyi").removesuffix(".py"),)
    # Where the module's name begins; names of folders may have dots themselves.
    starts = (
        start for start in range(len(folders)) if ".".join((*folders[start:], *own)) == context.module_name
    )
    start = next(starts, len(folders))
    return [
        (
            ".".join(folders[start:end]),
            "/".join(folders[:end]),
            "regular" if is_init and end == len(folders) else "namespace",
        )
        for end in range(start + 1, len(folders) + 1)
    ]


def packages(context: Context) -> Columns:
    """The packages around the module; of the repository."""
    rows = [
        (context.shared_id("PACKAGE", name), name.rpartition(".")[2], name, folder, subkind)
        for name, folder, subkind in packages_of(context)
    ]
    return columns_of(rows, "node_id", "name", "qualname", "path", "subkind")


def repositories(context: Context) -> Columns:
    """The repository."""
    return {"node_id": [context.shared_id("REPOSITORY")], "name": [context.file.repo_id]}


def contained_packages(context: Context) -> Columns:
    """Packages in packages, and the outermost in the repository."""
    outer, rows = context.shared_id("REPOSITORY"), []
    for name, _, _ in packages_of(context):
        inner = context.shared_id("PACKAGE", name)
        rows.append((outer, inner))
        outer = inner
    return columns_of(rows, "src_id", "dst_id")


def contained(context: Context) -> Columns:
    """The file, its module, and definitions in what is around them."""
    repository = context.shared_id("REPOSITORY")
    rows: list[tuple[Any, ...]] = [(repository, context.file.file_id, None, None)]
    around = packages_of(context)
    if context.listed("DECLARES_MODULE"):
        outer = context.shared_id("PACKAGE", around[-1][0]) if around else repository
        rows.append((outer, context.module_id, None, None))
    # A definition may be found by several spans.
    unique = {one.node_id: one for one in context.definitions.values()}
    rows += [(one.container_id, one.node_id, one.bstart, one.bend) for one in unique.values()]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def classes(context: Context) -> Columns:
    """Classes."""
    syntax = context.syntax
    bases = Counter(
        parent for parent, slot in zip(syntax.parent, syntax.slot, strict=True) if slot == "bases"
    )
    rows = [
        (
            *one.named,
            None if one.ast_id is None else bases[one.ast_id],
            context.unresolved.get(one.node_id),
        )
        for one in context.definitions.values()
        if one.kind == "CLASS"
    ]
    return columns_of(rows, *NAMED, "base_count", "unresolved")


def functions(context: Context) -> Columns:
    """Functions, methods and lambdas."""
    counts = Counter(
        context.owner_id(start, end)
        for start, end in each(context.libcst("params"), "owner_bstart", "owner_bend")
    )
    found = {one.node_id: one for one in context.definitions.values() if one.kind == "FUNCTION"}
    rows = [
        (
            *one.named,
            one.subkind,
            counts[one.node_id],
        )
        for one in found.values()
    ]
    return columns_of(rows, *NAMED, "subkind", "parameter_count")


def parameters(context: Context) -> Columns:
    """Parameters, by the function they belong to."""
    syntax = context.syntax
    by_start = {
        start: node
        for node, (kind, start) in enumerate(zip(syntax.kind, syntax.bstart, strict=True))
        if kind == "arg" and start is not None
    }
    columns = ("owner_bstart", "owner_bend", "name", "kind", "index", "default_bstart", *SPAN)
    rows = []
    for owner_start, owner_end, name, kind, index, default, *place in each(
        context.libcst("params"), *columns
    ):
        owner = context.definitions.get((owner_start, owner_end))
        node = context.id_at("PARAMETER", place[0], place[1])
        # As the compiler spells it, like its binding.
        qualname = f"{owner.qualname}.{normalize('NFKC', name)}" if owner else None
        rows.append(
            (
                node,
                name,
                qualname,
                *place,
                by_start.get(place[0]),
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
    """Those of a lambda that the tree has without a place, as one node: arguments may be passed to it."""
    syntax = context.syntax
    node = next(
        (
            node
            for node, (kind, start) in enumerate(zip(syntax.kind, syntax.bstart, strict=True))
            if kind == "arg" and start is None
        ),
        None,
    )
    owner = context.definitions.get((None, None))
    if node is None or owner is None:
        return []
    row = (
        context.id_at("PARAMETER", None, None),
        syntax.name[node],
        f"{owner.qualname}.{syntax.name[node]}",
        *NOWHERE,
        node,
    )
    return [(*row, "positional", "positional", owner.node_id, None, False)]


def imports(context: Context) -> Columns:
    """Imported names."""
    rows = []
    columns = ("kind", "module", "name", "asname", "level", "is_star", "alias_bstart", "alias_bend", "line")
    for kind, module, name, asname, level, is_star, start, end, line in each(
        context.libcst("imports"), *columns
    ):
        bound = asname or (name.partition(".")[0] if kind == "import" else name)
        written = "." * (level or 0) + ".".join(filter(None, (module, name)))
        subkind = "star" if is_star else kind
        node = context.syntax.first(start, end, ("alias",))
        found = context.id_at("IMPORT_ALIAS", start, end)
        rows.append((found, bound, written, start, end, line, node, subkind, context.unresolved.get(found)))
    return columns_of(rows, *NAMED, "subkind", "unresolved")


def decorators(context: Context) -> Columns:
    """Decorators, by what they decorate."""
    syntax, rows = context.syntax, []
    for owner_start, owner_end, index, text, *place in each(
        context.libcst("decorators"), "owner_bstart", "owner_bend", "index", "text", *SPAN
    ):
        start, end, _ = place
        node = next((n for n in syntax.at(start, end) if syntax.slot[n] == "decorator_list"), None)
        found = context.id_at("DECORATOR", start, end)
        owner = context.owner_id(owner_start, owner_end)
        rows.append(
            (
                found,
                text and text[:TEXT_CHARS],
                None,
                *place,
                node,
                owner,
                index,
                context.unresolved.get(found),
            )
        )
    return columns_of(rows, *NAMED, "owner_id", "index", "unresolved")


def docstrings(context: Context) -> Columns:
    """Docstrings, by what they document."""
    rows = [
        (
            context.id_at("DOCSTRING", start, end),
            start,
            end,
            line,
            context.syntax.first(start, end, ("Constant",)),
            context.owner_id(owner_start, owner_end),
            text,
        )
        for owner_start, owner_end, text, start, end, line in each(
            context.libcst("docstrings"), "owner_bstart", "owner_bend", "text", *SPAN
        )
    ]
    return columns_of(rows, "node_id", *SPAN, "ast_id", "owner_id", "text")


def comments(context: Context) -> Columns:
    """Comments."""
    rows = [
        (context.id_at("COMMENT", start, end), context.file.file_id, start, end, line, text)
        for text, start, end, line in each(context.libcst("comments"), "text", *SPAN)
    ]
    return columns_of(rows, "node_id", "file_id", *SPAN, "text")


def complaints(context: Context, told: Sequence[Columns]) -> Columns:
    """What there is to complain about, from the file to the complaint."""
    rows = [
        (context.file.file_id, node, start, end)
        for found in told
        for node, start, end in each(found, "node_id", "bstart", "bend")
    ]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def diagnostics(context: Context) -> Columns:
    """Complaints of witnesses, about their disagreements, and about this stage."""
    columns = (
        "diag_id",
        "diag_code",
        "diag_kind",
        "bstart",
        "bend",
        "diag_line_start",
        "diag_severity",
        "message",
    )
    rows = list(each(context.file.rows("diagnostics_norm_v1"), *columns))
    for message in context.failures:
        identity = (context.file.repo_id, context.file.file_id, "graph", "not_graphed", *NOWHERE, message)
        found = stable_id(PREFIXES["DIAGNOSTIC"], *identity)
        rows.append((found, "not_graphed", "graph", *NOWHERE, "error", message))
    return columns_of(rows, "node_id", "name", "subkind", *SPAN, "severity", "message")


def ts_errors(context: Context) -> Columns:
    """Text that fits no rule of tree-sitter's grammar."""
    return _of_tree_sitter(context, "errors", "TS_ERROR", "text")


def ts_missing(context: Context) -> Columns:
    """Tokens that tree-sitter made up."""
    return _of_tree_sitter(context, "missing", "TS_MISSING", "kind")


def _of_tree_sitter(context: Context, name: str, kind: str, word: str) -> Columns:
    rows = [
        (stable_id(PREFIXES[kind], context.file.file_id, start, end, ts_id), text, around, start, end, line)
        for ts_id, around, text, start, end, line in each(
            context.file.list("tree_sitter_files_v1", name), "ts_id", "parent_kind", word, *SPAN
        )
    ]
    return columns_of(rows, "node_id", "name", "subkind", *SPAN)
