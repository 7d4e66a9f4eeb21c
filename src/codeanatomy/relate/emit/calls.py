"""Rows of what is called: functions, classes, names outside, arguments that are passed, and who calls whom.

    f(x)     CALLS from the call to f, PASSES_TO from x to f's parameter, and the pair counts for CALL_GRAPH

How sure we are depends on how the callee was found: by names alone, by values, by a hint; other witnesses
confirm that, or add what only they know. Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeanatomy.ids import stable_id
from codeanatomy.node_ids import ast_node_id
from codeanatomy.relate.emit.call_graph import is_counted, is_declaration
from codeanatomy.relate.emit.names import NameRows
from codeanatomy.relate.emit.references import SCOPED, VALUE, Answer
from codeanatomy.relate.program import NOTHING, Arg, Op, Site
from codeanatomy.relate.relation_rows import Evidence
from codeanatomy.relate.values.classes import DEFAULT_FACTORY
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.agreement import Verdict

# Kinds of things whose members are told by import rules: modules, namespaces, names outside.
IMPORTED = frozenset({"M", "N", "X"})
CALL_KINDS = {"FUNCTION": "CALLS", "CLASS": "INSTANTIATES"}
# Ways to run a method in which one stands for another: which of them runs depends on the class.
ONE_OF = frozenset({"operator", "truth", "format"})
# Methods that run for every attribute, before the one that has it.
HOOKS = frozenset({"__getattribute__", "__setattr__", "__delattr__"})


class CallRows(NameRows):
    """The rows of calls."""

    # The attribute that a node is read from, and the node that a site calls.
    receivers: Mapping[int, Op] = {}
    callees: Mapping[int, int] = {}

    def _ast(self, site: Site) -> str:
        return ast_node_id(self.program.file_id, site.place[0], site.place[1], site.ast_id)

    def _calls(
        self,
        number: int,
        chosen: Sequence[tuple[Object, str]],
        src_kind: str,
        src: str,
        alternatives: int,
        role: str | None = None,
        verdicts: Mapping[str, Verdict] = {},
        reason: str | None = None,
        method_name: str = "",
    ) -> None:
        """The rows of a call: what runs, what is made, what is passed."""
        if not chosen:
            return
        values, site = self.values, self.program.sites[number]
        targets = {thing: self._called(thing, site.role) for thing, _ in chosen}
        listed = [target for thing, how in chosen if (target := targets[thing]) is not None]
        sure = {one.target: one for one in self._trusted(listed, [thing for thing, _ in chosen], site.inner)}
        group = self._group(src, role, method_name) if alternatives > 1 else None
        for thing, how in chosen:
            target = targets[thing]
            if target is None:
                continue
            given = sure[target]
            method, confidence = given.method, given.confidence
            if alternatives <= 1 and method == "values":
                confidence = VALUE
            if how == "callback":
                method = "callback"
            is_itself = alternatives <= 1 and method == "values" and how != DEFAULT_FACTORY
            if is_itself and (by_name := self._named_by(number, target)):
                method, confidence = by_name, SCOPED
            part = role or (how if how != site.role else None)
            verdict = verdicts.get(how, self.claims.witnesses.silence)
            confidence = verdict.confidence(target, confidence)
            self._row(
                number,
                (src_kind, src),
                verdict,
                Answer(target, method, confidence),
                origin="values",
                role=part,
                group=group,
                evidence=[Evidence("values", src)],
                reason=reason,
            )
            if is_counted(values, thing):
                self._count(site, target, confidence)
            if target.kind == "FUNCTION" and src_kind == "CALLSITE" and how != "callback":
                args, skip = values.arguments.get(((self.file, number), thing & ~1), ((), 0))
                self._passed(number, src, thing, args, skip, (method, confidence, group))

    def _each_method(
        self,
        number: int,
        chosen: Sequence[tuple[Object, str]],
        role: str,
        verdicts: Mapping[str, Verdict],
    ) -> None:
        """The rows of what a syntax node runs: of `__enter__` and of `__exit__` one each."""
        methods: dict[str, list[tuple[Object, str]]] = {}
        for thing, how in chosen:
            methods.setdefault(self._method(thing, role), []).append((thing, how))
        src = self._ast(self.program.sites[number])
        for name, found in methods.items():
            self._calls(number, found, "AST_NODE", src, len(found), role, verdicts, method_name=name)

    def _method(self, thing: Object, role: str) -> str:
        """The method that is asked for; of those that share it, one runs."""
        if role in ONE_OF or self.values.objects[thing >> 1].kind != "F":
            return ""
        name = self.values.function(thing)[1].name
        is_asked = name in HOOKS if role == "attribute" else name.startswith("__") and name.endswith("__")
        return name if is_asked else ""

    @staticmethod
    def _group(src: str, role: str | None, method_name: str = "") -> str:
        """The group of what may be called, one or the other."""
        if not method_name:
            return stable_id("ambig", "CALLS", src, role)
        return stable_id("ambig", "CALLS", src, role, method_name)

    def _added(
        self,
        number: int,
        src_kind: str,
        src: str,
        verdict: Verdict,
        group: str | None,
        role: str | None,
        args: Sequence[Arg] = (),
    ) -> None:
        """The rows of what only witnesses say is called."""
        site = self.program.sites[number]
        for target, claim in verdict.added.items():
            confidence = verdict.confidence(target, 0.0)
            self._row(
                number,
                (src_kind, src),
                verdict,
                Answer(target, claim.witness, confidence),
                origin=claim.witness,
                role=claim.role or role,
                group=group,
            )
            if target.kind != "CLASS":
                self._count(site, target, confidence, claim.witness)
            thing = self.claims.function(target)
            if thing is not None and claim.role is None and src_kind == "CALLSITE":
                # Of a method the receiver is bound: through its class, values would have found it.
                _, function = self.values.function(thing)
                skip = int(function.owner >= 0 and function.binds != "nothing")
                self._passed(
                    number, src, thing, args, skip, (claim.witness, confidence, group), claim.witness
                )

    def _row(
        self,
        number: int,
        src: tuple[str, str],
        verdict: Verdict,
        found: Answer,
        *,
        origin: str,
        role: str | None,
        group: str | None,
        evidence: Sequence[Evidence] = (),
        reason: str | None = None,
    ) -> None:
        """One thing that is called, from a source of this kind and id."""
        target = found.target
        self.rows.add(
            CALL_KINDS.get(target.kind, "CALLS_NAME"),
            *src,
            target.kind,
            target.node,
            place=self.program.sites[number].place,
            origin=origin,
            rule="call",
            method=found.method,
            confidence=found.confidence,
            score=found.confidence + verdict.rank(target),
            dst_qname=target.qname,
            role=role,
            group=group,
            symbol_roles=verdict.roles(target),
            evidence=[*evidence, *verdict.evidence(target)],
            reason=reason,
        )

    def _named_by(self, number: int, target: Target) -> str | None:
        """How, if names alone lead to what is called: a class, a member of a module, a name outside."""
        site = self.program.sites[number]
        load = self.receivers.get(self.callees.get(number, NOTHING))
        if load is not None:
            things = self.values.program_objects(self.file, load[1])
            kinds = {"weak" if thing & WEAK else self.values.objects[thing >> 1].kind for thing in things}
            return "import" if kinds and kinds <= IMPORTED else None
        use = self.uses.get((site.inner[0], site.inner[1]))
        if use is None:
            is_builtin = target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
            return "builtin" if is_builtin else None
        named = self.definitions.targets_of_definitions(self.file, use.definitions, use.name)
        if len(named) == 1 and named[0].kind in ("CLASS", "QUALIFIED_NAME"):
            return "import" if self._is_imported(use.definitions) else "scope"
        return None

    def _called(self, thing: Object, role: str = "") -> Target | None:
        kind, one, two, _ = self.values.objects[thing >> 1]
        if kind == "F":
            return self.definitions.function(one, two)
        if kind == "C":
            return self.definitions.cls(one, two)
        if kind == "X" and not is_declaration(one, role):
            return self.definitions.external(one)
        return None

    def _passed(
        self,
        number: int,
        src: str,
        thing: Object,
        args: Sequence[Arg],
        skip: int,
        found: tuple[str, float, str | None],
        origin: str = "values",
    ) -> None:
        """The rows of arguments of a call; found is how, how sure we are, and the group of what is called."""
        values = self.values
        places = self.program.arguments.get(number, ())
        if not places or len(args) != len(places):
            # Of a partial or a callback: these are not the arguments that stand there.
            return
        file, function = values.function(thing)
        passed = values.match_arguments(values.original(thing), args, skip).passed
        said = [Evidence(origin, src)]
        for each in passed:
            place = places[each.argument]
            parameter = function.parameters[each.parameter]
            self.rows.add(
                "PASSES_TO",
                "ARGUMENT",
                self.at("ARGUMENT", place),
                "PARAMETER",
                self.definitions.parameter(file, parameter.place),
                place=place,
                origin=origin,
                rule="argument",
                method=found[0],
                confidence=found[1],
                score=found[1],
                role=parameter.name,
                ordinal=each.argument,
                group=found[2],
                evidence=said,
            )

    def _count(self, site: Site, target: Target, confidence: float, origin: str = "values") -> None:
        key = (site.function, target.node)
        known = self.graph.get(key)
        if known is None or known[1] < confidence:
            place = site.place if known is None else known[2]
            self.graph[key] = (target, confidence, place, origin if known is None else known[3])
