"""Check what must hold of every graph, and look up its nodes and edges. No JVM.

assert problems_of(graph) == []
assert text_problems_of(graph, sources) == []
view = View(graph)
view.targets("CONTAINS", view.one("MODULE", "main"))

Tests: `tests/unit/graph/test_graph_checks.py`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind, Profile
from codeanatomy.catalog.kinds.spec import Count
from codeanatomy.file_view import FileView
from codeanatomy.graph.merge import merge_shared_rows
from codeanatomy.graph.rows import REPEAT_KEY, TABLES
from oracles.id_oracle import id_problems
from support import corpus
from support.folders import CASES
from support.graph_stage import Graph, graph_files, rows_of, whole_graphs
from support.normalize_stage import source_of
from support.relate_stage import sources_below

Row: TypeAlias = dict[str, Any]
Sources: TypeAlias = Mapping[str, str | bytes]

GOLDEN = CASES / "golden"
CONSTRUCTS = sorted(folder.name for folder in GOLDEN.glob("[a-z]*") if folder.is_dir())
CONFIDENCES = {1.0, 0.9, 0.7, 0.5, 0.3}
PYTHON_TYPES = {"string": str, "int": int, "float": float, "bool": bool, "json": str}
VALUES = [f"value_{kind}" for kind in PYTHON_TYPES]
# Kinds of nodes whose numbers follow the source.
IN_SOURCE_ORDER = {
    "ARGUMENT",
    "ATTRIBUTE_REF",
    "CALLSITE",
    "COMMENT",
    "DECORATOR",
    "IMPORT_ALIAS",
    "LITERAL",
    "NAME_REF",
}
# Kinds of edges between nodes of one definition; roles of those that lead to a scope of no definition.
OF_ONE_DEFINITION = {"DECLARES_MODULE", "HAS_DOCSTRING", "HAS_PARAMETER", "OWNS_SCOPE", "SCOPE_BINDS"}
NO_DEFINITIONS = {"type_parameters", "type_variable", "type_alias", "annotation"}
KEY = r"\w+:[\w-]{16}"
# Ids of nodes, by the key that their kind declares.
RECIPES = {
    ("definition",): re.compile(KEY),
    ("definition", "name"): re.compile(rf"{KEY}\.[^;]+", re.DOTALL),
    ("definition", "number"): re.compile(rf"{KEY}\.([0-9]{{6,}}|unplaced)"),
    ("definition", "kind", "code", "number"): re.compile(rf"{KEY}\.\w+\.[^;]*\.[0-9]{{6,}}"),
}


# Graphs that several tests look at


@cache
def sources_of(name: str) -> Sources:
    """The sources of a golden or of a pinned package."""
    return sources_below(GOLDEN / name if name in CONSTRUCTS else corpus.package(name))


@cache
def files_of(name: str) -> list[FileView]:
    """Return the files of a golden or of a pinned package, as the graph stage gets them."""
    return graph_files(sources_of(name), {}, name)


@cache
def built(name: str, profile: Profile = "full") -> Graph:
    """The graph of a golden or of a pinned package."""
    return graph_from(files_of(name), profile)


def graph_from(files: Iterable[FileView], profile: Profile = "full") -> Graph:
    """Build the graph of files, as the graph stage does."""
    made = list(whole_graphs(files, profile))
    tables = [*(each.tables for each in made), merge_shared_rows(each.shared for each in made)]
    return Graph(*(rows_of(name, (each[name] for each in tables)) for name in TABLES))


class View:
    """Nodes by id, kind and name; edges by kind and end; properties by entity."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: dict[str, Row] = {row["node_id"]: row for row in graph.nodes}
        self.by_kind: defaultdict[str, list[Row]] = defaultdict(list)
        self.edges: defaultdict[str, list[Row]] = defaultdict(list)
        self._from: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._to: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._props: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for row in graph.nodes:
            self.by_kind[row["node_kind"]].append(row)
        for row in graph.edges:
            self.edges[row["edge_kind"]].append(row)
            self._from[row["edge_kind"], row["src_node_id"]].append(row)
            self._to[row["edge_kind"], row["dst_node_id"]].append(row)
        for row in graph.props:
            self._props[row["entity_id"]][row["prop_key"]] = row[f"value_{row['value_type']}"]

    def all(self, kind: str, **cells: Any) -> list[Row]:
        """The nodes of a kind with these cells, in the order of their places."""
        found = [row for row in self.by_kind[kind] if all(row[name] == cells[name] for name in cells)]
        return sorted(found, key=lambda row: (row["path"] or "", row["bstart"] or 0, row["bend"] or 0))

    def one(self, kind: str, name: str | None = None, **cells: Any) -> Row:
        """The only node of a kind with that name and these cells."""
        found = self.all(kind, **({"name": name} if name is not None else {}), **cells)
        assert len(found) == 1, (kind, name, cells, found)
        return found[0]

    def out(self, kind: str, node: Row) -> list[Row]:
        """The edges of a kind that leave a node, in their order."""
        return sorted(self._from[kind, node["node_id"]], key=_place)

    def into(self, kind: str, node: Row) -> list[Row]:
        """The edges of a kind that arrive at a node, in their order."""
        return sorted(self._to[kind, node["node_id"]], key=_place)

    def targets(self, kind: str, node: Row) -> list[Row]:
        """Where the edges of a kind lead to from a node."""
        return [self.nodes[edge["dst_node_id"]] for edge in self.out(kind, node)]

    def sources(self, kind: str, node: Row) -> list[Row]:
        """Where the edges of a kind come from to a node."""
        return [self.nodes[edge["src_node_id"]] for edge in self.into(kind, node)]

    def props(self, entity: Row) -> dict[str, Any]:
        """The properties of a node or edge."""
        return self._props.get(entity.get("node_id") or entity["edge_id"], {})

    def edges_told(self, kind: str, *fields: str) -> set[tuple[Any, ...]]:
        """Edges of a kind as (name of the source, name of the target, fields...)."""
        return {
            (
                self.nodes[edge["src_node_id"]]["name"],
                self.nodes[edge["dst_node_id"]]["name"],
                *(edge[field] for field in fields),
            )
            for edge in self.edges[kind]
        }


