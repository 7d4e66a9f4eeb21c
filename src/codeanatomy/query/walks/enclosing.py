"""Find the definitions that enclose a place, and the contents of a definition.

    find_users(reader, ids, ("REFERS_TO",), CALL_GRAPH)  # the definitions that refer to them or call them
    contents(reader, symbol)                             # methods and attributes of a class, {id: name}
    innermost_sql("e", *PLACE)                           # SQL: innermost definition around each place in `e`

A module encloses its whole file, even a function of the same span; no other two definitions have the same
span, so the shortest enclosing one is unique. For `find_users` a decorator belongs to the definition it
decorates, although it precedes it. The call graph attributes calls differently: its callers are functions and
modules only, so decorators and class bodies are run by the definition around the class (`CALLER_KINDS`, not
`decorated`).

A package contains everything below its folder.

Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Within, edges, nodes
from codeanatomy.query.walks.reachability import CALLS, Hop, edges_at

ENCLOSING_KINDS = ("FUNCTION", "CLASS", "MODULE")
CALLER_KINDS = ("FUNCTION", "MODULE")
# Greater than every offset in a file.
MAX_BYTE = 2**63 - 1
# Nodes that are looked up by id; for more, all nodes of their kinds are joined.
MAX_ID_LOOKUPS = 1000
# Columns of a place in the source: edges and relations of one place are in the same definition.
PLACE = ("owner_file_id", "bstart", "bend")


class DefinitionUse(Struct, frozen=True):
    """A definition that uses another one: the edge starts at it or somewhere inside of it."""

    hop: Hop
    kind: str
    subkind: str | None
    name: str
    # Where it is defined, as `path:line`.
    defined: str | None
    repo_id: str


def spans_sql(definitions: str = "d", *, decorated: bool = False) -> str:
    """Return SQL for the spans of definitions: `node_id`, `file_id`, `begins`, `ends`.

    With `decorated` a span includes the decorators; relation `x` must hold the DECORATES edges.
    """
    first = "coalesce(least(d.bstart, min(x.bstart)), d.bstart)" if decorated else "d.bstart"
    decorators = (
        " LEFT JOIN x ON x.dst_node_id = d.node_id"
        " GROUP BY d.node_id, d.file_id, d.node_kind, d.bstart, d.bend"
    )
    return (
        f"SELECT d.node_id, d.file_id, CASE d.node_kind WHEN 'MODULE' THEN 0 ELSE {first} END AS begins,"
        f" CASE d.node_kind WHEN 'MODULE' THEN {MAX_BYTE} ELSE d.bend END AS ends"
        f" FROM {definitions} AS d{decorators if decorated else ''}"
    )


def innermost_sql(
    places: str,
    *keys: str,
    file: str = "owner_file_id",
    exclude: str | None = None,
    decorated: bool = False,
) -> str:
    """Return SQL for the keys of each place and the id (`inner_id`) of the innermost enclosing definition.

    `places` is a relation with the keys, a file, `bstart` and `bend`; the definitions are relation `d`.
    `exclude` names a column of `places` with the id of a definition that does not count.

    >>> innermost_sql("e", "n").startswith("SELECT p.n, min_by(i.node_id, i.ends - i.begins) AS inner_id")
    True
    """
    other = f" AND i.node_id <> p.{exclude}" if exclude else ""
    key = ", ".join(f"p.{name}" for name in keys)
    return (
        f"SELECT {key}, min_by(i.node_id, i.ends - i.begins) AS inner_id FROM {places} AS p"
        f" JOIN ({spans_sql(decorated=decorated)}) AS i ON i.file_id = p.{file}"
        f" AND i.begins <= p.bstart AND i.ends >= p.bend{other} GROUP BY {key}"
    )


def equal_sql(one: str, other: str, *names: str) -> str:
    """Return the SQL condition that two relations are equal in columns of the same names.

    >>> equal_sql("i", "e", "bstart", "bend")
    'i.bstart = e.bstart AND i.bend = e.bend'
    """
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


def defined_sql(node: str, first_line: int | None = None) -> str:
    """Return SQL for the location of a node, as `path:line` or `path`; null for one outside of the lake.

    A variable has no line of its own: `first_line` is that of its first assignment.

    >>> defined_sql("n")
    "coalesce(n.path || ':' || CAST(n.line AS STRING), n.path)"
    """
    line = f"{node}.line" if first_line is None else f"coalesce({node}.line, {first_line:d})"
    return f"coalesce({node}.path || ':' || CAST({line} AS STRING), {node}.path)"


def find_users(
    reader: Reader,
    ids: Collection[str],
    from_places: Collection[str],
    from_definitions: Collection[str],
    around: Collection[str] = ENCLOSING_KINDS,
    *,
    decorated: bool = True,
) -> list[DefinitionUse]:
    """Return the edges that arrive at the nodes, each with the definition that it comes from.

    Edges of kinds `from_definitions` start at a definition; those of kinds `from_places` start at a node
    inside of one, and the innermost definition of the kinds `around` is taken.
    """
    if not ids:
        return []
    fields = (
        "e.dst_node_id, e.edge_kind, e.path, e.line, e.confidence, e.resolution_method,"
        " e.src_node_id, e.repeat"
    )
    inner = innermost_sql("e", *PLACE, decorated=decorated)
    places = ", ".join(f"'{kind}'" for kind in from_places)
    query = Query(
        "SELECT n.node_id, u.dst_node_id, u.edge_kind, u.path, u.line, u.confidence, u.resolution_method,"
        f" n.node_kind, n.subkind, coalesce(n.qualname, n.name) AS symbol, {defined_sql('n')} AS defined,"
        " n.repo_id, u.src_node_id, u.repeat"
        " FROM ("
        f"SELECT e.src_node_id AS user_id, {fields} FROM e WHERE e.edge_kind NOT IN ({places}) UNION ALL"
        f" SELECT i.inner_id AS user_id, {fields} FROM e JOIN ({inner}) AS i ON {equal_sql('i', 'e', *PLACE)}"
        f" WHERE e.edge_kind IN ({places})) AS u JOIN n ON n.node_id = u.user_id",
        {
            "e": edges_at(sorted(ids), (*from_places, *from_definitions), "dst"),
            "d": nodes(around),
            "x": edges(("DECORATES",)),
            "n": nodes(ENCLOSING_KINDS),
        },
        order=("symbol", "node_id", "dst_node_id", "edge_kind", "path", "line", "src_node_id", "repeat"),
    )
    return [
        DefinitionUse(Hop(node, 1, *edge), kind, subkind, name, defined, repo_id)
        for node, *edge, kind, subkind, name, defined, repo_id, _, _ in reader.rows(query)
    ]


def find_instantiations(reader: Reader, ids: Collection[str]) -> list[Hop]:
    """Return hops from classes to the functions and modules that instantiate them."""
    uses = find_users(reader, ids, ("INSTANTIATES",), (), CALLER_KINDS, decorated=False)
    return [use.hop for use in uses]


def find_instantiated(reader: Reader, ids: Collection[str]) -> list[Hop]:
    """Return hops from functions and modules to the classes that they instantiate."""
    around = nodes(CALLER_KINDS, node_id=sorted(ids))
    rows = reader.rows(Query("SELECT DISTINCT d.path FROM d", {"d": around})) if ids else []
    paths = sorted(path for (path,) in rows)
    query = Query(
        "SELECT e.dst_node_id, i.inner_id, e.path, e.line, e.confidence, e.resolution_method"
        f" FROM e JOIN ({innermost_sql('e', *PLACE)}) AS i ON {equal_sql('i', 'e', *PLACE)}",
        {"e": edges(("INSTANTIATES",), path=paths), "d": nodes(CALLER_KINDS, path=paths)},
        order=("dst_node_id", "inner_id", "path", "line", "confidence"),
    )
    return [
        Hop(node, 1, via, "INSTANTIATES", *edge)
        for node, via, *edge in (reader.rows(query) if paths else ())
        if via in ids
    ]


def count_call_sites(reader: Reader, calls: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Count the call sites of each pair of caller and callee, given as node ids."""
    if not calls:
        return {}
    callers, callees = ({call[end] for call in calls} for end in (0, 1))
    named: dict[str, Any] = {"node_id": sorted(callers)} if len(callers) <= MAX_ID_LOOKUPS else {}
    query = Query(
        "WITH s AS (SELECT DISTINCT e.owner_file_id, e.bstart, e.bend, e.dst_node_id FROM e)"
        " SELECT i.inner_id, s.dst_node_id, count(*)"
        f" FROM s JOIN ({innermost_sql('s', *PLACE)}) AS i ON {equal_sql('i', 's', *PLACE)} GROUP BY 1, 2",
        {"e": edges_at(sorted(callees), CALLS, "dst"), "d": nodes(CALLER_KINDS, **named)},
    )
    return {(caller, callee): count for caller, callee, count in reader.rows(query)}


