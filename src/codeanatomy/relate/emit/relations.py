"""Emit the rows of `relations_v1` for the files of a solved repository.

    emitter = RelationEmitter(values)
    emitter.file_rows(0).batch()             # the rows of the first file

Every name, attribute, import, base class, decorator, argument and call gets a row per target that it refers
to, or one row without a target and with the reason. Confidence is set in `emit.references`, claims of other
witnesses are weighed in `witnesses.agreement`. Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeanatomy.node_ids import module_id
from codeanatomy.relate.emit.attribute_owners import assigned_attributes
from codeanatomy.relate.emit.attributes import TOO_MANY, AttributeRows
from codeanatomy.relate.emit.file_relations import unlisted_attributes
from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_FUNCTION,
    OBJ_HINTED_CALLABLE,
    OBJ_PROPERTY_DECORATOR,
    OBJ_SINGLEDISPATCH_REGISTER,
    OBJ_WRAPS,
    OP_CALL,
    OP_LOAD_ATTRIBUTE,
    Op,
    Site,
)
from codeanatomy.relate.relation_rows import RelationDiagnostic, RelationRows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.classes import DEFAULT_FACTORY
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.witnesses.agreement import Verdict
from codeanatomy.relate.witnesses.lookup import Witnesses

CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
# Kinds of callables that external calls create: `functools.wraps(f)`, `x.setter`, `f.register`.
EXTERNAL_CALLABLES = frozenset({OBJ_WRAPS, OBJ_PROPERTY_DECORATOR, OBJ_SINGLEDISPATCH_REGISTER})
# Roles of functions that run at a call without being its callee.
INDIRECT_ROLES = frozenset({"callback", DEFAULT_FACTORY})


class RelationEmitter:
    """Emits the relation rows of a solved repository, file by file."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.resolver = NameResolver(values)
        self.attributes = assigned_attributes(values)
        # Those of them that no symbol table lists, by the file of their class.
        self.unlisted = unlisted_attributes(values, self.attributes)
        self.witnesses = Witnesses(self.resolver, self.attributes)
        # Processes that emit the rows of some files each would compute these again.
        for file, program in enumerate(values.programs):
            for number in range(len(program.classes)):
                values.mro(values.object(OBJ_CLASS, file, number))

    def file_rows(self, file: int) -> RelationRows:
        """Return the rows of one file, with a diagnostic for each disagreement with another witness."""
        known = len(self.witnesses.disagreements)
        claims = self.witnesses.file_claims(file)
        rows = FileRows(self.values, self.resolver, self.attributes, file, claims).add_all()
        for each in self.witnesses.disagreements[known:]:
            rows.diagnostics.append(
                RelationDiagnostic("disagreement", each.code, each.message, each.place, "info")
            )
        return rows


