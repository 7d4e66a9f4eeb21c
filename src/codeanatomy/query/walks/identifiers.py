"""List the identifiers of a file and what each refers to.

    names = file_names(reader, "shop", "shop/cart.py")
    names.uses[0]           # NameUse(bstart=12, bend=17, ..., targets=(NameTarget("shop.price.Price", ...),))
    names.definitions[0]    # FileDefinition(kind="CLASS", symbol="shop.cart.Cart", line=9, ...)

A name, attribute or import has the definitions it refers to; a variable of the same file has the binding that
it reads or writes. Several targets are alternatives, the most certain first; none means that it could not be
resolved (`unresolved_reason`). An import has the imported name and, as `IMPORTS_MODULE`, its module.

Tests: `tests/unit/query/test_identifiers.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from msgspec import Struct

from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.query.engines.statements import Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.symbols import KINDS
from codeanatomy.query.walks.reachability import edges_at

USES = ("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS")
LOCAL = ("CLASS", "FUNCTION", "PARAMETER", "BINDING")
# The targets of the first kind of edges that a name has are those it refers to.
RELATIONS = (("REFERS_TO", "IMPORTS_NAME"), ("IMPORTS_MODULE",), ("WRITES", "DELETES", "READS"))
RANKS = {kind: rank for rank, kinds in enumerate(RELATIONS) for kind in kinds}
EVERYTHING = (0, 2**62)


class FileDefinition(Struct, frozen=True):
    """A class, function or parameter of a file."""

    node_id: str
    kind: str
    subkind: str | None
    name: str | None
    symbol: str
    line: int | None
    bstart: int
    bend: int


class NameTarget(Struct, frozen=True):
    """A definition that a name may refer to, and how it was resolved."""

    node_id: str
    kind: str
    subkind: str | None
    symbol: str
    path: str | None
    # Of a variable, its first assignment in the same file.
    line: int | None
    relation: str
    confidence: float
    method: str | None


class NameUse(Struct, frozen=True):
    """A name, attribute or import in the source."""

    node_id: str
    kind: str
    subkind: str | None
    name: str | None
    bstart: int
    bend: int
    # Alternatives, the most certain first.
    targets: tuple[NameTarget, ...]
    # Of an import of a name: the module that it is imported from.
    modules: tuple[NameTarget, ...] = ()


class FileNames(Struct, frozen=True):
    """The identifiers of a file, or of a part of it; definitions are those of the whole file."""

    uses: tuple[NameUse, ...]
    definitions: tuple[FileDefinition, ...]


def file_names(reader: Reader, repo_id: str, path: str, within: tuple[int, int] = EVERYTHING) -> FileNames:
    """Return the identifiers of a file that begin between two bytes, and its definitions."""
    in_file = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, n.name, coalesce(n.qualname, n.name), n.path, n.line,"
        " n.bstart, n.bend FROM n WHERE n.node_kind NOT IN ('NAME_REF', 'ATTRIBUTE_REF', 'IMPORT_ALIAS')"
        " OR n.bstart BETWEEN ? AND ?",
        {"n": nodes((*USES, *LOCAL), repo_id, path=(path,))},
        within,
    )
    of_names = Query(
        "SELECT e.edge_kind, e.src_node_id, e.dst_node_id, e.line, e.confidence, e.resolution_method FROM e"
        " WHERE e.edge_kind = 'DEFINES_BINDING' OR e.bstart BETWEEN ? AND ?",
        {"e": edges((*RANKS, "DEFINES_BINDING"), repo_id, path=(path,))},
        within,
    )
    # At the same time: both wait for files.
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.rows, of_names)
        rows = reader.rows(in_file)
        leading = reading.result()
    return FileNames(
        tuple(_uses(reader, repo_id, rows, leading)),
        tuple(
            FileDefinition(node, kind, subkind, name, symbol, line, bstart, bend)
            for node, kind, subkind, name, symbol, _, line, bstart, bend in sorted(rows, key=_place)
            if kind in ("CLASS", "FUNCTION", "PARAMETER") and bstart is not None
        ),
    )


def name_at(reader: Reader, repo_id: str, path: str, bstart: int) -> NameUse | None:
    """Return the name, attribute or import that begins at a byte of a file."""
    names = file_names(reader, repo_id, path, (bstart, bstart))
    return next(iter(names.uses), None)


def unresolved_reason(reader: Reader, node_id: str) -> str | None:
    """Return why a name could not be resolved, if that is recorded."""
    query = Query(
        "SELECT p.value_string FROM p",
        {"p": Slice("cpg_props", entity_kind=("node",), entity_id=(node_id,), prop_key=("unresolved",))},
    )
    return next((reason for (reason,) in reader.rows(query)), None)


def annotated_types(reader: Reader, ids: Collection[str]) -> dict[str, str]:
    """Return the annotated types of parameters, variables and results of functions, by node id."""
    variables = [node for node in ids if node.startswith("binding:")]
    assigned = Query(
        "SELECT e.src_node_id, e.dst_node_id FROM e", {"e": edges_at(variables, ("DEFINES_BINDING",), "dst")}
    )
    owners = {node: node for node in ids} | dict(reader.rows(assigned) if variables else ())
    query = Query(
        "SELECT e.src_node_id, t.name FROM e JOIN t ON t.node_id = e.dst_node_id",
        {"e": edges_at(sorted(owners), ("HAS_ANNOTATION",), "src"), "t": nodes(("TYPE_EXPR",))},
        order=("src_node_id", "name"),
    )
    return {owners[node]: text for node, text in reader.rows(query)} if owners else {}


def checked_type(reader: Reader, repo_id: str, path: str, use: NameUse) -> str | None:
    """Return the type that a type checker has inferred for a name or attribute, if one was run."""
    query = Query(
        "SELECT t.expression_types FROM t",
        {"t": Slice("type_checker_files_v1", repo_id=(repo_id,), path=(path,))},
    )
    ending = [
        each
        for (types,) in reader.rows(query)
        for each in types or ()
        # The expression of an attribute begins with its object.
        if each["bend"] == use.bend and (each["bstart"] < use.bstart) == (use.kind == "ATTRIBUTE_REF")
    ]
    nearest = max(ending, key=lambda each: each["bstart"], default=None)
    return nearest["type_repr"] if nearest and nearest["bstart"] <= use.bstart else None


def nodes_named(reader: Reader, repo_id: str, ids: Collection[str]) -> dict[str, Row]:
    """Return nodes by id: id, kind, subkind, name, qualified name, path, line; only their kinds are read."""
    prefixes = {node.partition(":")[0] for node in ids}
    kinds = [kind for kind in KINDS if NODE_KINDS[kind].prefix in prefixes]
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, n.name, coalesce(n.qualname, n.name), n.path, n.line"
        " FROM n",
        {"n": nodes(kinds, repo_id, node_id=sorted(ids))},
    )
    return {row[0]: row for row in reader.rows(query)} if kinds else {}


def _place(row: Row) -> tuple[int, int, str]:
    return row[7] or 0, -(row[8] or 0), row[0]


def _uses(reader: Reader, repo_id: str, rows: Iterable[Row], leading: Iterable[Row]) -> list[NameUse]:
    """Combine the identifiers of a file with what their edges lead to."""
    assigned: dict[str, int] = {}
    # By source: edges of the first kinds that it has, and those to modules.
    best: dict[str, tuple[int, list[Row]]] = {}
    modules: dict[str, list[Row]] = {}
    for edge in leading:
        kind, source, target, line, *_ = edge
        if kind == "DEFINES_BINDING":
            assigned[target] = min(line or 0, assigned.get(target, line or 0))
            continue
        if kind == "IMPORTS_MODULE":
            modules.setdefault(source, []).append(edge)
        rank = RANKS[kind]
        known_rank, several = best.get(source, (rank, []))
        if rank < known_rank or source not in best:
            best[source] = (rank, [edge])
        elif rank == known_rank:
            several.append(edge)
    known = {row[0]: row for row in rows if row[1] in LOCAL}
    # An attribute may be assigned in another file than that of its class.
    assigned = {node: line for node, line in assigned.items() if node in known}
    wanted = {edge[2] for edge in chain(*(each for _, each in best.values()), *modules.values())}
    known |= nodes_named(reader, repo_id, wanted - known.keys())
    return [
        NameUse(
            node,
            kind,
            subkind,
            name,
            bstart,
            bend,
            _targets(best[node][1], known, assigned) if node in best else (),
            _targets(modules[node], known, assigned) if node in modules else (),
        )
        for node, kind, subkind, name, _, _, _, bstart, bend in sorted(rows, key=_place)
        if kind in USES and bstart is not None
    ]


def _targets(
    several: Iterable[Row], known: Mapping[str, Row], assigned: Mapping[str, int]
) -> tuple[NameTarget, ...]:
    """Return the targets of edges, the most certain first."""
    targets: dict[str, NameTarget] = {}
    for relation, _, target, _, confidence, method in several:
        if target not in known or (target in targets and targets[target].confidence >= confidence):
            continue
        _, kind, subkind, _, symbol, path, line, *_ = known[target]
        line = line or assigned.get(target)
        targets[target] = NameTarget(target, kind, subkind, symbol, path, line, relation, confidence, method)
    if len(targets) < 2:
        return tuple(targets.values())
    return tuple(sorted(targets.values(), key=lambda each: (-each.confidence, each.symbol, each.node_id)))