def contents(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """Return the definitions and variables inside of a class, module or package: names by id."""
    definitions = definitions_in(reader, symbol)
    modules = [node for node in definitions if node.startswith("module:")]
    query = Query(
        "SELECT b.node_id, b.qualname FROM c JOIN b ON b.file_id = c.file_id"
        " AND b.qualname = concat(c.qualname, '.', b.name) WHERE b.subkind <> 'import'",
        {
            "c": nodes(("CLASS", "MODULE"), symbol.repo_id, node_id=(*symbol.ids, *modules)),
            "b": nodes(("BINDING",), symbol.repo_id),
        },
    )
    return definitions | dict(reader.rows(query))


def definitions_in(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """Return the definitions inside of a class, module or package: names by id."""
    folders = package_folders(reader, symbol)
    if folders:
        below, args = below_folders_sql("m.path", folders)
        query = Query(
            f"SELECT m.node_id, m.qualname FROM m WHERE {below}",
            {"m": nodes((*ENCLOSING_KINDS, "PACKAGE"), symbol.repo_id)},
            args,
        )
        return dict(reader.rows(query))
    around = Query(spans_sql(), {"d": nodes(("CLASS", "MODULE"), symbol.repo_id, node_id=symbol.ids)})
    places = [place for _, *place in reader.rows(around) if None not in place]
    inside = " OR ".join(["(m.file_id = ? AND m.bstart >= ? AND m.bend <= ?)"] * len(places))
    # The bounds on file and span let the reader skip data files.
    wanted = nodes(
        ("FUNCTION", "CLASS"),
        symbol.repo_id,
        file_id=tuple({file_id for file_id, _, _ in places}),
        bstart=Within(min((begins for _, begins, _ in places), default=0)),
        bend=Within(greatest=max((ends for _, _, ends in places), default=0)),
    )
    args = tuple(value for place in places for value in place)
    query = Query(f"SELECT m.node_id, m.qualname FROM m WHERE {inside}", {"m": wanted}, args)
    return dict(reader.rows(query)) if places else {}


def package_folders(reader: Reader, symbol: Symbol) -> list[str]:
    """Return the path prefixes of a package's files; empty if the symbol is not a package."""
    packages = [node for node in symbol.ids if node.startswith("package:")]
    query = Query("SELECT p.path FROM p", {"p": nodes(("PACKAGE",), symbol.repo_id, node_id=packages)})
    return [f"{path}/" if path else "" for (path,) in reader.rows(query)] if packages else []


def below_folders_sql(column: str, folders: Sequence[str]) -> tuple[str, tuple[str | int, ...]]:
    """Return a SQL condition that a path is below one of the folders, and its arguments."""
    is_below = f"left({column}, ?) = ?"
    condition = f"({' OR '.join([is_below] * len(folders))})"
    return condition, tuple(value for folder in folders for value in (len(folder), folder))
