"""Emit rows of attribute accesses: the class, module or external name that has the attribute.

    self.x = 1       in a method of A: DEFINES_BINDING and REFERS_TO, from the identifier to x of A
    a.size           REFERS_TO A.size; if that is a property, its function, and CALLS it with the role
                     `attribute`
    a.nope           REFERS_TO without a target, reason `no_such_attribute`

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codeanatomy.relate.emit.attribute_owners import owner_classes, self_class
from codeanatomy.relate.emit.calls import CallRows
from codeanatomy.relate.emit.references import AMBIGUOUS, BY_RULE, BY_VALUE, HINTED, Candidate
from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_INSTANCE,
    OBJ_MODULE,
    OBJ_NAMESPACE,
    OBJ_STRING,
    OBJ_SUPER,
    OP_STORE_ATTRIBUTE,
    Op,
    Site,
)
from codeanatomy.relate.values.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.agreement import is_special

# Reason for missing candidates: the solver cut a set of objects.
TOO_MANY = "too_many_candidates"


class AttributeRows(CallRows):
    """Rows of attribute reads, writes and deletions."""

    def _add_attribute(self, op: Op) -> None:
        values = self.values
        site = self.program.sites[op[-1]]
        name = op[2]
        receivers = values.program_objects(self.file, op[1])
        accessors = values.accessor_calls.get((name, ACCESS_BY_OP[op[0]]), {})
        if accessors or not self.claims.is_empty:
            self._add_accessors(op, site, receivers, accessors)
        if site.inner[0] is not None:
            self._add_identifier(op, site, receivers)

    def _add_accessors(
        self,
        op: Op,
        site: Site,
        receivers: Sequence[Object],
        accessors: Mapping[Object, Mapping[Object, None]],
    ) -> None:
        """Add calls of the functions that the access runs: of a property, a descriptor, `__getattr__`."""
        callees: dict[Object, None] = {}
        for obj in receivers if accessors else ():
            callees.update(dict.fromkeys(each | obj & WEAK for each in accessors.get(obj & ~1, ())))
        targets = [target for each in callees if (target := self._call_target(each)) is not None]
        verdict = self.claims.verdict(site.place, targets, self.claims.implicit(site.place, "attribute"))
        if callees:
            pairs = [(each, "attribute") for each in callees]
            self._add_calls_by_method(op[-1], pairs, "attribute", {"attribute": verdict})
        if verdict.added:
            self._add_claimed_calls(op[-1], "AST_NODE", self._ast_node(site), verdict, None, "attribute")

    def _add_identifier(self, op: Op, site: Site, receivers: Sequence[Object]) -> None:
        """Add what the identifier refers to, and for an assignment the attribute that it defines."""
        values, name = self.values, op[2]
        own = self_class(values, self.file, op)
        targets = self._attribute_targets(receivers, own, name, ACCESS_BY_OP[op[0]])
        candidates = self._attribute_candidates(targets, receivers, own)
        src = self.node_at("ATTRIBUTE_REF", site.inner)
        if op[0] == OP_STORE_ATTRIBUTE:
            classes = owner_classes(values, self.file, op)
            confidence = BY_RULE if own is not None else BY_VALUE if len(classes) == 1 else AMBIGUOUS
            method = "values" if own is None else "self"
            defined = [Candidate(self.resolver.attribute(cls, name), method, confidence) for cls in classes]
            if defined:
                self.add_candidates(
                    "DEFINES_BINDING", "ATTRIBUTE_REF", src, site.inner, defined, rule="attribute"
                )
        reason = "no_such_attribute" if receivers else self._unknown_reason(op[1])
        claims = self.claims.attribute(site.inner, site.place, name)
        self.add_candidates(
            "REFERS_TO",
            "ATTRIBUTE_REF",
            src,
            site.inner,
            candidates,
            rule="attribute",
            reason=reason,
            claims=claims,
        )

    def _attribute_candidates(
        self, targets: Sequence[Target], receivers: Sequence[Object], own: Object | None
    ) -> list[Candidate]:
        if not targets:
            return []
        is_single = len(targets) == 1
        kinds = {self.values.objects[obj >> 1].kind for obj in receivers}
        if (kinds and kinds <= {OBJ_MODULE, OBJ_NAMESPACE}) or (
            kinds == {OBJ_EXTERNAL} and not any(obj & WEAK for obj in receivers)
        ):
            return [Candidate(each, "import", BY_RULE if is_single else AMBIGUOUS) for each in targets]
        if own is None and receivers and all(obj & WEAK for obj in receivers):
            return [Candidate(each, "annotation", HINTED) for each in targets]
        return [Candidate(each, "values", BY_VALUE if is_single else AMBIGUOUS) for each in targets]

    def _attribute_targets(
        self, receivers: Sequence[Object], own: Object | None, name: str, how: str
    ) -> Sequence[Target]:
        """Resolve an attribute of the receivers and, for `self`, of instances of the enclosing class."""
        # A repository accesses the same names on the same few receivers again and again.
        key = (name, how, own, *receivers)
        known = self.resolver.targets_by_use.get(key)
        if known is None:
            accessors = self.values.accessor_calls.get((name, how), {})
            every = receivers if own is None else [*receivers, self.values.object(OBJ_INSTANCE, own)]
            targets: list[Target] = []
            for obj in every:
                targets += self._member_or_accessor(obj, name, accessors.get(obj & ~1, ()))
            known = self.resolver.targets_by_use[key] = list(dict.fromkeys(targets))
        return known

    def _member_or_accessor(self, obj: Object, name: str, accessors: Iterable[Object]) -> Sequence[Target]:
        """Return the targets of an attribute of an object; for a property, the function that runs."""
        members = self._members(obj, name)
        if accessors and members and all(target.kind == "FUNCTION" for target in members):
            # Special methods among the accessors belong to descriptors, or run for all attributes.
            own = [
                target
                for each in accessors
                if (target := self._call_target(each)) is not None and not is_special(target)
            ]
            return own or members
        return members

    def _members(self, obj: Object, name: str) -> Sequence[Target]:
        cache = self.resolver.attribute_targets
        members = cache.get((obj, name))
        if members is None:
            members = cache[obj, name] = self._look_up(obj, name)
        return members

    def _look_up(self, obj: Object, name: str) -> Sequence[Target]:
        values = self.values
        kind, first, second, _ = values.objects[obj >> 1]
        if kind == OBJ_MODULE:
            return self.resolver.targets_of_name(values.names[first], name)
        if kind == OBJ_NAMESPACE:
            return self.resolver.targets_of_name(first, name)
        if kind in (OBJ_EXTERNAL, OBJ_EXTERNAL_INSTANCE):
            inner = values.objects_at(values.attribute_node(obj, name))
            return [self.resolver.external(f"{first}.{name}")] if inner else []
        if kind == OBJ_STRING:
            return self._members(values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"), name)
        if kind == OBJ_CONTAINER:
            known = values.container_has(obj, name)
            return [self.resolver.external(f"{values.container_class(obj)}.{name}")] if known else []
        if kind == OBJ_INSTANCE:
            return self._class_member(first, name, None)
        if kind == OBJ_CLASS:
            return self._class_member(obj & ~1, name, None)
        if kind == OBJ_SUPER:
            receiver = values.objects[second >> 1]
            cls = receiver.first if receiver.kind == OBJ_INSTANCE else second
            return self._class_member(cls, name, first)
        return []

    def _class_member(self, cls: Object, name: str, after: Object | None) -> Sequence[Target]:
        """Find an attribute along the MRO, behind class `after`: in class bodies or on instances."""
        values = self.values
        order = values.mro(cls)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        external: Target | None = None
        for each in order:
            kind, first, second, _ = values.objects[each >> 1]
            if kind == OBJ_EXTERNAL:
                holder = values.defining_class(cls, name, after=after)
                if external is None and holder == each:
                    external = self.resolver.external(f"{first}.{name}")
            elif name in values.programs[first].classes[second].attrs:
                return self.resolver.targets_in_class(each, name)
            elif (each, name) in self.attributes:
                return [self.resolver.attribute(each, name)]
        return [] if external is None else [external]

    def _unknown_reason(self, node: int) -> str:
        if self.values.is_truncated(self.file, node):
            return TOO_MANY
        return "external_result" if node in self.external_results else "unknown_receiver"
