"""From names and values to rows of `relations_v1`.

    for rows in relations(values):           # one for each file
        rows.batch()

Every name, attribute, import, base class, decorator, argument and call gets a row for each thing it refers
to, or one without a target that says why. How sure we are is decided in `answers`, what other witnesses say
is weighed in `verdicts`. Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codeanatomy.node_ids import module_id
from codeanatomy.relate.emit.attribute_owners import stored_attributes
from codeanatomy.relate.emit.attributes import CUT, AttributeRows
from codeanatomy.relate.emit.file_relations import unlisted_attributes
from codeanatomy.relate.program import Op, Site
from codeanatomy.relate.relation_rows import Complaint, Evidence, Rows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.classes import DEFAULT_FACTORY
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.witnesses.agreement import Problem, Verdict
from codeanatomy.relate.witnesses.lookup import Witnesses

CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
# Kinds of callable things that calls outside make: of `functools.wraps`, `x.setter`, `f.register`.
MADE_OUTSIDE = frozenset({"w", "Q", "K"})
# Roles of what runs at a call and is not what is called.
BESIDE = frozenset({"callback", DEFAULT_FACTORY})


def relations(values: Values, problems: list[Problem] | None = None) -> Iterator[Rows]:
    """The rows of each file, with what there is to complain about."""
    analysis = Analysis(values, problems)
    for file in range(len(values.programs)):
        yield analysis.rows_of(file)


class Analysis:
    """A repository that is solved, on its way into rows."""

    def __init__(self, values: Values, problems: list[Problem] | None = None) -> None:
        self.values = values
        self.definitions = NameResolver(values)
        self.attributes = stored_attributes(values)
        # Those of them that only we know of, by the file of their class.
        self.unlisted = unlisted_attributes(values, self.attributes)
        # Where other witnesses disagree is added to the problems.
        self.witnesses = Witnesses(self.definitions, self.attributes, problems)

    def rows_of(self, file: int) -> Rows:
        """The rows of one file."""
        told = len(self.witnesses.problems)
        claims = self.witnesses.of_file(file)
        rows = FileRows(self.values, self.definitions, self.attributes, file, claims).made()
        for problem in self.witnesses.problems[told:]:
            rows.complaints.append(
                Complaint("disagreement", problem.code, problem.message, problem.place, "info")
            )
        return rows


class FileRows(AttributeRows):
    """The rows of one file."""

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

    def _operations(self) -> None:
        self.external = self._external_results()
        self.receivers = {op[3]: op for op in self.program.ops if op[0] == "."}
        self.callees = {op[3]: op[1] for op in self.program.ops if op[0] == "("}
        for op in self.program.ops:
            if op[0] in ACCESS_BY_OP and op[-1] >= 0:
                self._attribute(op)
            elif op[0] == "(":
                self._call(op)
        for number, site in enumerate(self.program.sites):
            if number not in self.callees and site.role != "attribute":
                self._implicit(number, site)

    def _external_results(self) -> set[int]:
        """Nodes that hold what something outside returned."""
        found = set()
        for op in self.program.ops:
            if op[0] == "(":
                things = self.values.calls.get((self.file, op[3]), {})
                if things and all(self.values.objects[thing >> 1].kind == "X" for thing in things):
                    found.add(op[2])
        return found

    def _call(self, op: Op) -> None:
        _, node, _, number, args = op
        site = self.program.sites[number]
        things = self.values.calls.get((self.file, number), {})
        is_decorator = site.role == "decorator"
        kind = "DECORATOR" if is_decorator else "CALLSITE" if site.place[0] is not None else "AST_NODE"
        src = self._ast(site) if kind == "AST_NODE" else self.at(kind, site.place)
        chosen = self.values.callees((self.file, number))
        role = site.role if is_decorator else None
        verdicts = self._verdicts(site, chosen)
        verdict = verdicts[site.role]
        is_told = any(self._called(thing, site.role) is not None for thing, _ in chosen)
        if not is_told and not verdict.added:
            # Of a decorator that is only a declaration nothing is told.
            if not chosen or kind == "CALLSITE":
                why = "external_result" if chosen else self._why_uncalled(node)
                self.answer("CALLS", kind, src, site.place, [], rule="call", role=role, reason=why)
            return
        primary = [
            thing for thing, how in chosen if how == site.role and not self._is_constructor(thing, things)
        ]
        alternatives = len(primary) + len(set(verdict.added.values()))
        load = self.receivers.get(node)
        is_truncated = (
            (self.file, number) in self.values.truncated_sites
            or self.values.is_truncated(self.file, node)
            or (load is not None and self.values.is_truncated(self.file, load[1]))
        )
        reason = CUT if is_truncated else None
        made = [each for each in chosen if each[1] == DEFAULT_FACTORY]
        run = [each for each in chosen if each[1] != DEFAULT_FACTORY] if made else chosen
        self._calls(number, run, kind, src, alternatives, role, verdicts, reason)
        # Whichever class it is, the defaults of its fields are made beside it.
        self._calls(number, made, kind, src, 1, role, verdicts, reason)
        group = self._group(src, role) if alternatives > 1 else None
        self._added(number, kind, src, verdict, group, role, args)

    def _verdicts(self, site: Site, chosen: Sequence[tuple[Object, str]]) -> dict[str, Verdict]:
        """What witnesses say of a call, by how something runs there."""
        claims = self.claims
        if claims.is_silent:
            return {site.role: claims.witnesses.silence}
        is_decorator = site.role == "decorator"
        said = claims.decorator(site.place) if is_decorator else claims.call(site.place, site.inner)
        called = [
            one
            for thing, how in chosen
            if how not in BESIDE and (one := self._called(thing, site.role)) is not None
        ]
        passed = [
            one for thing, how in chosen if how == "callback" and (one := self._called(thing)) is not None
        ]
        verdict = claims.verdict(site.place, called, said)
        found = {how: verdict for _, how in chosen if how not in BESIDE} | {site.role: verdict}
        return found | {
            "callback": claims.verdict(site.place, passed, claims.passed(site.place) if passed else ())
        }

    def _is_constructor(self, thing: Object, things: Mapping[Object, str]) -> bool:
        """Whether it runs because a class is called."""
        kind, file, number, _ = self.values.objects[thing >> 1]
        if kind != "F" or self.values.programs[file].functions[number].name not in CONSTRUCTORS:
            return False
        return any(self.values.objects[other >> 1].kind == "C" for other in things)

    def _why_uncalled(self, node: int) -> str:
        found = self.values.program_objects(self.file, node)
        if found:
            return self._why_unrun(found)
        load = self.receivers.get(node)
        if load is None:
            return self._why_unknown(node).replace("unknown_receiver", "unknown_value")
        received = self.values.program_objects(self.file, load[1])
        return "no_such_attribute" if received else self._why_unknown(load[1])

    def _why_unrun(self, found: Sequence[Object]) -> str:
        """Why nothing runs when these are called."""
        things = [self.values.objects[thing >> 1] for thing in found]
        if all(thing.kind == "f" for thing in things):
            # An annotation says no more than that it can be called.
            return "unknown_value"
        is_made = any(
            thing.kind in MADE_OUTSIDE or (thing.kind == "Y" and not thing.first.startswith("builtins."))
            for thing in things
        )
        return "external_result" if is_made else "not_callable"

    def _implicit(self, number: int, site: Site) -> None:
        chosen = self.values.callees((self.file, number))
        own = [each for each in chosen if self.values.objects[each[0] >> 1].kind in ("F", "C")]
        targets = [one for thing, _ in own if (one := self._called(thing)) is not None]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, site.role))
        if own:
            self._each_method(number, own, site.role, {how: verdict for _, how in own})
        if verdict.added:
            self._added(number, "AST_NODE", self._ast(site), verdict, None, site.role)

    def _call_graph(self) -> None:
        module = Target("MODULE", module_id(self.program.file_id), self.values.names[self.file])
        for (function, _), (target, confidence, place, origin) in self.graph.items():
            src = module if function < 0 else self.definitions.function(self.file, function)
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
                evidence=[Evidence(origin, src.node)],
            )
