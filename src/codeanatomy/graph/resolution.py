"""List the facts of a file that other files decide: edges of resolution, entry points, names with a module.

    file = ResolvedFile(facts, relations, diagnostics)    # facts as `collect_facts` has kept them
    file.lists(rule_set(RULES))["relations.CALLS"]        # the calls with a target
    file.shared_lists()["qualified_names"]                # of the repository, as this file sees it

Every relation with a target is an edge of its kind; one without is the reason, a property of its source:

    import os                 external module os, of the standard library
    os.getcwd()               CALLS_NAME to the qualified name os.getcwd
    missing()                 property `unresolved` of the call

Tests: `tests/unit/graph/test_resolution.py`, `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalog.entry_points import RuleSet
from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.catalog.kinds.nodes import UNRESOLVED_PROP
from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import MESSAGE_CHARS, relation_sources, relations_by_kind
from codeanatomy.graph.definitions import DIAGNOSTIC_FIELDS, DIAGNOSTIC_NODE, INITS, NO_SPAN, complaints
from codeanatomy.graph.entry_points import entry_points
from codeanatomy.graph.facts import USES, KeptFacts, UseSite, is_unnumbered
from codeanatomy.graph.reads import SPAN
from codeanatomy.graph.scopes import PROVENANCE
from codeanatomy.graph.types import GENERIC
from codeanatomy.node_ids import key_of, module_id, natural_id, node_id, number_text, repository_id

# Kinds of nodes that have the reasons why they could not be resolved.
REASONED = frozenset(kind.name for kind in NODE_KINDS.values() if UNRESOLVED_PROP in kind.props)
# Kinds of nodes whose qualified name begins with that of their module.
IN_MODULE = frozenset(kind.name for kind in NODE_KINDS.values() if kind.in_module)
# Entity id, node kind (None for an edge), key, type, value.
Property: TypeAlias = tuple[str, str | None, str, str, Any]
NOTHING: Columns = {}


class ResolvedFile:
    """The facts of a file, and its rows in the tables of relate."""

    def __init__(self, facts: KeptFacts, relations: Columns, diagnostics: Columns = NOTHING) -> None:
        self.facts = facts
        self.relations = relations_by_kind(relations, of_scopes=False)
        self._diagnostics = diagnostics
        # What failed, with the reason.
        self._failures = list(facts.unreported)

    @cached_property
    def module_name(self) -> str:
        """The dotted name of the module; the path if no relation names it."""
        names = self.relations.get("DECLARES_MODULE", NOTHING).get("dst_qname")
        return str(names[0]) if names else self.facts.path

    def lists(self, rules: RuleSet) -> dict[str, Columns]:
        """Return the lists of the file."""
        lists: dict[str, Columns] = {
            **{f"relations.{kind}": _with_target(rows) for kind, rows in self.relations.items()},
            **{name: _nodes_of(self._added.get(kind, {})) for kind, name in USES.items()},
            "bindings": self._attempt("bindings", self._bindings),
            "contained": self._attempt("contained", self._contained_module),
            "type_param_uses": self._attempt("type_param_uses", self._generic_arguments),
            "entry_points": self._attempt("entry_points", lambda: self._entry_points(rules)),
        }
        # Last, to report lists that failed.
        reported = self._reported()
        return {**lists, "diagnostics": reported, "complaints": complaints(self.facts.file_id, [reported])}

    def shared_lists(self) -> dict[str, Columns]:
        """Return the lists of the repository as a whole, as this file sees it."""
        return {
            "repositories": {
                "node_id": [repository_id(self.facts.repo_id)],
                "name": [self.facts.repo_id],
            },
            "packages": self._attempt("packages", self._package_nodes),
            "contained": self._attempt("contained", self._contained_packages),
            "external_modules": self._attempt("external_modules", self._external_modules),
            "qualified_names": self._attempt("qualified_names", self._qualified_names),
            **self.facts.shared,
        }

    def properties(self) -> list[Property]:
        """Return the properties of nodes that are made without them: reasons, and those of their classes."""
        reasons: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for rows in self.relations.values():
            if None in rows["dst_id"]:
                for kind, src, dst, reason in iter_rows(rows, "src_kind", "src_id", "dst_id", "reason"):
                    if dst is None and kind in REASONED:
                        reasons[src, kind].add(reason)
        name, value_type = UNRESOLVED_PROP.name, UNRESOLVED_PROP.type
        classes = self.facts.classes
        known = {node for node, _ in classes}
        return [
            *((node, "CLASS", "base_count", "int", count) for node, count in classes if count is not None),
            *(
                (src, kind, name, value_type, ", ".join(sorted(each)))
                for (src, kind), each in reasons.items()
                if kind != "CLASS" or src in known
            ),
        ]

    def _attempt(self, name: str, make: Callable[[], Columns]) -> Columns:
        """Return a list; nothing if it cannot be made, which becomes a diagnostic."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001
            self._failures.append(f"{name}: {type(error).__name__}: {error}"[:MESSAGE_CHARS])
            return NOTHING

    @cached_property
    def _added(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """The uses that are nodes because relations have them as sources, with their spans, by kind."""
        unlisted, made = set(self.facts.unlisted), set(self.facts.unnumbered)
        sources = relation_sources(self.relations.values())
        return {
            kind: {
                node: span
                for node, span in sources.get(kind, {}).items()
                if node in unlisted or (is_unnumbered(node) and node not in made)
            }
            for kind in USES
        }

    def _entry_points(self, rules: RuleSet) -> Columns:
        more = [UseSite(node, None, *span) for node, span in self._added["CALLSITE"].items()]
        return entry_points(self.facts, self.relations, rules, more)

    def _bindings(self) -> Columns:
        """List attributes that code elsewhere sets, which no symbol table has."""
        columns = ("dst_id", "src_id", "role", "dst_qname", *PROVENANCE)
        rows = [
            (node, scope, name, qualname, "attribute", *provenance)
            for node, scope, name, qualname, *provenance in iter_rows(
                self.relations.get("SCOPE_BINDS"), *columns
            )
        ]
        return columns_of(rows, "node_id", "scope_id", "name", "qualname", "subkind", *PROVENANCE)

    def _generic_arguments(self) -> Columns:
        """List type variables with the classes that they are parameters of."""
        generic = {
            src
            for src, name in iter_rows(self.relations.get("REFERS_TO"), "src_id", "dst_qname")
            if name in GENERIC
        }
        rows = [each[1:] for each in self.facts.generics if each.base_id in generic]
        return columns_of(rows, "src_id", "dst_id", "ordinal", *SPAN)

    def _reported(self) -> Columns:
        """List the diagnostics of relate, and one for each list that failed in this stage."""
        rows = list(iter_rows(self._diagnostics, *DIAGNOSTIC_FIELDS))
        for number, message in enumerate(self._failures, start=self.facts.failures):
            part = f"graph.not_graphed.{number_text(number)}"
            node = node_id("DIAGNOSTIC", key_of(self.facts.file_id), part)
            rows.append((node, "not_graphed", "graph", *NO_SPAN, "error", message))
        return columns_of(rows, *DIAGNOSTIC_NODE)

    # Packages, and names outside of the repository: every file lists what it refers to.

    def _packages(self) -> list[tuple[str, str, str]]:
        """Return the packages around the module, outermost first: name, folder, regular or namespace."""
        if "DECLARES_MODULE" not in self.relations:
            return []
        path = PurePosixPath(self.facts.path)
        folders, is_init = path.parts[:-1], path.name in INITS
        own = () if is_init else (path.name.removesuffix(".pyi").removesuffix(".py"),)
        # The folder where the module's name begins; names of folders may contain dots.
        starts = (
            start for start in range(len(folders)) if ".".join((*folders[start:], *own)) == self.module_name
        )
        start = next(starts, len(folders))
        return [
            (
                ".".join(folders[start:end]),
                "/".join(folders[:end]),
                "regular" if is_init and end == len(folders) else "namespace",
            )
            for end in range(start + 1, len(folders) + 1)
        ]

    def _package_id(self, name: str) -> str:
        return natural_id("PACKAGE", self.facts.repo_id, name)

    def _package_nodes(self) -> Columns:
        """List the packages around the module."""
        rows = [
            (self._package_id(name), name.rpartition(".")[2], name, folder, subkind)
            for name, folder, subkind in self._packages()
        ]
        return columns_of(rows, "node_id", "name", "qualname", "path", "subkind")

    def _contained_packages(self) -> Columns:
        """List containment of packages in packages, and of the outermost in the repository."""
        outer, rows = repository_id(self.facts.repo_id), []
        for name, _, _ in self._packages():
            inner = self._package_id(name)
            rows.append((outer, inner))
            outer = inner
        return columns_of(rows, "src_id", "dst_id")

    def _contained_module(self) -> Columns:
        """List containment of the module in the innermost package, or in the repository."""
        facts, around = self.facts, self._packages()
        if "DECLARES_MODULE" not in self.relations:
            return NOTHING
        outer = self._package_id(around[-1][0]) if around else repository_id(facts.repo_id)
        row = (outer, module_id(facts.file_id), None, None)
        return columns_of([row], "src_id", "dst_id", "bstart", "bend")

    def _external_modules(self) -> Columns:
        modules: dict[str, tuple[str, str | None]] = {}
        for relation, rows in self.relations.items():
            for kind, node, name, role in iter_rows(rows, "dst_kind", "dst_id", "dst_qname", "role"):
                if kind == "EXTERNAL_MODULE":
                    origin = role if relation == "IMPORTS_MODULE" else None
                    modules[node] = (name, origin or modules.get(node, (name, None))[1])
        rows_of = [(node, name.rpartition(".")[2], name, origin) for node, (name, origin) in modules.items()]
        return columns_of(rows_of, "node_id", "name", "qualname", "subkind")

    def _qualified_names(self) -> Columns:
        names = {
            node: name
            for rows in self.relations.values()
            for kind, node, name in iter_rows(rows, "dst_kind", "dst_id", "dst_qname")
            if kind == "QUALIFIED_NAME"
        }
        rows = [(node, name.rpartition(".")[2] or name, name) for node, name in names.items()]
        return columns_of(rows, "node_id", "name", "qualname")


def _with_target(rows: Columns) -> Columns:
    """Keep the relations that have a target."""
    if None not in rows["dst_id"]:
        return {**rows, "cut": rows["reason"]}
    kept = [index for index, dst in enumerate(rows["dst_id"]) if dst is not None]
    resolved = {name: [column[index] for index in kept] for name, column in rows.items()}
    return {**resolved, "cut": resolved["reason"]}


def _nodes_of(spans: Mapping[str, tuple[Any, ...]]) -> Columns:
    rows = [(node, *span) for node, span in spans.items()]
    return columns_of(rows, "node_id", *SPAN) if rows else NOTHING


def complete_names(nodes: pa.RecordBatch, module_names: Mapping[str, str]) -> pa.RecordBatch:
    """Put the name of the module before the qualified names of nodes, by file; a module is named by it.

    >>> columns = {"node_kind": ["MODULE", "CLASS"], "file_id": ["f", "f"], "name": [None, "Cart"]}
    >>> nodes = pa.RecordBatch.from_pydict({**columns, "qualname": ["", ".Cart"]})
    >>> complete_names(nodes, {"f": "shop.cart"}).select(["name", "qualname"]).to_pylist()
    [{'name': 'cart', 'qualname': 'shop.cart'}, {'name': 'Cart', 'qualname': 'shop.cart.Cart'}]
    """
    files = nodes.column("file_id").dictionary_encode()
    # Codes may be those of further files.
    modules = [module_names.get(file_id, "") for file_id in files.dictionary.to_pylist()]
    own = pa.array(modules, pa.string()).take(files.indices)
    last = pa.array([each.rpartition(".")[2] for each in modules], pa.string()).take(files.indices)
    is_module = pc.equal(nodes.column("node_kind"), "MODULE")
    names = {
        "name": pc.if_else(is_module, last, nodes.column("name").cast(pa.string())),
        "qualname": pc.binary_join_element_wise(own, nodes.column("qualname"), ""),
    }
    columns = [names.get(name, nodes.column(name)) for name in nodes.schema.names]
    return pa.RecordBatch.from_arrays(columns, nodes.schema.names)
