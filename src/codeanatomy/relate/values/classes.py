"""Classes come to be, and make instances.

    class C(Base, metaclass=Meta)   Meta.__new__, Meta.__init__, Base.__init_subclass__, __set_name__
    C(x)                            Meta.__call__, else C.__new__ and C.__init__; a dataclass's fields get x

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_DATACLASS_FIELD,
    OBJ_FUNCTION,
    OBJ_INSTANCE,
    OBJ_STATIC_OR_CLASS_METHOD,
    POSITIONAL,
    STAR,
    Op,
)
from codeanatomy.relate.values.calls import Calls
from codeanatomy.relate.values.models.containers import container_method
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.solver import WEAK, Object

# Role of what makes the default of a dataclass's field.
DEFAULT_FACTORY = "default_factory"


class Classes(Calls):
    """Classes and their instances."""

    def instantiate(self, cls: Object, call: Call) -> None:
        """A class is called: by its metaclass, or directly."""
        for value in self.metaclasses(cls):
            self.wait(value, self._instantiate_by, cls, call)
        self.record(call, cls)
        if not self._has_metacall(cls & ~1):
            self.construct(cls, call)

    def _has_metacall(self, cls: Object) -> bool:
        metas = [meta for value in self.metaclasses(cls) for meta in self.objects[value] or ()]
        own = [meta & ~1 for meta in metas if self.things[meta >> 1].kind == OBJ_CLASS]
        return any(self.is_own(self.find(meta, "__call__")) for meta in own)

    def _instantiate_by(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind == OBJ_CLASS:
                holder = self.find(meta & ~1, "__call__")
                if self.is_own(holder):
                    self.wait(self.class_field(holder, "__call__"), self._meta_call, cls, call)

    def _meta_call(self, things: Sequence[Object], cls: Object, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_FUNCTION:
                self.enter(thing, cls & ~1, call)

    def construct(self, cls: Object, call: Call) -> None:
        """`__new__` and `__init__` run, or what a dataclass has instead."""
        weak = cls & WEAK
        instance = self.thing(OBJ_INSTANCE, cls & ~1)
        new = self.find(cls & ~1, "__new__")
        if self.is_own(new):
            made = self.node()
            self.wait(
                self.class_field(new, "__new__"), self._run_new, cls & ~1, call.with_args(call.args, made)
            )
            self.flow(made, call.dst, weak)
        self.add(call.dst, instance | weak)
        if self.is_own(self.find(cls & ~1, "__init__")):
            self.wait_call(self.attr(instance, "__init__"), call.with_args(call.args, -1, call.role), weak)
        else:
            self.watch(cls & ~1, "__init__", self._late_init, instance, call.with_args(call.args, -1), weak)
            if not weak:
                self._fill(cls & ~1, instance, call)
                self._fill_container(instance, call)

    def _late_init(self, holder: Object | None, instance: Object, call: Call, weak: int) -> None:
        if self.is_own(holder):
            self.wait_call(self.attr(instance, "__init__"), call, weak)

    def _run_new(self, things: Sequence[Object], cls: Object, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_FUNCTION:
                self.enter(thing, cls, call)

    def _fill(self, cls: Object, instance: Object, call: Call) -> None:
        """The fields of a dataclass or NamedTuple from the arguments."""
        order = [each for each in self.mro(cls) if self.things[each >> 1].kind == OBJ_CLASS]
        names = list(dict.fromkeys(name for each in reversed(order) for name in self.cls(each)[1].fields))
        tuples = "typing.NamedTuple" in self.outside_bases(cls)
        if not tuples and not any(each in self.dataclasses for each in order):
            return
        place = 0
        for how, word, node in call.args:
            if how == POSITIONAL and place < len(names):
                self.flow(node, self.field(instance, names[place]))
                place += 1
            elif word is not None and word in names:
                self.flow(node, self.field(instance, word))
        self._default_fields(order, instance, names, call)
        if self.is_own(self.find(cls, "__post_init__")):
            self.wait_call(self.attr(instance, "__post_init__"), call.with_args([], -1))

    def _fill_container(self, instance: Object, call: Call) -> None:
        """The elements that an instance of a class below list or dict begins with."""
        container = self.as_container(instance, "__init__")
        if container is not None:
            method = "update" if self.kind_of(container) == "dict" else "extend"
            container_method(self, container, method, call.with_args(call.args, -1))

    def _default_fields(
        self, order: Sequence[Object], instance: Object, names: Sequence[str], call: Call
    ) -> None:
        """What `field(default_factory=...)` makes."""
        for each in order:
            for name in self.cls(each)[1].fields:
                if name in names and name in self.cls(each)[1].attrs:
                    self.wait(
                        self.class_field(each, name), self._default_field, self.field(instance, name), call
                    )

    def _default_field(self, things: Sequence[Object], dst: int, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_DATACLASS_FIELD:
                self.flow(self.field(thing, "default"), dst)
                made = call.with_args([], dst, DEFAULT_FACTORY)
                self.wait_call(self.field(thing, "default_factory"), made)

    def create_class(self, file: int, op: Op) -> None:
        """The metaclass, `__init_subclass__` and `__set_name__` run; members of an Enum are made."""
        _, number, site = op
        cls = self.thing(OBJ_CLASS, file, number)
        call = Call((file, site), [], -1, role="class")
        declared = self.programs[file].classes[number]
        for value in self.metaclasses(cls):
            self.wait(value, self._create_by, cls, call)
        holder = self.find(cls, "__init_subclass__", after=cls)
        if self.is_own(holder):
            self.wait(self.class_field(holder, "__init_subclass__"), self._init_subclass, cls, call)
        for name in declared.attrs:
            self.wait(self.class_field(cls, name), self._set_name, call)
        if self.is_enum(cls) and self.is_own(self.find(cls, "__init__")):
            members = [name for name in declared.attrs if self._is_member(cls, name)]
            for name in members:
                node = self.at(file, declared.attrs[name][0])
                given = [(STAR, None, node)] if node >= 0 else []
                self.wait_call(
                    self.attr(self.thing(OBJ_INSTANCE, cls), "__init__"), call.with_args(given, -1)
                )

    def _create_by(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind != OBJ_CLASS:
                continue
            for name in ("__prepare__", "__new__", "__init__"):
                holder = self.find(meta & ~1, name)
                if self.is_own(holder):
                    receiver = cls if name == "__init__" else meta & ~1
                    self.wait(self.class_field(holder, name), self._init_subclass, receiver, call)

    def _init_subclass(self, things: Sequence[Object], receiver: Object, call: Call) -> None:
        for thing in things:
            kind = self.things[thing >> 1].kind
            if kind == OBJ_FUNCTION:
                self.enter(thing, receiver, call)
            elif kind == OBJ_STATIC_OR_CLASS_METHOD:
                self.wait(self.field(thing, "inner"), self._init_subclass, receiver, call)

    def _set_name(self, things: Sequence[Object], call: Call) -> None:
        self.special(
            [thing for thing in things if self.things[thing >> 1].kind == OBJ_INSTANCE],
            ["__set_name__"],
            call,
        )
