"""Read the definitions without incoming edges, and the facts by which they may still be used.

    candidates = unused_candidates(reader, "shop")
    context = read_usage_context(reader, candidates)

One query per fact, over the kinds of nodes and edges that hold it; `query.walks.usage` combines the facts.

Tests: `tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from codeanatomy import catalog
from codeanatomy.catalog.entry_points import APPLICATIONS, PLAIN_DECORATORS, match_any
from codeanatomy.query.answers import place
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.source_lines import NEWLINE, texts_query
from codeanatomy.query.unresolved_uses import unresolved_uses
from codeanatomy.query.walks.entry_points import EntryPoint
from codeanatomy.query.walks.test_code import is_test
from codeanatomy.query.walks.usage import Definition, Key, Place, UsageContext, is_private_name

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
# Methods of metaclasses and bases that run when a class is created.
CLASS_HOOKS = ("__new__", "__init__", "__call__", "__init_subclass__")
# Below this confidence a resolution is a guess by values or annotations.
CERTAIN = 0.9
# Confidence of a route whose decorator could not be resolved.
GUESSED_ROUTE = 0.5
# Functions that look up attributes by computed names.
NAME_LOOKUPS = (
    "builtins.getattr",
    "builtins.vars",
    "builtins.globals",
    "builtins.locals",
    "operator.attrgetter",
)
# Functions that import a module by its name.
MODULE_LOADERS = (
    "importlib.import_module",
    "builtins.__import__",
    "importlib.util.spec_from_file_location",
    "pkgutil.walk_packages",
    "pkgutil.iter_modules",
)
# Folders with programs that show how to use a library.
EXAMPLES = frozenset({"example", "examples", "demo", "demos", "sandbox", "docs", "doc", "benchmarks"})
IDENTIFIER = re.compile(r"\w+")
CALLED_NAME = re.compile(r"(?<!\w)(_\w+)\(")
CANDIDATE_COLUMNS = tuple(
    catalog.table("cpg_nodes").column(name)
    for name in ("node_id", "name", "repo_id", "path", "bstart", "bend")
)


def unused_candidates(reader: Reader, repo_id: str | None = None) -> list[Definition]:
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
    return [Definition(*row) for row in reader.rows(query)]


def read_definitions(reader: Reader) -> dict[str, Definition]:
    """Return functions and classes by node id; no lambdas."""
    query = Query(
        "SELECT d.node_id, d.node_kind, d.subkind, d.name, d.qualname, d.repo_id, d.path, d.line, d.bstart,"
        " d.bend FROM d WHERE d.bstart IS NOT NULL AND coalesce(d.subkind, '') <> 'lambda'",
        {"d": nodes(("FUNCTION", "CLASS"))},
    )
    return {row[0]: Definition(*row) for row in reader.rows(query)}


def read_parents(reader: Reader) -> dict[str, str]:
    """Return the node ids of definitions, each with that of the definition directly around it."""
    query = Query(
        "SELECT e.dst_node_id, e.src_node_id FROM e WHERE e.bstart IS NOT NULL", {"e": edges(("CONTAINS",))}
    )
    return dict(reader.rows(query))


def read_usage_context(
    reader: Reader,
    candidates: Sequence[Definition],
    entries: Sequence[EntryPoint] = (),
    repo_id: str | None = None,
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
    inherits += [(base, None, "a class that type() makes") for (base,) in _bases_of_made_classes(reader)]
    computed = _computed_names(reader)
    lines: dict[Key, int] = {(repo, path): line for repo, path, line, _ in computed}
    names = sorted({each.name for each in candidates})
    namesakes: dict[str, str] = {}
    unparsed = frozenset(_unparsed(reader, repo_id))
    context = UsageContext(
        unused={each.node_id: each for each in candidates},
        definitions=read_definitions(reader),
        parents=read_parents(reader),
        overrides=_group((method, base) for method, base, _ in overrides),
        overridden=_group((base, method) for method, base, _ in overrides),
        names={method: name for method, _, name in overrides},
        bases=_group((subclass, base) for subclass, base, name in inherits if name is None),
        subclasses=_group((base, subclass) for subclass, base, name in inherits if name is None),
        external_bases=_group((subclass, name) for subclass, _, name in inherits if name is not None),
        reexported=frozenset(node for node, name in _reexported(reader) if not is_private_name(name)),
        applications=_applications(reader, entries),
        loaders=_group((repo, (text, path, line)) for repo, text, path, line in _loaders(reader)),
        imported=frozenset(_imported(reader)).difference(_named_in_strings(reader)),
        listed_names={(repo, path): line for repo, path, line in _listed_names(reader)},
        decorators=dict(_decorators(reader)),
        hooks=dict(_hooks(reader)),
        unresolved=_group_places(unresolved_uses(reader, names, repo_id)),
        uncertain=_group_places(_uncertain(reader, names, repo_id)),
        outside=_group_places(_outside(reader, names, repo_id)),
        texts=_group_places([*_texts(reader, repo_id), *_code_in_texts(reader, candidates, repo_id)]),
        prefixes=_group(
            (repo, (text, path, line))
            for repo, text, path, line in _prefixes(reader, repo_id)
            if text.isidentifier() and (repo, path) in lines
        ),
        exported=frozenset(_exported(reader, repo_id)),
        unparsed=unparsed,
        unparsed_names=_group_places(_names_in_texts(reader, unparsed, frozenset(names))),
        namesakes=namesakes,
        computed=lines,
        computed_on_self={(repo, path): line for repo, path, _, line in computed if line is not None},
    )
    private = [each for each in candidates if context.is_private(each)]
    namesakes.update(_namesakes(reader, private))
    return context


def _bases_of_made_classes(reader: Reader) -> list[Row]:
    """Return classes that the bases of `type(name, bases, namespace)` name."""
    return reader.rows(
        Query(
            "SELECT DISTINCT r.dst_node_id FROM e JOIN q ON q.node_id = e.dst_node_id"
            " JOIN h ON h.src_node_id = e.src_node_id AND h.ordinal = 1"
            " JOIN r ON r.owner_file_id = h.owner_file_id AND r.bstart >= h.bstart AND r.bend <= h.bend"
            " JOIN c ON c.node_id = r.dst_node_id",
            {
                "e": edges(("CALLS_NAME",)),
                "q": nodes(("QUALIFIED_NAME",), name=("type",)),
                "h": edges(("HAS_ARGUMENT",)),
                "r": edges(("REFERS_TO",)),
                "c": nodes(("CLASS",)),
            },
            order=("dst_node_id",),
        )
    )


def _decorators(reader: Reader) -> list[Row]:
    """Return definitions, each with a decorator that may register it."""
    rows = reader.rows(
        Query(
            "SELECT e.dst_node_id, d.name, q.qualname FROM e JOIN d ON d.node_id = e.src_node_id"
            " LEFT JOIN s ON s.file_id = d.file_id AND s.bstart = d.bstart AND s.bend = d.bend"
            " LEFT JOIN r ON r.src_node_id = coalesce(s.node_id, d.node_id)"
            " LEFT JOIN q ON q.node_id = r.dst_node_id",
            {
                "e": edges(("DECORATES",)),
                "d": nodes(("DECORATOR",)),
                "s": nodes(("CALLSITE",)),
                "r": edges(("CALLS", "CALLS_NAME", "INSTANTIATES")),
                "q": nodes(("QUALIFIED_NAME", "FUNCTION", "CLASS")),
            },
            order=("dst_node_id", "name", "qualname"),
        )
    )
    plain = match_any(PLAIN_DECORATORS)
    return [(node, name) for node, name, callee in rows if not plain.fullmatch(callee or f"builtins.{name}")]


def read_stubs(reader: Reader, candidates: Sequence[Definition]) -> frozenset[str]:
    """Return the functions whose body is only `...` or `raise NotImplementedError`."""
    functions = tuple(each.node_id for each in candidates if each.kind == "FUNCTION")
    if not functions:
        return frozenset()
    paths = tuple(sorted({each.path for each in candidates}))
    rows = reader.rows(
        Query(
            "SELECT x.src_node_id, c.subkind, max(t.subkind), max(r.name) FROM x"
            " JOIN e ON e.src_node_id = x.dst_node_id AND e.role = 'body'"
            " JOIN c ON c.node_id = e.dst_node_id"
            " LEFT JOIN t ON t.file_id = c.file_id AND t.bstart = c.bstart AND t.bend = c.bend"
            " LEFT JOIN r ON r.file_id = c.file_id AND r.bstart > c.bstart AND r.bend <= c.bend"
            " GROUP BY x.src_node_id, c.node_id, c.subkind",
            {
                "x": Slice("cpg_edges_by_src", edge_kind=("SYNTAX_OF",), src_node_id=functions),
                "e": edges(("AST_PARENT_OF",), path=paths),
                "c": nodes(("AST_NODE",), path=paths),
                "t": nodes(("LITERAL",), path=paths),
                "r": nodes(("NAME_REF",), path=paths, name=("NotImplementedError",)),
            },
        )
    )
    bodies = _group((node, (kind, literal, name)) for node, kind, literal, name in rows)
    return frozenset(node for node, body in bodies.items() if _is_stub(body))


def _is_stub(body: Sequence[tuple[str, str | None, str | None]]) -> bool:
    """Whether statements (kind, literal that it is, name in it) do nothing on purpose.

    >>> _is_stub([("Expr", "ellipsis", None)]), _is_stub([("Pass", None, None)])
    (True, False)
    """
    raises = [kind == "Raise" and name is not None for kind, _, name in body]
    dots = [literal == "ellipsis" for _, literal, _ in body]
    texts = [kind == "Expr" and literal == "str" for kind, literal, _ in body]
    return any(raises + dots) and all(map(any, zip(raises, dots, texts, strict=True)))


def _reexported(reader: Reader) -> list[Row]:
    """Return definitions that modules re-export, with the names of these modules."""
    return reader.rows(
        Query(
            "SELECT e.dst_node_id, m.qualname FROM e JOIN m ON m.node_id = e.src_node_id",
            {"e": edges(("RE_EXPORTS",)), "m": nodes(("MODULE",))},
        )
    )


def _applications(reader: Reader, entries: Iterable[EntryPoint]) -> frozenset[Key]:
    """Return repositories and top packages that answer requests of other frameworks and have no `__all__`.

    The repository makes an application, outside of its tests and examples.
    """
    made = match_any(APPLICATIONS)
    programs = {
        repo
        for repo, name, path in reader.rows(
            Query(
                "SELECT DISTINCT e.repo_id, q.qualname, e.path FROM e JOIN q ON q.node_id = e.dst_node_id",
                {"e": edges(("CALLS_NAME", "INSTANTIATES")), "q": nodes(("QUALIFIED_NAME", "CLASS"))},
            )
        )
        if made.fullmatch(name) and not is_test(path, "") and EXAMPLES.isdisjoint(path.split("/"))
    }
    tops = reader.rows(
        Query(
            "SELECT m.repo_id, m.qualname, max(a.node_id) FROM m LEFT JOIN a ON a.file_id = m.file_id"
            " WHERE instr(m.qualname, '.') = 0 GROUP BY 1, 2",
            {"a": nodes(("NAME_REF",), name=("__all__",)), "m": nodes(("MODULE",))},
        )
    )
    own = {(repo, name) for repo, name, _ in tops}
    serving = {
        (each.repo_id, each.symbol.partition(".")[0])
        for each in entries
        if each.kind in ("http", "websocket")
        and each.confidence > GUESSED_ROUTE
        and each.repo_id in programs
        and (each.repo_id, each.framework) not in own
    }
    return frozenset(serving - {(repo, name) for repo, name, exports in tops if exports})


def _loaders(reader: Reader) -> list[Row]:
    """Return repositories that import modules by computed names, what these begin with, and places."""
    loaders = ", ".join(f"'{name}'" for name in MODULE_LOADERS)
    begins = "trim(BOTH '.' FROM substr(max(t.name), 2, length(max(t.name)) - 2))"
    return reader.rows(
        Query(
            f"SELECT e.repo_id, coalesce({begins}, '') AS text, e.path, e.line FROM e"
            " JOIN q ON q.node_id = e.dst_node_id"
            " LEFT JOIN h ON h.src_node_id = e.src_node_id AND h.ordinal = 0"
            " LEFT JOIN t ON t.file_id = h.owner_file_id AND t.bstart >= h.bstart AND t.bend <= h.bend"
            " AND t.subkind = 'str'"
            f" WHERE q.qualname IN ({loaders}) GROUP BY e.repo_id, e.path, e.line, h.bstart, h.bend"
            # A literal that is the whole argument is no computed name.
            " HAVING coalesce(max(t.bend - t.bstart), 0) < coalesce(h.bend - h.bstart, 1)",
            {
                "e": edges(("CALLS_NAME",)),
                "q": nodes(("QUALIFIED_NAME",)),
                "h": edges(("HAS_ARGUMENT",)),
                "t": nodes(("LITERAL",)),
            },
            order=("repo_id", "path", "line"),
        )
    )


def _imported(reader: Reader) -> list[Row]:
    """Return repositories and files that import statements of other files name."""
    return reader.rows(
        Query(
            "SELECT DISTINCT n.repo_id, n.path FROM e JOIN n ON n.node_id = e.dst_node_id"
            " WHERE e.path <> n.path",
            {
                "e": edges(("IMPORTS_MODULE", "IMPORTS_NAME")),
                "n": nodes(("MODULE", "FUNCTION", "CLASS")),
            },
        )
    )


def _named_in_strings(reader: Reader) -> list[Row]:
    """Return repositories and files of modules below a package whose name is a string literal."""
    return reader.rows(
        Query(
            "SELECT DISTINCT m.repo_id, m.path FROM m JOIN t ON t.repo_id = m.repo_id"
            " AND substr(t.name, 2, length(t.name) - 2) = m.qualname"
            " WHERE t.subkind = 'str' AND instr(m.qualname, '.') > 0",
            {"m": nodes(("MODULE",)), "t": nodes(("LITERAL",))},
        )
    )


def _listed_names(reader: Reader) -> list[Row]:
    """Return files that list the names of a module, with the first such line."""
    return reader.rows(
        Query(
            "SELECT e.repo_id, e.path, min(e.line) FROM e JOIN q ON q.node_id = e.dst_node_id"
            " LEFT JOIN h ON h.src_node_id = e.src_node_id"
            " WHERE q.qualname IN ('builtins.globals', 'inspect.getmembers')"
            " OR (q.qualname IN ('builtins.vars', 'builtins.dir') AND h.src_node_id IS NULL)"
            " GROUP BY e.repo_id, e.path",
            {
                "e": edges(("CALLS_NAME",)),
                "q": nodes(("QUALIFIED_NAME",)),
                "h": edges(("HAS_ARGUMENT",)),
            },
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


def _unparsed(reader: Reader, repo_id: str | None) -> list[Row]:
    """Return repositories and files without a syntax tree."""
    return reader.rows(
        Query(
            "SELECT m.repo_id, m.path FROM m LEFT JOIN a ON a.file_id = m.file_id WHERE a.node_id IS NULL",
            {
                "m": nodes(("MODULE",), repo_id),
                "a": nodes(("AST_NODE",), repo_id, subkind=("Module",)),
            },
            order=("repo_id", "path"),
        )
    )


def _names_in_texts(reader: Reader, files: Collection[Key], names: frozenset[str]) -> list[Row]:
    """Return the lines of files where names occur."""
    if not files:
        return []
    return [
        (repo, name, path, 0, number)
        for repo, path, text in reader.rows(texts_query(files))
        if (repo, path) in files
        for number, line in enumerate(NEWLINE.split(text), 1)
        for name in sorted(names.intersection(IDENTIFIER.findall(line)))
    ]


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


def _code_in_texts(reader: Reader, candidates: Sequence[Definition], repo_id: str | None) -> list[Row]:
    """Return string literals with a call of a private name, such as templates of code."""
    names = {each.key for each in candidates if each.name.startswith("_")}
    rows = reader.rows(
        Query(
            "SELECT t.repo_id, t.name, t.path, t.bstart, t.line FROM t"
            " LEFT JOIN d ON d.file_id = t.file_id AND d.bstart = t.bstart"
            " WHERE t.subkind = 'str' AND d.node_id IS NULL"
            " AND instr(t.name, '_') > 0 AND instr(t.name, '(') > 0",
            {"t": nodes(("LITERAL",), repo_id), "d": nodes(("DOCSTRING",), repo_id)},
            order=("repo_id", "path", "bstart"),
        )
    )
    return [
        (repo, name, path, bstart, line)
        for repo, text, path, bstart, line in rows
        for name in sorted(set(CALLED_NAME.findall(text)))
        if (repo, name) in names
    ]


def _outside(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Row]:
    """Return the attributes of given names of objects from outside, which may be others at run time."""
    return reader.rows(
        Query(
            "SELECT DISTINCT a.repo_id, a.name, a.path, a.bstart, a.line FROM a"
            " JOIN e ON e.src_node_id = a.node_id JOIN q ON q.node_id = e.dst_node_id"
            " WHERE substr(q.qualname, 1, 9) <> 'builtins.'",
            {
                "a": nodes(("ATTRIBUTE_REF",), repo_id, name=names),
                "e": edges(("REFERS_TO",)),
                "q": nodes(("QUALIFIED_NAME",)),
            },
            order=("repo_id", "name", "path", "bstart"),
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


def _namesakes(reader: Reader, candidates: Sequence[Definition]) -> list[Row]:
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
