"""Emit rows of attribute accesses: the class, module or external name that has the attribute.

    self.x = 1       in a method of A: DEFINES_BINDING and REFERS_TO, from the identifier to x of A
    a.x = 1          the same for the class of `a`, if that is certain (`assigned_attributes`)
    a.size           REFERS_TO A.size; if that is a property, its function, and CALLS it with the role
                     `attribute`
    a.nope           REFERS_TO without a target, reason `no_such_attribute`

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.relate import program as ir
from codeanatomy.relate.emit import references as refs
from codeanatomy.relate.emit.absent_attributes import absence_reason, builtin_attribute
from codeanatomy.relate.emit.calls import add_calls_by_method
from codeanatomy.relate.emit.cut_receivers import cut_targets
from codeanatomy.relate.emit.references import Candidate, FileRows
from codeanatomy.relate.program import NOTHING, Op
from codeanatomy.relate.values.dispatch import attribute_node
from codeanatomy.relate.values.external_names import builtin_owner
from codeanatomy.relate.values.hierarchy import defining_class, metaclass_nodes, mro
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.results import program_objects
from codeanatomy.relate.values.rules.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.rules.containers import container_class, container_has
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object, hint_like, is_hint, strong
from codeanatomy.relate.values.state import State
from codeanatomy.relate.witnesses.agreement import is_special


def add_attribute(f: FileRows, op: Op) -> None:
    """Add the rows of an attribute that is read, assigned or deleted."""
    site, name, access = f.program.sites[op[-1]], op[2], ACCESS_BY_OP[op[0]]
    receivers = program_objects(f.values, f.file, op[1])
    accessors = f.values.calls.by_access.get((name, access), {})
    if accessors or not f.claims.is_empty:
        _add_accessors(f, op, receivers, accessors)
    if site.inner[0] is None:
        return
    # What the identifier refers to, and for an assignment the attribute that it defines.
    own = self_class(f.values, f.file, op)
    ref = f.reference("REFERS_TO", "ATTRIBUTE_REF", site.inner, "attribute")
    if op[0] == ir.OP_STORE_ATTRIBUTE:
        method, certain = ("values", refs.BY_VALUE) if own is None else ("self", refs.BY_RULE)
        classes = _member_classes(f, op) if own is None else [own]
        if classes:
            defined = refs.rate_alternatives(
                [f.resolver.attribute(cls, name) for cls in classes], method, certain
            )
            refs.add_candidates(f, ref._replace(kind="DEFINES_BINDING"), defined)
    targets = _attribute_targets(f, receivers, own, name, access)
    if op[0] == ir.OP_LOAD_ATTRIBUTE:
        targets = list(dict.fromkeys([*targets, *cut_targets(f, op)]))[: max(MAX_OBJECTS, len(targets))]
    candidates = _rate(f, targets, receivers, own)
    reason = None if candidates else absence_reason(f, receivers, name, op[1])
    keys = [f.values.objects[obj] for obj in receivers] if name == "__class__" else ()
    # A type checker names the class that the attribute `__class__` is.
    classes_of = f.targets(key.first for key in keys if key.kind == ir.OBJ_INSTANCE)
    claims = f.claims.attribute(site.inner, site.place, name)
    refs.add_candidates(f, ref, candidates, reason, claims, classes_of)


def _add_accessors(
    f: FileRows, op: Op, receivers: Sequence[Object], accessors: Mapping[Object, Mapping[Object, None]]
) -> None:
    """Add calls of the functions that the access runs: of a property, a descriptor, `__getattr__`."""
    place = f.program.sites[op[-1]].place
    claims = f.claims.implicit(place, "attribute")
    if not accessors and not claims:
        return
    callees: dict[Object, None] = {}
    for obj in receivers if accessors else ():
        callees.update(dict.fromkeys(hint_like(each, obj) for each in accessors.get(strong(obj), ())))
    verdict = f.claims.verdict(place, f.targets(callees), claims)
    add_calls_by_method(f, op[-1], "attribute", [(each, "attribute") for each in callees], verdict)


def _rate(
    f: FileRows, targets: Sequence[Target], receivers: Sequence[Object], own: Object | None
) -> list[Candidate]:
    kinds = {f.values.kind[obj] for obj in receivers}
    if (kinds and kinds <= {ir.OBJ_MODULE, ir.OBJ_NAMESPACE}) or (
        kinds == {ir.OBJ_EXTERNAL} and not any(is_hint(obj) for obj in receivers)
    ):
        return refs.rate_alternatives(targets, "import")
    if own is None and receivers and all(is_hint(obj) for obj in receivers):
        return [Candidate(each, refs.ANNOTATION, refs.HINTED) for each in targets]
    return refs.rate_alternatives(targets, "values", refs.BY_VALUE)


def _attribute_targets(
    f: FileRows, receivers: Sequence[Object], own: Object | None, name: str, how: str
) -> Sequence[Target]:
    """Resolve an attribute of the receivers and, for `self`, of instances of the enclosing class."""
    # A repository accesses the same names on the same few receivers again and again.
    key = (name, how, own, *receivers)
    known = f.resolver.targets_by_use.get(key)
    if known is None:
        accessors = f.values.calls.by_access.get((name, how), {})
        every = receivers if own is None else [*receivers, f.values.object(ir.OBJ_INSTANCE, own)]
        targets: list[Target] = []
        for obj in every:
            targets += _member_or_accessor(f, obj, name, accessors.get(strong(obj), ()))
        known = f.resolver.targets_by_use[key] = list(dict.fromkeys(targets))
    return known


def _member_or_accessor(f: FileRows, obj: Object, name: str, accessors: Iterable[Object]) -> Sequence[Target]:
    """Return the targets of an attribute of an object; for a property, the function that runs."""
    members = _members(f, obj, name)
    if accessors and members and all(target.kind == "FUNCTION" for target in members):
        # Special methods among the accessors belong to descriptors, or run for all attributes.
        return [target for target in f.targets(accessors) if not is_special(target)] or members
    return members


def _members(f: FileRows, obj: Object, name: str) -> Sequence[Target]:
    cache = f.resolver.attribute_targets
    members = cache.get((obj, name))
    if members is None:
        members = cache[obj, name] = _look_up(f, obj, name) or builtin_attribute(f, obj, name)
    return members


def _look_up(f: FileRows, obj: Object, name: str) -> Sequence[Target]:
    values = f.values
    kind, first, second, _ = values.objects[obj]
    if kind == ir.OBJ_MODULE:
        return f.resolver.search(("name", values.names[first], name))
    if kind == ir.OBJ_NAMESPACE:
        return f.resolver.search(("name", first, name))
    if kind in (ir.OBJ_EXTERNAL, ir.OBJ_EXTERNAL_INSTANCE):
        inner = values.objects_at(attribute_node(values, obj, name))
        return [f.resolver.external(f"{first}.{name}")] if inner else []
    if kind == ir.OBJ_STRING:
        return _members(f, values.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"), name)
    if kind == ir.OBJ_CONTAINER:
        known = container_has(values, obj, name)
        return [f.resolver.external(f"{container_class(values, obj)}.{name}")] if known else []
    if kind == ir.OBJ_INSTANCE:
        return _class_member(f, first, name, None)
    if kind == ir.OBJ_CLASS:
        return _class_member(f, strong(obj), name, None) or _metaclass_member(f, strong(obj), name)
    if kind == ir.OBJ_SUPER:
        receiver = values.objects[second]
        cls = receiver.first if receiver.kind == ir.OBJ_INSTANCE else second
        # In a method of the metaclass the receiver, a class, is its instance.
        return _class_member(f, cls if first in mro(values, cls) else first, name, first)
    return []


def _class_member(f: FileRows, cls: Object, name: str, after: Object | None) -> Sequence[Target]:
    """Find an attribute along the MRO, behind class `after`: in class bodies or on instances."""
    owner = find_member_class(f.values, f.attributes, cls, name, after)
    if owner is not None:
        return f.resolver.targets_in_class(owner, name)
    holder = defining_class(f.values, cls, name, after=after)
    if holder is None or f.values.kind[holder] != ir.OBJ_EXTERNAL:
        return []
    return [f.resolver.external(f"{f.values.objects[holder].first}.{name}")]


def _metaclass_member(f: FileRows, cls: Object, name: str) -> Sequence[Target]:
    """Find an attribute of a class in its metaclass; what `object` has comes before that."""
    if builtin_owner("builtins.object", name) is not None:
        return []
    metaclasses = (obj for node in metaclass_nodes(f.values, cls) for obj in f.values.objects_at(node))
    metaclass = next((obj for obj in metaclasses if f.values.kind[obj] == ir.OBJ_CLASS), None)
    return [] if metaclass is None else _class_member(f, strong(metaclass), name, None)


def assigned_attributes(values: State) -> dict[tuple[Object, str], None]:
    """Return all attributes that assignments create, as (owning class, name).

    First those of `self`; then those of other receivers, if these are objects of one class. What a class
    inherits, as from `object`, an assignment on its objects does not create again.

        self.x = 1          in a method of A: A.x
        a.y = 2             `a` is an A or a B(A): A.y
        z.w = 3             `z` is an A or a C: nothing
        a.__class__ = C     nothing
    """
    attributes: dict[tuple[Object, str], None] = {}
    others: list[tuple[list[Object], str]] = []
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] == ir.OP_STORE_ATTRIBUTE:
                own = self_class(values, file, op)
                if own is not None:
                    attributes[own, op[2]] = None
                else:
                    others.append((receiver_classes(values, file, op), op[2]))
    inherited = dict(attributes)
    for classes, name in others:
        owners = _without_subclasses(values, classes)
        if len(owners) != 1 or builtin_owner("builtins.object", name) is not None:
            continue
        if find_member_class(values, inherited, owners[0], name) is None:
            attributes[owners[0], name] = None
    return attributes


def receiver_classes(values: State, file: int, op: Op) -> list[Object]:
    """Return the classes of the receivers of an access that are not only hinted at."""
    keys = [
        (obj, *values.objects[obj][:2])
        for obj in program_objects(values, file, op[1])
        if not is_hint(obj) and values.kind[obj] in (ir.OBJ_INSTANCE, ir.OBJ_CLASS)
    ]
    return list(dict.fromkeys(first if kind == ir.OBJ_INSTANCE else obj for obj, kind, first in keys))


def find_member_class(
    values: State,
    attributes: Container[tuple[Object, str]],
    cls: Object,
    name: str,
    after: Object | None = None,
) -> Object | None:
    """Return the first class of the repository, along the MRO and behind `after`, that has an attribute."""
    order = mro(values, cls)
    if after is not None:
        order = order[order.index(after) + 1 :] if after in order else []
    for each in order:
        kind, first, second, _ = values.objects[each]
        if kind == ir.OBJ_CLASS and (
            name in values.programs[first].classes[second].attrs or (each, name) in attributes
        ):
            return each
    return None


def _without_subclasses(values: State, classes: Sequence[Object]) -> list[Object]:
    """Return classes without those that have another one as an ancestor."""
    every = set(classes)
    return [cls for cls in classes if not any(each != cls and each in every for each in mro(values, cls))]


def _member_classes(f: FileRows, op: Op) -> list[Object]:
    """Return the classes whose member an assignment on objects other than `self` defines."""
    classes = receiver_classes(f.values, f.file, op)
    owners = (find_member_class(f.values, f.attributes, cls, op[2]) for cls in classes)
    return list(dict.fromkeys(cls for cls in owners if cls is not None))


def self_class(values: State, file: int, op: Op) -> Object | None:
    """Return the enclosing class if the receiver is the first parameter of one of its methods, else None."""
    program = values.programs[file]
    site = op[-1]
    number = program.sites[site].function if site >= 0 else -1
    while number >= 0:
        function = program.functions[number]
        if function.owner >= 0:
            first = function.parameters[0].node if function.parameters else NOTHING
            is_self = function.binds != "nothing" and first == op[1]
            return values.object(ir.OBJ_CLASS, file, function.owner) if is_self else None
        number = function.outer
    return None


class InstanceAttribute(NamedTuple):
    """An attribute of instances: the scope of its class, its name, and its qualified name."""

    scope_id: str
    name: str
    qname: str


def unlisted_attributes(
    values: State, attributes: Iterable[tuple[Object, str]]
) -> Mapping[int, list[InstanceAttribute]]:
    """Return the attributes (class, name) that no class body binds, grouped by the file of the class."""
    unlisted: defaultdict[int, list[InstanceAttribute]] = defaultdict(list)
    listed = [
        {key: frozenset(names) for key, names in program.scope_names.items()} for program in values.programs
    ]
    for cls, name in attributes:
        file, declared = values.cls(cls)
        key = declared.scope_id
        if name not in listed[file].get(key, ()):
            unlisted[file].append(InstanceAttribute(key, name, f"{values.qualified_name(cls)}.{name}"))
    return unlisted
