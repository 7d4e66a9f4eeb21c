"""Rows of attributes: what is read, written or deleted of which class, module or thing outside.

    self.x = 1       in a method of A: DEFINES_BINDING and REFERS_TO, from the identifier to x of A
    a.size           REFERS_TO A.size; where that is a property, the function that runs, and CALLS it with
                     the role `attribute`
    a.nope           REFERS_TO nothing, since there is `no_such_attribute`

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codeanatomy.relate.emit.attribute_owners import owners, self_class
from codeanatomy.relate.emit.calls import CallRows
from codeanatomy.relate.emit.references import HINTED, SCOPED, SEVERAL, VALUE, Answer
from codeanatomy.relate.program import Op, Site
from codeanatomy.relate.values.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.agreement import is_special

# Why candidates are missing.
CUT = "too_many_candidates"


class AttributeRows(CallRows):
    """The rows of attributes."""

    def _attribute(self, op: Op) -> None:
        values = self.values
        site = self.program.sites[op[-1]]
        name = op[2]
        things = values.program_objects(self.file, op[1])
        run = values.accessor_calls.get((name, ACCESS_BY_OP[op[0]]), {})
        chosen: dict[Object, None] = {}
        for thing in things if run else ():
            chosen.update(dict.fromkeys(each | thing & WEAK for each in run.get(thing & ~1, ())))
        targets = [one for each in chosen if (one := self._called(each)) is not None]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, "attribute"))
        if chosen:
            found = [(each, "attribute") for each in chosen]
            self._each_method(op[-1], found, "attribute", {"attribute": verdict})
        if verdict.added:
            self._added(op[-1], "AST_NODE", self._ast(site), verdict, None, "attribute")
        if site.inner[0] is not None:
            self._identifier(op, site, things)

    def _identifier(self, op: Op, site: Site, things: Sequence[Object]) -> None:
        """What the identifier refers to, and whose attribute an assignment to it makes."""
        values, name = self.values, op[2]
        own = self_class(values, self.file, op)
        answers = self._attribute_answers(self._meant(things, own, name, ACCESS_BY_OP[op[0]]), things, own)
        src = self.at("ATTRIBUTE_REF", site.inner)
        if op[0] == ":":
            classes = owners(values, self.file, op)
            sure = SCOPED if own is not None else VALUE if len(classes) == 1 else SEVERAL
            method = "values" if own is None else "self"
            made = [Answer(self.definitions.attribute(cls, name), method, sure) for cls in classes]
            if made:
                self.answer("DEFINES_BINDING", "ATTRIBUTE_REF", src, site.inner, made, rule="attribute")
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
        if not targets:
            return []
        kinds = {self.values.objects[thing >> 1].kind for thing in things}
        if (kinds and kinds <= {"M", "N"}) or (kinds == {"X"} and not any(thing & WEAK for thing in things)):
            return [Answer(each, "import", SCOPED if len(targets) == 1 else SEVERAL) for each in targets]
        if own is None and things and all(thing & WEAK for thing in things):
            return [Answer(each, "annotation", HINTED) for each in targets]
        return [Answer(each, "values", VALUE if len(targets) == 1 else SEVERAL) for each in targets]

    def _meant(self, things: Sequence[Object], own: Object | None, name: str, how: str) -> Sequence[Target]:
        """An attribute of things, and of instances of the class around."""
        # The same few things are asked for the same names all over a repository.
        key = (name, how, own, *things)
        known = self.definitions.targets_by_use.get(key)
        if known is None:
            run = self.values.accessor_calls.get((name, how), {})
            every = things if own is None else [*things, self.values.object("I", own)]
            found: list[Target] = []
            for thing in every:
                found += self._meant_of(thing, name, run.get(thing & ~1, ()))
            known = self.definitions.targets_by_use[key] = list(dict.fromkeys(found))
        return known

    def _meant_of(self, thing: Object, name: str, run: Iterable[Object]) -> Sequence[Target]:
        """An attribute of a thing; of a property, the function that runs."""
        found = self._attribute_of(thing, name)
        if run and found and all(one.kind == "FUNCTION" for one in found):
            # Special methods are those of descriptors, or run for all attributes.
            own = [one for each in run if (one := self._called(each)) is not None and not is_special(one)]
            return own or found
        return found

    def _attribute_of(self, thing: Object, name: str) -> Sequence[Target]:
        members = self.definitions.attribute_targets
        found = members.get((thing, name))
        if found is None:
            found = members[thing, name] = self._looked_up(thing, name)
        return found

    def _looked_up(self, thing: Object, name: str) -> Sequence[Target]:
        values = self.values
        kind, one, two, _ = values.objects[thing >> 1]
        if kind == "M":
            return self.definitions.targets_of_name(values.names[one], name)
        if kind == "N":
            return self.definitions.targets_of_name(one, name)
        if kind in ("X", "Y"):
            inner = values.objects_at(values.attribute_node(thing, name))
            return [self.definitions.external(f"{one}.{name}")] if inner else []
        if kind == "J":
            return self._attribute_of(values.object("Y", "builtins.str"), name)
        if kind == "L":
            known = values.container_has(thing, name)
            return [self.definitions.external(f"{values.container_class(thing)}.{name}")] if known else []
        if kind == "I":
            return self._member(one, name, None)
        if kind == "C":
            return self._member(thing & ~1, name, None)
        if kind == "S":
            receiver = values.objects[two >> 1]
            return self._member(receiver.first if receiver.kind == "I" else two, name, one)
        return []

    def _member(self, cls: Object, name: str, after: Object | None) -> Sequence[Target]:
        """An attribute by MRO: of the class's body, or assigned on instances."""
        values = self.values
        order = values.mro(cls)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        outside: Target | None = None
        for each in order:
            kind, one, two, _ = values.objects[each >> 1]
            if kind == "X":
                holder = values.defining_class(cls, name, after=after)
                if outside is None and holder == each:
                    outside = self.definitions.external(f"{one}.{name}")
            elif name in values.programs[one].classes[two].attrs:
                return self.definitions.targets_in_class(each, name)
            elif (each, name) in self.attributes:
                return [self.definitions.attribute(each, name)]
        return [] if outside is None else [outside]

    def _why_unknown(self, node: int) -> str:
        if self.values.is_truncated(self.file, node):
            return CUT
        return "external_result" if node in self.external else "unknown_receiver"
