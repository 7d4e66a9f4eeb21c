"""Apply class statements and instantiation: metaclasses, constructors, dataclass fields.

    class C(Base, metaclass=Meta)   Meta.__new__, Meta.__init__, Base.__init_subclass__, __set_name__
    C(x)                            Meta.__call__, else C.__new__ and C.__init__; or the fields of a dataclass

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
from codeanatomy.relate.values.models.container_methods import call_container_method
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.solver import WEAK, Object

# Role of the call of a dataclass field's default factory.
DEFAULT_FACTORY = "default_factory"


class Classes(Calls):
    """Class creation and instantiation."""

    def instantiate(self, cls: Object, call: Call) -> None:
        """Call a class: by `__call__` of its metaclass if it has one, else construct an instance."""
        for value in self.metaclass_nodes(cls):
            self.subscribe(value, self._instantiate_by_metaclass, cls, call)
        self.record(call, cls)
        if not self._has_metaclass_call(cls & ~1):
            self.construct(cls, call)

    def _has_metaclass_call(self, cls: Object) -> bool:
        metas = [meta for value in self.metaclass_nodes(cls) for meta in self.points_to[value] or ()]
        own = [meta & ~1 for meta in metas if self.objects[meta >> 1].kind == OBJ_CLASS]
        return any(self.is_repository_class(self.defining_class(meta, "__call__")) for meta in own)

    def _instantiate_by_metaclass(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.objects[meta >> 1].kind == OBJ_CLASS:
                holder = self.defining_class(meta & ~1, "__call__")
                if self.is_repository_class(holder):
                    self.subscribe(self.class_field(holder, "__call__"), self._call_metaclass, cls, call)

    def _call_metaclass(self, objects: Sequence[Object], cls: Object, call: Call) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_FUNCTION:
                self.enter_function(obj, cls & ~1, call)

    def construct(self, cls: Object, call: Call) -> None:
        """Create an instance by `__new__` and `__init__`; without them fill dataclass fields or elements."""
        weak = cls & WEAK
        instance = self.object(OBJ_INSTANCE, cls & ~1)
        new = self.defining_class(cls & ~1, "__new__")
        if self.is_repository_class(new):
            created = self.new_node()
            self.subscribe(
                self.class_field(new, "__new__"), self._call_new, cls & ~1, call.with_args(call.args, created)
            )
            self.flow(created, call.dst, weak)
        self.add(call.dst, instance | weak)
        if self.is_repository_class(self.defining_class(cls & ~1, "__init__")):
            self.call_node(
                self.attribute_node(instance, "__init__"), call.with_args(call.args, -1, call.role), weak
            )
        else:
            self.watch_attribute(
                cls & ~1, "__init__", self._call_late_init, instance, call.with_args(call.args, -1), weak
            )
            if not weak:
                self._fill_fields(cls & ~1, instance, call)
                self._fill_container(instance, call)

    def _call_late_init(self, holder: Object | None, instance: Object, call: Call, weak: int) -> None:
        if self.is_repository_class(holder):
            self.call_node(self.attribute_node(instance, "__init__"), call, weak)

    def _call_new(self, objects: Sequence[Object], cls: Object, call: Call) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_FUNCTION:
                self.enter_function(obj, cls, call)

    def _fill_fields(self, cls: Object, instance: Object, call: Call) -> None:
        """Let arguments flow into the fields of a dataclass or NamedTuple, and call `__post_init__`."""
        order = [each for each in self.mro(cls) if self.objects[each >> 1].kind == OBJ_CLASS]
        names = list(dict.fromkeys(name for each in reversed(order) for name in self.cls(each)[1].fields))
        is_named_tuple = "typing.NamedTuple" in self.external_bases(cls)
        if not is_named_tuple and not any(each in self.dataclasses for each in order):
            return
        position = 0
        for how, keyword, node in call.args:
            if how == POSITIONAL and position < len(names):
                self.flow(node, self.field(instance, names[position]))
                position += 1
            elif keyword is not None and keyword in names:
                self.flow(node, self.field(instance, keyword))
        self._fill_default_fields(order, instance, names, call)
        if self.is_repository_class(self.defining_class(cls, "__post_init__")):
            self.call_node(self.attribute_node(instance, "__post_init__"), call.with_args([], -1))

    def _fill_container(self, instance: Object, call: Call) -> None:
        """Add the initial elements of an instance of a list or dict subclass."""
        container = self.as_container(instance, "__init__")
        if container is not None:
            method = "update" if self.container_kind(container) == "dict" else "extend"
            call_container_method(self, container, method, call.with_args(call.args, -1))

    def _fill_default_fields(
        self, order: Sequence[Object], instance: Object, names: Sequence[str], call: Call
    ) -> None:
        """Let defaults of `dataclasses.field` flow into the fields."""
        for each in order:
            for name in self.cls(each)[1].fields:
                if name in names and name in self.cls(each)[1].attrs:
                    self.subscribe(
                        self.class_field(each, name),
                        self._fill_default_field,
                        self.field(instance, name),
                        call,
                    )

    def _fill_default_field(self, objects: Sequence[Object], dst: int, call: Call) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_DATACLASS_FIELD:
                self.flow(self.field(obj, "default"), dst)
                factory_call = call.with_args([], dst, DEFAULT_FACTORY)
                self.call_node(self.field(obj, "default_factory"), factory_call)

    def create_class(self, file: int, op: Op) -> None:
        """Call metaclass, `__init_subclass__`, `__set_name__` of a new class; construct Enum members."""
        _, number, site = op
        cls = self.object(OBJ_CLASS, file, number)
        call = Call((file, site), [], -1, role="class")
        declared = self.programs[file].classes[number]
        for value in self.metaclass_nodes(cls):
            self.subscribe(value, self._create_by_metaclass, cls, call)
        holder = self.defining_class(cls, "__init_subclass__", after=cls)
        if self.is_repository_class(holder):
            self.subscribe(self.class_field(holder, "__init_subclass__"), self._call_on_class, cls, call)
        for name in declared.attrs:
            self.subscribe(self.class_field(cls, name), self._call_set_name, call)
        if self.is_enum(cls) and self.is_repository_class(self.defining_class(cls, "__init__")):
            members = [name for name in declared.attrs if self._is_member(cls, name)]
            for name in members:
                node = self.global_node(file, declared.attrs[name][0])
                given = [(STAR, None, node)] if node >= 0 else []
                self.call_node(
                    self.attribute_node(self.object(OBJ_INSTANCE, cls), "__init__"), call.with_args(given, -1)
                )

    def _create_by_metaclass(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.objects[meta >> 1].kind != OBJ_CLASS:
                continue
            for name in ("__prepare__", "__new__", "__init__"):
                holder = self.defining_class(meta & ~1, name)
                if self.is_repository_class(holder):
                    receiver = cls if name == "__init__" else meta & ~1
                    self.subscribe(self.class_field(holder, name), self._call_on_class, receiver, call)

    def _call_on_class(self, objects: Sequence[Object], receiver: Object, call: Call) -> None:
        """Call functions, plain or in a classmethod, with a class as receiver."""
        for obj in objects:
            kind = self.objects[obj >> 1].kind
            if kind == OBJ_FUNCTION:
                self.enter_function(obj, receiver, call)
            elif kind == OBJ_STATIC_OR_CLASS_METHOD:
                self.subscribe(self.field(obj, "inner"), self._call_on_class, receiver, call)

    def _call_set_name(self, objects: Sequence[Object], call: Call) -> None:
        self.call_special_method(
            [obj for obj in objects if self.objects[obj >> 1].kind == OBJ_INSTANCE],
            ["__set_name__"],
            call,
        )
