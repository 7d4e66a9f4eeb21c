"""Read the definitions without incoming edges, and the facts by which they may still be used.

    candidates = unused_candidates(reader, "shop")
    context = read_usage_context(reader, candidates)

One query per fact, over the kinds of nodes and edges that hold it; `query.walks.usage` combines the facts.

Tests: `tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from codeanatomy import catalog
from codeanatomy.query.answers import place
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.walks.usage import Key, Place, UnusedCandidate, UsageContext

K = TypeVar("K")
T = TypeVar("T")
USE_EDGES = (
    "CALL_GRAPH",
    "CALLS",
    "INSTANTIATES",
    "REFERS_TO",
    "READS",
    "IMPORTS_NAME",
    "INHERITS",
    "RE_EXPORTS",
)
# Decorators that do not register what they decorate.
PLAIN_DECORATORS = ("property", "staticmethod", "classmethod")
# Methods of metaclasses and bases that run when a class is created.
CLASS_HOOKS = ("__new__", "__init__", "__call__", "__init_subclass__")
# Below this confidence a resolution is a guess by values or annotations.
CERTAIN = 0.9
# Functions that look up attributes by computed names.
NAME_LOOKUPS = (
    "builtins.getattr",
    "builtins.vars",
    "builtins.globals",
    "builtins.locals",
    "operator.attrgetter",
)
CANDIDATE_COLUMNS = tuple(
    catalog.table("cpg_nodes").column(name)
    for name in ("node_id", "name", "repo_id", "path", "bstart", "bend")
)


def unused_candidates(reader: Reader, repo_id: str | None = None) -> list[UnusedCandidate]:
    """Return functions and classes that no edge from outside of their own text arrives at, in file order."""
    outside = (
        "(d.bstart IS NULL OR e.bstart IS NULL OR e.path <> d.path OR e.bstart < d.bstart OR e.bend > d.bend)"
    )
    query = Query(
        "SELECT d.node_id, d.node_kind, d.subkind, d.name, d.qualname, d.repo_id, d.path, d.line, d.bstart,"
        " d.bend FROM d LEFT JOIN ("
        f"SELECT e.dst_node_id AS used_id FROM e JOIN d ON d.node_id = e.dst_node_id WHERE {outside}"
        " UNION SELECT d.node_id FROM d JOIN b ON b.src_node_id = d.node_id"
        f" JOIN e ON e.dst_node_id = b.dst_node_id WHERE {outside}"
        # Another repository refers to it by an external name with the same first and last part.
        " UNION SELECT d.node_id FROM d JOIN q ON q.name = d.name AND q.repo_id <> d.repo_id"
        " AND split_part(q.qualname, '.', 1) = split_part(d.qualname, '.', 1)"
        ") AS u ON u.used_id = d.node_id"
        " WHERE u.used_id IS NULL AND d.bstart IS NOT NULL AND coalesce(d.subkind, '') <> 'lambda'"
        " AND d.name <> '_' AND NOT (left(d.name, 2) = '__' AND right(d.name, 2) = '__')"
        " AND right(d.path, 4) <> '.pyi'",
        {
            "d": nodes(("FUNCTION", "CLASS"), repo_id),
            "e": edges(USE_EDGES),
            "b": edges(("DEFINES_BINDING",)),
            "q": nodes(("QUALIFIED_NAME",)),
        },
        order=("repo_id", "path", "bstart", "bend DESC", "node_id"),
    )
    return [UnusedCandidate(*row) for row in reader.rows(query)]


def read_usage_context(
    reader: Reader, candidates: Sequence[UnusedCandidate], repo_id: str | None = None
) -> UsageContext:
    """Read the facts by which candidates of the lake, or of one repository, may be used without an edge."""
    overrides = reader.rows(
        Query(
            "SELECT e.src_node_id, e.dst_node_id, f.qualname FROM e JOIN f ON f.node_id = e.src_node_id",
            {"e": edges(("OVERRIDES",)), "f": nodes(("FUNCTION",))},
            order=("qualname", "src_node_id", "dst_node_id"),
        )
    )
    inherits = reader.rows(
        Query(
            "SELECT e.src_node_id, e.dst_node_id, q.qualname FROM e LEFT JOIN q ON q.node_id = e.dst_node_id"
            " UNION ALL SELECT p.entity_id, NULL, 'an unresolved base' FROM p",
            {
                "e": edges(("INHERITS",)),
                "q": nodes(("QUALIFIED_NAME",)),
                "p": Slice(
                    "cpg_props", entity_kind=("node",), prop_key=("unresolved",), node_kind=("CLASS",)
                ),
            },
            order=("src_node_id", "qualname", "dst_node_id"),
        )
    )
    computed = _computed_names(reader)
    lines: dict[Key, int] = {(repo, path): line for repo, path, line, _ in computed}
    names = sorted({each.name for each in candidates})
    namesakes: dict[str, str] = {}
    context = UsageContext(
        unused={each.node_id: each for each in candidates},
        parents=dict(_parents(reader)),
        overrides=_group((method, base) for method, base, _ in overrides),
        overridden=_group((base, method) for method, base, _ in overrides),
        names={method: name for method, _, name in overrides},
        bases=_group((subclass, base) for subclass, base, name in inherits if name is None),
        subclasses=_group((base, subclass) for subclass, base, name in inherits if name is None),
        external_bases=_group((subclass, name) for subclass, _, name in inherits if name is not None),
        files={node: (repo, path) for node, repo, path in _classes(reader)},
        decorators=dict(_decorators(reader)),
        hooks=dict(_hooks(reader)),
        unresolved=_group_places(_unresolved(reader, names, repo_id)),
        uncertain=_group_places(_uncertain(reader, names, repo_id)),
        texts=_group_places(_texts(reader, repo_id)),
        prefixes=_group(
            (repo, (text, path, line))
            for repo, text, path, line in _prefixes(reader, repo_id)
            if text.isidentifier() and (repo, path) in lines
        ),
        exported=frozenset(_exported(reader, repo_id)),
        namesakes=namesakes,
        computed=lines,
        computed_on_self={(repo, path): line for repo, path, _, line in computed if line is not None},
    )
    private = [each for each in candidates if context.is_private(each)]
    namesakes.update(_namesakes(reader, private))
    return context


def _parents(reader: Reader) -> list[Row]:
    """Return definitions, each with the one directly around it."""
    return reader.rows(
        Query(
            "SELECT e.dst_node_id, e.src_node_id FROM e WHERE e.bstart IS NOT NULL",
            {"e": edges(("CONTAINS",))},
        )
    )


def _classes(reader: Reader) -> list[Row]:
    return reader.rows(Query("SELECT c.node_id, c.repo_id, c.path FROM c", {"c": nodes(("CLASS",))}))


def _decorators(reader: Reader) -> list[Row]:
    """Return definitions, each with a decorator that may register it."""
    plain = ", ".join(f"'{name}'" for name in PLAIN_DECORATORS)
    return reader.rows(
        Query(
            "SELECT e.src_node_id, min_by(d.name, e.ordinal) FROM e JOIN d ON d.node_id = e.dst_node_id"
            f" WHERE d.name NOT IN ({plain}) GROUP BY e.src_node_id",
            {"e": edges(("HAS_DECORATOR",)), "d": nodes(("DECORATOR",))},
        )
    )


def _hooks(reader: Reader) -> list[Row]:
    """Return classes, each with a function that runs when it is created."""
    hooks = ", ".join(f"'{name}'" for name in CLASS_HOOKS)
    return reader.rows(
        Query(
            "SELECT c.node_id, min(f.qualname) FROM e JOIN f ON f.node_id = e.dst_node_id"
            " JOIN c ON c.repo_id = e.repo_id AND c.path = e.path AND c.bstart = e.bstart"
            f" WHERE e.role = 'class' AND f.name IN ({hooks}) GROUP BY c.node_id",
            {
                "e": edges(("CALLS",)),
                "f": nodes(("FUNCTION",)),
                "c": nodes(("CLASS",)),
            },
        )
    )


def _unresolved(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Row]:
    """Return the attributes of given names that are not resolved, or not to all of their targets."""
    return reader.rows(
        Query(
            "SELECT a.repo_id, a.name, a.path, a.bstart, a.line FROM a JOIN p ON p.entity_id = a.node_id"
            # A call whose candidates were cut may have any target of the name; the edge's id has the call's.
            " UNION SELECT a.repo_id, a.name, a.path, a.bstart, a.line FROM c"
            " JOIN s ON s.node_id = split_part(c.entity_id, ';', 2)"
            " JOIN a ON a.file_id = s.file_id AND a.bstart >= s.bstart AND a.bend <= s.bend",
            {
                "a": nodes(("ATTRIBUTE_REF",), repo_id, name=names),
                "s": nodes(("CALLSITE",), repo_id),
                "p": _unresolved_nodes("ATTRIBUTE_REF"),
                "c": Slice("cpg_props", entity_kind=("edge",), prop_key=("cut",)),
            },
            order=("repo_id", "name", "path", "bstart"),
        )
    )


def _uncertain(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Row]:
    """Return the attributes of given names that were resolved by values, of which more may exist."""
    return reader.rows(
        Query(
            "SELECT DISTINCT a.repo_id, a.name, a.path, a.bstart, a.line FROM a"
            f" JOIN e ON e.src_node_id = a.node_id WHERE e.confidence < {CERTAIN}",
            {
                "a": nodes(("ATTRIBUTE_REF",), repo_id, name=names),
                "e": edges(("REFERS_TO",)),
            },
            order=("repo_id", "name", "path", "bstart"),
        )
    )


def _unresolved_nodes(kind: str) -> Slice:
    return Slice("cpg_props", entity_kind=("node",), prop_key=("unresolved",), node_kind=(kind,))


def _texts(reader: Reader, repo_id: str | None) -> list[Row]:
    """Return string literals that are, or end with, the name of a definition.

    For example `"run"`, `"pkg.mod.run"` and `"pkg.mod:run"`.
    """
    last = "split_part(replace(substr(t.name, 2, length(t.name) - 2), ':', '.'), '.', -1)"
    return reader.rows(
        Query(
            f"SELECT t.repo_id, {last} AS text, t.path, t.bstart, t.line FROM t"
            f" JOIN (SELECT DISTINCT d.name FROM d) AS k ON k.name = {last} WHERE t.subkind = 'str'",
            {"t": nodes(("LITERAL",), repo_id), "d": nodes(("FUNCTION", "CLASS"), repo_id)},
            order=("repo_id", "text", "path", "bstart"),
        )
    )


def _prefixes(reader: Reader, repo_id: str | None) -> list[Row]:
    """Return string literals that end with `_`, up to a placeholder: `"as_"`, `"as_%s"`, `"as_{}"`."""
    begins = "split_part(split_part(substr(t.name, 2, length(t.name) - 2), '%', 1), '{', 1)"
    return reader.rows(
        Query(
            f"SELECT DISTINCT t.repo_id, {begins} AS text, t.path, t.line FROM t WHERE t.subkind = 'str'"
            f" AND length({begins}) > 2 AND right({begins}, 1) = '_' AND instr({begins}, ' ') = 0",
            {"t": nodes(("LITERAL",), repo_id)},
            order=("repo_id", "path", "line", "text"),
        )
    )


def _exported(reader: Reader, repo_id: str | None) -> list[Row]:
    """Return repositories and names of their `__all__`: strings after it, up to the next definition."""
    return reader.rows(
        Query(
            "SELECT DISTINCT t.repo_id, substr(t.name, 2, length(t.name) - 2) FROM a"
            " JOIN t ON t.file_id = a.file_id AND t.bstart > a.bstart"
            " LEFT JOIN d ON d.file_id = a.file_id AND d.bstart > a.bstart AND d.bstart < t.bstart"
            " WHERE a.name = '__all__' AND t.subkind = 'str' AND d.node_id IS NULL",
            {
                "a": nodes(("NAME_REF",), repo_id),
                "t": nodes(("LITERAL",), repo_id),
                "d": nodes(("FUNCTION", "CLASS"), repo_id),
            },
        )
    )


def _computed_names(reader: Reader) -> list[Row]:
    """Return files that compute attribute names, with the first such line, and the first for `self`."""
    lookups = ", ".join(f"'{name}'" for name in NAME_LOOKUPS)
    return reader.rows(
        Query(
            "SELECT e.repo_id, e.path, min(e.line),"
            " min(CASE WHEN s.name IN ('self', 'cls') THEN e.line END) FROM e"
            " JOIN q ON q.node_id = e.dst_node_id"
            " LEFT JOIN h ON h.src_node_id = e.src_node_id AND h.ordinal = 1"
            " LEFT JOIN t ON t.file_id = h.owner_file_id AND t.bstart = h.bstart AND t.bend = h.bend"
            " LEFT JOIN h f ON f.src_node_id = e.src_node_id AND f.ordinal = 0"
            " LEFT JOIN s ON s.file_id = f.owner_file_id AND s.bstart = f.bstart AND s.bend = f.bend"
            f" WHERE q.qualname IN ({lookups}) AND t.node_id IS NULL GROUP BY e.repo_id, e.path",
            {
                "e": edges(("CALLS_NAME",)),
                "q": nodes(("QUALIFIED_NAME",)),
                "h": edges(("HAS_ARGUMENT",)),
                "t": nodes(("LITERAL",)),
                "s": nodes(("NAME_REF",)),
            },
        )
    )


def _namesakes(reader: Reader, candidates: Sequence[UnusedCandidate]) -> list[Row]:
    """Return candidates, each with the first place outside of its own text where its name occurs."""
    rows = [(d.node_id, d.name, d.repo_id, d.path, d.bstart, d.bend) for d in candidates]
    occurrences = reader.rows(
        Query(
            "SELECT h.node_id, r.path, r.bstart, r.line FROM h"
            " JOIN r ON r.repo_id = h.repo_id AND r.name = h.name"
            " WHERE r.path <> h.path OR r.bstart < h.bstart OR r.bstart >= h.bend",
            {
                "h": InlineRows(CANDIDATE_COLUMNS, rows),
                "r": nodes(("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS")),
            },
            order=("node_id", "path", "bstart"),
        )
    )
    first: dict[str, str] = {}
    for node, path, _, line in occurrences:
        first.setdefault(node, place(path, line))
    return list(first.items())


def _group_places(rows: Iterable[Row]) -> dict[Key, list[Place]]:
    """Group places by repository and name."""
    return _group(((repo, name), (path, bstart, line)) for repo, name, path, bstart, line in rows)


def _group(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
