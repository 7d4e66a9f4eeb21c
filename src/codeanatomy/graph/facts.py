"""Make the lists of facts of a file that need no other file, each with a function of its own.

    facts = facts_of(context, names)          # the file's own
    facts["calls"]["name"]                    # ("os.getcwd",)
    shared_facts_of(context)["types"]         # of the repository as a whole, as this file sees it
    kept = collect_facts(context, facts, shared)    # what the rows of resolution need of the file

The catalogue of kinds names the lists. Those that other files decide (edges of resolution, entry points,
names that begin with that of the module) are made by `graph.resolution`, from kept facts: they are a
hundredth of the evidence, so that it is read only once.

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, msgpack

from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph import definitions, flow, scip, scopes, types, uses
from codeanatomy.graph.context import Context
from codeanatomy.graph.reads import SPAN
from codeanatomy.node_ids import UNPLACED

Lists: TypeAlias = Mapping[str, Columns]

# Functions that make the lists of a file, by name.
FILE_LISTS: Mapping[str, Callable[[Context], Columns]] = {
    "files": definitions.files,
    "modules": definitions.modules,
    "contained": definitions.contained,
    "classes": definitions.classes,
    "functions": definitions.functions,
    "parameters": definitions.parameters,
    "imports": definitions.imports,
    "decorators": definitions.decorators,
    "docstrings": definitions.docstrings,
    "comments": definitions.comments,
    "ts_errors": definitions.ts_errors,
    "ts_missing": definitions.ts_missing,
    "names": uses.names,
    "attributes": uses.attributes,
    "calls": uses.calls,
    "arguments": uses.arguments,
    "literals": uses.literals,
    "ast": uses.ast,
    "scopes": scopes.scopes,
    "bindings": scopes.bindings,
    "units": flow.units,
    "blocks": flow.blocks,
    "control": flow.control,
    "reaches": flow.reaches,
    "event_bindings": flow.event_bindings,
    "instructions": flow.instructions,
    "type_exprs": types.type_exprs,
    "type_aliases": types.type_aliases,
    "type_params": types.type_params,
    "type_param_uses": types.type_param_uses,
    "scip_symbols": scip.local_symbols,
    "scip_occurrences": scip.occurrences,
    "scip_definitions": scip.definitions,
    "scip_references": scip.references,
    "scip_relations": scip.relationships,
}
# Functions that make the lists of the repository, by name.
SHARED_LISTS: Mapping[str, Callable[[Context], Columns]] = {
    "scip_symbols": scip.global_symbols,
    "types": types.types,
    "type_arguments": types.type_arguments,
}


def facts_of(context: Context, names: Collection[str]) -> Lists:
    """Make the lists of the file that are named, and those that are made from them."""
    facts: dict[str, Columns] = {}
    for name, make in FILE_LISTS.items():
        if name in names:
            facts[name] = context.attempt(name, make)
    for family, make_all in FAMILIES.items():
        lists = context.attempt(family, make_all)
        facts.update({f"{family}.{kind}": rows for kind, rows in lists.items()})
    compiled = (*(f"events.{kind}" for kind in flow.EVENT_KINDS), "instructions")
    anchored = [facts[name] for name in compiled if name in facts]
    facts["anchors"] = context.attempt("anchors", lambda context: flow.anchors(context, anchored))
    facts["spelled"] = context.attempt("spelled", lambda context: _spelled(context, facts))
    facts["contained"] = _with_aliases(facts["contained"], facts["type_aliases"])
    # Last, to report lists that failed.
    facts["diagnostics"] = definitions.diagnostics(context)
    reported = [facts[name] for name in ("diagnostics", "ts_errors", "ts_missing")]
    return {**facts, "complaints": definitions.complaints(context.file.file_id, reported)}


def shared_facts_of(context: Context) -> Lists:
    """Make the lists of the repository as this file sees it."""
    return {name: context.attempt(name, make) for name, make in SHARED_LISTS.items()}


def relations(context: Context) -> dict[str, Columns]:
    """Return the relations of the file's scopes, by kind."""
    return context.relations


