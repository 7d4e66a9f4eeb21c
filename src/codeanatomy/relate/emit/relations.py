"""Emit the rows of `relations_v1` for the files of a solved repository.

    emitter = RelationEmitter(values)
    emitter.file_rows(0, program).batch()    # the rows of the first file

Every name, attribute, import, base class, decorator, argument and call gets a row per target that it refers
to, or one row without a target and with the reason. Confidence is set in `emit.references`, claims of other
witnesses are weighed in `witnesses.agreement`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from codeanatomy.node_ids import binding_id, module_id
from codeanatomy.relate.emit import attributes, calls, names
from codeanatomy.relate.emit.absent_attributes import stored_attributes
from codeanatomy.relate.emit.references import FORWARDED, FileRows, add_candidates
from codeanatomy.relate.program import OBJ_CLASS, OP_CALL, Program
from codeanatomy.relate.relation_rows import NOWHERE, Relation, RelationDiagnostic, RelationRows
from codeanatomy.relate.values.forwarding import ways_through
from codeanatomy.relate.values.hierarchy import mro
from codeanatomy.relate.values.name_resolution import NameResolver
from codeanatomy.relate.values.results import truncated_nodes
from codeanatomy.relate.values.rules.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.state import State
from codeanatomy.relate.witnesses.lookup import FileClaims, Witnesses


class RelationEmitter:
    """Emits the relation rows of a solved repository, file by file."""

    def __init__(self, values: State) -> None:
        self.values = values
        self.resolver = NameResolver(values)
        self.attributes = attributes.assigned_attributes(values)
        self.stored = stored_attributes(values)
        # Those of them that no symbol table lists, by the file of their class.
        self.unlisted = attributes.unlisted_attributes(values, self.attributes)
        self.witnesses = Witnesses(self.resolver, self.attributes)
        # Processes that emit the rows of some files each would compute these again.
        self.resolver.named_in_texts  # noqa: B018
        for file, program in enumerate(values.programs):
            for number in range(len(program.classes)):
                mro(values, values.object(OBJ_CLASS, file, number))
        for wrapper in dict.fromkeys(chain.from_iterable(values.calls.wrappers.values())):
            ways_through(values, wrapper)
        # Of each file its own: among those of the repository most places would be searched in vain.
        self.truncated = truncated_nodes(values)

    def file_rows(self, file: int, program: Program) -> RelationRows:
        """Return the rows of one file, with a diagnostic for each disagreement with another witness."""
        claims = FileClaims(self.witnesses, program)
        shared = self.values, self.resolver, self.attributes, self.stored
        f = FileRows(*shared, file, program, self.truncated[file], claims)
        for add_rows in RULES:
            add_rows(f)
        f.rows.diagnostics += claims.disagreements.values()
        return f.rows


def _add_excluded(f: FileRows) -> None:
    """Add a diagnostic for each parameter that gets objects which its annotation excludes."""
    for place, classes in f.values.calls.excluded.get(f.file, {}).items():
        excluded = ", ".join(sorted(map(f.values.qualified_name, classes)))
        message = f"the annotation excludes objects of {excluded}, which are passed"
        f.rows.diagnostics.append(
            RelationDiagnostic("disagreement", "annotation_disagrees", message, place, "info")
        )


def _add_unresolved_calls(f: FileRows) -> None:
    """Add the calls of a file that could not be compiled."""
    for place in f.program.unresolved_calls:
        add_candidates(f, f.reference("CALLS", "CALLSITE", place, "call"), [], f.program.failure)


def _add_operations(f: FileRows) -> None:
    """Add calls and accesses of attributes, then what other operations run."""
    for op in f.program.ops:
        if op[0] == OP_CALL:
            calls.add_explicit_call(f, op)
        elif op[0] in ACCESS_BY_OP and op[-1] >= 0:
            attributes.add_attribute(f, op)
    for number, site in enumerate(f.program.sites):
        if number not in f.callees and site.role != "attribute":
            calls.add_implicit_calls(f, number)


def _add_call_graph(f: FileRows) -> None:
    """Add one row per function and callee, from the calls so far."""
    for (function, _), (target, confidence, place, origin, is_forwarded) in f.call_graph.items():
        src = f.module if function < 0 else f.resolver.function(f.file, function)
        ends = ("CALL_GRAPH", *src[:2], *target[:2], *place)
        method = FORWARDED if is_forwarded else "calls"
        how = (origin, "call_graph", method, confidence, confidence, src.qname, target.qname)
        f.rows.add(Relation(*ends, *how, evidence=src.node))


# The rules that add the rows of a file, in this order.
RULES = (
    _add_unresolved_calls,
    names.add_names,
    names.add_quoted_names,
    names.add_imports,
    names.add_classes,
    names.add_decorators,
    names.add_texts,
    _add_operations,
    _add_call_graph,
    _add_excluded,
)


def add_file_relations(
    rows: RelationRows, module_name: str, unlisted: Iterable[attributes.InstanceAttribute]
) -> None:
    """Add the relations of a file as a whole: the module it declares, and the attributes of its classes."""
    file_id, module = rows.file_id, module_id(rows.file_id)
    ends = ("DECLARES_MODULE", "FILE", file_id, "MODULE", module, *NOWHERE)
    rows.add(Relation(*ends, "imports", "module", "path", 1.0, dst_qname=module_name, evidence=file_id))
    for scope, name, qname in unlisted:
        ends = ("SCOPE_BINDS", "SCOPE", scope, "BINDING", binding_id(scope, name), *NOWHERE)
        how = ("values", "attribute", "scope", 1.0)
        rows.add(Relation(*ends, *how, dst_qname=qname, role=name, evidence=scope))
