"""List the identifiers of a file and what each refers to.

    names = file_names(reader, "shop", "shop/cart.py")
    names.uses[0]           # NameUse(bstart=12, bend=17, ..., targets=(Target("shop.price.Price", ...),))
    names.definitions[0]    # FileDefinition(kind="CLASS", symbol="shop.cart.Cart", line=9, ...)

A name, attribute or import has the definitions it refers to; a variable of the same file has the binding that
it reads or writes. Several targets are alternatives, the most certain first; none means that it could not be
resolved (`unresolved_reason`). An import has the imported name and, as `IMPORTS_MODULE`, its module.

Tests: `tests/unit/query/test_identifiers.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from codeanatomy.query.engines.statements import Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.symbols import KINDS
from codeanatomy.query.walks.reachability import edges_at

USES = ("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS")
LOCAL = ("CLASS", "FUNCTION", "PARAMETER", "BINDING", "MODULE")
# The targets of the first kind of edges that a name has are those it refers to.
RELATIONS = (("REFERS_TO", "IMPORTS_NAME"), ("IMPORTS_MODULE",), ("WRITES", "DELETES", "READS"))
EDGE_KINDS = tuple(kind for kinds in RELATIONS for kind in kinds)
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


class Target(Struct, frozen=True):
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
    targets: tuple[Target, ...]
    # Of an import of a name: the module that it is imported from.
    modules: tuple[Target, ...] = ()


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
        {"e": edges((*EDGE_KINDS, "DEFINES_BINDING"), repo_id, path=(path,))},
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


def _place(row: Row) -> tuple[int, int, str]:
    return row[7] or 0, -(row[8] or 0), row[0]


def _uses(reader: Reader, repo_id: str, rows: Iterable[Row], leading: Iterable[Row]) -> list[NameUse]:
    """Combine the identifiers of a file with what their edges lead to."""
    assigned: dict[str, int] = {}
    edges_from: dict[str, list[Row]] = {}
    for edge in leading:
        kind, source, target, line, *_ = edge
        if kind == "DEFINES_BINDING":
            assigned[target] = min(line or 0, assigned.get(target, line or 0))
        else:
            edges_from.setdefault(source, []).append(edge)
    known = {row[0]: row for row in rows if row[1] in LOCAL}
    # An attribute may be assigned in another file than that of its class.
    assigned = {node: line for node, line in assigned.items() if node in known}
    wanted = {edge[2] for several in edges_from.values() for edge in several} - known.keys()
    others = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, n.name, coalesce(n.qualname, n.name), n.path, n.line"
        " FROM n",
        {"n": nodes(KINDS, repo_id, node_id=sorted(wanted))},
    )
    known |= {row[0]: row for row in reader.rows(others)} if wanted else {}
    uses: list[NameUse] = []
    for node, kind, subkind, name, _, _, _, bstart, bend in rows:
        if kind in USES and bstart is not None:
            several = edges_from.get(node, [])
            groups = [_targets(several, kinds, known, assigned) for kinds in RELATIONS]
            uses.append(
                NameUse(node, kind, subkind, name, bstart, bend, next(filter(None, groups), ()), groups[1])
            )
    return sorted(uses, key=lambda use: (use.bstart, use.bend, use.node_id))


def _targets(
    several: Iterable[Row], kinds: Collection[str], known: Mapping[str, Row], assigned: Mapping[str, int]
) -> tuple[Target, ...]:
    """Return the targets of edges of some kinds, the most certain first."""
    targets: dict[str, Target] = {}
    for relation, _, target, _, confidence, method in several:
        if relation in kinds and target in known:
            _, kind, subkind, _, symbol, path, line, *_ = known[target]
            made = Target(
                target,
                kind,
                subkind,
                symbol,
                path,
                line or assigned.get(target),
                relation,
                confidence,
                method,
            )
            if target not in targets or confidence > targets[target].confidence:
                targets[target] = made
    return tuple(sorted(targets.values(), key=lambda each: (-each.confidence, each.symbol, each.node_id)))
