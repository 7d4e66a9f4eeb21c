"""From names and values to rows of `relations_v1`.

    for rows in relations(values):           # one for each file
        rows.batch()

Every name, attribute, import, base class, decorator, argument and call gets a row for each thing it refers
to, or one without a target that says why. How sure we are is decided in `trust`; what other witnesses say is
weighed in `witnesses`. Tests: `tests/test_relate_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.ids import stable_id
from codeanatomy.nodes import ast_node_id, module_id
from codeanatomy.relate.arguments import match
from codeanatomy.relate.attributes import MODULE_TEXTS
from codeanatomy.relate.callgraph import callee, caller
from codeanatomy.relate.claims import Claim
from codeanatomy.relate.definitions import MODULE_KEY, Definitions, Target
from codeanatomy.relate.models import DECLARATIONS
from codeanatomy.relate.modules import INITS, distribution
from codeanatomy.relate.outside import BUILTINS
from codeanatomy.relate.program import FUNCTION, IMPORT, NOTHING, Arg, Op, Place, Program, Site, Use
from codeanatomy.relate.rows import Complaint, Evidence, Rows
from codeanatomy.relate.solver import WEAK, Object, best
from codeanatomy.relate.values import Values
from codeanatomy.relate.verdicts import Problem, Verdict
from codeanatomy.relate.witnesses import FileClaims, Witnesses

SURE, SCOPED, VALUE, SEVERAL, HINTED = 1.0, 0.9, 0.7, 0.5, 0.3
MODULES = frozenset({"M", "N"})
HOWS = {".": "get", ":": "set", "x": "del"}
CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
CALL_KINDS = {"FUNCTION": "CALLS", "CLASS": "INSTANTIATES"}


class Answer(NamedTuple):
    """A target, how it was found and how sure we are."""

    target: Target
    method: str
    confidence: float


def relations(values: Values, problems: list[Problem] | None = None) -> Iterator[Rows]:
    """The rows of each file; where other witnesses disagree is added to the problems meanwhile."""
    definitions = Definitions(values)
    attributes = stored_attributes(values)
    witnesses = Witnesses(definitions, attributes, problems)
    for file in range(len(values.programs)):
        yield FileRows(values, definitions, attributes, file, witnesses.of_file(file)).made()


def stored_attributes(values: Values) -> dict[tuple[Object, str], None]:
    """The attributes that are assigned on instances, by the class they are written in."""
    found: dict[tuple[Object, str], None] = {}
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] == ":":
                for cls in owners(values, file, op):
                    found[cls, op[2]] = None
    return found


def owners(values: Values, file: int, op: Op) -> list[Object]:
    """The classes whose attribute an assignment makes: that of `self`, or those of the receivers."""
    own = self_class(values, file, op)
    if own is not None:
        return [own]
    found = []
    for thing in values.held(file, op[1]):
        kind, one, _, _ = values.things[thing >> 1]
        if kind == "I":
            found.append(one)
        elif kind == "C":
            found.append(thing & ~1)
    return list(dict.fromkeys(found))


def self_class(values: Values, file: int, op: Op) -> Object | None:
    """The class around, if the receiver is the first parameter of one of its methods."""
    program = values.programs[file]
    site = op[-1]
    number = program.sites[site].function if site >= 0 else -1
    while number >= 0:
        function = program.functions[number]
        if function.owner >= 0:
            first = function.parameters[0].node if function.parameters else NOTHING
            bound = function.binds != "nothing" and first == op[1]
            return values.thing("C", file, function.owner) if bound else None
        number = function.outer
    return None


class FileRows:
    """The rows of one file in the making."""

    def __init__(
        self,
        values: Values,
        definitions: Definitions,
        attributes: Mapping[tuple[Object, str], None],
        file: int,
        claims: FileClaims,
    ) -> None:
        self.values = values
        self.claims = claims
        self.definitions = definitions
        self.attributes = attributes
        self.file = file
        self.program: Program = values.programs[file]
        self.rows = Rows(self.program.repo_id, self.program.file_id, self.program.path)
        self.uses: dict[tuple[int | None, int | None], Use] = {
            (use.place[0], use.place[1]): use for use in self.program.uses
        }
        self.graph: dict[tuple[int, str], tuple[Target, float, Place, str]] = {}

    def made(self) -> Rows:
        """All rows."""
        for place in self.program.unread_calls:
            src = self.at("CALLSITE", place)
            self.answer("CALLS", "CALLSITE", src, place, [], rule="call", reason=self.program.failure)
        self._names()
        self._imports()
        self._classes()
        self._decorators()
        self._operations()
        self._call_graph()
        return self.rows

    # -- rows

    def answer(
        self,
        kind: str,
        src_kind: str,
        src: str,
        place: Place,
        answers: Sequence[Answer],
        *,
        rule: str,
        origin: str = "values",
        role: str | None = None,
        ordinal: int | None = None,
        reason: str | None = None,
        key: str | None = None,
        claims: Sequence[Claim] = (),
        known: Iterable[Target] = (),
    ) -> None:
        """A row for each answer, ours or a witness's, or one that says why there is none."""
        verdict = self.claims.verdict(place, [each.target for each in answers], claims, known)
        ranked = [(each, origin, each.confidence - rank * 1e-3) for rank, each in enumerate(answers)]
        for target, claim in verdict.added.items():
            trust = verdict.confidence(target, 0.0)
            ranked.append((Answer(target, claim.witness, trust), claim.witness, trust))
        if not ranked:
            why = reason or "unknown"
            self.rows.add(
                kind,
                src_kind,
                src,
                place=place,
                origin=origin,
                rule=rule,
                role=role,
                ordinal=ordinal,
                reason=why,
            )
            return
        group = stable_id("ambig", kind, src, role) if len(ranked) > 1 else None
        for each, by, score in ranked:
            own = [Evidence(origin, key or src)] if by == origin else []
            confidence = verdict.confidence(each.target, each.confidence)
            self.rows.add(
                kind,
                src_kind,
                src,
                each.target.kind,
                each.target.node,
                place=place,
                origin=by,
                rule=rule,
                method=each.method,
                confidence=confidence,
                score=score + confidence - each.confidence + verdict.rank(each.target),
                dst_qname=each.target.qname,
                role=role,
                ordinal=ordinal,
                group=group,
                symbol_roles=verdict.roles(each.target),
                evidence=[*own, *verdict.evidence(each.target)],
            )

    def at(self, kind: str, place: Place) -> str:
        """The id of what stands at a place of this file."""
        return self.definitions.at(kind, self.file, place)

    # -- names

    def _names(self) -> None:
        values, program = self.values, self.program
        for use in program.uses:
            known = self.definitions.of(self.file, use.definitions, use.name)
            targets = tuple(each for each in known if each.kind != "BINDING") or known
            method = "import" if self._is_imported(use.definitions) else "scope"
            answers = [Answer(each, method, SCOPED if len(targets) == 1 else SEVERAL) for each in targets]
            self.answer(
                "REFERS_TO",
                "NAME_REF",
                self.at("NAME_REF", use.place),
                use.place,
                answers,
                rule="name",
                origin="scopes",
                reason="import_not_found",
                claims=self.claims.name(use.place),
                known=known,
            )
        for place, name in program.open_uses:
            src = self.at("NAME_REF", place)
            targets = self.definitions.unbound(self.file, name)
            if targets:
                answers = [
                    Answer(each, "star_import", SCOPED if len(targets) == 1 else SEVERAL) for each in targets
                ]
            elif name in BUILTINS or name in MODULE_TEXTS:
                answers = [Answer(self.definitions.outside(f"builtins.{name}"), "builtin", SCOPED)]
            else:
                stars = [star for star in values.stars(self.file) if not values.modules.has(star)]
                answers = [
                    Answer(self.definitions.outside(f"{star}.{name}"), "star_import", HINTED)
                    for star in stars
                ]
            self.answer(
                "REFERS_TO",
                "NAME_REF",
                src,
                place,
                answers,
                rule="open_name",
                origin="scopes",
                reason="unbound",
                claims=self.claims.name(place),
            )

    def _is_imported(self, numbers: Iterable[int]) -> bool:
        return any(self.program.definitions[number].kind == IMPORT for number in numbers)

    def _imports(self) -> None:
        values, program = self.values, self.program
        mine = Target("MODULE", module_id(program.file_id), values.names[self.file])
        is_package = program.path.rpartition("/")[2] in INITS
        for number, each in enumerate(program.imports):
            src = self.at("IMPORT_ALIAS", each.place)
            name = values.modules.absolute(program.path, each.module, each.level)
            if name is None:
                self.answer(
                    "IMPORTS_MODULE",
                    "IMPORT_ALIAS",
                    src,
                    each.place,
                    [],
                    rule="import",
                    origin="imports",
                    reason="above_all_packages",
                )
                continue
            module = self.definitions.module(name)
            if not (name in values.modules.namespaces and name not in values.modules.paths):
                role = distribution(name) if module.kind == "EXTERNAL_MODULE" else None
                self.answer(
                    "IMPORTS_MODULE",
                    "IMPORT_ALIAS",
                    src,
                    each.place,
                    [Answer(module, "import", SCOPED)],
                    rule="import",
                    origin="imports",
                    role=role or None,
                )
            if each.name is None or each.bound is None:
                continue
            targets = self.definitions.imported(self.file, number)
            answers = [Answer(one, "import", SCOPED if len(targets) == 1 else SEVERAL) for one in targets]
            self.answer(
                "IMPORTS_NAME",
                "IMPORT_ALIAS",
                src,
                each.place,
                answers,
                rule="import",
                origin="imports",
                reason="name_not_found",
                claims=self.claims.name(each.place),
            )
            exported = (
                each.bound in program.exported
                if program.exported is not None
                else is_package and not each.bound.startswith("_")
            )
            if exported and each.scope_key == MODULE_KEY:
                for one in answers:
                    if one.target.kind in ("FUNCTION", "CLASS", "BINDING", "MODULE") and one.target != mine:
                        self.answer(
                            "RE_EXPORTS",
                            "MODULE",
                            mine.node,
                            each.place,
                            [one],
                            rule="re_export",
                            origin="imports",
                            role=each.bound,
                        )

    # -- classes

    def _classes(self) -> None:
        values, program = self.values, self.program
        for number, cls in enumerate(program.classes):
            thing = values.thing("C", self.file, number)
            src = self.at("CLASS", cls.place)
            if thing in values.inconsistent:
                said = f"the bases of {cls.qualname} have no consistent order (MRO)"
                self.rows.complaints.append(Complaint("relate", "inconsistent_mro", said, cls.place, "error"))
            for node, place, ordinal in cls.bases:
                things = values.held(self.file, node) if node >= 0 else ()
                targets = [one for each in things for one in self._class_target(each)]
                answers = self._trusted(targets, things, place)
                self.answer(
                    "INHERITS",
                    "CLASS",
                    src,
                    place,
                    answers,
                    rule="base",
                    ordinal=ordinal,
                    reason="unknown_base",
                )
            for name, (_, numbers) in cls.attrs.items():
                holder = values.find(thing, name, after=thing)
                if holder is None or values.things[holder >> 1].kind != "C":
                    continue
                over = [one for one in self.definitions.in_class(holder, name) if one.kind == "FUNCTION"]
                for definition in numbers:
                    if program.definitions[definition].kind == FUNCTION and over:
                        mine = self.definitions.function(self.file, program.definitions[definition].index)
                        place = program.definitions[definition].place
                        answers = [Answer(one, "mro", SCOPED if len(over) == 1 else SEVERAL) for one in over]
                        self.answer(
                            "OVERRIDES",
                            "FUNCTION",
                            mine.node,
                            place,
                            answers,
                            rule="override",
                            origin="classes",
                        )

    def _class_target(self, thing: Object) -> list[Target]:
        kind, one, two, _ = self.values.things[thing >> 1]
        if kind == "C":
            return [self.definitions.cls(one, two)]
        return [self.definitions.outside(one)] if kind == "X" else []

    def _trusted(self, targets: Sequence[Target], things: Iterable[Object], place: Place) -> list[Answer]:
        """By the name at a place if that leads to the same, else by values."""
        distinct = list(dict.fromkeys(targets))
        use = self.uses.get((place[0], place[1]))
        if use is not None and len(distinct) == 1:
            named = self.definitions.of(self.file, use.definitions, use.name)
            if named == (distinct[0],):
                method = "import" if self._is_imported(use.definitions) else "scope"
                return [Answer(distinct[0], method, SCOPED)]
        if all(thing & WEAK for thing in things):
            return [Answer(each, "annotation", HINTED) for each in distinct]
        return [Answer(each, "values", VALUE if len(distinct) == 1 else SEVERAL) for each in distinct]

    def _decorators(self) -> None:
        for place, kind, number, _ in self.program.decorators:
            is_function = kind == FUNCTION
            target = (
                self.definitions.function(self.file, number)
                if is_function
                else self.definitions.cls(self.file, number)
            )
            self.answer(
                "DECORATES",
                "DECORATOR",
                self.at("DECORATOR", place),
                place,
                [Answer(target, "syntax", SURE)],
                rule="decorator",
                origin="syntax",
            )

    # -- attributes and calls

    def _operations(self) -> None:
        self.external = self._external_results()
        self.receivers = {op[3]: op for op in self.program.ops if op[0] == "."}
        for op in self.program.ops:
            if op[0] in HOWS and op[-1] >= 0:
                self._attribute(op)
            elif op[0] == "(":
                self._call(op)
        told = {op[3] for op in self.program.ops if op[0] == "("}
        for number, site in enumerate(self.program.sites):
            if number not in told and site.role != "attribute":
                self._implicit(number, site)

    def _external_results(self) -> set[int]:
        """Nodes that hold what something outside returned."""
        found = set()
        for op in self.program.ops:
            if op[0] == "(":
                things = self.values.calls.get((self.file, op[3]), {})
                if things and all(self.values.things[thing >> 1].kind == "X" for thing in things):
                    found.add(op[2])
        return found

    def _attribute(self, op: Op) -> None:
        values = self.values
        site = self.program.sites[op[-1]]
        name = op[2]
        things = values.held(self.file, op[1])
        run = [(thing, values.attr_calls.get((thing & ~1, name, HOWS[op[0]]), {})) for thing in things]
        targets = [
            one for _, functions in run for each in functions if (one := self._called(each)) is not None
        ]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, "attribute"))
        for thing, functions in run:
            for function in functions:
                chosen = [(function | thing & WEAK, "attribute")]
                self._calls(
                    op[-1], chosen, "AST_NODE", self._ast(site), len(functions), None, {"attribute": verdict}
                )
        self._added(op[-1], "AST_NODE", self._ast(site), verdict, None, "attribute")
        if site.inner[0] is None:
            return
        targets = []
        for thing in things:
            targets += self._attribute_of(thing, name)
        own = self_class(values, self.file, op)
        if own is not None:
            targets += self._attribute_of(values.thing("I", own), name)
        answers = self._attribute_answers(list(dict.fromkeys(targets)), things, own)
        src = self.at("ATTRIBUTE_REF", site.inner)
        if op[0] == ":":
            for cls in owners(values, self.file, op):
                target = self.definitions.attribute(cls, name)
                sure = SCOPED if own is not None else VALUE
                self.answer(
                    "DEFINES_BINDING",
                    "ATTRIBUTE_REF",
                    src,
                    site.inner,
                    [Answer(target, "self" if own is not None else "values", sure)],
                    rule="attribute",
                )
        reason = "no_such_attribute" if things else self._why_unknown(op[1])
        claims = self.claims.attribute(site.inner, site.place, name)
        self.answer(
            "REFERS_TO",
            "ATTRIBUTE_REF",
            src,
            site.inner,
            answers,
            rule="attribute",
            reason=reason,
            claims=claims,
        )

    def _attribute_answers(
        self, targets: Sequence[Target], things: Sequence[Object], own: Object | None
    ) -> list[Answer]:
        kinds = {self.values.things[thing >> 1].kind for thing in things}
        if (kinds and kinds <= {"M", "N"}) or (kinds == {"X"} and not any(thing & WEAK for thing in things)):
            return [Answer(each, "import", SCOPED if len(targets) == 1 else SEVERAL) for each in targets]
        if own is None and things and all(thing & WEAK for thing in things):
            return [Answer(each, "annotation", HINTED) for each in targets]
        return [Answer(each, "values", VALUE if len(targets) == 1 else SEVERAL) for each in targets]

    def _attribute_of(self, thing: Object, name: str) -> Sequence[Target]:
        values = self.values
        kind, one, two, _ = values.things[thing >> 1]
        if kind == "M":
            return self.definitions.name_of(values.names[one], name)
        if kind == "N":
            return self.definitions.name_of(one, name)
        if kind in ("X", "Y"):
            inner = values.found(values.attr(thing, name))
            return [self.definitions.outside(f"{one}.{name}")] if inner else []
        if kind == "J":
            return self._attribute_of(values.thing("Y", "builtins.str"), name)
        if kind == "L":
            known = values.container_has(thing, name)
            return [self.definitions.outside(f"{values.type_of(thing)}.{name}")] if known else []
        if kind == "I":
            return self._member(one, name, None)
        if kind == "C":
            return self._member(thing & ~1, name, None)
        if kind == "S":
            receiver = values.things[two >> 1]
            return self._member(receiver.one if receiver.kind == "I" else two, name, one)
        return []

    def _member(self, cls: Object, name: str, after: Object | None) -> Sequence[Target]:
        """An attribute by MRO: of the class's body, or assigned on instances."""
        values = self.values
        order = values.mro(cls)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        outside: Target | None = None
        for each in order:
            kind, one, two, _ = values.things[each >> 1]
            if kind == "X":
                holder = values.find(cls, name, after=after)
                if outside is None and holder == each:
                    outside = self.definitions.outside(f"{one}.{name}")
            elif name in values.programs[one].classes[two].attrs:
                return self.definitions.in_class(each, name)
            elif (each, name) in self.attributes:
                return [self.definitions.attribute(each, name)]
        return [] if outside is None else [outside]

    def _why_unknown(self, node: int) -> str:
        if self.values.at(self.file, node) in self.values.cut:
            return "too_many_candidates"
        return "external_result" if node in self.external else "unknown_receiver"

    def _call(self, op: Op) -> None:
        _, node, _, number, args = op
        site = self.program.sites[number]
        things = self.values.calls.get((self.file, number), {})
        is_decorator = site.role == "decorator"
        kind = "DECORATOR" if is_decorator else "CALLSITE" if site.place[0] is not None else "AST_NODE"
        src = self._ast(site) if kind == "AST_NODE" else self.at(kind, site.place)
        chosen = [(thing, things[thing]) for thing in best(things)]
        role = site.role if is_decorator else None
        verdicts = self._verdicts(site, chosen)
        verdict = verdicts[site.role]
        if not chosen and not verdict.added:
            self.answer(
                "CALLS", kind, src, site.place, [], rule="call", role=role, reason=self._why_uncalled(node)
            )
            return
        primary = [
            thing for thing, how in chosen if how == site.role and not self._is_constructor(thing, things)
        ]
        alternatives = len(primary) + len(set(verdict.added.values()))
        self._calls(number, chosen, kind, src, alternatives, role, verdicts)
        group = stable_id("ambig", "CALLS", src, role) if alternatives > 1 else None
        self._added(number, kind, src, verdict, group, role, args)

    def _verdicts(self, site: Site, chosen: Sequence[tuple[Object, str]]) -> dict[str, Verdict]:
        """What witnesses say of a call, by how something runs there."""
        claims = self.claims
        is_decorator = site.role == "decorator"
        said = claims.decorator(site.place) if is_decorator else claims.call(site.place, site.inner)
        called = [
            one for thing, how in chosen if how != "callback" and (one := self._called(thing)) is not None
        ]
        passed = [
            one for thing, how in chosen if how == "callback" and (one := self._called(thing)) is not None
        ]
        verdict = claims.verdict(site.place, called, said)
        found = {how: verdict for _, how in chosen} | {site.role: verdict}
        return found | {
            "callback": claims.verdict(site.place, passed, claims.passed(site.place) if passed else ())
        }

    def _is_constructor(self, thing: Object, things: Mapping[Object, str]) -> bool:
        """Whether it runs because a class is called."""
        kind, file, number, _ = self.values.things[thing >> 1]
        if kind != "F" or self.values.programs[file].functions[number].name not in CONSTRUCTORS:
            return False
        return any(self.values.things[other >> 1].kind == "C" for other in things)

    def _why_uncalled(self, node: int) -> str:
        found = self.values.held(self.file, node)
        if found:
            return "not_callable"
        load = self.receivers.get(node)
        if load is None:
            return self._why_unknown(node).replace("unknown_receiver", "unknown_value")
        received = self.values.held(self.file, load[1])
        return "no_such_attribute" if received else self._why_unknown(load[1])

    def _implicit(self, number: int, site: Site) -> None:
        things = self.values.calls.get((self.file, number), {})
        chosen = [(thing, things[thing]) for thing in best(things)]
        own = [each for each in chosen if self.values.things[each[0] >> 1].kind in ("F", "C")]
        targets = [one for thing, _ in own if (one := self._called(thing)) is not None]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, site.role))
        if own:
            verdicts = {how: verdict for _, how in own}
            self._calls(number, own, "AST_NODE", self._ast(site), len(own), site.role, verdicts)
        self._added(number, "AST_NODE", self._ast(site), verdict, None, site.role)

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
    ) -> None:
        """The rows of a call: what runs, what is made, what is passed."""
        values, site = self.values, self.program.sites[number]
        targets = {thing: self._called(thing) for thing, _ in chosen}
        listed = [target for thing, how in chosen if (target := targets[thing]) is not None]
        sure = {one.target: one for one in self._trusted(listed, [thing for thing, _ in chosen], site.inner)}
        group = stable_id("ambig", "CALLS", src, role) if alternatives > 1 else None
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
            if alternatives <= 1 and method == "values" and self._is_named(site, target):
                method, confidence = self._is_named(site, target) or method, SCOPED
            part = role or (how if how != site.role else None)
            verdict = verdicts.get(how, self.claims.witnesses.silence)
            confidence = verdict.confidence(target, confidence)
            self.rows.add(
                CALL_KINDS.get(target.kind, "CALLS_NAME"),
                src_kind,
                src,
                target.kind,
                target.node,
                place=site.place,
                origin="values",
                rule="call",
                method=method,
                confidence=confidence,
                score=confidence + verdict.rank(target),
                dst_qname=target.qname,
                role=part,
                group=group,
                symbol_roles=verdict.roles(target),
                evidence=[Evidence("values", src), *verdict.evidence(target)],
            )
            counted = callee(values, thing)
            if counted is not None:
                self._count(site, target, confidence)
            if target.kind == "FUNCTION" and src_kind == "CALLSITE" and how != "callback":
                self._passes(number, thing, confidence, method)

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
            self.rows.add(
                CALL_KINDS.get(target.kind, "CALLS_NAME"),
                src_kind,
                src,
                target.kind,
                target.node,
                place=site.place,
                origin=claim.witness,
                rule="call",
                method=claim.witness,
                confidence=confidence,
                score=confidence + verdict.rank(target),
                dst_qname=target.qname,
                role=claim.role or role,
                group=group,
                symbol_roles=verdict.roles(target),
                evidence=verdict.evidence(target),
            )
            if target.kind != "CLASS":
                self._count(site, target, confidence, claim.witness)
            thing = self.claims.function(target)
            if thing is not None and claim.role is None and src_kind == "CALLSITE":
                # Of a method the receiver is bound: through its class, values would have found it.
                _, function = self.values.function(thing)
                skip = int(function.owner >= 0 and function.binds != "nothing")
                self._passed(number, thing, args, skip, (claim.witness, confidence), claim.witness)

    def _is_named(self, site: Site, target: Target) -> str | None:
        """How, if the called expression names a class whose constructor this is, or a name outside."""
        use = self.uses.get((site.inner[0], site.inner[1]))
        if use is None:
            return (
                "builtin"
                if target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
                else None
            )
        named = self.definitions.of(self.file, use.definitions, use.name)
        if len(named) == 1 and named[0].kind in ("CLASS", "QUALIFIED_NAME"):
            return "import" if self._is_imported(use.definitions) else "scope"
        return None

    def _called(self, thing: Object) -> Target | None:
        kind, one, two, _ = self.values.things[thing >> 1]
        if kind == "F":
            return self.definitions.function(one, two)
        if kind == "C":
            return self.definitions.cls(one, two)
        if kind == "X" and one not in DECLARATIONS and not one.endswith("()"):
            return self.definitions.outside(one)
        return None

    def _passes(self, number: int, thing: Object, confidence: float, method: str) -> None:
        args, skip = self.values.arguments.get(((self.file, number), thing & ~1), ((), 0))
        self._passed(number, thing, args, skip, (method, confidence))

    def _passed(
        self,
        number: int,
        thing: Object,
        args: Sequence[Arg],
        skip: int,
        found: tuple[str, float],
        origin: str = "values",
    ) -> None:
        """The rows of arguments; found is how, and how sure we are."""
        values, site = self.values, self.program.sites[number]
        places = self.program.arguments.get(number, ())
        if len(args) != len(places):
            # Of a partial or a callback: these are not the arguments that stand there.
            return
        file, function = values.function(thing)
        passed, _ = match(function.parameters, args, skip)
        for each in passed:
            place = places[each.argument]
            parameter = function.parameters[each.parameter]
            target = Target("PARAMETER", self.definitions.at("PARAMETER", file, parameter.place), None)
            self.rows.add(
                "PASSES_TO",
                "ARGUMENT",
                self.at("ARGUMENT", place),
                target.kind,
                target.node,
                place=place,
                origin=origin,
                rule="argument",
                method=found[0],
                confidence=found[1],
                score=found[1],
                role=parameter.name,
                ordinal=each.argument,
                evidence=[Evidence(origin, self.at("CALLSITE", site.place))],
            )

    # -- who calls whom

    def _count(self, site: Site, target: Target, confidence: float, origin: str = "values") -> None:
        key = (site.function, target.node)
        known = self.graph.get(key)
        if known is None or known[1] < confidence:
            place = site.place if known is None else known[2]
            self.graph[key] = (target, confidence, place, origin if known is None else known[3])

    def _call_graph(self) -> None:
        for (function, _), (target, confidence, place, origin) in self.graph.items():
            name = caller(self.values, self.file, function)
            if function < 0:
                src = Target("MODULE", module_id(self.program.file_id), name)
            else:
                src = self.definitions.function(self.file, function)
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
                src_qname=name,
                dst_qname=target.qname,
                evidence=[Evidence(origin, src.node)],
            )