def _place(edge: Row) -> tuple[int, int, str]:
    return (-1 if edge["ordinal"] is None else edge["ordinal"], edge["bstart"] or 0, edge["edge_id"])


def names(rows: Iterable[Row], field: str = "name") -> list[Any]:
    """A cell of each of the rows."""
    return [row[field] for row in rows]


# Checks


def problems_of(graph: Graph, profile: Profile = "full", limit: int = 20) -> list[str]:
    """Return the violations of the catalogue in a graph; the first of each kind."""
    strange = [*_strange(graph.nodes, NODE_KINDS, "node_kind", profile)]
    strange += _strange(graph.edges, EDGE_KINDS, "edge_kind", profile)
    if strange:
        return strange[:limit]
    found: dict[str, str] = {}
    for check in CHECKS:
        for problem, row in check(graph):
            found.setdefault(problem, f"{problem}: {row}")
    return list(found.values())[:limit]


def _strange(
    rows: Iterable[Row], kinds: Mapping[str, NodeKind | EdgeKind], column: str, profile: Profile
) -> Iterator[str]:
    """Kinds that are not declared, or not of the profile."""
    for name in sorted({row[column] for row in rows}):
        if name not in kinds or profile not in kinds[name].profiles:
            yield f"{name} is not of profile {profile}"


Complaints: TypeAlias = Iterator[tuple[str, Any]]


def _columns(graph: Graph) -> Complaints:
    """Types and what is never null are as declared."""
    for name, rows in zip(TABLES, graph, strict=True):
        table = catalog.table(name)
        never = [column.name for column in table.columns if not column.nullable]
        expected = {column.name for column in table.readable_columns}
        for row in rows:
            if row.keys() != expected:
                yield f"{name} has other columns", row
            for column in never:
                if row[column] is None:
                    yield f"{name}.{column} is null", row