class FileRows(AttributeRows):
    """All rows of one file."""

    def add_all(self) -> RelationRows:
        """Add the rows of all kinds and return them."""
        for place in self.program.unresolved_calls:
            src = self.node_at("CALLSITE", place)
            self.add_candidates("CALLS", "CALLSITE", src, place, [], rule="call", reason=self.program.failure)
        self._add_names()
        self._add_imports()
        self._add_classes()
        self._add_decorators()
        self._add_operations()
        self._add_call_graph()
        return self.rows

    def _add_operations(self) -> None:
        ops = [op for op in self.program.ops if op[0] == OP_CALL or op[0] in ACCESS_BY_OP]
        calls = [op for op in ops if op[0] == OP_CALL]
        self.external_results = self._find_external_results(calls)
        self.attribute_loads = {op[3]: op for op in ops if op[0] == OP_LOAD_ATTRIBUTE}
        self.callees = {op[3]: op[1] for op in calls}
        for op in ops:
            if op[0] == OP_CALL:
                self._add_explicit_call(op)
            elif op[-1] >= 0:
                self._add_attribute(op)
        for number, site in enumerate(self.program.sites):
            if number not in self.callees and site.role != "attribute":
                self._add_implicit_calls(number, site)

    def _find_external_results(self, calls: Sequence[Op]) -> set[int]:
        """Return the nodes that hold results of calls whose callees are all external."""
        results = set()
        for op in calls:
            callees = self.values.calls.get((self.file, op[3]))
            if callees and all(self.values.objects[obj >> 1].kind == OBJ_EXTERNAL for obj in callees):
                results.add(op[2])
        return results

    def _add_explicit_call(self, op: Op) -> None:
        _, node, _, number, args = op
        site = self.program.sites[number]
        objects = self.values.calls.get((self.file, number), {})
        is_decorator = site.role == "decorator"
        kind = "DECORATOR" if is_decorator else "CALLSITE" if site.place[0] is not None else "AST_NODE"
        src = self._ast_node(site) if kind == "AST_NODE" else self.node_at(kind, site.place)
        callees = self.values.callees((self.file, number))
        role = site.role if is_decorator else None
        verdicts = self._verdicts(site, callees)
        verdict = verdicts[site.role]
        has_target = any(self._call_target(obj, site.role) is not None for obj, _ in callees)
        if not has_target and not verdict.added:
            # A decorator that is only a declaration gets no row.
            if not callees or kind == "CALLSITE":
                reason = "external_result" if callees else self._uncalled_reason(node)
                self.add_candidates("CALLS", kind, src, site.place, [], rule="call", role=role, reason=reason)
            return
        primary = [obj for obj, how in callees if how == site.role and not self._is_constructor(obj, objects)]
        alternatives = len(primary) + len(set(verdict.added.values()))
        load = self.attribute_loads.get(node)
        is_truncated = (
            (self.file, number) in self.values.truncated_sites
            or self.values.is_truncated(self.file, node)
            or (load is not None and self.values.is_truncated(self.file, load[1]))
        )
        cut_reason = TOO_MANY if is_truncated else None
        factories = [each for each in callees if each[1] == DEFAULT_FACTORY]
        direct = [each for each in callees if each[1] != DEFAULT_FACTORY] if factories else callees
        self._add_calls(number, direct, kind, src, alternatives, role, verdicts, cut_reason)
        # Default factories of fields run whichever class is called: they are no alternatives.
        self._add_calls(number, factories, kind, src, 1, role, verdicts, cut_reason)
        group = self._group(src, role) if alternatives > 1 else None
        self._add_claimed_calls(number, kind, src, verdict, group, role, args)

    def _verdicts(self, site: Site, callees: Sequence[tuple[Object, str]]) -> dict[str, Verdict]:
        """Compare the callees of a call with the claims of other witnesses, by how the callees run."""
        claims = self.claims
        if claims.is_empty:
            return {site.role: claims.witnesses.no_claims}
        is_decorator = site.role == "decorator"
        claimed = claims.decorator(site.place) if is_decorator else claims.call(site.place, site.inner)
        called = [
            target
            for obj, how in callees
            if how not in INDIRECT_ROLES and (target := self._call_target(obj, site.role)) is not None
        ]
        callbacks = [
            target
            for obj, how in callees
            if how == "callback" and (target := self._call_target(obj)) is not None
        ]
        verdict = claims.verdict(site.place, called, claimed)
        verdicts = {how: verdict for _, how in callees if how not in INDIRECT_ROLES} | {site.role: verdict}
        return verdicts | {
            "callback": claims.verdict(
                site.place, callbacks, claims.callbacks(site.place) if callbacks else ()
            )
        }

    def _is_constructor(self, obj: Object, called: Mapping[Object, str]) -> bool:
        """Whether a callee runs because a class is called."""
        kind, file, number, _ = self.values.objects[obj >> 1]
        if kind != OBJ_FUNCTION or self.values.programs[file].functions[number].name not in CONSTRUCTORS:
            return False
        return any(self.values.objects[other >> 1].kind == OBJ_CLASS for other in called)

    def _uncalled_reason(self, node: int) -> str:
        """Return the reason why a call has no callee."""
        objects = self.values.program_objects(self.file, node)
        if objects:
            return self._not_callable_reason(objects)
        load = self.attribute_loads.get(node)
        if load is None:
            return self._unknown_reason(node).replace("unknown_receiver", "unknown_value")
        receivers = self.values.program_objects(self.file, load[1])
        return "no_such_attribute" if receivers else self._unknown_reason(load[1])

    def _not_callable_reason(self, objects: Sequence[Object]) -> str:
        """Return the reason why calling these objects runs nothing."""
        keys = [self.values.objects[obj >> 1] for obj in objects]
        if all(key.kind == OBJ_HINTED_CALLABLE for key in keys):
            # The annotation only states that the value is callable.
            return "unknown_value"
        is_external = any(
            key.kind in EXTERNAL_CALLABLES
            or (key.kind == OBJ_EXTERNAL_INSTANCE and not key.first.startswith("builtins."))
            for key in keys
        )
        return "external_result" if is_external else "not_callable"

    def _add_implicit_calls(self, number: int, site: Site) -> None:
        """Add calls of special methods that an operator, a loop, `with` and the like run."""
        callees = self.values.callees((self.file, number))
        own = [
            each for each in callees if self.values.objects[each[0] >> 1].kind in (OBJ_FUNCTION, OBJ_CLASS)
        ]
        targets = [target for obj, _ in own if (target := self._call_target(obj)) is not None]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, site.role))
        if own:
            self._add_calls_by_method(number, own, site.role, {how: verdict for _, how in own})
        if verdict.added:
            self._add_claimed_calls(number, "AST_NODE", self._ast_node(site), verdict, None, site.role)

    def _add_call_graph(self) -> None:
        module = Target("MODULE", module_id(self.program.file_id), self.values.names[self.file])
        for (function, _), (target, confidence, place, origin) in self.call_graph.items():
            src = module if function < 0 else self.resolver.function(self.file, function)
            self.rows.add(
                "CALL_GRAPH",
                src.kind,
                src.node,
                target.kind,
                target.node,
                place=place,
                origin=origin,
                rule="call_graph",
                method="calls",
                confidence=confidence,
                score=confidence,
                src_qname=src.qname,
                dst_qname=target.qname,
                evidence=src.node,
            )
