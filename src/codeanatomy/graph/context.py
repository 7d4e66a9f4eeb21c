"""What the rules of the graph stage share about a file: ids, the syntax tree, and what stands where.

    context = Context(file)
    context.id_at("CALLSITE", 4, 9)              # as `nodes.node_id`, remembered
    context.libcst("refs")                       # LibCST's list, or the tree's where LibCST is silent
    context.definitions[105, 300]                # the function or class with that span

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from codeanatomy.graph.ast_fallback import lists_of_tree
from codeanatomy.graph.file_view import SPAN, Columns, File, columns_of, each
from codeanatomy.graph.syntax import DEFINITIONS, Syntax
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import PREFIXES, module_id, node_id, node_id_maker

LIBCST = "libcst_files_v1"
RELATIONS = "relations_v1"
# Relations that lists are made of, beside the edges that all of them become.
LISTED_KINDS = frozenset(
    {
        "DECLARES_MODULE",
        "OWNS_SCOPE",
        "SCOPE_PARENT",
        "SCOPE_BINDS",
        "BINDING_RESOLVES_TO",
        "READS",
        "WRITES",
    }
)
# Of these, lists use what is referred to by its name.
NAMED_KIND = "REFERS_TO"
INITS = ("__init__.py", "__init__.pyi")
MESSAGE_CHARS = 1000
T = TypeVar("T")


class Definition(NamedTuple):
    """A function, lambda or class."""

    kind: str
    node_id: str
    subkind: str | None
    name: str
    qualname: str
    container_id: str
    bstart: int | None
    bend: int | None
    line: int | None
    ast_id: int | None

    @property
    def named(self) -> tuple[Any, ...]:
        """What every list of definitions begins with: `definitions.NAMED`."""
        return self.node_id, self.name, self.qualname, self.bstart, self.bend, self.line, self.ast_id


class Context:
    """A file on its way into the graph."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.syntax = Syntax(file.file_id, file.list("ast_files_v1", "nodes"))
        self._ids: dict[tuple[str, int | None, int | None], str] = {}
        self._makers: dict[str, Callable[[int, int], str]] = {}
        self._made: dict[Callable[[Context], Any], Any] = {}
        self.module_id = module_id(file.file_id)
        # Lists that could not be made, and why.
        self.failures: list[str] = []

    def id_at(self, kind: str, bstart: int | None, bend: int | None) -> str:
        """The id of the node of a kind at a place."""
        key = (kind, bstart, bend)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = self._made_id(kind, bstart, bend)
        return found

    def _made_id(self, kind: str, bstart: int | None, bend: int | None) -> str:
        if bstart is None or bend is None:
            return node_id(kind, self.file.file_id, bstart, bend)
        if kind not in self._makers:
            self._makers[kind] = node_id_maker(kind, self.file.file_id)
        return self._makers[kind](bstart, bend)

    def once(self, make: Callable[[Context], T]) -> T:
        """What a function says of this file; it is asked once."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    def attempt(self, name: str, make: Callable[[Context], Mapping[str, T]]) -> Mapping[str, T]:
        """What a function says of this file; a bug of ours, or a strange file, costs that and no more."""
        try:
            return self.once(make)
        except Exception as error:  # noqa: BLE001
            self.failures.append(f"{name}: {type(error).__name__}: {error}"[:MESSAGE_CHARS])
            return {}

    def shared_id(self, kind: str, *key: str) -> str:
        """The id of a node of the repository."""
        return stable_id(PREFIXES[kind], self.file.repo_id, *key)

    @cached_property
    def _of_tree(self) -> dict[str, Columns]:
        return lists_of_tree(self.syntax, self.file)

    def libcst(self, name: str) -> Columns:
        """A list of LibCST's; of the syntax tree where LibCST said nothing."""
        found = self.file.list(LIBCST, name)
        return found or (self._of_tree.get(name, {}) if len(self.syntax) else {})

    @cached_property
    def relations(self) -> dict[str, Columns]:
        """The file's relations by kind."""
        rows = self.file.rows(RELATIONS)
        if not rows:
            return {}
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, kind in enumerate(rows["relation_kind"]):
            places[kind].append(place)
        return {
            kind: {name: [column[place] for place in found] for name, column in rows.items()}
            for kind, found in places.items()
        }

    def listed(self, kind: str) -> Columns:
        """The relations of a kind, for a list that is made of them: one that `links.told` knows of."""
        if kind not in LISTED_KINDS and kind != NAMED_KIND:
            raise ValueError(f"no list is made of {kind}")
        return self.relations.get(kind, {})

    @cached_property
    def unresolved(self) -> dict[str, str]:
        """Why nothing was found, by the node that asks."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for src, dst, reason in each(self.file.rows(RELATIONS), "src_id", "dst_id", "reason"):
            if dst is None:
                found[src].add(reason)
        return {src: ", ".join(sorted(reasons)) for src, reasons in found.items()}

    @cached_property
    def module_name(self) -> str:
        """The dotted name of the module; the path where nobody has named it."""
        named = self.listed("DECLARES_MODULE").get("dst_qname")
        return named[0] if named else self.file.path

    @cached_property
    def definitions(self) -> dict[tuple[int | None, int | None], Definition]:
        """Functions and classes by their spans; those of the tree first, in its order."""
        found: dict[tuple[int | None, int | None], Definition] = {}
        self._add_of_tree(found)
        self._add_of_libcst(found)
        return found

    def _add_of_tree(self, found: dict[tuple[int | None, int | None], Definition]) -> None:
        syntax = self.syntax
        lambdas = _lambda_names(syntax)
        known: dict[int, Definition] = {}
        for node, ast_kind in enumerate(syntax.kind):
            if ast_kind not in DEFINITIONS:
                continue
            outer = known.get(syntax.container(node))
            kind = "CLASS" if ast_kind == "ClassDef" else "FUNCTION"
            name = lambdas[node] if ast_kind == "Lambda" else syntax.name[node] or ""
            start, end = syntax.bstart[node], syntax.bend[node]
            known[node] = Definition(
                kind,
                self.id_at(kind, start, end),
                _subkind(ast_kind, outer),
                name,
                f"{outer.qualname if outer else self.module_name}.{name}",
                outer.node_id if outer else self.module_id,
                start,
                end,
                syntax.line[node],
                node,
            )
            found.setdefault((start, end), known[node])

    def _add_of_libcst(self, found: dict[tuple[int | None, int | None], Definition]) -> None:
        """What CPython has not placed or could not parse."""
        columns = ("kind", "name", "is_async", "container_bstart", "container_bend", "def_bstart", "def_bend")
        number = 0
        for kind, name, is_async, *outer_span, start, end, line in each(
            self.libcst("defs"), *columns, "line"
        ):
            if (start, end) in found:
                continue
            if (None, None) in found and kind == "lambda":
                # In an f-string: the tree has it without a place.
                found[start, end] = found[None, None]
                continue
            outer = found.get((outer_span[0], outer_span[1])) if outer_span[0] is not None else None
            number += kind == "lambda"
            own = name or f"<lambda{number}>"
            ast_kind = {"class": "ClassDef", "lambda": "Lambda"}.get(kind, "FunctionDef")
            graph_kind = "CLASS" if kind == "class" else "FUNCTION"
            found[start, end] = Definition(
                graph_kind,
                self.id_at(graph_kind, start, end),
                _subkind("AsyncFunctionDef" if is_async else ast_kind, outer),
                own,
                f"{outer.qualname if outer else self.module_name}.{own}",
                outer.node_id if outer else self.module_id,
                start,
                end,
                line,
                None,
            )

    def owner_id(self, bstart: int | None, bend: int | None) -> str | None:
        """The definition with a span; the module for none."""
        if bstart is None:
            return self.module_id
        found = self.definitions.get((bstart, bend))
        return found.node_id if found else None

    def with_askers(self, kind: str, rows: list[tuple[Any, ...]], *names: str) -> dict[str, Any]:
        """Rows as columns; and a row for each node of the kind that only relations know."""
        known = {row[0] for row in rows}
        columns = ("src_kind", "src_id", "bstart", "bend", "line")
        for src_kind, src, *place in each(self.file.rows(RELATIONS), *columns):
            if src_kind == kind and src not in known:
                known.add(src)
                more = {"node_id": src, **dict(zip(SPAN, place, strict=True))}
                rows.append(tuple(more.get(name) for name in names))
        found = columns_of(rows, *names)
        found["unresolved"] = [self.unresolved.get(node) for node in found["node_id"]]
        return found


def _subkind(ast_kind: str, outer: Definition | None) -> str | None:
    if ast_kind == "ClassDef":
        return None
    if ast_kind == "Lambda":
        return "lambda"
    own = "method" if outer is not None and outer.kind == "CLASS" else "function"
    return f"async_{own}" if ast_kind == "AsyncFunctionDef" else own


def _lambda_names(syntax: Syntax) -> dict[int, str]:
    """Lambdas by number in the body they stand in, in the order of the source: `<lambda1>`, `<lambda2>`."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for node, kind in enumerate(syntax.kind):
        if kind == "Lambda":
            start = syntax.bstart[node]
            found[syntax.container(node)].append((node if start is None else start, node))
    return {
        node: f"<lambda{number}>"
        for nodes in found.values()
        for number, (_, node) in enumerate(sorted(nodes), start=1)
    }
