"""The definitions around places, and what is inside of definitions.

    users(reader, ids, ("REFERS_TO",), CALL_GRAPH)  # the definitions that name them, or call them
    contents(reader, symbol)                        # of a class its methods and attributes, {id: name}
    innermost("e", "edge_id")                       # SQL: the innermost definition around each edge of `e`

A module is around everything in its file, also around a function that is all of the file; no other two
definitions have one span, so the shortest is one. For `users` a decorator belongs to what it decorates,
though it stands before it. Who calls is another question: the call graph knows functions and modules only, so
decorators and the body of a class are run by what is around the class (`CALLERS`, not `decorated`).

Inside of a package is all that is below its folder. Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Within, edges, nodes
from codeanatomy.query.walks.reachability import Step, edges_at

AROUND = ("FUNCTION", "CLASS", "MODULE")
CALLERS = ("FUNCTION", "MODULE")
# After every place of a file.
FARTHEST = 2**63 - 1


class Use(Struct, frozen=True):
    """A step to a definition: by an edge that starts somewhere inside of it, or at the definition itself."""

    step: Step
    kind: str
    subkind: str | None
    name: str
    repo_id: str


def spans(definitions: str = "d", *, decorated: bool = False) -> str:
    """A statement: the `node_id` and `file_id` of definitions, where each `begins` and `ends`.

    `decorated`: each with its decorators, as the edges DECORATES, `x`, say.
    """
    first = "coalesce(least(d.bstart, min(x.bstart)), d.bstart)" if decorated else "d.bstart"
    decorators = (
        " LEFT JOIN x ON x.dst_node_id = d.node_id"
        " GROUP BY d.node_id, d.file_id, d.node_kind, d.bstart, d.bend"
    )
    return (
        f"SELECT d.node_id, d.file_id, CASE d.node_kind WHEN 'MODULE' THEN 0 ELSE {first} END AS begins,"
        f" CASE d.node_kind WHEN 'MODULE' THEN {FARTHEST} ELSE d.bend END AS ends"
        f" FROM {definitions} AS d{decorators if decorated else ''}"
    )


def innermost(
    places: str, key: str, *, file: str = "owner_file_id", but: str | None = None, decorated: bool = False
) -> str:
    """A statement: of each place, its key and the id (`inner_id`) of the innermost of the definitions `d`.

    Places are a relation with a key, a file, `bstart` and `bend`; `but` is a column of it with a definition
    that does not count.

    >>> innermost("e", "edge_id").startswith("SELECT p.edge_id, min_by(i.node_id, i.ends - i.begins)")
    True
    """
    other = f" AND i.node_id <> p.{but}" if but else ""
    return (
        f"SELECT p.{key}, min_by(i.node_id, i.ends - i.begins) AS inner_id FROM {places} AS p"
        f" JOIN ({spans(decorated=decorated)}) AS i ON i.file_id = p.{file}"
        f" AND i.begins <= p.bstart AND i.ends >= p.bend{other} GROUP BY p.{key}"
    )


def users(
    reader: Reader,
    ids: Collection[str],
    from_places: Collection[str],
    from_definitions: Collection[str],
    around: Collection[str] = AROUND,
    *,
    decorated: bool = True,
) -> list[Use]:
    """The edges of some kinds that arrive at some nodes, each with the innermost definition it starts in."""
    if not ids:
        return []
    fields = "e.dst_node_id, e.edge_kind, e.path, e.line, e.confidence, e.resolution_method, e.edge_id"
    inner = innermost("e", "edge_id", decorated=decorated)
    places = ", ".join(f"'{kind}'" for kind in from_places)
    query = Query(
        "SELECT n.node_id, u.dst_node_id, u.edge_kind, u.path, u.line, u.confidence, u.resolution_method,"
        " n.node_kind, n.subkind, coalesce(n.qualname, n.name) AS symbol, n.repo_id, u.edge_id FROM ("
        f"SELECT e.src_node_id AS user_id, {fields} FROM e WHERE e.edge_kind NOT IN ({places}) UNION ALL"
        f" SELECT i.inner_id AS user_id, {fields} FROM e JOIN ({inner}) AS i ON i.edge_id = e.edge_id"
        f" WHERE e.edge_kind IN ({places})) AS u JOIN n ON n.node_id = u.user_id",
        {
            "e": edges_at(sorted(ids), (*from_places, *from_definitions), "dst"),
            "d": nodes(around),
            "x": edges(("DECORATES",)),
            "n": nodes(AROUND),
        },
        order=("symbol", "node_id", "dst_node_id", "edge_kind", "path", "line", "edge_id"),
    )
    return [
        Use(Step(node, 1, *edge), kind, subkind, name, repo_id)
        for node, *edge, kind, subkind, name, repo_id, _ in reader.rows(query)
    ]


def makers(reader: Reader, ids: Collection[str]) -> list[Step]:
    """Where instances of classes are made, as steps to the functions and modules that make them."""
    found = users(reader, ids, ("INSTANTIATES",), (), CALLERS, decorated=False)
    return [use.step for use in found]


def contents(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """What is inside of a class, module or package, by id: definitions and their names, and variables."""
    found = definitions_in(reader, symbol)
    modules = [node for node in found if node.startswith("module:")]
    query = Query(
        "SELECT b.node_id, b.qualname FROM c JOIN b ON b.file_id = c.file_id"
        " AND b.qualname = concat(c.qualname, '.', b.name) WHERE b.subkind <> 'import'",
        {
            "c": nodes(("CLASS", "MODULE"), symbol.repo_id, node_id=(*symbol.ids, *modules)),
            "b": nodes(("BINDING",), symbol.repo_id),
        },
    )
    return found | dict(reader.rows(query))


def definitions_in(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """The definitions inside of a class, module or package, by id, with their names."""
    folders = folders_of(reader, symbol)
    if folders:
        below, args = is_below("m.path", folders)
        query = Query(
            f"SELECT m.node_id, m.qualname FROM m WHERE {below}",
            {"m": nodes((*AROUND, "PACKAGE"), symbol.repo_id)},
            args,
        )
        return dict(reader.rows(query))
    around = Query(spans(), {"d": nodes(("CLASS", "MODULE"), symbol.repo_id, node_id=symbol.ids)})
    places = [place for _, *place in reader.rows(around) if None not in place]
    inside = " OR ".join(["(m.file_id = ? AND m.bstart >= ? AND m.bend <= ?)"] * len(places))
    # Few files hold them, and known ones.
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


def folders_of(reader: Reader, symbol: Symbol) -> list[str]:
    """How the paths of all that is inside of a package begin; nothing for what is no package."""
    packages = [node for node in symbol.ids if node.startswith("package:")]
    query = Query("SELECT p.path FROM p", {"p": nodes(("PACKAGE",), symbol.repo_id, node_id=packages)})
    return [f"{path}/" if path else "" for (path,) in reader.rows(query)] if packages else []


def is_below(column: str, folders: Sequence[str]) -> tuple[str, tuple[str | int, ...]]:
    """A condition that a path is below one of some folders, and its arguments."""
    each = f"left({column}, ?) = ?"
    condition = f"({' OR '.join([each] * len(folders))})"
    return condition, tuple(value for folder in folders for value in (len(folder), folder))
