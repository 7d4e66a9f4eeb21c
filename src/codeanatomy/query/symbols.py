"""Resolve the name of a symbol, as a user types it, to nodes of the graph.

    resolve(reader, "Session.send")          # Symbol("requests.sessions.Session.send", ..., method="suffix")
    resolve(reader, "requests.Session")      # re-exported: Symbol("requests.sessions.Session", ...)
    resolve(reader, "flask.Flask.route")     # inherited: Symbol("flask.sansio.scaffold.Scaffold.route", ...)
    resolve(reader, "requests/api.py:60")    # the innermost definition around that line
    resolve(reader, "function:3f9c...")      # a node id, as printed in answers
    resolve(reader, "get")                   # AmbiguousSymbol, with candidates

A name is looked up as a whole qualified name, then through imports and base classes, then as the end of
qualified names. Definitions of a repository are preferred to external names that it only uses. All
definitions of one qualified name in one repository (overloads, and the variable they are bound to) are one
symbol.

Parameters and variables of functions are only found by their qualified names: there are too many of them.

Tests: `tests/unit/query/test_symbols.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.errors import MAX_NAME_CHARS, AmbiguousSymbol, UnknownSymbol, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import (
    Query,
    Reader,
    Row,
    Slice,
    Within,
    edges,
    nodes,
    of_repository,
)
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS

# Kinds of nodes that a name can be resolved to; of a symbol with several nodes the first kind is reported.
DEFINITIONS = ("CLASS", "FUNCTION", "TYPE_ALIAS", "MODULE", "PACKAGE")
VARIABLES = ("PARAMETER", "BINDING")
EXTERNAL_KINDS = ("EXTERNAL_MODULE", "QUALIFIED_NAME")
KINDS = (*DEFINITIONS, *VARIABLES, *EXTERNAL_KINDS)
MAX_TYPED_CHARS = 1000
# Candidates listed in AmbiguousSymbol, and similar names listed in UnknownSymbol.
MAX_CANDIDATES = 20
MAX_SIMILAR = 5
# Levels of base classes or star imports that are searched for a member.
MAX_LEVELS = 50
# Parts of a dotted name.
MAX_PARTS = 50
# `path:line` or `path:line:column`, as editors, compilers and test runners print it.
PLACE = re.compile(r"(?:\./)?(.+\.py[iw]?)(?::(\d{1,9})(?::\d{1,9})?)?")
# The path of a file, and a line: what can only be meant for one.
FILE = re.compile(r"(?:\./)?([^:]*/[^:]*|[^:]+\.\w+(?=:\d)|[^:]+\.pyi?w?)(?::(\d+)(?::\d+)?)?")
# Characters of a misspelt name that are compared.
MAX_COMPARED = 100
FIELDS = "n.node_kind, n.subkind, n.qualname, n.name, n.path, n.line, n.repo_id, n.node_id"


def resolve(reader: Reader, typed: str, repo_id: str | None = None) -> Symbol:
    """Resolve a name to one symbol. Raise UnknownSymbol or AmbiguousSymbol, with candidates."""
    symbols = symbols_named(reader, typed, repo_id)
    if not symbols:
        raise unknown_symbol(reader, typed, repo_id)
    if len(symbols) > 1:
        raise AmbiguousSymbol(typed, [symbol_row(each) for each in symbols[:MAX_CANDIDATES]], len(symbols))
    return symbols[0]


def symbols_named(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """Return the symbols that a name may mean: all matches of the first rule that has any."""
    name = normalize_name(typed)
    if is_node_id(name):
        # As typed: an id may hold names that are not normalized.
        ids = [typed.strip()]
        return _symbols(_by_ids(reader, ids, () if repo_id is None else (repo_id,)), "id")
    if at_place := _by_place(reader, name, repo_id):
        return at_place
    rows = _by_name(reader, name, repo_id)
    whole = [row for row in rows if row[2] == name]
    ends = [row for row in rows if row[1] != "import"]
    internal = [row for row in ends if row[0] not in EXTERNAL_KINDS]
    external = [row for row in whole if row[0] in EXTERNAL_KINDS]
    return (
        _symbols([row for row in internal if row[2] == name], "qualified name")
        or _follow_imports(reader, whole)
        # A dotted external name such as `json.loads` wins over suffixes; a plain `json` does not, since it
        # may be a module of the repository.
        or _symbols(external if "." in name else [], "qualified name")
        or _symbols(internal, "suffix")
        or _symbols(external, "qualified name")
        or _symbols(_assigned_imports(reader, rows), "suffix")
        or _by_member(reader, name, repo_id)
        or _symbols(ends, "suffix")
        or _by_mangled_name(reader, name, repo_id)
    )


def symbols_ending(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """Return all symbols whose qualified name is, or ends with, a name; whole matches first."""
    name = normalize_name(typed)
    if is_node_id(name) or PLACE.fullmatch(name):
        return symbols_named(reader, typed, repo_id)
    rows = [row for row in _by_name(reader, name, repo_id) if row[1] != "import"]
    whole = _symbols([row for row in rows if row[2] == name], "qualified name", by_file=True)
    ends = _symbols([row for row in rows if row[2] != name], "suffix", by_file=True)
    return [*whole, *ends] or symbols_named(reader, name, repo_id)


def normalize_name(typed: str) -> str:
    """Normalize a name as Python does identifiers (NFKC). Raise UsageError if it is empty or too long.

    >>> normalize_name(" ﬁle.open ")
    'file.open'
    """
    if len(typed) > MAX_TYPED_CHARS:
        raise UsageError(
            f"the name has {len(typed):,} characters, the maximum is {MAX_TYPED_CHARS:,}",
            "name a symbol, such as requests.get",
        )
    if not is_text(typed):
        raise UsageError(
            f"{typed[:MAX_TYPED_CHARS]!r} is not valid Unicode text", "name a symbol, such as requests.get"
        )
    name = unicodedata.normalize("NFKC", typed).strip()
    if name.count(".") > MAX_PARTS:
        raise UsageError(
            f"the name has {name.count('.') + 1:,} parts, the maximum is {MAX_PARTS}",
            "name a symbol, such as requests.get",
        )
    if not name:
        raise UsageError("the name is empty", "name a symbol, such as requests.get")
    return name


def is_node_id(name: str) -> bool:
    """Whether a name is spelled like the id of a node: the prefix of a kind, a colon, and more.

    >>> is_node_id("function:3f9c"), is_node_id("shop/cart.py:29"), is_node_id("shop.cart")
    (True, False, False)
    """
    prefix, _, rest = name.partition(":")
    if not rest:
        return False
    # Imported here: most names are not ids, and the declared kinds are long.
    from codeanatomy.catalog.kinds import NODE_KINDS

    return any(kind.prefix == prefix for kind in NODE_KINDS.values())


def is_text(typed: str) -> bool:
    """Whether a string can be encoded as UTF-8; bytes that the terminal could not decode cannot."""
    return not any("\ud800" <= each <= "\udfff" for each in typed)


def unknown_symbol(reader: Reader, typed: str, repo_id: str | None = None) -> UnknownSymbol:
    """Explain why a name means nothing: no such file or line, or no such symbol, with what is near."""
    name = normalize_name(typed)
    file = FILE.fullmatch(name)
    if file is None or is_node_id(name):
        return UnknownSymbol(typed, [symbol_row(each) for each in closest_symbols(reader, name, repo_id)])
    path = file[1]
    if PLACE.fullmatch(path) and symbols_named(reader, path, repo_id):
        return UnknownSymbol(
            typed, (), f"{path} has fewer than {file[2]} lines, or no code", f"name a line of it, or {path}"
        )
    near = _closest_files(reader, path, repo_id)
    hint = f"closest: {', '.join(near)}" if near else "name a file by its path below the repository"
    return UnknownSymbol(typed, (), f"no file {path[:MAX_NAME_CHARS]!r} is in the lake", hint)


def closest_symbols(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """Return the symbols whose names differ from an unknown one by a few characters.

    Of a dotted name the part before the last one is compared, too: symbols of such an owner come alone.
    """
    owner, _, last = normalize_name(typed).rpartition(".")
    last, owner = last[:MAX_COMPARED], owner.rpartition(".")[2][:MAX_COMPARED]
    query = Query(
        f"SELECT {FIELDS}, levenshtein(lower(n.name), lower(?)) AS distance,"
        " levenshtein(lower(split_part(n.qualname, '.', -2)), lower(?)) AS owner_distance"
        " FROM n WHERE n.name IS NOT NULL AND levenshtein(lower(n.name), lower(?)) <= ?",
        {"n": nodes(DEFINITIONS, repo_id)},
        (last, owner, last, most_edits(last)),
        order=("distance", "length(qualname)", "qualname", "node_id"),
    )
    rows = reader.rows(query)
    rows = [row for row in rows if owner and row[9] <= most_edits(owner)] or rows
    near = [row[:8] for row in rows if row[8] <= rows[0][8] + 1]
    return _symbols(near[: 4 * MAX_SIMILAR], "spelling")[:MAX_SIMILAR]


def _closest_files(reader: Reader, path: str, repo_id: str | None) -> list[str]:
    """Return the paths of files whose names differ from an unknown one by a few characters."""
    name = path.rpartition("/")[2][:MAX_COMPARED]
    query = Query(
        "SELECT DISTINCT n.path, levenshtein(lower(split_part(n.path, '/', -1)), lower(?)) AS distance"
        " FROM n WHERE levenshtein(lower(split_part(n.path, '/', -1)), lower(?)) <= ?",
        {"n": nodes(("FILE",), repo_id)},
        (name, name, most_edits(name.partition(".")[0])),
        order=("distance", "length(path)", "path"),
    )
    return [row[0] for row in reader.rows(query, limit=MAX_SIMILAR)]


def most_edits(name: str) -> int:
    """Return how many characters a misspelt name may differ in.

    >>> most_edits("a"), most_edits("send"), most_edits("flask"), most_edits("make_response")
    (0, 1, 2, 3)
    """
    return min(3, (len(name) + 1) // 3)


def symbol_row(symbol: Symbol) -> dict[str, Any]:
    """Convert a symbol to a row of an answer."""
    return {
        "symbol": symbol.symbol,
        "kind": symbol.kind,
        "subkind": symbol.subkind,
        "path": symbol.path,
        "line": symbol.line,
        "confidence": 1.0,
        "method": symbol.method,
        "repo_id": symbol.repo_id,
        "symbol_id": symbol.ids[0],
    }


def _by_name(reader: Reader, name: str, repo_id: str | None) -> list[Row]:
    """Return nodes whose qualified name is, or ends with, the name.

    Of a name without a dot, variables of functions and parameters are left out.
    """
    last = name.rpartition(".")[2]
    # Free and global variables are defined in another scope.
    matching = (
        "n.name = ? AND (n.qualname = ? OR right(n.qualname, ?) = ?)"
        " AND coalesce(n.subkind, '') NOT IN ('free', 'global')"
    )
    args = (last, name, len(name) + 1, f".{name}")
    if last != name:
        return reader.rows(
            Query(f"SELECT {FIELDS} FROM n WHERE {matching}", {"n": nodes(KINDS, repo_id)}, args)
        )
    query = Query(
        f"SELECT {FIELDS} FROM n WHERE {matching} AND (n.node_kind NOT IN ('PARAMETER', 'BINDING')"
        " OR n.qualname = ? OR (n.node_kind = 'BINDING' AND EXISTS ("
        "SELECT 1 FROM o WHERE o.repo_id = n.repo_id"
        " AND o.qualname = left(n.qualname, length(n.qualname) - length(n.name) - 1))))",
        {"n": nodes(KINDS, repo_id), "o": nodes(("CLASS", "MODULE"), repo_id)},
        (*args, name),
    )
    return reader.rows(query)


def _by_ids(reader: Reader, ids: Sequence[str], repo_ids: Collection[str] = ()) -> list[Row]:
    of_some = {"repo_id": repo_ids} if repo_ids else {}
    wanted = Slice("cpg_nodes", node_kind=KINDS, node_id=ids, **of_some)
    return reader.rows(Query(f"SELECT {FIELDS} FROM n", {"n": wanted}))


def _by_place(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """Return the innermost definition around `path:line`, or the module of `path`; none if it is neither."""
    place = PLACE.fullmatch(name)
    if place is None:
        return []
    path = place[1]
    for row in reader.snapshot.select_repositories(repo_id).values():
        path = path.removeprefix(f"{row.repo_root}/") if row.repo_root else path
    files = Query(
        "SELECT DISTINCT n.repo_id, n.path, n.file_id FROM n WHERE n.path = ? OR right(n.path, ?) = ?",
        {"n": nodes(("FILE",), repo_id)},
        (path, len(path) + 1, f"/{path}"),
        order=("repo_id", "path"),
    )
    matches: list[Row] = []
    for repository, file, file_id in reader.rows(files):
        start = 0 if place[2] is None else _line_start(reader, repository, file, file_id, int(place[2]))
        kinds = ("MODULE",) if place[2] is None else ENCLOSING_KINDS
        enclosing = Query(
            # The module comes last, even if a definition has the same span because it fills the file.
            f"SELECT {FIELDS} FROM n"
            " ORDER BY CASE n.node_kind WHEN 'MODULE' THEN 1 ELSE 0 END, n.bstart DESC, n.bend, n.node_id"
            " LIMIT 1",
            {
                "n": nodes(
                    kinds,
                    repository,
                    path=(file,),
                    bstart=Within(greatest=start, or_null=True),
                    bend=Within(start, or_null=True),
                )
            },
        )
        matches += reader.rows(enclosing) if start is not None else []
    return _symbols(matches, "place")


def _line_start(reader: Reader, repo_id: str, path: str, file_id: str, line: int) -> int | None:
    """Return the first byte of the code on a line, or on the nearest earlier line that has code.

    None if the file has fewer lines.
    """
    starts = Query(
        # The first node of the last line, up to this one, that has any.
        "SELECT max(n.line), max_by(n.bstart, CAST(n.line AS BIGINT) * 1000000000 - n.bstart) FROM n"
        " WHERE n.bstart IS NOT NULL",
        {"n": nodes(("AST_NODE", "MODULE"), repo_id, path=(path,), line=Within(greatest=line))},
    )
    ((last, start),) = reader.rows(starts)
    if last != line:
        lines = Query(
            "SELECT count(*) FROM l",
            {"l": Slice("file_line_index_v1", repo_id=(repo_id,), file_id=(file_id,))},
        )
        ((count,),) = reader.rows(lines)
        return int(start) if start is not None and line <= count else None
    return int(start)


def _follow_imports(reader: Reader, rows: Sequence[Row]) -> list[Symbol]:
    """Return the symbols that imported names refer to."""
    bindings = [row[7] for row in rows if row[1] == "import"]
    repo_ids = {row[6] for row in rows}
    if not bindings:
        return []
    aliases = Query(
        "SELECT e.src_node_id FROM e",
        {
            "e": Slice(
                "cpg_edges_by_dst", repo_id=repo_ids, dst_node_id=bindings, edge_kind=("DEFINES_BINDING",)
            )
        },
    )
    sources = [row[0] for row in reader.rows(aliases)]
    targets = Query(
        "SELECT e.dst_node_id FROM e",
        {
            "e": Slice(
                "cpg_edges_by_src",
                repo_id=repo_ids,
                src_node_id=sources,
                edge_kind=("IMPORTS_NAME", "IMPORTS_MODULE"),
            )
        },
    )
    ids = [row[0] for row in reader.rows(targets)] if sources else []
    imported = _by_ids(reader, ids, repo_ids)
    # `from pkg import name` has an edge to the module too; the name itself is more specific.
    named = [row for row in imported if row[0] not in ("MODULE", "PACKAGE", "EXTERNAL_MODULE")]
    return _symbols(named or imported, "re-export")


def _assigned_imports(reader: Reader, rows: Sequence[Row]) -> list[Row]:
    """Return the imported names that are also assigned, such as in `except ImportError`."""
    bindings = [row[7] for row in rows if row[1] == "import"]
    query = Query(
        "SELECT DISTINCT e.dst_node_id FROM e",
        {
            "e": Slice(
                "cpg_edges_by_dst",
                repo_id={row[6] for row in rows},
                dst_node_id=bindings,
                edge_kind=("WRITES",),
            )
        },
    )
    written = {row[0] for row in reader.rows(query)} if bindings else set()
    return [row for row in rows if row[7] in written]


def _by_mangled_name(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """Look up a private member `C.__x` by its mangled name `C._C__x`."""
    owner, _, member = name.rpartition(".")
    if not owner or not member.startswith("__") or member.endswith("__"):
        return []
    class_name = owner.rpartition(".")[2].lstrip("_")
    return symbols_named(reader, f"{owner}._{class_name}{member}", repo_id)


def _by_member(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """Resolve `owner.member` where the owner is imported, or the member inherited or star-imported."""
    owner, _, member = name.rpartition(".")
    if not owner:
        return []
    members: list[Symbol] = []
    for each in symbols_named(reader, owner, repo_id):
        rows = _by_qualname(reader, [f"{each.symbol}.{member}"], each.repo_id)
        members += _symbols(rows, each.method)
        if not rows and each.kind == "CLASS":
            members += _inherited_member(reader, each, member)
        if not rows and each.kind in ("MODULE", "PACKAGE") and not member.startswith("_"):
            members += _star_imported(reader, each, member)
    return members


def _star_imported(reader: Reader, symbol: Symbol, member: str) -> list[Symbol]:
    """Return a name that a module gets by `from other import *`, from the nearest module that defines it."""

    def starred(level: Sequence[str]) -> Query:
        return Query(
            "SELECT DISTINCT t.node_id, t.qualname FROM m JOIN a ON a.file_id = m.file_id"
            " JOIN e ON e.src_node_id = a.node_id JOIN t ON t.node_id = e.dst_node_id"
            " WHERE a.subkind = 'star'",
            {
                "m": nodes(("MODULE",), symbol.repo_id, node_id=level),
                "a": nodes(("IMPORT_ALIAS",), symbol.repo_id),
                "e": edges(("IMPORTS_MODULE",), symbol.repo_id),
                "t": nodes(("MODULE",), symbol.repo_id),
            },
        )

    return _symbols(_nearest_member(reader, symbol, "module:", member, starred), "star import")


def _inherited_member(reader: Reader, symbol: Symbol, member: str) -> list[Symbol]:
    """Return a member of the nearest base class that defines it."""

    def bases(level: Sequence[str]) -> Query:
        return Query(
            "SELECT DISTINCT n.node_id, n.qualname FROM e JOIN n ON n.node_id = e.dst_node_id",
            {
                "e": of_repository(
                    "cpg_edges_by_src", symbol.repo_id, src_node_id=level, edge_kind=("INHERITS",)
                ),
                "n": nodes(("CLASS",), symbol.repo_id),
            },
        )

    return _symbols(_nearest_member(reader, symbol, "class:", member, bases), "inherited")


def _nearest_member(
    reader: Reader, symbol: Symbol, prefix: str, member: str, next_level: Callable[[Sequence[str]], Query]
) -> list[Row]:
    """Search a member level by level in the base classes or star-imported modules of a symbol."""
    level, seen = [each for each in symbol.ids if each.startswith(prefix)], set(symbol.ids)
    for _ in range(MAX_LEVELS):
        owners = [row for row in reader.rows(next_level(level)) if row[0] not in seen] if level else []
        rows = _by_qualname(reader, [f"{owner[1]}.{member}" for owner in owners], symbol.repo_id)
        if rows or not owners:
            return rows
        level = [owner[0] for owner in owners]
        seen.update(level)
    return []


def _by_qualname(reader: Reader, names: Sequence[str], repo_id: str) -> list[Row]:
    if not names:
        return []
    marks = ", ".join("?" * len(names))
    query = Query(
        f"SELECT {FIELDS} FROM n WHERE n.qualname IN ({marks}) AND coalesce(n.subkind, '') <> 'import'",
        {"n": nodes(KINDS, repo_id)},
        tuple(names),
    )
    return reader.rows(query)


def _symbols(rows: Iterable[Row], method: str, *, by_file: bool = False) -> list[Symbol]:
    """Group nodes into symbols by repository and qualified name, with `by_file` also by file."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A package and its `__init__` module are one symbol.
        file = f"{row[4]}/__init__.py" if row[0] == "PACKAGE" else row[4] or ""
        groups.setdefault((row[6], row[2] or row[3] or row[4] or "", file if by_file else ""), []).append(row)
    symbols = []
    for (repo_id, name, _), members in sorted(groups.items()):
        members.sort(key=lambda row: (KINDS.index(row[0]), row[4] or "", row[5] or 0, row[7]))
        # The definition represents the variable it is bound to; the last of its kind represents overloads.
        first = members[0]
        last = [row for row in members if row[0] == first[0] and row[4] == first[4]][-1]
        ids = tuple(dict.fromkeys(row[7] for row in members))
        symbols.append(Symbol(name, first[0], last[1], last[4], last[5], repo_id, method, ids))
    return symbols


def with_binding_lines(reader: Reader, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Return the symbols with the line of the first assignment for variables."""
    ids = [each.ids[0] for each in symbols if each.kind == "BINDING" and each.line is None]
    if not ids:
        return list(symbols)
    # Imported here: most symbols are not variables, and the declared views are long.
    from codeanatomy.catalog.views import FIRST_LINE

    query = Query(
        f"SELECT e.dst_node_id, e.path, {FIRST_LINE} FROM e GROUP BY 1, 2",
        {
            "e": Slice(
                "cpg_edges_by_dst",
                repo_id={each.repo_id for each in symbols},
                dst_node_id=ids,
                edge_kind=("DEFINES_BINDING",),
            )
        },
    )
    lines = {(node, path): line for node, path, line in reader.rows(query)}
    return [structs.replace(each, line=each.line or lines.get((each.ids[0], each.path))) for each in symbols]
