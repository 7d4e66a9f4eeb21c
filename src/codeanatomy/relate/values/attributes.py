"""Resolve imports, names bound outside of the file, and attributes to objects.

    mod.name          final value of the module's variable, a submodule, or a name from its star imports
    instance.name     values stored on instances, and attributes of classes of the MRO, bound to the instance
    Class.name        the same without an instance; through `super()` from the part of the MRO after a class
    external.name     the longer external name

The class that defines an attribute is looked up in `hierarchy`.

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from codeanatomy.relate.program import (
    OBJ_BOUND_METHOD,
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_CONTAINER_METHOD,
    OBJ_CONTEXT_FUNCTION,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_EXTERNAL_MEMBER,
    OBJ_FUNCTION,
    OBJ_INSTANCE,
    OBJ_MODULE,
    OBJ_NAMESPACE,
    OBJ_PARTIAL_METHOD,
    OBJ_PROPERTY,
    OBJ_PROPERTY_DECORATOR,
    OBJ_SINGLEDISPATCH,
    OBJ_SINGLEDISPATCH_REGISTER,
    OBJ_STATIC_OR_CLASS_METHOD,
    OBJ_STRING,
    OBJ_SUPER,
    OBJ_TYPE_CALL,
    OP_DELETE_ATTRIBUTE,
    OP_LOAD_ATTRIBUTE,
    OP_STORE_ATTRIBUTE,
    VARIABLE,
    Program,
)
from codeanatomy.relate.values.external_names import BUILTINS, is_class_like, may_have
from codeanatomy.relate.values.hierarchy import ENUMS, Hierarchy
from codeanatomy.relate.values.modules import INITS
from codeanatomy.relate.values.solver import WEAK, Object

MODULE_STRINGS = frozenset({"__name__", "__file__", "__doc__", "__package__", "__path__"})
STRING_ATTRIBUTES = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
# Parts of an external name; longer chains of attributes are not followed.
MAX_NAME_PARTS = 12
# Kinds of objects with STRING_ATTRIBUTES.
NAMED_KINDS = frozenset({OBJ_CLASS, OBJ_FUNCTION, OBJ_BOUND_METHOD, OBJ_MODULE})
PLAIN_OR_CONTEXT_FUNCTION = (OBJ_FUNCTION, OBJ_CONTEXT_FUNCTION)
# Values of an Enum's body that are no members.
ENUM_NON_MEMBERS = (OBJ_FUNCTION, OBJ_CLASS, OBJ_PROPERTY)
# Kind of access to an attribute by operation.
ACCESS_BY_OP = {OP_LOAD_ATTRIBUTE: "get", OP_STORE_ATTRIBUTE: "set", OP_DELETE_ATTRIBUTE: "del"}


class Attributes(Hierarchy):
    """Imports and attributes."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self._stars: dict[int, list[str]] = {}
        # Nodes of attributes, by name and object.
        self._attrs: dict[str, dict[Object, int]] = {}
        # Attributes already bound, so that a repeated lookup does not subscribe again.
        self._bound: set[tuple[Any, ...]] = set()
        # How attributes are read, by the kind of the object.
        self._attribute_rules: Mapping[str, Callable[[Object, str, int], None]] = {
            OBJ_MODULE: self._load_from_module,
            OBJ_NAMESPACE: self._load_from_namespace,
            OBJ_EXTERNAL: self._load_from_external,
            OBJ_EXTERNAL_INSTANCE: self._load_from_external,
            OBJ_STRING: self._load_from_string,
            OBJ_INSTANCE: self._load_from_instance,
            OBJ_CLASS: self._load_from_class,
            OBJ_SUPER: self._load_from_super,
            OBJ_CONTAINER: self._load_from_container,
            OBJ_BOUND_METHOD: self._load_from_bound_method,
            OBJ_PROPERTY: self._load_from_property,
            OBJ_SINGLEDISPATCH: self._load_from_singledispatch,
        }
        # Functions called by attribute access: by attribute name and kind of access, then object.
        self.accessor_calls: dict[tuple[str, str], dict[Object, dict[Object, None]]] = {}

    # -- modules and names

    def module(self, name: str) -> Object:
        """Return the object of a module, by absolute name: of the repository, a namespace or external."""
        paths = self.modules.paths.get(name)
        if paths:
            return self.object(OBJ_MODULE, self.files[paths[0]])
        return (
            self.object(OBJ_NAMESPACE, name)
            if name in self.modules.namespaces
            else self.object(OBJ_EXTERNAL, name)
        )

    def bind_import(self, file: int, number: int, dst: int) -> None:
        """Put the object that an import binds into a node."""
        program = self.programs[file]
        each = program.imports[number]
        name = self.modules.absolute(program.path, each.module, each.level)
        if name is None:
            return
        if each.name is None:
            self.add(
                dst, self.module(name.partition(".")[0] if each.binds_first and each.level == 0 else name)
            )
            if each.binds_first and name.partition(".")[0] != each.module.partition(".")[0]:
                # The module is beside the file, so its first part is deeper in the absolute name.
                parts = name.split(".")[: -each.module.count(".") or None]
                self.add(dst, self.module(".".join(parts)))
            return
        inner = f"{name}.{each.name}"
        if name == self.names[file] and self.modules.has(inner):
            # `from . import part` in the package itself: the submodule, not the variable bound by it.
            self.add(dst, self.module(inner))
        else:
            self.flow(self.attribute_node(self.module(name), each.name), dst)

    def star_imports(self, file: int) -> list[str]:
        """Return the absolute names of the modules that a file star-imports."""
        if file not in self._stars:
            program = self.programs[file]
            modules = [
                self.modules.absolute(program.path, each.module, each.level)
                for each in program.imports
                if each.bound is None
            ]
            self._stars[file] = [name for name in dict.fromkeys(modules) if name]
        return self._stars[file]

    def exports(self, file: int, name: str) -> bool:
        """Whether a star import of the module binds a name."""
        exported = self.programs[file].exported
        return is_exported(name, exported) and (exported is not None or self.has_name(file, name))

    def has_name(self, file: int, name: str) -> bool:
        """Whether a module has a name, its own or by a star import."""
        return name in self.programs[file].variables or name in self._star_names.get(file, ())

    @cached_property
    def _star_names(self) -> dict[int, set[str]]:
        """Names that star imports bind in each file, through any number of modules."""
        importers: dict[int, list[int]] = {}
        for file in range(len(self.programs)):
            for star in self.star_imports(file):
                if star in self.modules.paths:
                    importers.setdefault(self.files[self.modules.paths[star][0]], []).append(file)
        bound: dict[int, set[str]] = {}
        todo = deque((file, set(self.programs[file].variables)) for file in importers)
        while todo:
            file, names = todo.popleft()
            exported = self.programs[file].exported
            passed_on = {name for name in names if is_exported(name, exported)}
            for importer in importers.get(file, ()):
                own = bound.setdefault(importer, set())
                new = passed_on - own
                if new:
                    own |= new
                    todo.append((importer, new))
        return bound

    def _load_module_name(self, file: int, name: str, dst: int) -> None:
        """Put the value of a module's attribute into a node."""
        program = self.programs[file]
        if name in program.variables:
            self.flow(self.global_node(file, program.variables[name][1]), dst)
            return
        if name in MODULE_STRINGS:
            self.add(dst, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            return
        own = self.names[file]
        if self.bind_from_star(file, name, dst):
            return
        for path in self.modules.paths.get(own, ())[1:]:
            # The stub beside the module.
            other = self.files[path]
            if other != file and name in self.programs[other].variables:
                self.flow(self.global_node(other, self.programs[other].variables[name][1]), dst)
                return
        if self.modules.has(f"{own}.{name}"):
            self.add(dst, self.module(f"{own}.{name}"))
            return
        if "__getattr__" in program.variables:
            obj = self.object(OBJ_MODULE, file)
            hook = self.global_node(file, program.variables["__getattr__"][1])
            self.call_accessor(hook, [self.object(OBJ_STRING, name)], dst, obj, name)
            return
        external = [star for star in self.star_imports(file) if not self.modules.has(star)]
        if len(external) == 1 and not name.startswith("_"):
            self.add(dst, self.object(OBJ_EXTERNAL, f"{external[0]}.{name}") | WEAK)

    def bind_from_star(self, file: int, name: str, dst: int) -> bool:
        """Put a name bound by a star import of a repository module into a node; False if there is none."""
        # The last star import wins.
        for star in reversed(self.star_imports(file)):
            if star in self.modules.paths:
                other = self.files[self.modules.paths[star][0]]
                if other != file and self.exports(other, name):
                    self.flow(self.attribute_node(self.object(OBJ_MODULE, other), name), dst)
                    return True
        return False

    def bind_unbound_name(self, file: int, name: str, dst: int) -> None:
        """Put the value of a name that the file does not bind into a node."""
        if self.bind_from_star(file, name, dst):
            return
        submodule = self.submodule(file, name)
        if submodule is not None:
            self.add(dst, self.module(submodule))
        elif name in BUILTINS:
            self.add(dst, self.object(OBJ_EXTERNAL, f"builtins.{name}"))
        elif name in MODULE_STRINGS:
            self.add(dst, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
        else:
            external = [star for star in self.star_imports(file) if not self.modules.has(star)]
            if len(external) == 1:
                self.add(dst, self.object(OBJ_EXTERNAL, f"{external[0]}.{name}") | WEAK)

    def submodule(self, file: int, name: str) -> str | None:
        """Return the submodule of this name if the file is a package; an import binds it there."""
        inner = f"{self.names[file]}.{name}"
        is_package = self.programs[file].path.rpartition("/")[2] in INITS
        return inner if is_package and self.modules.has(inner) else None

    # -- attributes

    def attribute_node(self, obj: Object, name: str) -> int:
        """Return the node of an attribute of an object; read the attribute on first use."""
        obj &= ~1
        named = self._attrs.get(name)
        if named is None:
            named = self._attrs[name] = {}
        node = named.get(obj)
        if node is not None:
            return node
        node = named[obj] = self.new_node()
        if name in STRING_ATTRIBUTES and self.objects[obj >> 1].kind in NAMED_KINDS:
            self.add(node, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
        self._attribute_rules.get(self.objects[obj >> 1].kind, self._load_from_other)(obj, name, node)
        return node

    def load_attribute(self, objects: Sequence[Object], name: str, dst: int) -> None:
        """Put an attribute of objects into a node."""
        named = self._attrs.get(name, {})
        for obj in objects:
            node = named.get(obj & ~1)
            self.flow(self.attribute_node(obj, name) if node is None else node, dst, obj & WEAK)

    def _load_from_module(self, obj: Object, name: str, node: int) -> None:
        self.flow(self.field(obj, name), node)
        # Deferred: a name may come through any number of modules.
        self.defer(self._load_module_name, self.objects[obj >> 1].first, name, node)

    def _load_from_namespace(self, obj: Object, name: str, node: int) -> None:
        self.add(node, self.module(f"{self.objects[obj >> 1].first}.{name}"))

    def _load_from_external(self, obj: Object, name: str, node: int) -> None:
        kind, first, _, _ = self.objects[obj >> 1]
        self.flow(self.field(obj, name), node)
        self._load_external(kind, first, name, node)

    def _load_from_string(self, obj: Object, name: str, node: int) -> None:
        self._load_external(OBJ_EXTERNAL_INSTANCE, "builtins.str", name, node)

    def _load_from_instance(self, obj: Object, name: str, node: int) -> None:
        cls = self.objects[obj >> 1].first
        self.flow(self.field(obj, name), node)
        if name == "__class__":
            self.add(node, cls)
        else:
            self.watch_attribute(cls, name, self._resolve_on_instance, obj, obj, name, node)

    def _load_from_class(self, obj: Object, name: str, node: int) -> None:
        self.watch_attribute(obj, name, self._resolve_on_class, obj, obj, name, node)

    def _load_from_super(self, obj: Object, name: str, node: int) -> None:
        _, cls, receiver, _ = self.objects[obj >> 1]
        kind, first, _, _ = self.objects[receiver >> 1]
        actual = first if kind == OBJ_INSTANCE else receiver
        if self.objects[actual >> 1].kind == OBJ_CLASS:
            self.watch_attribute(actual, name, self._resolve_super, actual, cls, obj, receiver, name, node)

    def _load_from_container(self, obj: Object, name: str, node: int) -> None:
        if self.container_has(obj, name):
            self.add(node, self.object(OBJ_CONTAINER_METHOD, obj, name))

    def _load_from_bound_method(self, obj: Object, name: str, node: int) -> None:
        _, function, receiver, _ = self.objects[obj >> 1]
        self.flow(self.attribute_node(function, name), node)
        if name in ("__self__", "__func__"):
            self.add(node, receiver if name == "__self__" else function)

    def _load_from_property(self, obj: Object, name: str, node: int) -> None:
        if name in ("setter", "getter", "deleter"):
            self.add(node, self.object(OBJ_PROPERTY_DECORATOR, obj, name))

    def _load_from_singledispatch(self, obj: Object, name: str, node: int) -> None:
        if name == "register":
            self.add(node, self.object(OBJ_SINGLEDISPATCH_REGISTER, obj))

    def _load_from_other(self, obj: Object, name: str, node: int) -> None:
        self.flow(self.field(obj, name), node)

    def _load_external(self, kind: str, owner: str, name: str, node: int) -> None:
        if kind == OBJ_EXTERNAL_INSTANCE and name == "__class__":
            self.add(node, self.object(OBJ_EXTERNAL, owner))
        elif self.modules.has(f"{owner}.{name}"):
            self.add(node, self.module(f"{owner}.{name}"))
        elif owner.count(".") < MAX_NAME_PARTS and may_have(owner, name):
            # The type of a member is unknown, so it has no further attributes.
            is_member = kind == OBJ_EXTERNAL_INSTANCE or (is_class_like(owner) and not is_class_like(name))
            self.add(node, self.object(OBJ_EXTERNAL_MEMBER if is_member else OBJ_EXTERNAL, f"{owner}.{name}"))

    def _resolve_super(
        self,
        _: Object | None,
        actual: Object,
        cls: Object,
        proxy: Object,
        receiver: Object,
        name: str,
        node: int,
    ) -> None:
        """Resolve an attribute of `super()`: in the receiver's MRO after this class."""
        if self.objects[receiver >> 1].kind == OBJ_INSTANCE:
            self._resolve_on_instance(
                self.defining_class(actual, name, after=cls), receiver, proxy, name, node
            )
        elif cls in self.mro(actual):
            self._resolve_on_class(self.defining_class(actual, name, after=cls), receiver, proxy, name, node)
        else:
            # In a method of the metaclass: the receiver, a class, is its instance.
            holder = self.defining_class(cls, name, after=cls)
            if name == "__call__" and (holder is None or self.objects[holder >> 1].kind == OBJ_EXTERNAL):
                self.add(node, self.object(OBJ_TYPE_CALL, receiver))
                self.add(node, self.object(OBJ_EXTERNAL, "builtins.type.__call__"))
            else:
                self._resolve_on_instance(holder, receiver, proxy, name, node)

    def _resolve_on_instance(
        self, holder: Object | None, receiver: Object, access: Object, name: str, node: int
    ) -> None:
        """Put the attribute that class `holder` defines, bound to the receiver, into a node.

        `access` is the object whose attribute the source reads: the receiver, or a `super()` of it.
        """
        if holder is None:
            if access == receiver and self.objects[receiver >> 1].kind == OBJ_INSTANCE:
                self._resolve_by_getattr(receiver, name, node)
            elif access != receiver and hasattr(object, name):
                self.add(node, self.object(OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
            return
        kind, first, _, _ = self.objects[holder >> 1]
        if kind == OBJ_EXTERNAL:
            if first in ENUMS and name in ("name", "value"):
                self.add(node, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            elif not self._is_assigned(self.objects[receiver >> 1].first, name):
                self.add(node, self.object(OBJ_EXTERNAL_MEMBER, f"{first}.{name}", receiver))
        elif (holder, receiver, name, node) not in self._bound:
            self._bound.add((holder, receiver, name, node))
            self.subscribe(
                self.class_field(holder, name), self._bind_to_instance, receiver, access, name, node
            )

    def _resolve_by_getattr(self, receiver: Object, name: str, node: int) -> None:
        """Resolve an attribute by `__getattr__` or `__getattribute__` of the class."""
        cls = self.objects[receiver >> 1].first
        if self._is_assigned(cls, name):
            return
        for hook in ("__getattr__", "__getattribute__"):
            if not name.startswith("__") and self.is_repository_class(self.defining_class(cls, hook)):
                self.call_accessor(
                    self.attribute_node(receiver, hook), [self.object(OBJ_STRING, name)], node, receiver, name
                )

    def _resolve_on_class(
        self, holder: Object | None, receiver: Object, access: Object, name: str, node: int
    ) -> None:
        """Do the same where the receiver is a class."""
        if holder is None:
            if access == receiver:
                self._resolve_on_metaclass(receiver, name, node)
            elif hasattr(object, name):
                self.add(node, self.object(OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
            return
        kind, first, _, _ = self.objects[holder >> 1]
        if kind == OBJ_EXTERNAL:
            self.add(node, self.object(OBJ_EXTERNAL_MEMBER, f"{first}.{name}"))
        elif (holder, receiver, name, node) not in self._bound:
            self._bound.add((holder, receiver, name, node))
            self.subscribe(self.class_field(holder, name), self._bind_to_class, receiver, access, name, node)
            if self.is_enum(receiver) and self._is_member(holder, name):
                self.add(node, self.object(OBJ_INSTANCE, receiver))

    def _is_member(self, cls: Object, name: str) -> bool:
        """Whether a name of an Enum's body is a member: a public variable, whatever its value."""
        file, declared = self.cls(cls)
        numbers = declared.attrs[name][1] if name in declared.attrs else ()
        kinds = {self.programs[file].definitions[number].kind for number in numbers}
        return not name.startswith("_") and kinds == {VARIABLE}

    def _resolve_on_metaclass(self, cls: Object, name: str, node: int) -> None:
        for value in self.metaclass_nodes(cls):
            self.subscribe(value, self._resolve_in_metaclass, cls, name, node)

    def _resolve_in_metaclass(self, objects: Sequence[Object], cls: Object, name: str, node: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CLASS:
                holder = self.defining_class(obj & ~1, name)
                if self.is_repository_class(holder):
                    self.subscribe(
                        self.class_field(holder, name), self._bind_to_instance, cls, cls, name, node
                    )

    def _bind_to_instance(
        self, objects: Sequence[Object], receiver: Object, access: Object, name: str, node: int
    ) -> None:
        """Bind attributes of a class to an instance, by the descriptor protocol."""
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            weak = obj & WEAK
            if kind in PLAIN_OR_CONTEXT_FUNCTION:
                self.add(node, self.object(OBJ_BOUND_METHOD, obj & ~1, receiver) | weak)
            elif kind == OBJ_SINGLEDISPATCH:
                self.subscribe(self.field(obj, "any"), self._bind_to_instance, receiver, access, name, node)
            elif kind == OBJ_PARTIAL_METHOD:
                self.bind_partial(obj, receiver, node)
            elif kind == OBJ_PROPERTY:
                self.call_accessor(self.field(obj, "fget"), [], node, access, name, bound=receiver)
            elif kind == OBJ_STATIC_OR_CLASS_METHOD:
                owner = receiver
                if self.objects[receiver >> 1].kind == OBJ_INSTANCE:
                    owner = self.objects[receiver >> 1].first
                self.subscribe(self.field(obj, "inner"), self._bind_wrapped, second, owner, node)
            elif kind == OBJ_INSTANCE and self.is_repository_class(self.defining_class(first, "__get__")):
                self.call_accessor(self.attribute_node(obj, "__get__"), [receiver], node, access, name)
            else:
                self.add(node, obj)

    def _bind_to_class(
        self, objects: Sequence[Object], receiver: Object, access: Object, name: str, node: int
    ) -> None:
        """Bind attributes of a class read on the class itself, by the descriptor protocol."""
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            if kind == OBJ_FUNCTION and self.function(obj)[1].binds == "class":
                self.add(node, self.object(OBJ_BOUND_METHOD, obj & ~1, receiver) | obj & WEAK)
            elif kind == OBJ_STATIC_OR_CLASS_METHOD:
                self.subscribe(self.field(obj, "inner"), self._bind_wrapped, second, receiver, node)
            elif kind == OBJ_INSTANCE and self.is_repository_class(self.defining_class(first, "__get__")):
                self.call_accessor(self.attribute_node(obj, "__get__"), [], node, access, name)
            elif kind not in ENUM_NON_MEMBERS and self.is_enum(receiver):
                self.add(node, self.object(OBJ_INSTANCE, receiver))
            else:
                self.add(node, obj)

    def _bind_wrapped(self, objects: Sequence[Object], how: str, owner: Object, node: int) -> None:
        """Bind the functions in a classmethod to the class; those in a staticmethod stay as they are."""
        for obj in objects:
            if how == "classmethod" and self.objects[obj >> 1].kind == OBJ_FUNCTION:
                self.add(node, self.object(OBJ_BOUND_METHOD, obj & ~1, owner) | obj & WEAK)
            else:
                self.add(node, obj)

    def bind_partial(self, obj: Object, receiver: Object, node: int) -> None:
        """Bind a `partialmethod` to an instance."""
        raise NotImplementedError

    def container_has(self, container: Object, name: str) -> bool:
        """Whether a container has a method."""
        raise NotImplementedError

    def call_accessor(
        self,
        node: int,
        args: Sequence[Object],
        dst: int,
        receiver: Object,
        name: str,
        bound: Object | None = None,
        how: str = "get",
        value: int = -1,
    ) -> None:
        """Call the objects of a node because an attribute is read, written or deleted."""
        raise NotImplementedError

    def store_attribute(self, objects: Sequence[Object], name: str, src: int) -> None:
        """Store the objects of a node in an attribute of objects."""
        for obj in objects:
            if obj & WEAK:
                continue
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_CLASS:
                self._add_class_field(obj, name)
                self.flow(src, self.class_field(obj, name))
                continue
            if kind == OBJ_INSTANCE:
                self.watch_attribute(first, name, self._watch_setter, obj, name, src)
                self._call_setattr(obj, name, src)
            elif kind == OBJ_MODULE and name in self.programs[first].variables:
                self.flow(src, self.global_node(first, self.programs[first].variables[name][0]))
            self.flow(src, self.field(obj, name))

    def _call_setattr(self, obj: Object, name: str, src: int) -> None:
        """Call `__setattr__` if a class of the repository defines it."""
        if self.is_repository_class(self.defining_class(self.objects[obj >> 1].first, "__setattr__")):
            hook, text = self.attribute_node(obj, "__setattr__"), self.object(OBJ_STRING, name)
            self.call_accessor(hook, [text], -1, obj, name, how="set", value=src)

    def _watch_setter(self, holder: Object | None, receiver: Object, name: str, src: int) -> None:
        """Call the setter of a property or `__set__` of a descriptor that the class has for the attribute."""
        if not self.is_repository_class(holder):
            return
        if ("store", holder, receiver, name, src) not in self._bound:
            self._bound.add(("store", holder, receiver, name, src))
            self.subscribe(self.class_field(holder, name), self._call_setter, receiver, name, src)

    def _call_setter(self, objects: Sequence[Object], receiver: Object, name: str, src: int) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_PROPERTY:
                hook = self.field(obj, "fset")
                self.call_accessor(hook, [], -1, receiver, name, bound=receiver, how="set", value=src)
            elif kind == OBJ_INSTANCE and self.is_repository_class(self.defining_class(first, "__set__")):
                self.call_accessor(
                    self.attribute_node(obj, "__set__"), [receiver], -1, receiver, name, how="set", value=src
                )


def is_exported(name: str, exported: Sequence[str] | None) -> bool:
    """Whether a star import binds a name, by the module's `__all__` if it has one.

    >>> is_exported("_a", None), is_exported("_a", ["_a"]), is_exported("b", ["_a"])
    (False, True, False)
    """
    return not name.startswith("_") if exported is None else name in exported