def _with_aliases(contained: Columns, aliases: Columns) -> Columns:
    """Return containment of definitions and of type aliases."""
    rows = [
        *iter_rows(contained, "src_id", "dst_id", "bstart", "bend"),
        *iter_rows(aliases, "container_id", "node_id", "bstart", "bend"),
    ]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def _spelled(context: Context, facts: Lists) -> Columns:
    """Pair nodes with their syntax nodes, for all lists that have them."""
    kinds = {kind.made_of.of for kind in NODE_KINDS.values() if kind.name in SPELLED}
    rows: list[tuple[Any, ...]] = []
    for name in sorted(kinds & facts.keys()):
        columns = facts[name]
        if "ast_id" not in columns:
            continue
        spans = [columns.get(end) or [None] * len(columns["node_id"]) for end in ("bstart", "bend")]
        rows += [
            (node, ast_id, start, end)
            for node, ast_id, start, end in zip(columns["node_id"], columns["ast_id"], *spans, strict=True)
            if ast_id is not None
        ]
    unique = columns_of(list(dict.fromkeys(rows)), "src_id", "dst_id", "bstart", "bend")
    return {**unique, "dst_id": context.syntax.ids_of(unique["dst_id"])}


SPELLED = frozenset(kind for ends in EDGE_KINDS["SYNTAX_OF"].ends for kind in ends.src)
# Functions that make several lists at once, by kind.
FAMILIES: Mapping[str, Callable[[Context], Mapping[str, Columns]]] = {
    "events": flow.events,
    "cfg": flow.cfg,
    "relations": relations,
}


# What the rows of resolution need of a file


# In the number of a node at a place that no list has.
UNNUMBERED = "@"
TYPING_ONLY, MAIN = "TYPE_CHECKING", "__name__"
# Lists of nodes that relations may have further ones of, by kind.
USES = {"NAME_REF": "names", "ATTRIBUTE_REF": "attributes", "CALLSITE": "calls"}


class PlacedDefinition(NamedTuple):
    """A function or class, without lambdas, that has a span."""

    node_id: str
    kind: str
    name: str
    container_id: str
    bstart: int
    bend: int
    line: int | None


class UseSite(NamedTuple):
    """A call or a decorator, with the definition that it decorates."""

    node_id: str
    written: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    owner_id: str | None = None


class CallArgument(NamedTuple):
    """An argument of a call; `text` if it is a string."""

    call_id: str
    # Among the arguments of the call.
    number: int
    keyword: str | None
    bstart: int
    bend: int
    text: str | None


class IfBlock(NamedTuple):
    """The body of an `if` statement that tests `name`."""

    name: str
    bstart: int
    bend: int
    line: int | None


class GenericArgument(NamedTuple):
    """A type variable in brackets after a base class: `T` in `class Box(Generic[T])`."""

    # Reference that must lead to `Generic` or `Protocol`.
    base_id: str
    variable_id: str
    class_id: str | None
    ordinal: int
    bstart: int | None
    bend: int | None
    line: int | None


class KeptFacts(Struct, frozen=True, array_like=True):
    """What the rows of resolution need of a file."""

    repo_id: str
    file_id: str
    path: str
    has_module: bool = False
    # Classes with their number of bases.
    classes: list[tuple[str, int | None]] = []
    # Uses at places that have an id and no node, and nodes whose ids are not numbers in their definition.
    unlisted: list[str] = []
    unnumbered: list[str] = []
    definitions: list[PlacedDefinition] = []
    calls: list[UseSite] = []
    decorators: list[UseSite] = []
    # Encoded: few files register anything by arguments.
    arguments: msgspec.Raw = msgspec.Raw(b"\x90")
    blocks: list[IfBlock] = []
    # Labels of strings such as `'web = shop.web:run'`, with the spans of these.
    labels: list[tuple[int, int, str]] = []
    generics: list[GenericArgument] = []
    # Lists about the repository, by name.
    shared: dict[str, dict[str, list[Any]]] = {}
    # Number of lists that failed; why these facts could not be collected.
    failures: int = 0
    unreported: list[str] = []

    def pack(self) -> bytes:
        """Encode the facts."""
        return msgpack.encode(self)

    @staticmethod
    def unpack(data: bytes | memoryview) -> KeptFacts:
        """Decode facts."""
        return DECODER.decode(data)

    def call_arguments(self) -> list[CallArgument]:
        """Decode the arguments of calls."""
        return msgpack.decode(self.arguments, type=list[CallArgument])


DECODER = msgpack.Decoder(KeptFacts)


def collect_facts(context: Context, lists: Mapping[str, Columns], shared: Mapping[str, Columns]) -> KeptFacts:
    """Collect what resolution needs from the lists of a file, and from its syntax tree.

    If that fails there are none, and the stage that makes the rows of resolution reports why.
    """
    file, failures = context.file, len(context.failures)
    own: Mapping[str, Any] = context.attempt("facts", lambda context: _own_facts(context, lists))
    return KeptFacts(
        *file.key,
        has_module=context.has_module,
        **own,
        shared={
            name: {key: list(cells) for key, cells in rows.items()} for name, rows in shared.items() if rows
        },
        failures=failures,
        unreported=context.failures[failures:],
    )