def _identity(graph: Graph) -> Complaints:
    for name, key, rows in (("node", "node_id", graph.nodes), ("edge", "edge_id", graph.edges)):
        for found, count in Counter(row[key] for row in rows).items():
            if count > 1:
                yield f"{name} {count} times", found
    for row in graph.nodes:
        kind = NODE_KINDS[row["node_kind"]]
        if not row["node_id"].startswith(f"{kind.prefix}:") or ";" in row["node_id"]:
            yield f"{kind.name}: prefix", row
        recipe = RECIPES.get(kind.key)
        if recipe is not None and not recipe.fullmatch(row["node_id"]):
            yield f"{kind.name}: id is not made of {', '.join(kind.key)}", row
    equals: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in graph.edges:
        equals[row["edge_kind"], row["src_node_id"], row["dst_node_id"]].append(row)
    for rows in equals.values():
        rows.sort(key=lambda row: [(row[part] is not None, row[part]) for part in REPEAT_KEY])
        if [row["repeat"] for row in rows] != list(range(len(rows))):
            yield f"{rows[0]['edge_kind']}: edges of the same ends are not numbered", rows[0]


def _numbers(graph: Graph) -> Complaints:
    """Numbers of nodes follow the source within a definition."""
    numbered = [
        row for row in graph.nodes if row["node_kind"] in IN_SOURCE_ORDER and row["bstart"] is not None
    ]
    numbered.sort(key=lambda row: row["node_id"])
    for one, other in pairwise(numbered):
        of_one_definition = one["node_id"].partition(".")[0] == other["node_id"].partition(".")[0]
        if of_one_definition and (one["bstart"], -one["bend"]) > (other["bstart"], -other["bend"]):
            yield f"{one['node_kind']}: numbers are not in source order", one


def _keys(graph: Graph) -> Complaints:
    """A definition and what it has once, or has by name, share its key; a scope and its bindings, too."""
    # Those in f-strings, before Python 3.12: what belongs to them is not known.
    unplaced = {row["node_id"] for row in graph.nodes if row["bstart"] is None}
    has_code: dict[str, bool] = {}
    for row in graph.edges:
        kind, src, dst = row["edge_kind"], row["src_node_id"], row["dst_node_id"]
        # Type parameters have scopes of their own.
        is_known = src not in unplaced or kind in ("DECLARES_MODULE", "SCOPE_BINDS")
        if kind in OF_ONE_DEFINITION and is_known and row["role"] not in NO_DEFINITIONS:
            if _key(src) != _key(dst):
                yield f"{kind}: ends of two definitions", row
        # The compiler copies the code of a `finally`, with what is defined in it.
        elif kind == "HAS_CODE_UNIT" and is_known:
            has_code[src] = has_code.get(src, False) or _key(src) == _key(dst)
    for node, has_own in has_code.items():
        if not has_own:
            yield "HAS_CODE_UNIT: no code with the key of the definition", node


def _key(node: str) -> str:
    return node.partition(":")[2].partition(".")[0]


def _nodes(graph: Graph) -> Complaints:
    """Check the columns that the catalogue declares for a kind."""
    files = {row["node_id"]: row["path"] for row in graph.nodes if row["node_kind"] == "FILE"}
    for row in graph.nodes:
        kind = NODE_KINDS[row["node_kind"]]
        is_placed = row["bstart"] is not None
        # The compiler knows of some instructions the line only.
        if is_placed != (row["bend"] is not None) or (is_placed and row["line"] is None):
            yield f"{kind.name}: half a place", row
        if is_placed and not 0 <= row["bstart"] <= row["bend"]:
            yield f"{kind.name}: its end comes first", row
        if (kind.placed == "always" and not is_placed) or (kind.placed == "never" and is_placed):
            yield f"{kind.name}: placed {kind.placed}", row
        if row["file_id"] != row["owner_file_id"] and row["owner_file_id"] is not None:
            yield f"{kind.name}: of another file", row
        yield from _owned(kind.name, kind.owner, row)
        if row["file_id"] is not None and files.get(row["file_id"]) != row["path"]:
            yield f"{kind.name}: path of another file", row
        if row["name"] == "not_graphed":
            yield "a list of facts could not be made", row
        for column, said in (("subkind", kind.subkind), ("name", kind.named), ("qualname", kind.qualified)):
            if not said and row[column] is not None:
                yield f"{kind.name}: {column} is not declared", row


