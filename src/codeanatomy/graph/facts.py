"""Make the lists of facts of a file that need no other file, each with a function of its own.

    facts = facts_of(context, names)          # the file's own
    facts["calls"]["name"]                    # ("os.getcwd",)
    shared_facts_of(context)["types"]         # of the repository as a whole, as this file sees it

The catalogue of kinds names the lists. Those that other files decide are made by `graph.resolution`.

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph import definitions, flow, scip, scopes, types, uses
from codeanatomy.graph.context import Context

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
    ids = context.syntax.ids
    rows: list[tuple[Any, ...]] = []
    for name in sorted(kinds & facts.keys()):
        columns = facts[name]
        if "ast_id" not in columns:
            continue
        spans = [columns.get(end) or [None] * len(columns["node_id"]) for end in ("bstart", "bend")]
        rows += [
            (node, ids[ast_id], start, end)
            for node, ast_id, start, end in zip(columns["node_id"], columns["ast_id"], *spans, strict=True)
            if ast_id is not None
        ]
    return columns_of(list(dict.fromkeys(rows)), "src_id", "dst_id", "bstart", "bend")


SPELLED = frozenset(kind for ends in EDGE_KINDS["SYNTAX_OF"].ends for kind in ends.src)
# Functions that make several lists at once, by kind.
FAMILIES: Mapping[str, Callable[[Context], Mapping[str, Columns]]] = {
    "events": flow.events,
    "cfg": flow.cfg,
    "relations": relations,
}
