"""From what a person types to nodes of the graph.

    resolve(reader, "Session.send")          # Symbol("requests.sessions.Session.send", ..., method="suffix")
    resolve(reader, "requests.Session")      # re-exported: Symbol("requests.sessions.Session", ...)
    resolve(reader, "flask.Flask.route")     # inherited: Symbol("flask.sansio.scaffold.Scaffold.route", ...)
    resolve(reader, "requests/api.py:60")    # the innermost definition around that line
    resolve(reader, "function:3f9c...")      # a node id, as answers have it
    resolve(reader, "get")                   # AmbiguousSymbol, with candidates

A name is looked for as a whole qualified name, then through imports and base classes, then as the end of
qualified names. What is defined in a repository comes before what it only uses from outside. Definitions of
one qualified name in one repository, such as overloads, and the variable they are bound to, are one symbol.

A bare name never means a parameter or a variable of a function, of which there are too many; their qualified
names do. Tests: `tests/unit/query/test_symbols.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.catalog.views import FIRST_LINE
from codeanatomy.errors import AmbiguousSymbol, UnknownSymbol, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Row, Slice, Within, edges, nodes
from codeanatomy.query.walks.enclosing import AROUND

# What a name may mean, those first that a symbol is said to be if it is several.
DEFINITIONS = ("CLASS", "FUNCTION", "TYPE_ALIAS", "MODULE", "PACKAGE")
VARIABLES = ("PARAMETER", "BINDING")
OUTSIDE = ("EXTERNAL_MODULE", "QUALIFIED_NAME")
KINDS = (*DEFINITIONS, *VARIABLES, *OUTSIDE)
# Longer than any name that somebody means.
NAME_CHARS = 1000
# So many candidates are shown, and so many names that are spelled alike.
CANDIDATES = 20
CLOSEST = 5
# Base classes and star imports are followed so far.
LEVELS = 50
# A dotted name has at most so many parts.
PARTS = 50
NODE_ID = re.compile(r"[a-z_]+:[0-9A-Za-z_-]{16,}")
# As editors, compilers and test runners print places; a column is not needed.
PLACE = re.compile(r"(?:\./)?(.+\.py[iw]?)(?::(\d{1,9})(?::\d{1,9})?)?")
FIELDS = "n.node_kind, n.subkind, n.qualname, n.name, n.path, n.line, n.repo_id, n.node_id"


def resolve(reader: Reader, typed: str, repo_id: str | None = None) -> Symbol:
    """The one symbol that a name means."""
    found = symbols_named(reader, typed, repo_id)
    if not found:
        raise UnknownSymbol(typed, [as_row(each) for each in closest(reader, typed, repo_id)])
    if len(found) > 1:
        raise AmbiguousSymbol(typed, [as_row(each) for each in found[:CANDIDATES]], len(found))
    return found[0]


def symbols_named(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """The symbols that a name may mean, all of the same rank."""
    name = cleaned(typed)
    if NODE_ID.fullmatch(name):
        return _symbols(_by_ids(reader, [name], repo_id), "id")
    if found := _at(reader, name, repo_id):
        return found
    rows = _by_name(reader, name, repo_id)
    whole = [row for row in rows if row[2] == name]
    ends = [row for row in rows if row[1] != "import"]
    inside = [row for row in ends if row[0] not in OUTSIDE]
    outside = [row for row in whole if row[0] in OUTSIDE]
    return (
        _symbols([row for row in inside if row[2] == name], "qualified name")
        or _imported(reader, whole)
        # `json.loads` is meant as it is written; `json` may well be a module of the repository.
        or _symbols(outside if "." in name else [], "qualified name")
        or _symbols(inside, "suffix")
        or _symbols(outside, "qualified name")
        or _symbols(_assigned(reader, rows), "suffix")
        or _member(reader, name, repo_id)
        or _symbols(ends, "suffix")
        or _mangled(reader, name, repo_id)
    )


def symbols_like(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """All symbols that have a name: those whose whole name it is, and those whose names end with it."""
    name = cleaned(typed)
    if NODE_ID.fullmatch(name) or PLACE.fullmatch(name):
        return symbols_named(reader, name, repo_id)
    rows = [row for row in _by_name(reader, name, repo_id) if row[1] != "import"]
    whole = _symbols([row for row in rows if row[2] == name], "qualified name", by_file=True)
    ends = _symbols([row for row in rows if row[2] != name], "suffix", by_file=True)
    return [*whole, *ends] or symbols_named(reader, name, repo_id)


def cleaned(typed: str) -> str:
    """A name as identifiers are compared; longer texts are refused.

    >>> cleaned(" ﬁle.open ")
    'file.open'
    """
    if len(typed) > NAME_CHARS:
        raise UsageError(
            f"a name of {len(typed):,} characters", f"names have at most {NAME_CHARS:,} characters"
        )
    if not is_text(typed):
        raise UsageError(f"{typed[:NAME_CHARS]!r} is no text", "name a symbol, such as requests.get")
    name = unicodedata.normalize("NFKC", typed).strip()
    if name.count(".") > PARTS:
        raise UsageError(f"a name of {name.count('.') + 1:,} parts", f"names have at most {PARTS} of them")
    if not name:
        raise UsageError("an empty name", "name a symbol, such as requests.get")
    return name


def is_text(typed: str) -> bool:
    """Whether it can be written as UTF-8: what was typed in another encoding cannot."""
    return not any("\ud800" <= each <= "\udfff" for each in typed)


def closest(reader: Reader, typed: str, repo_id: str | None = None) -> list[Symbol]:
    """Symbols whose names are spelled most like a name that nothing has."""
    last = cleaned(typed).rsplit(".", 1)[-1][:100]
    query = Query(
        f"SELECT {FIELDS}, levenshtein(lower(n.name), lower(?)) AS distance FROM n WHERE n.name IS NOT NULL",
        {"n": nodes(DEFINITIONS, repo_id)},
        (last,),
        order=("distance", "length(qualname)", "qualname", "node_id"),
    )
    near = [row[:8] for row in reader.rows(query, limit=4 * CLOSEST) if row[8] <= max(2, len(last) // 2)]
    return _symbols(near, "spelling")[:CLOSEST]


def as_row(symbol: Symbol) -> dict[str, Any]:
    """A symbol as a row of an answer."""
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
    """Nodes whose qualified name is the name or ends with it; of variables those that a name may mean."""
    last = name.rpartition(".")[2]
    # What a scope only passes on, or takes from others, is not defined there.
    matching = (
        "n.name = ? AND (n.qualname = ? OR right(n.qualname, ?) = ?)"
        " AND coalesce(n.subkind, '') NOT IN ('free', 'global')"
    )
    typed = (last, name, len(name) + 1, f".{name}")
    if last != name:
        return reader.rows(
            Query(f"SELECT {FIELDS} FROM n WHERE {matching}", {"n": nodes(KINDS, repo_id)}, typed)
        )
    query = Query(
        f"SELECT {FIELDS} FROM n WHERE {matching} AND (n.node_kind NOT IN ('PARAMETER', 'BINDING')"
        " OR n.qualname = ? OR (n.node_kind = 'BINDING' AND EXISTS ("
        "SELECT 1 FROM o WHERE o.repo_id = n.repo_id"
        " AND o.qualname = left(n.qualname, length(n.qualname) - length(n.name) - 1))))",
        {"n": nodes(KINDS, repo_id), "o": nodes(("CLASS", "MODULE"), repo_id)},
        (*typed, name),
    )
    return reader.rows(query)


def _by_ids(reader: Reader, ids: Sequence[str], repo_id: str | None = None) -> list[Row]:
    query = Query(f"SELECT {FIELDS} FROM n", {"n": nodes(KINDS, repo_id, node_id=ids)})
    return reader.rows(query)


def _at(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """What is at a place: the innermost definition around a line, or the module of a file."""
    place = PLACE.fullmatch(name)
    if place is None:
        return []
    path = place[1]
    for row in reader.snapshot.chosen(repo_id).values():
        path = path.removeprefix(f"{row.repo_root}/") if row.repo_root else path
    files = Query(
        "SELECT DISTINCT n.repo_id, n.path, n.file_id FROM n WHERE n.path = ? OR right(n.path, ?) = ?",
        {"n": nodes(("FILE",), repo_id)},
        (path, len(path) + 1, f"/{path}"),
        order=("repo_id", "path"),
    )
    found: list[Row] = []
    for repository, file, file_id in reader.rows(files):
        start = 0 if place[2] is None else _start(reader, repository, file, file_id, int(place[2]))
        kinds = ("MODULE",) if place[2] is None else AROUND
        around = Query(
            # A module is around everything, also around a definition that is the whole file.
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
        found += reader.rows(around) if start is not None else []
    return _symbols(found, "place")


def _start(reader: Reader, repo_id: str, path: str, file_id: str, line: int) -> int | None:
    """The first byte of the code on a line, where none begins of that before; none after the last line."""
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


def _imported(reader: Reader, rows: Sequence[Row]) -> list[Symbol]:
    """What imported names mean."""
    bindings = [row[7] for row in rows if row[1] == "import"]
    if not bindings:
        return []
    aliases = Query(
        "SELECT e.src_node_id FROM e",
        {"e": Slice("cpg_edges_by_dst", dst_node_id=bindings, edge_kind=("DEFINES_BINDING",))},
    )
    sources = [row[0] for row in reader.rows(aliases)]
    targets = Query(
        "SELECT e.dst_node_id FROM e",
        {"e": Slice("cpg_edges_by_src", src_node_id=sources, edge_kind=("IMPORTS_NAME", "IMPORTS_MODULE"))},
    )
    ids = [row[0] for row in reader.rows(targets)] if sources else []
    found = _by_ids(reader, ids)
    # `from pkg import name` names a module too; what the name means is more.
    named = [row for row in found if row[0] not in ("MODULE", "PACKAGE", "EXTERNAL_MODULE")]
    return _symbols(named or found, "re-export")


def _assigned(reader: Reader, rows: Sequence[Row]) -> list[Row]:
    """Of imported names those that are assigned too, such as in `except ImportError`."""
    bindings = [row[7] for row in rows if row[1] == "import"]
    query = Query(
        "SELECT DISTINCT e.dst_node_id FROM e",
        {"e": Slice("cpg_edges_by_dst", dst_node_id=bindings, edge_kind=("WRITES",))},
    )
    written = {row[0] for row in reader.rows(query)} if bindings else set()
    return [row for row in rows if row[7] in written]


def _mangled(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """A private variable of a class, which the compiler knows under another name."""
    owner, _, member = name.rpartition(".")
    if not owner or not member.startswith("__") or member.endswith("__"):
        return []
    class_name = owner.rpartition(".")[2].lstrip("_")
    return symbols_named(reader, f"{owner}._{class_name}{member}", repo_id)


def _member(reader: Reader, name: str, repo_id: str | None) -> list[Symbol]:
    """A name whose first part is imported, or whose last one is inherited."""
    owner, _, member = name.rpartition(".")
    if not owner:
        return []
    found: list[Symbol] = []
    for each in symbols_named(reader, owner, repo_id):
        rows = _exactly(reader, [f"{each.symbol}.{member}"], each.repo_id)
        found += _symbols(rows, each.method)
        if not rows and each.kind == "CLASS":
            found += _inherited(reader, each, member)
        if not rows and each.kind in ("MODULE", "PACKAGE") and not member.startswith("_"):
            found += _by_star(reader, each, member)
    return found


def _by_star(reader: Reader, symbol: Symbol, member: str) -> list[Symbol]:
    """A name that a module has by `from other import *`, from the nearest that defines it."""

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

    return _symbols(_outwards(reader, symbol, "module:", member, starred), "star import")


def _inherited(reader: Reader, symbol: Symbol, member: str) -> list[Symbol]:
    """A member that the nearest base class has."""

    def bases(level: Sequence[str]) -> Query:
        return Query(
            "SELECT DISTINCT n.node_id, n.qualname FROM e JOIN n ON n.node_id = e.dst_node_id",
            {
                "e": Slice("cpg_edges_by_src", src_node_id=level, edge_kind=("INHERITS",)),
                "n": nodes(("CLASS",), symbol.repo_id),
            },
        )

    return _symbols(_outwards(reader, symbol, "class:", member, bases), "inherited")


def _outwards(
    reader: Reader, symbol: Symbol, prefix: str, member: str, farther: Callable[[Sequence[str]], Query]
) -> list[Row]:
    """A member of the nearest of what a class or module has members from, level by level."""
    level, seen = [each for each in symbol.ids if each.startswith(prefix)], set(symbol.ids)
    for _ in range(LEVELS):
        owners = [row for row in reader.rows(farther(level)) if row[0] not in seen] if level else []
        rows = _exactly(reader, [f"{owner[1]}.{member}" for owner in owners], symbol.repo_id)
        if rows or not owners:
            return rows
        level = [owner[0] for owner in owners]
        seen.update(level)
    return []


def _exactly(reader: Reader, names: Sequence[str], repo_id: str) -> list[Row]:
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
    """Nodes as symbols: those of one qualified name and repository are one, or of one file too."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A package and the module that it is are in one.
        file = f"{row[4]}/__init__.py" if row[0] == "PACKAGE" else row[4] or ""
        groups.setdefault((row[6], row[2] or row[3] or row[4] or "", file if by_file else ""), []).append(row)
    found = []
    for (repo_id, name, _), members in sorted(groups.items()):
        members.sort(key=lambda row: (KINDS.index(row[0]), row[4] or "", row[5] or 0, row[7]))
        # A definition is more than the variable it is bound to, and an overload less than what it is for.
        first = members[0]
        last = [row for row in members if row[0] == first[0] and row[4] == first[4]][-1]
        ids = tuple(dict.fromkeys(row[7] for row in members))
        found.append(Symbol(name, first[0], last[1], last[4], last[5], repo_id, method, ids))
    return found


def with_lines(reader: Reader, symbols: Sequence[Symbol]) -> list[Symbol]:
    """The symbols; a variable has the line where it first gets a value."""
    ids = [each.ids[0] for each in symbols if each.kind == "BINDING" and each.line is None]
    if not ids:
        return list(symbols)
    query = Query(
        f"SELECT e.dst_node_id, e.path, {FIRST_LINE} FROM e GROUP BY 1, 2",
        {"e": Slice("cpg_edges_by_dst", dst_node_id=ids, edge_kind=("DEFINES_BINDING",))},
    )
    lines = {(node, path): line for node, path, line in reader.rows(query)}
    return [structs.replace(each, line=each.line or lines.get((each.ids[0], each.path))) for each in symbols]
