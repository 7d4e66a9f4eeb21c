"""Run the value analysis of a repository: apply the operations of its programs to sets of objects.

    values = Values(programs)
    values.solve()
    values.callees((file, site))    # [(object, role), ...]: what is called there

The analysis is an inclusion-based points-to analysis. Each operation (`relate.program`) becomes an edge, an
object, or a rule that subscribes to a node. Rules run in three rounds, each to its fixpoint: names, imports
and attributes; then calls and everything that may call; then annotations, as hints. After the second round,
parameters of functions that nothing in the repository calls get the values they must have: `self` is an
instance of its class, a default is one of the values. A call through a hint returns a hint and passes no
arguments. All instances of a class are one object.

The rules are built in layers, each on the one before: `solver`, `linked_programs`, `hierarchy`, `attributes`,
`containers`, `function_copies`, `calls`, `classes`, and this module.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codeanatomy.relate.program import (
    HINT_CALLABLE,
    HINT_CLASS,
    HINT_CONTAINER,
    HINT_DICT,
    HINT_INSTANCE,
    HINT_TUPLE,
    HINT_UNION,
    NOTHING,
    OBJ_CLASS,
    OBJ_CLOSING,
    OBJ_CONSTANT,
    OBJ_CONTAINER,
    OBJ_CONTEXT_MANAGER,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_FUNCTION,
    OBJ_HINTED_CALLABLE,
    OBJ_INSTANCE,
    OBJ_PROPERTY,
    OBJ_STRING,
    OBJ_STRING_PREFIX,
    OP_ANNOTATE,
    OP_AWAIT,
    OP_BINARY,
    OP_CALL,
    OP_COPY,
    OP_CREATE_CLASS,
    OP_DELETE_ATTRIBUTE,
    OP_EXCEPT,
    OP_IMPORT,
    OP_ISINSTANCE,
    OP_ITERATE,
    OP_LOAD_ATTRIBUTE,
    OP_LOAD_ITEM,
    OP_MAKE,
    OP_RAISE,
    OP_SPECIAL_METHOD,
    OP_STORE_ATTRIBUTE,
    OP_STORE_ITEM,
    OP_STORE_KEY,
    OP_UNBOUND_NAME,
    OP_UNPACK,
    OP_UPDATE,
    OP_WITH,
    OP_YIELD_FROM,
    Op,
    Program,
)
from codeanatomy.relate.values.classes import Classes
from codeanatomy.relate.values.containers import ALL_ELEMENTS, KEYS
from codeanatomy.relate.values.external_names import is_subclass
from codeanatomy.relate.values.pending_call import NOWHERE, Call, SiteKey, positional
from codeanatomy.relate.values.solver import WEAK, Object

# Reflected method of a comparison; other operators have `r` before the name.
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
# Methods to try in order: `object.__ne__` calls `__eq__`, methods of `total_ordering` call the one defined.
FALLBACKS = {
    "ne": ("__ne__", "__eq__"),
    **{
        name: tuple(f"__{each}__" for each in (name, "lt", "le", "gt", "ge"))
        for name in ("lt", "le", "gt", "ge")
    },
}
# Prefixes of names in annotations that are no classes.
SPECIAL_FORMS = ("typing.", "typing_extensions.", "collections.abc.")
STRING_KINDS = (OBJ_STRING, OBJ_STRING_PREFIX)
# Objects that each function copy creates for itself.
COPIED_KINDS = (OBJ_FUNCTION, OBJ_CONTAINER)
CLASS_KINDS = (OBJ_CLASS, OBJ_EXTERNAL)
RAISED_KINDS = (OBJ_CLASS, OBJ_INSTANCE)
EXTERNAL_VALUE_KINDS = (OBJ_EXTERNAL_INSTANCE, OBJ_STRING)
CONTAINER_HINTS = (HINT_CONTAINER, HINT_TUPLE, HINT_DICT)


class Values(Classes):
    """The value analysis of a repository."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        # Nodes of all raised exceptions, and of those raised in each file.
        self.raised = self.new_node()
        self._raised_in = [self.new_node() for _ in self.programs]
        self._rounds = (
            {
                OP_COPY: self._op_copy,
                OP_MAKE: self._op_make,
                OP_UNBOUND_NAME: self._op_unbound_name,
                OP_IMPORT: self._op_import,
                OP_LOAD_ATTRIBUTE: self._op_load_attribute,
            },
            {
                OP_STORE_ATTRIBUTE: self._op_store_attribute,
                OP_CALL: self._op_call,
                OP_LOAD_ITEM: self._op_load_item,
                OP_STORE_ITEM: self._op_store_item,
                OP_STORE_KEY: self._op_store_key,
                OP_UPDATE: self._op_update,
                OP_ITERATE: self._op_iterate,
                OP_UNPACK: self._op_unpack,
                OP_WITH: self._op_with,
                OP_AWAIT: self._op_await,
                OP_YIELD_FROM: self._op_yield_from,
                OP_SPECIAL_METHOD: self._op_special_method,
                OP_BINARY: self._op_binary,
                OP_RAISE: self._op_raise,
                OP_EXCEPT: self._op_except,
                OP_ISINSTANCE: self._op_isinstance,
                OP_DELETE_ATTRIBUTE: self._op_delete_attribute,
                OP_CREATE_CLASS: self.create_class,
            },
            {OP_ANNOTATE: self._op_annotate, OP_EXCEPT: self._op_except_unraised},
        )

    def solve(self) -> None:
        """Run all rounds."""
        for number, rules in enumerate(self._rounds):
            self._round = number
            for copy in range(len(self.copies)):
                self._apply_to_copy(copy, (rules,))
            for file, program in enumerate(self.programs):
                for op in program.ops:
                    rule = rules.get(op[0])
                    if rule is not None:
                        rule(file, op)
                if number == 0:
                    for index in range(len(program.classes)):
                        self.watch_bases(file, index)
            self.run()
            if number == 1:
                self._enter_uncalled()
                self.run()
        self._hint_results()
        self._apply_unknown_decorators()
        self.run()

    def _op_copy(self, file: int, op: Op) -> None:
        self.flow(self.global_node(file, op[1]), self.global_node(file, op[2]))

    def _op_make(self, file: int, op: Op) -> None:
        _, node, kind, operand = op
        if kind == OBJ_CONSTANT:
            self.add(self.global_node(file, node), self.object(OBJ_EXTERNAL_INSTANCE, f"builtins.{operand}"))
            return
        if kind in STRING_KINDS:
            self.add(self.global_node(file, node), self.object(kind, operand))
            return
        obj = self.object(kind, file, operand, self._copy_number if kind in COPIED_KINDS else None)
        if kind == OBJ_CONTAINER:
            self._kinds[obj], self._sizes[obj] = self.programs[file].containers[operand]
        self.add(self.global_node(file, node), obj)

    def _op_unbound_name(self, file: int, op: Op) -> None:
        self.bind_unbound_name(file, op[1], self.global_node(file, op[2]))

    def _op_import(self, file: int, op: Op) -> None:
        self.bind_import(file, op[2], self.global_node(file, op[1]))

    def _op_load_attribute(self, file: int, op: Op) -> None:
        self.subscribe(
            self.global_node(file, op[1]), self.load_attribute, op[2], self.global_node(file, op[3])
        )

    def _op_store_attribute(self, file: int, op: Op) -> None:
        src = self.global_node(file, op[3])
        self.subscribe(
            self.global_node(file, op[1]), self.store_attribute, op[2], self.new_node() if src < 0 else src
        )

    def _op_delete_attribute(self, file: int, op: Op) -> None:
        self.subscribe(self.global_node(file, op[1]), self._delete_attribute, op[2])

    def _delete_attribute(self, objects: Sequence[Object], name: str) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                if self.is_repository_class(self.defining_class(first, "__delattr__")):
                    text = self.object(OBJ_STRING, name)
                    self.call_accessor(
                        self.attribute_node(obj, "__delattr__"), [text], -1, obj, name, how="del"
                    )
                holder = self.defining_class(first, name)
                if self.is_repository_class(holder):
                    self.subscribe(self.class_field(holder, name), self._call_deleter, obj, name)

    def _call_deleter(self, objects: Sequence[Object], receiver: Object, name: str) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_PROPERTY:
                deleter = self.field(obj, "fdel")
                self.call_accessor(deleter, [], -1, receiver, name, bound=receiver, how="del")

    def _op_store_item(self, file: int, op: Op) -> None:
        _, receiver, key, src, site = op
        self.subscribe(
            self.global_node(file, receiver), self._put_into, key, self.global_node(file, src), (file, site)
        )

    def _op_store_key(self, file: int, op: Op) -> None:
        self.subscribe(self.global_node(file, op[1]), self._put_key, self.global_node(file, op[2]))

    def _op_update(self, file: int, op: Op) -> None:
        self.subscribe(self.global_node(file, op[1]), self._merge_into, self.global_node(file, op[2]))

    def _op_load_item(self, file: int, op: Op) -> None:
        _, receiver, key, dst, site, key_value = op
        call = Call(
            (file, site),
            [positional(self.global_node(file, key_value))],
            self.global_node(file, dst),
            role="subscript",
        )
        self.subscribe(self.global_node(file, receiver), self._load_items, key, call)

    def _op_iterate(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.iterate(self.global_node(file, src), self.global_node(file, dst), (file, site))

    def _op_unpack(self, file: int, op: Op) -> None:
        _, src, position, dst = op
        self.subscribe(
            self.global_node(file, src), self._unpack_objects, position, self.global_node(file, dst)
        )

    def _op_with(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.subscribe(
            self.global_node(file, src), self.enter_context, self.global_node(file, dst), (file, site)
        )

    def enter_context(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """Put the value that `with` binds into dst; call the methods that enter and exit."""
        is_async = self.programs[where[0]].sites[where[1]].role == "async_with"
        enter, leave = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                if not self.is_repository_class(self.defining_class(first, enter)):
                    # An inherited external `__enter__`: nearly all return the instance.
                    self.add(dst, obj)
                entered = self.new_node() if is_async else dst
                self.call_special_method([obj], [enter], Call(where, [], entered, role="with"))
                if is_async:
                    self.subscribe(entered, self._await_objects, dst, where)
                self.call_special_method([obj], [leave], Call(where, [], -1, role="with"))
            elif kind == OBJ_CLOSING:
                self.flow(self.field(obj, "inner"), dst, obj & WEAK)
                self.subscribe(self.field(obj, "inner"), self._close, Call(where, [], -1, role="with"))
            elif kind == OBJ_CONTEXT_MANAGER:
                self.flow(self.function_node(first, self.function(first)[1].yields), dst, obj & WEAK)
            elif kind == OBJ_EXTERNAL_INSTANCE:
                self.add(dst, obj)

    def _close(self, objects: Sequence[Object], call: Call) -> None:
        """Call `close` of the objects in `contextlib.closing`."""
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_INSTANCE:
                self.call_node(self.attribute_node(obj, "close"), call)

    def _op_await(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.subscribe(
            self.global_node(file, src), self._await_objects, self.global_node(file, dst), (file, site)
        )

    def _op_yield_from(self, file: int, op: Op) -> None:
        self.subscribe(self.global_node(file, op[1]), self._generator_results, self.global_node(file, op[2]))

    def _op_special_method(self, file: int, op: Op) -> None:
        _, receiver, names, args, dst, site = op
        role = self.programs[file].sites[site].role
        arguments = [(how, keyword, self.global_node(file, node)) for how, keyword, node in args]
        call = Call((file, site), arguments, self.global_node(file, dst), role=role)
        self.subscribe(self.global_node(file, receiver), self.call_special_method, tuple(names), call)

    def _op_binary(self, file: int, op: Op) -> None:
        _, left, right, name, dst, site = op
        where = (file, site)
        first, second = self.global_node(file, left), self.global_node(file, right)
        bare = name.removeprefix("i")
        names = tuple(dict.fromkeys((f"__{name}__", f"__{bare}__")))
        names = FALLBACKS.get(name, names)
        call = Call(where, [positional(second)], self.global_node(file, dst), role="operator")
        self.subscribe(first, self._apply_operator, names, call)
        reflected = Call(where, [positional(first)], self.global_node(file, dst), role="operator")
        self.subscribe(
            second, self._apply_reflected, f"__{REFLECTED.get(name, 'r' + bare)}__", names, first, reflected
        )

    def _apply_operator(self, objects: Sequence[Object], names: Sequence[str], call: Call) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                self.call_special_method([obj], names, call)
            elif kind == OBJ_CONTAINER:
                both = self.new_container(self.container_kind(obj), call.where)
                self.put(both, None, self.field(obj, ALL_ELEMENTS))
                self.subscribe(call.argument(0), self.merge_from, both)
                self.add(call.dst, both)
            elif kind == OBJ_STRING or (
                kind == OBJ_EXTERNAL_INSTANCE and first.startswith(("builtins.", "pathlib."))
            ):
                self.add(
                    call.dst,
                    self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str" if kind == OBJ_STRING else first),
                )
                if names[0] == "__mod__":
                    self._format(call)

    def _format(self, call: Call) -> None:
        """Call the string conversions of `"%s" % x` and `"%s" % (x, y)`."""
        conversion = Call(call.where, [], -1, role="operator")
        self.subscribe(call.argument(0), self.call_special_method, ("__str__", "__repr__"), conversion)
        self.subscribe(call.argument(0), self._format_elements, conversion)

    def _format_elements(self, objects: Sequence[Object], conversion: Call) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER:
                self.subscribe(
                    self.field(obj, ALL_ELEMENTS),
                    self.call_special_method,
                    ("__str__", "__repr__"),
                    conversion,
                )

    def _apply_reflected(
        self, objects: Sequence[Object], name: str, names: Sequence[str], left: int, call: Call
    ) -> None:
        """Call the reflected method of the right operand unless the left one has the operator."""
        for other in self.points_to[left] or ():
            kind, first, _, _ = self.objects[other >> 1]
            if kind == OBJ_INSTANCE and any(self.defining_class(first, each) is not None for each in names):
                return
        self.call_special_method(objects, [name], call)

    def _op_raise(self, file: int, op: Op) -> None:
        call = Call((file, op[2]), [], -1, role="raise")
        self.subscribe(self.global_node(file, op[1]), self._raise_objects, call)

    def _raise_objects(self, objects: Sequence[Object], call: Call) -> None:
        for obj in objects:
            kind = self.objects[obj >> 1].kind
            if kind == OBJ_CLASS:
                self.invoke([obj], call)
            if kind in RAISED_KINDS:
                instance = self.object(OBJ_INSTANCE, obj & ~1) if kind == OBJ_CLASS else obj
                self.add(self.raised, instance)
                self.add(self._raised_in[call.where[0]], instance)

    def _op_except(self, file: int, op: Op) -> None:
        self.subscribe(self.global_node(file, op[1]), self._catch, file, self.global_node(file, op[2]))

    def _catch(self, classes: Sequence[Object], file: int, dst: int) -> None:
        """Put caught exceptions into dst.

        These are raised exceptions of the class: raised anywhere for a class of the repository, in this file
        for an external class, of which an instance is added as well.
        """
        for cls in classes:
            kind = self.objects[cls >> 1].kind
            if kind == OBJ_CLASS:
                self.subscribe(self.raised, self._keep_instances, cls & ~1, dst)
            elif kind == OBJ_CONTAINER:
                self.subscribe(self.field(cls, ALL_ELEMENTS), self._catch, file, dst)
            else:
                self.add_instances([cls], dst, 0)
                self.subscribe(self._raised_in[file], self._keep_instances, cls & ~1, dst)

    def _op_except_unraised(self, file: int, op: Op) -> None:
        """Put instances of caught classes into the node of a handler that no raised exception reaches."""
        if not self.points_to[self.global_node(file, op[2])]:
            self.subscribe(
                self.global_node(file, op[1]), self.add_instances, self.global_node(file, op[2]), 0
            )

    def add_instances(self, objects: Sequence[Object], dst: int, weak: int) -> None:
        """Put instances of classes, of the repository or external, into dst."""
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_CLASS:
                self.add(dst, self.object(OBJ_INSTANCE, obj & ~1) | weak)
            elif kind == OBJ_EXTERNAL and not first.startswith(SPECIAL_FORMS):
                self.add(dst, self.object(OBJ_EXTERNAL_INSTANCE, first) | weak)
            elif kind == OBJ_CONTAINER:
                self.subscribe(self.field(obj, ALL_ELEMENTS), self.add_instances, dst, weak)

    def _op_isinstance(self, file: int, op: Op) -> None:
        _, src, classes, dst = op
        self.subscribe(
            self.global_node(file, classes),
            self._narrow,
            self.global_node(file, src),
            self.global_node(file, dst),
        )

    def _narrow(self, classes: Sequence[Object], src: int, dst: int) -> None:
        """Put the objects of src that pass `isinstance` into dst, and instances of the classes as hints."""
        for cls in classes:
            kind = self.objects[cls >> 1].kind
            if kind == OBJ_CONTAINER:
                self.subscribe(self.field(cls, ALL_ELEMENTS), self._narrow, src, dst)
            elif kind in CLASS_KINDS:
                self.subscribe(src, self._keep_instances, cls & ~1, dst)
                self.add_instances([cls], dst, WEAK)

    def _keep_instances(self, objects: Sequence[Object], cls: Object, dst: int) -> None:
        """Put the objects that are instances of a class into dst."""
        wanted = self.objects[cls >> 1]
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                keep = cls in self.mro(first) or any(
                    is_subclass(base, wanted.first) for base in self.external_bases(first)
                )
            elif kind in EXTERNAL_VALUE_KINDS:
                keep = wanted.kind == OBJ_EXTERNAL and wanted.first == (
                    first if kind == OBJ_EXTERNAL_INSTANCE else "builtins.str"
                )
            elif kind == OBJ_CONTAINER:
                keep = wanted.kind == OBJ_EXTERNAL and wanted.first == f"builtins.{self.container_kind(obj)}"
            else:
                keep = wanted.kind == OBJ_EXTERNAL
            if keep:
                self.add(dst, obj)

    def _op_annotate(self, file: int, op: Op) -> None:
        self.add_hints(file, op[1], self.global_node(file, op[2]))

    def add_hints(self, file: int, hint: Sequence[Any] | None, dst: int) -> None:
        """Put the objects that an annotation states into dst, as hints."""
        if hint is None:
            return
        kind = hint[0]
        if kind == HINT_INSTANCE:
            self.subscribe(self.global_node(file, hint[1]), self.add_instances, dst, WEAK)
        elif kind == HINT_CLASS:
            self.subscribe(self.global_node(file, hint[1]), self._hint_classes, dst)
        elif kind == HINT_UNION:
            for each in hint[1]:
                self.add_hints(file, each, dst)
        elif kind == HINT_CALLABLE:
            function = self.object(OBJ_HINTED_CALLABLE, dst)
            self.add_hints(file, hint[1], self.field(function, "result"))
            self.add(dst, function | WEAK)
        elif kind in CONTAINER_HINTS:
            self._add_container_hint(file, hint, dst)

    def _add_container_hint(self, file: int, hint: Sequence[Any], dst: int) -> None:
        container = self.object(OBJ_CONTAINER, "hint", dst)
        self._kinds[container] = {HINT_CONTAINER: hint[1], HINT_TUPLE: "tuple", HINT_DICT: "dict"}[hint[0]]
        inner: list[tuple[str | None, Any]] = [(None, hint[-1])]
        if hint[0] == HINT_TUPLE:
            inner = [(str(index), each) for index, each in enumerate(hint[1])]
        elif hint[0] == HINT_DICT:
            self.add_hints(file, hint[1], self.field(container, KEYS))
        for key, each in inner:
            node = self.new_node()
            self.add_hints(file, each, node)
            self.put(container, key, node)
        self.add(dst, container | WEAK)

    def _hint_classes(self, objects: Sequence[Object], dst: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind in CLASS_KINDS:
                self.add(dst, obj | WEAK)

    def _op_call(self, file: int, op: Op) -> None:
        _, callee, dst, site, args = op
        arguments = [(how, keyword, self.global_node(file, node)) for how, keyword, node in args]
        role = self.programs[file].sites[site].role
        result = self.global_node(file, dst)
        if role == "decorator":
            result = self.new_node()
            self.subscribe(result, self._bind_decorated, arguments[0][2], self.global_node(file, dst))
        call = Call((file, site), arguments, result, is_decorator=role == "decorator", role=role)
        self.call_node(self.global_node(file, callee), call)

    def _bind_decorated(self, objects: Sequence[Object], definition: int, dst: int) -> None:
        """Bind the result of a decorator; of a decorated class, drop unrelated top-level classes."""
        classes = [
            obj & ~1 for obj in self.points_to[definition] or () if self.objects[obj >> 1].kind == OBJ_CLASS
        ]
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            cls = {OBJ_CLASS: obj & ~1, OBJ_INSTANCE: first}.get(kind)
            is_other = cls is not None and cls not in classes and self.cls(cls)[1].outer < 0
            if not (classes and is_other):
                self.add(dst, obj)

    def _enter_uncalled(self) -> None:
        """Give parameters of uncalled functions the values they must have: `self`, `cls` and defaults."""
        for file, program in enumerate(self.programs):
            for number, function in enumerate(program.functions):
                obj = self.object(OBJ_FUNCTION, file, number)
                nodes = [self.global_node(file, each.node) for each in function.parameters]
                if function.owner >= 0 and function.parameters and not self.points_to[nodes[0]]:
                    cls = self.object(OBJ_CLASS, file, function.owner)
                    if function.parameters[0].how in ("positional", "positional_only"):
                        for each in self._inheriting_classes(cls, function.name):
                            self._assume_receiver(each, function.binds, nodes[0])
                if obj not in self.invoked:
                    for node, parameter in zip(nodes, function.parameters, strict=True):
                        self.flow(self.global_node(file, parameter.default), node)

    def _inheriting_classes(self, cls: Object, name: str) -> list[Object]:
        """Return a class and the subclasses that inherit the method from it."""
        classes = {cls: None}
        todo = [cls]
        while todo and len(classes) < self.limit:
            for each in self._subclasses.get(todo.pop(), ()):
                if each not in classes and self.defining_class(each, name) == cls:
                    classes[each] = None
                    todo.append(each)
        return list(classes)

    def _assume_receiver(self, cls: Object, binds: str, node: int) -> None:
        if binds == "nothing":
            return
        if binds in ("class", "class_argument"):
            self.add(node, cls)
            return
        instance = self.object(OBJ_INSTANCE, cls)
        self.add(node, instance)
        holder = self.defining_class(cls, "__init__")
        if self.is_repository_class(holder):
            self.subscribe(self.class_field(holder, "__init__"), self._assume_constructed, instance)

    def _assume_constructed(self, objects: Sequence[Object], instance: Object) -> None:
        """Assume that an instance was created elsewhere by its `__init__`."""
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_FUNCTION and obj & ~1 not in self.invoked:
                _, function = self.function(obj)
                if function.parameters:
                    self.add(self.function_node(obj, function.parameters[0].node), instance)

    def _apply_unknown_decorators(self) -> None:
        """Assume that a decorator without any known object returns the definition."""
        for file, program in enumerate(self.programs):
            for op in program.ops:
                if (
                    op[0] == OP_CALL
                    and program.sites[op[3]].role == "decorator"
                    and not self.program_objects(file, op[1])
                ):
                    for src, dst in self.nodes_in_copies(file, op[4][0][2], op[2]):
                        self.flow(src, dst)

    def _hint_results(self) -> None:
        """Use the annotated result of functions whose result has no objects."""
        shared: Mapping[int, int] = {}
        hinted = [
            (file, function, shared)
            for file, program in enumerate(self.programs)
            for function in program.functions
            if function.hinted_result != NOTHING
        ]
        for file, function, copied in [*hinted, *self._hinted_copies]:
            offset = self.offsets[file]
            annotated, result, yields = (
                copied.get(node, offset + node) if node >= 0 else node
                for node in (function.hinted_result, function.result, function.yields)
            )
            if not self.points_to[result] and not function.returned:
                if function.is_generator:
                    self.iterate(annotated, yields, NOWHERE)
                else:
                    self.flow(annotated, result)