def _owned(name: str, owner: str, row: Row) -> Complaints:
    if owner != "either" and (row["owner_file_id"] is not None) != (owner == "file"):
        yield f"{name}: owner is not the {owner}", row


def _edges(graph: Graph) -> Complaints:
    """Check ends, and the columns that the catalogue declares for a kind."""
    kinds = {row["node_id"]: row["node_kind"] for row in graph.nodes}
    for row in graph.edges:
        kind = EDGE_KINDS[row["edge_kind"]]
        src, dst = kinds.get(row["src_node_id"]), kinds.get(row["dst_node_id"])
        if src is None or dst is None:
            yield f"{kind.name}: {src} -> {dst}, an end is missing", row
        elif not any(src in ends.src and dst in ends.dst for ends in kind.ends):
            yield f"{kind.name}: {src} -> {dst} is not allowed", row
        if not row["origin"] or not row["rule_name"]:
            yield f"{kind.name}: nobody says so", row
        if row["confidence"] not in CONFIDENCES:
            yield f"{kind.name}: confidence {row['confidence']}", row
        yield from _owned(kind.name, kind.owner, row)
        if (row["bstart"] is None) != (row["bend"] is None):
            yield f"{kind.name}: half a place", row
        for column, said in (("role", kind.role), ("ordinal", kind.ordinal)):
            if not said and row[column] is not None:
                yield f"{kind.name}: {column} is not declared", row


