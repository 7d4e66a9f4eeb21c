"""Share ids, syntax tree, definitions and scopes of a file between the functions that list its facts.

    context = Context(file)
    context.id_at("CALLSITE", 4, 9)              # of the call with this span
    context.libcst("refs")                       # LibCST's list, or one from CPython's tree as a fallback
    context.definitions[105, 300]                # the function or class with that span
    context.syntax.first(4, 9, CALL)             # the outermost node of CPython's tree of these classes

Of the relations of the file only those of its scopes are looked at, which need no other file. Names of
definitions begin where that of their module ends (`.Cart.total`), because other files decide the name of the
module: `graph.resolution` adds it.

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from codeanatomy.file_view import Columns, FileView, columns_of, iter_rows
from codeanatomy.graph.reads import SPAN
from codeanatomy.graph.syntax import DEFINITIONS, Syntax, lists_from_ast
from codeanatomy.node_ids import PREFIXES, module_id, natural_id

AST, LIBCST = "ast_files_v1", "libcst_files_v1"
RELATIONS = "relations_v1"
# Origin of the relations that a file has by itself.
OF_SCOPES = "symtable"
MESSAGE_CHARS = 1000
T = TypeVar("T")


class GraphDefinition(NamedTuple):
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
        """The first cells of every list of definitions, in the order of `definitions.NAMED`."""
        return self.node_id, self.name, self.qualname, self.bstart, self.bend, self.line, self.ast_id


class Context:
    """A file with the ids, definitions and relations that several lists of facts need."""

    def __init__(self, file: FileView) -> None:
        self.file = file
        self.ids = file.ids
        self.id_at = self.ids.at
        self.syntax = Syntax(file.list(AST, "nodes"), self.ids)
        self._cache: dict[Callable[[Context], Any], Any] = {}
        self.module_id = module_id(file.file_id)
        # Lists that failed, with the reason.
        self.failures: list[str] = []

    def id_of_syntax(self, kind: str, node: int) -> str:
        """Return the id of a node that is numbered as its syntax node."""
        return f"{PREFIXES[kind]}:{self.ids.ast(node).partition(':')[2]}"

    @cached_property
    def unit_keys(self) -> dict[str, str]:
        """The definition keys of code objects."""
        return self.file.definition_keys.of_units(self.file.list("bytecode_files_v1", "code_objects"))

    @cached_property
    def scope_keys(self) -> dict[str, str]:
        """The definition keys of the scopes in the symbol tables."""
        return self.file.definition_keys.of_scopes(self.file.list("symtable_files_v1", "blocks"))

    @property
    def keys(self) -> dict[str, str]:
        """The definition keys that the facts listed so far use, by qualified path."""
        packed = self.ids.packed
        return {**dict(zip(packed.paths, packed.keys, strict=True)), **self.file.definition_keys.made}

    def cached(self, make: Callable[[Context], T]) -> T:
        """Return the result of a function for this file; it is called once."""
        if make not in self._cache:
            self._cache[make] = make(self)
        result: T = self._cache[make]
        return result

    def attempt(self, name: str, make: Callable[[Context], Mapping[str, T]]) -> Mapping[str, T]:
        """Return the result of a function for this file; empty if it raises, which `failures` records."""
        try:
            return self.cached(make)
        except Exception as error:  # noqa: BLE001
            self.failures.append(f"{name}: {type(error).__name__}: {error}"[:MESSAGE_CHARS])
            return {}

    def shared_id(self, kind: str, name: str) -> str:
        """Return the id of a node of no file."""
        return natural_id(kind, self.file.repo_id, name)

    @property
    def has_module(self) -> bool:
        """Whether the file is a module: it was read, so it has a program."""
        return bool(self.file.row(LIBCST))

    @cached_property
    def _ast_lists(self) -> dict[str, Columns]:
        return lists_from_ast(self.syntax, self.file)

    def libcst(self, name: str) -> Columns:
        """Return a list of LibCST; made from the syntax tree if LibCST could not read the file."""
        columns = self.file.list(LIBCST, name)
        return columns or (self._ast_lists.get(name, {}) if len(self.syntax) else {})

    @cached_property
    def relations(self) -> dict[str, Columns]:
        """The relations of the file's scopes by kind."""
        return relations_by_kind(self.file.rows(RELATIONS), of_scopes=True)

    def relations_of(self, kind: str) -> Columns:
        """Return the relations of a kind."""
        return self.relations.get(kind, {})

    @cached_property
    def definitions(self) -> dict[tuple[int | None, int | None], GraphDefinition]:
        """Functions and classes by span; those of the syntax tree first, in its order."""
        definitions: dict[tuple[int | None, int | None], GraphDefinition] = {}
        self._add_ast_definitions(definitions)
        self._add_libcst_definitions(definitions)
        return definitions

    def _add_ast_definitions(self, definitions: dict[tuple[int | None, int | None], GraphDefinition]) -> None:
        syntax = self.syntax
        lambdas = _lambda_names(syntax)
        known: dict[int, GraphDefinition] = {}
        for node in syntax.of_kinds(*DEFINITIONS):
            ast_kind = syntax.kind[node]
            outer = known.get(syntax.container(node))
            kind = "CLASS" if ast_kind == "ClassDef" else "FUNCTION"
            name = lambdas[node] if ast_kind == "Lambda" else syntax.name[node] or ""
            start, end = syntax.bstart[node], syntax.bend[node]
            known[node] = GraphDefinition(
                kind,
                self.id_at(kind, start, end),
                _subkind(ast_kind, outer),
                name,
                f"{outer.qualname if outer else ''}.{name}",
                outer.node_id if outer else self.module_id,
                start,
                end,
                syntax.line[node],
                node,
            )
            definitions.setdefault((start, end), known[node])

    def _add_libcst_definitions(
        self, definitions: dict[tuple[int | None, int | None], GraphDefinition]
    ) -> None:
        """Add definitions that CPython gave no span or could not parse."""
        columns = ("kind", "name", "is_async", "container_bstart", "container_bend", "def_bstart", "def_bend")
        number = 0
        for kind, name, is_async, *outer_span, start, end, line in iter_rows(
            self.libcst("defs"), *columns, "line"
        ):
            if (start, end) in definitions:
                continue
            if (None, None) in definitions and kind == "lambda":
                # In an f-string: the tree has it without a span.
                definitions[start, end] = definitions[None, None]
                continue
            outer = definitions.get((outer_span[0], outer_span[1])) if outer_span[0] is not None else None
            number += kind == "lambda"
            own = name or f"<lambda{number}>"
            ast_kind = {"class": "ClassDef", "lambda": "Lambda"}.get(kind, "FunctionDef")
            graph_kind = "CLASS" if kind == "class" else "FUNCTION"
            definitions[start, end] = GraphDefinition(
                graph_kind,
                self.id_at(graph_kind, start, end),
                _subkind("AsyncFunctionDef" if is_async else ast_kind, outer),
                own,
                f"{outer.qualname if outer else ''}.{own}",
                outer.node_id if outer else self.module_id,
                start,
                end,
                line,
                None,
            )

    def owner_id(self, bstart: int | None, bend: int | None) -> str | None:
        """Return the id of the definition with a span; of the module for no span."""
        if bstart is None:
            return self.module_id
        definition = self.definitions.get((bstart, bend))
        return definition.node_id if definition else None

    def with_relation_sources(self, kind: str, rows: list[tuple[Any, ...]], *names: str) -> dict[str, Any]:
        """Return rows as columns, with a row added for each node of the kind that only relations have."""
        known = {row[0] for row in rows}
        for src, span in self._relation_sources.get(kind, {}).items():
            if src not in known:
                cells = {"node_id": src, **dict(zip(SPAN, span, strict=True))}
                rows.append(tuple(cells.get(name) for name in names))
        return columns_of(rows, *names)

    @cached_property
    def _relation_sources(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        return relation_sources(self.relations.values())


def relations_by_kind(rows: Columns, *, of_scopes: bool) -> dict[str, Columns]:
    """Return the relations of a file's scopes, or all others, by kind."""
    if not rows:
        return {}
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for index, (kind, origin) in enumerate(zip(rows["relation_kind"], rows["origin"], strict=True)):
        if (origin == OF_SCOPES) is of_scopes:
            by_kind[kind].append(index)
    return {
        kind: {name: [column[index] for index in indexes] for name, column in rows.items()}
        for kind, indexes in by_kind.items()
    }


def relation_sources(relations: Iterable[Columns]) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return the span of the first relation of each source, by kind of source."""
    sources: defaultdict[str, dict[str, tuple[Any, ...]]] = defaultdict(dict)
    for rows in relations:
        for kind, src, start, end, line in iter_rows(rows, "src_kind", "src_id", *SPAN):
            of_kind = sources[kind]
            if src not in of_kind:
                of_kind[src] = (start, end, line)
    return sources


def _subkind(ast_kind: str, outer: GraphDefinition | None) -> str | None:
    if ast_kind == "ClassDef":
        return None
    if ast_kind == "Lambda":
        return "lambda"
    own = "method" if outer is not None and outer.kind == "CLASS" else "function"
    return f"async_{own}" if ast_kind == "AsyncFunctionDef" else own


def _lambda_names(syntax: Syntax) -> dict[int, str]:
    """Name the lambdas of each body in the order of the source: `<lambda1>`, `<lambda2>`."""
    lambdas: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for node in syntax.of_kinds("Lambda"):
        start = syntax.bstart[node]
        lambdas[syntax.container(node)].append((node if start is None else start, node))
    return {
        node: f"<lambda{number}>"
        for nodes in lambdas.values()
        for number, (_, node) in enumerate(sorted(nodes), start=1)
    }
