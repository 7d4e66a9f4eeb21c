"""The lists of facts that the catalogue of kinds names, and the functions that make them.

    facts = facts_of(context, names)          # the file's own
    facts["calls"]["name"]                    # ("os.getcwd",)
    shared_facts_of(context)["packages"]      # of the repository as a whole, as this file sees it

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.graph import definitions, flow, scip, scopes, types, uses
from codeanatomy.graph import external as outside
from codeanatomy.graph.context import Context
from codeanatomy.graph.file_view import Columns, columns_of, each

Lists: TypeAlias = Mapping[str, Columns]

# Lists of a file.
MADE: Mapping[str, Callable[[Context], Columns]] = {
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
# Lists of the repository.
SHARED: Mapping[str, Callable[[Context], Columns]] = {
    "repositories": definitions.repositories,
    "packages": definitions.packages,
    "contained": definitions.contained_packages,
    "external_modules": outside.external_modules,
    "qualified_names": outside.qualified_names,
    "scip_symbols": scip.global_symbols,
    "types": types.types,
    "type_arguments": types.type_arguments,
}


def facts_of(context: Context, names: Collection[str]) -> Lists:
    """Those lists of the file that are named."""
    found: dict[str, Columns] = {}
    for name, make in MADE.items():
        if name in names:
            found[name] = context.attempt(name, make)
    for family, each_of in FAMILIES.items():
        lists = context.attempt(family, each_of)
        found.update({f"{family}.{kind}": rows for kind, rows in lists.items()})
    compiled = (*(f"events.{kind}" for kind in flow.EVENT_KINDS), "instructions")
    anchored = [found[name] for name in compiled if name in found]
    found["anchors"] = context.attempt("anchors", lambda known: flow.anchors(known, anchored))
    found["spelled"] = context.attempt("spelled", lambda known: _spelled(known, found))
    found["contained"] = _with_aliases(found["contained"], found["type_aliases"])
    # Last, to tell of lists that could not be made.
    found["diagnostics"] = definitions.diagnostics(context)
    told = [found[name] for name in ("diagnostics", "ts_errors", "ts_missing")]
    return {**found, "complaints": definitions.complaints(context, told)}


def shared_facts_of(context: Context) -> Lists:
    """What the file has to say of the repository."""
    return {name: context.attempt(name, make) for name, make in SHARED.items()}


def related(context: Context) -> dict[str, Columns]:
    """The relations that have a target, by kind."""
    return {kind: _resolved(rows) for kind, rows in context.relations.items()}


def _resolved(rows: Columns) -> Columns:
    """Those that have a target."""
    if None not in rows["dst_id"]:
        return {**rows, "cut": rows["reason"]}
    kept = [place for place, dst in enumerate(rows["dst_id"]) if dst is not None]
    found = {name: [column[place] for place in kept] for name, column in rows.items()}
    return {**found, "cut": found["reason"]}


def _with_aliases(contained: Columns, aliases: Columns) -> Columns:
    """What is inside of what, type aliases too."""
    rows = [
        *each(contained, "src_id", "dst_id", "bstart", "bend"),
        *each(aliases, "container_id", "node_id", "bstart", "bend"),
    ]
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def _spelled(context: Context, found: Lists) -> Columns:
    """Nodes and the syntax that spells them, of all lists that know it."""
    kinds = {one.made_of.of for one in NODE_KINDS.values() if one.name in SPELLED}
    rows = []
    for name in sorted(kinds & found.keys()):
        columns = found[name]
        if "ast_id" not in columns:
            continue
        spans = [columns.get(place) or [None] * len(columns["node_id"]) for place in ("bstart", "bend")]
        for node, ast_id, start, end in zip(columns["node_id"], columns["ast_id"], *spans, strict=True):
            if ast_id is not None:
                rows.append((node, context.syntax.ids[ast_id], start, end))
    return columns_of(list(dict.fromkeys(rows)), "src_id", "dst_id", "bstart", "bend")


SPELLED = frozenset(kind for ends in EDGE_KINDS["SYNTAX_OF"].ends for kind in ends.src)
# Lists that are made together, by kind.
FAMILIES: Mapping[str, Callable[[Context], Mapping[str, Columns]]] = {
    "events": flow.events,
    "cfg": flow.cfg,
    "relations": related,
}