def _counts(graph: Graph) -> Complaints:
    """How many edges of a kind leave a node and arrive at it."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for row in graph.nodes:
        nodes[row["node_kind"]].append(row["node_id"])
    for end in ("src", "dst"):
        found = Counter((row["edge_kind"], row[f"{end}_node_id"]) for row in graph.edges)
        for (name, node), count in found.items():
            allowed: Count = getattr(EDGE_KINDS[name], f"per_{end}")
            if count > 1 and allowed != "many":
                yield f"{name}: {count} at one {end}", node
        for kind in EDGE_KINDS.values():
            if getattr(kind, f"per_{end}") != "one":
                continue
            for name in {name for ends in kind.ends for name in getattr(ends, end)}:
                for node in nodes[name]:
                    if not found[kind.name, node]:
                        yield f"{kind.name}: a {name} has none as {end}", node


def _properties(graph: Graph) -> Complaints:
    """Properties are declared, typed, and there where they are required."""
    kinds: dict[str, Any] = {row["node_id"]: NODE_KINDS[row["node_kind"]] for row in graph.nodes}
    kinds |= {row["edge_id"]: EDGE_KINDS[row["edge_kind"]] for row in graph.edges}
    told: defaultdict[str, set[str]] = defaultdict(set)
    for row in graph.props:
        kind = kinds.get(row["entity_id"])
        if kind is None:
            yield "a property of nothing", row
            continue
        if row["prop_key"] in told[row["entity_id"]]:
            yield f"{kind.name}.{row['prop_key']} twice", row
        told[row["entity_id"]].add(row["prop_key"])
        is_node = isinstance(kind, NodeKind)
        if (row["entity_kind"], row["node_kind"]) != (("node", kind.name) if is_node else ("edge", None)):
            yield f"{kind.name}.{row['prop_key']} is of another kind", row
        declared = {prop.name: prop.type for prop in kind.props}
        if declared.get(row["prop_key"]) != row["value_type"]:
            yield f"{kind.name}.{row['prop_key']} is {row['value_type']}", row
        elif type(row[f"value_{row['value_type']}"]) is not PYTHON_TYPES[row["value_type"]]:
            yield f"{kind.name}.{row['prop_key']} has a value of another type", row
        if sum(row[value] is not None for value in VALUES) != 1:
            yield f"{kind.name}.{row['prop_key']} has not one value", row
    every: list[NodeKind | EdgeKind] = [*NODE_KINDS.values(), *EDGE_KINDS.values()]
    required = {kind.name: {prop.name for prop in kind.props if prop.required} for kind in every}
    for entity, kind in kinds.items():
        if required[kind.name] - told.get(entity, set()):
            yield f"{kind.name} without a required property", entity


def _together(graph: Graph) -> Complaints:
    """The properties of an entity are those of its row in the other table."""
    inner = ("prop_key", "value_type", *VALUES)
    outer = ("repo_id", "entity_kind", "entity_id", "node_kind", "owner_file_id")
    grouped: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(graph.props, key=lambda row: row["prop_key"]):
        cells = {"entity_kind": row["entity_kind"], **{name: row[name] for name in inner}}
        grouped[tuple(row[name] for name in outer)].append(cells)
    fields = [field.name for field in catalog.table("cpg_props_map").column("props").fields]
    told = {}
    for row in graph.props_map:
        key = tuple(row[name] for name in outer)
        if key in told:
            yield "properties twice", row
        told[key] = row["props"]
    for key, rows in grouped.items():
        if told.get(key) != [{name: row[name] for name in fields} for row in rows]:
            yield "properties differ", (rows, told.get(key))
    for key in told.keys() - grouped.keys():
        yield "properties of nothing", key


CHECKS: tuple[Callable[[Graph], Complaints], ...] = (
    _columns,
    _identity,
    _numbers,
    _keys,
    _nodes,
    _edges,
    _counts,
    _properties,
    _together,
)

# Kinds whose whole text is their name.
SPELLED = frozenset({"NAME_REF", "ATTRIBUTE_REF", "PARAMETER", "TYPE_PARAM"})
# Kinds whose name is their text, cut.
CUT = frozenset({"DECORATOR", "TYPE_EXPR"})
HEADS = {
    "function": ("def",),
    "method": ("def",),
    "async_function": ("async def", "async"),
    "async_method": ("async def", "async"),
    "lambda": ("lambda",),
    None: ("class",),
}


def text_problems_of(graph: Graph, sources: Sources) -> list[str]:
    """Return the nodes whose text differs from the source below their span."""
    texts = {path: source_of(text, path) for path, text in sources.items()}
    wrong = []
    for row in graph.nodes:
        if row["bstart"] is None:
            continue
        source = texts[row["path"]]
        text = source.utf8[row["bstart"] : row["bend"]].decode()
        if not _says(row, text):
            wrong.append(f"{row['node_kind']} {row['subkind']} {row['name']!r} at {text[:60]!r}")
        starts = source.line_of(row["bstart"])
        if row["line"] != starts:
            wrong.append(f"{row['node_kind']} {row['name']!r}: line {row['line']}, not {starts}")
    return wrong


def id_problems_of(graph: Graph, sources: Sources) -> list[str]:
    """Return the nodes whose ids are not those that a walk over `ast` makes."""
    by_path: defaultdict[str, list[Row]] = defaultdict(list)
    for row in graph.nodes:
        if row["owner_file_id"] is not None:
            by_path[row["path"]].append(row)
    wrong = []
    for path, text in sources.items():
        repo_id = by_path[path][0]["repo_id"]
        wrong += [
            f"{path}: {problem}"
            for problem in id_problems(repo_id, path, source_of(text, path).utf8.decode(), by_path[path])
        ]
    return wrong


def _says(row: Row, text: str) -> bool:
    kind, name = row["node_kind"], row["name"]
    if kind in SPELLED:
        return bool(text == name)
    if kind in CUT:
        # Without LibCST the text of some is not known.
        return name is None or text.startswith(name[:20])
    if kind in ("FUNCTION", "CLASS"):
        return text.startswith(HEADS[row["subkind"]]) and (row["subkind"] == "lambda" or name in text)
    if kind == "CALLSITE":
        return text.endswith(")")
    if kind == "COMMENT":
        return text.startswith("#")
    if kind == "IMPORT_ALIAS":
        return text.replace(" ", "").endswith(name) or text.startswith(name)
    return True