def _own_facts(context: Context, lists: Mapping[str, Columns]) -> dict[str, Any]:
    """Return facts about the file by field."""
    made = {kind: set(lists.get(name, {}).get("node_id", ())) for kind, name in USES.items()}
    # Of most files there are none, which is seen faster in all ids than id by id.
    texts = "\n".join(chain.from_iterable(made.values()))
    may_be = made if UNNUMBERED in texts or UNPLACED in texts else {}
    unnumbered = [each for ids in may_be.values() for each in ids if is_unnumbered(each)]
    lacking = {kind: ids for kind, ids in made.items() if not ids.issuperset(context.ids.of_kind(kind))}
    unlisted = [
        each for kind, ids in lacking.items() for each in context.ids.of_kind(kind) if each not in ids
    ]
    calls = [UseSite(*row) for row in iter_rows(lists.get("calls"), "node_id", "name", *SPAN)]
    decorators = [
        UseSite(*row) for row in iter_rows(lists.get("decorators"), "node_id", "name", *SPAN, "owner_id")
    ]
    return {
        "classes": list(iter_rows(lists.get("classes"), "node_id", "base_count")),
        "unlisted": unlisted,
        "unnumbered": unnumbered,
        "definitions": _definitions(context),
        "calls": calls,
        "decorators": decorators,
        "arguments": msgspec.Raw(msgpack.encode(_arguments(lists))),
        "blocks": _if_blocks(context),
        "labels": _labels(context),
        "generics": [GenericArgument(*row) for row in types.generic_arguments(context)],
    }


def is_unnumbered(node: str) -> bool:
    """Return whether an id is that of a node without a place in the source, or at one that no list has."""
    return UNNUMBERED in node or node.endswith(UNPLACED)


def _definitions(context: Context) -> list[PlacedDefinition]:
    unique = {each.node_id: each for each in context.definitions.values()}
    return [
        PlacedDefinition(
            each.node_id, each.kind, each.name, each.container_id, each.bstart, each.bend or 0, each.line
        )
        for each in unique.values()
        if each.bstart is not None and each.subkind != "lambda"
    ]


def _arguments(lists: Mapping[str, Columns]) -> list[CallArgument]:
    texts = {
        (start, end): text
        for text, subkind, start, end in iter_rows(lists.get("literals"), "name", "subkind", "bstart", "bend")
        if subkind == "str"
    }
    columns = ("call_id", "index", "name", "bstart", "bend")
    rows = iter_rows(lists.get("arguments"), *columns)
    return [CallArgument._make((*row, texts.get((row[3], row[4])))) for row in rows]


def _if_blocks(context: Context) -> list[IfBlock]:
    """Return the bodies of `if` statements that test `TYPE_CHECKING` or `__name__`."""
    syntax = context.syntax
    blocks: list[IfBlock] = []
    if {TYPING_ONLY, MAIN}.isdisjoint(syntax.name):
        return blocks
    for node, name in enumerate(syntax.name):
        if name not in (TYPING_ONLY, MAIN) or syntax.kind[node] not in ("Name", "Attribute"):
            continue
        test, parent = node, syntax.parent[node]
        while parent is not None and syntax.kind[parent] in ("Compare", "BoolOp"):
            test, parent = parent, syntax.parent[parent]
        if parent is None or syntax.kind[parent] != "If" or syntax.slot[test] != "test":
            continue
        start, end = syntax.bstart[parent], syntax.bend[parent]
        for other in syntax.children(parent, "orelse")[:1]:
            end = syntax.bstart[other]
        if start is not None and end is not None:
            blocks.append(IfBlock(name, start, end, syntax.line[node]))
    return blocks


def _labels(context: Context) -> list[tuple[int, int, str]]:
    """Return what stands before `=` in strings, with their spans: `web = shop.web:run` declares `web`."""
    syntax, labels = context.syntax, []
    for text, start, end in zip(syntax.value, syntax.bstart, syntax.bend, strict=True):
        if text is None or start is None or end is None or "=" not in text:
            continue
        label, _, target = text[1:-1].rpartition("=")
        if re.sub("[.:]", "_", target.strip()).isidentifier():
            labels.append((start, end, label.strip()))
    return labels
