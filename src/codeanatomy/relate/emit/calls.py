"""Emit rows of calls: callees, passed arguments, and edges of the call graph.

    f(x)     CALLS from the call to f, PASSES_TO from x to f's parameter, CALL_GRAPH from the caller to f

The confidence depends on how the callee was resolved: by names alone, by values, or by an annotation. Other
witnesses confirm a callee, or add one that only they know.

Applying `property`, `staticmethod` or `classmethod` is a declaration, not a call. In the call graph a call of
a class counts as calls of the constructors that it runs. Tests: `tests/unit/relate/test_emit.py`,
`tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeanatomy.node_ids import group_id
from codeanatomy.relate.emit.names import NameRows
from codeanatomy.relate.emit.references import BY_RULE, BY_VALUE, Candidate, joined_evidence
from codeanatomy.relate.program import (
    NOTHING,
    OBJ_CLASS,
    OBJ_EXTERNAL,
    OBJ_FUNCTION,
    OBJ_MODULE,
    OBJ_NAMESPACE,
    Arg,
    Op,
    Site,
)
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.classes import DEFAULT_FACTORY
from codeanatomy.relate.values.models.builtins import DECLARATIONS
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.agreement import Verdict

# Kinds of receivers whose members are resolved by import rules.
IMPORTED_KINDS = frozenset({OBJ_MODULE, OBJ_NAMESPACE, OBJ_EXTERNAL})
CALL_KINDS = {"FUNCTION": "CALLS", "CLASS": "INSTANTIATES"}
# Roles in which one special method stands in for another, such as `__len__` for `__bool__`: one of them runs.
INTERCHANGEABLE_ROLES = frozenset({"operator", "truth", "format"})
# Methods that run for every attribute access, before the attribute's own accessor.
ATTRIBUTE_HOOKS = frozenset({"__getattribute__", "__setattr__", "__delattr__"})


def is_counted(values: Values, callee: Object) -> bool:
    """Whether a callee is a node of the call graph: a function or an external name; not a class."""
    kind, first, _, _ = values.objects[callee >> 1]
    return kind == OBJ_FUNCTION or (kind == OBJ_EXTERNAL and not is_declaration(first, "decorator"))


def is_declaration(name: str, role: str) -> bool:
    """Whether an external name is a declaring decorator (`property`), or synthetic (it ends with `()`)."""
    return name.endswith("()") or (role == "decorator" and name in DECLARATIONS)


class CallRows(NameRows):
    """Rows of explicit and implicit calls."""

    # Attribute loads by the node they load into, and the called node by site.
    attribute_loads: Mapping[int, Op] = {}
    callees: Mapping[int, int] = {}

    def _ast_node(self, site: Site) -> str:
        return self.ids.ast(site.ast_id)

    def _add_calls(
        self,
        number: int,
        callees: Sequence[tuple[Object, str]],
        src_kind: str,
        src: str,
        alternatives: int,
        role: str | None = None,
        verdicts: Mapping[str, Verdict] = {},
        reason: str | None = None,
        method_name: str = "",
    ) -> None:
        """Add the rows of a site; callees are (object, how it runs), `alternatives` counts exclusive ones."""
        if not callees:
            return
        values, site = self.values, self.program.sites[number]
        targets = {obj: self._call_target(obj, site.role) for obj, _ in callees}
        listed = [target for obj, how in callees if (target := targets[obj]) is not None]
        rated = {
            each.target: each for each in self._candidates(listed, [obj for obj, _ in callees], site.inner)
        }
        group = self._group(src, role, method_name) if alternatives > 1 else None
        for obj, how in callees:
            target = targets[obj]
            if target is None:
                continue
            candidate = rated[target]
            method, confidence = candidate.method, candidate.confidence
            if alternatives <= 1 and method == "values":
                confidence = BY_VALUE
            if how == "callback":
                method = "callback"
            is_direct = alternatives <= 1 and method == "values" and how != DEFAULT_FACTORY
            if is_direct and (by_name := self._method_by_name(number, target)):
                method, confidence = by_name, BY_RULE
            verdict = verdicts.get(how, self.claims.witnesses.no_claims)
            confidence = verdict.confidence(target, confidence)
            self._add_call(
                number,
                (src_kind, src),
                verdict,
                Candidate(target, method, confidence),
                origin="values",
                role=role or (how if how != site.role else None),
                group=group,
                key=src,
                reason=reason,
            )
            if is_counted(values, obj):
                self._count(site, target, confidence)
            if target.kind == "FUNCTION" and src_kind == "CALLSITE" and how != "callback":
                args, skip = values.arguments.get(((self.file, number), obj & ~1), ((), 0))
                self._add_arguments(number, src, obj, args, skip, (method, confidence, group))

    def _add_calls_by_method(
        self,
        number: int,
        callees: Sequence[tuple[Object, str]],
        role: str,
        verdicts: Mapping[str, Verdict],
    ) -> None:
        """Add the rows of a syntax node that runs methods, such as `__enter__` and `__exit__` of `with`."""
        by_method: dict[str, list[tuple[Object, str]]] = {}
        for obj, how in callees:
            by_method.setdefault(self._method_name(obj, role), []).append((obj, how))
        src = self._ast_node(self.program.sites[number])
        for name, pairs in by_method.items():
            self._add_calls(number, pairs, "AST_NODE", src, len(pairs), role, verdicts, method_name=name)

    def _method_name(self, obj: Object, role: str) -> str:
        """Return the special method that a role looks up; of the callees that share the name, one runs."""
        if role in INTERCHANGEABLE_ROLES or self.values.objects[obj >> 1].kind != OBJ_FUNCTION:
            return ""
        name = self.values.function(obj)[1].name
        is_special = (
            name in ATTRIBUTE_HOOKS if role == "attribute" else name.startswith("__") and name.endswith("__")
        )
        return name if is_special else ""

    @staticmethod
    def _group(src: str, role: str | None, method_name: str = "") -> str:
        """Return the id of the ambiguity group of a call's candidates."""
        return group_id(src, "CALLS", role, method_name)

    def _add_claimed_calls(
        self,
        number: int,
        src_kind: str,
        src: str,
        verdict: Verdict,
        group: str | None,
        role: str | None,
        args: Sequence[Arg] = (),
    ) -> None:
        """Add the rows of callees that only other witnesses claim."""
        site = self.program.sites[number]
        for target, claim in verdict.added.items():
            confidence = verdict.confidence(target, 0.0)
            self._add_call(
                number,
                (src_kind, src),
                verdict,
                Candidate(target, claim.witness, confidence),
                origin=claim.witness,
                role=claim.role or role,
                group=group,
            )
            if target.kind != "CLASS":
                self._count(site, target, confidence, claim.witness)
            obj = self.claims.function(target)
            if obj is not None and claim.role is None and src_kind == "CALLSITE":
                # The receiver of a method is bound: values resolve calls through the class.
                _, function = self.values.function(obj)
                skip = int(function.owner >= 0 and function.binds != "nothing")
                self._add_arguments(
                    number, src, obj, args, skip, (claim.witness, confidence, group), claim.witness
                )

    def _add_call(
        self,
        number: int,
        src: tuple[str, str],
        verdict: Verdict,
        candidate: Candidate,
        *,
        origin: str,
        role: str | None,
        group: str | None,
        key: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Add the row of one callee, from a source given by kind and id; `key` is of our own evidence."""
        target = candidate.target
        self.rows.add(
            CALL_KINDS.get(target.kind, "CALLS_NAME"),
            *src,
            target.kind,
            target.node,
            place=self.program.sites[number].place,
            origin=origin,
            rule="call",
            method=candidate.method,
            confidence=candidate.confidence,
            score=candidate.confidence + verdict.rank(target),
            dst_qname=target.qname,
            role=role,
            group=group,
            symbol_roles=verdict.roles(target),
            evidence=joined_evidence(origin, key, verdict.evidence(target)),
            reason=reason,
        )

    def _method_by_name(self, number: int, target: Target) -> str | None:
        """Return the resolution method if names alone resolve a callee, else None.

        They do for a class, a member of a module, and an external name.
        """
        site = self.program.sites[number]
        load = self.attribute_loads.get(self.callees.get(number, NOTHING))
        if load is not None:
            receivers = self.values.program_objects(self.file, load[1])
            kinds = {"weak" if obj & WEAK else self.values.objects[obj >> 1].kind for obj in receivers}
            return "import" if kinds and kinds <= IMPORTED_KINDS else None
        use = self.uses.get((site.inner[0], site.inner[1]))
        if use is None:
            is_builtin = target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
            return "builtin" if is_builtin else None
        by_name = self.resolver.targets_of_definitions(self.file, use.definitions, use.name)
        if len(by_name) == 1 and by_name[0].kind in ("CLASS", "QUALIFIED_NAME"):
            return "import" if self._is_imported(use.definitions) else "scope"
        return None

    def _call_target(self, obj: Object, role: str = "") -> Target | None:
        """Return the node of a callee; None for declarations and objects that have no node."""
        kind, first, second, _ = self.values.objects[obj >> 1]
        if kind == OBJ_FUNCTION:
            return self.resolver.function(first, second)
        if kind == OBJ_CLASS:
            return self.resolver.cls(first, second)
        if kind == OBJ_EXTERNAL and not is_declaration(first, role):
            return self.resolver.external(first)
        return None

    def _add_arguments(
        self,
        number: int,
        src: str,
        obj: Object,
        args: Sequence[Arg],
        skip: int,
        resolution: tuple[str, float, str | None],
        origin: str = "values",
    ) -> None:
        """Add the rows of a call's arguments; resolution is method, confidence and group of the callee."""
        values = self.values
        places = self.program.arguments.get(number, ())
        if not places or len(args) != len(places):
            # A partial or a callback gets other arguments than those written at the call.
            return
        file, function = values.function(obj)
        passed = values.match_arguments(values.original(obj), args, skip).passed
        method, confidence, group = resolution
        for each in passed:
            place = places[each.argument]
            parameter = function.parameters[each.parameter]
            self.rows.add(
                "PASSES_TO",
                "ARGUMENT",
                self.node_at("ARGUMENT", place),
                "PARAMETER",
                self.resolver.parameter(file, parameter.place),
                place=place,
                origin=origin,
                rule="argument",
                method=method,
                confidence=confidence,
                score=confidence,
                role=parameter.name,
                ordinal=each.argument,
                group=group,
                evidence=src,
            )

    def _count(self, site: Site, target: Target, confidence: float, origin: str = "values") -> None:
        """Note an edge of the call graph; it has the best confidence and the first place of its calls."""
        key = (site.function, target.node)
        known = self.call_graph.get(key)
        if known is None or known[1] < confidence:
            place = site.place if known is None else known[2]
            self.call_graph[key] = (target, confidence, place, origin if known is None else known[3])
