"""Calls: what runs, what it is given, and what comes back.

    f(x)          the parameter of f holds what x holds, the call what f returns
    obj.m(x)      `self` holds obj
    g()           of a generator: something to iterate over; of a coroutine: something to await

A call through a hint gives a result, which is a hint too, but passes nothing into the function. A function
that returns a parameter as it is gives each caller its own argument back.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codeanatomy.relate.program import (
    OBJ_BOUND_METHOD,
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_CONTAINER_METHOD,
    OBJ_CONTEXT_FUNCTION,
    OBJ_CONTEXT_MANAGER,
    OBJ_COROUTINE,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_EXTERNAL_MEMBER,
    OBJ_FUNCTION,
    OBJ_GENERATOR,
    OBJ_HINTED_CALLABLE,
    OBJ_INSTANCE,
    OBJ_PARTIAL,
    OBJ_PROPERTY,
    OBJ_PROPERTY_DECORATOR,
    OBJ_SINGLEDISPATCH,
    OBJ_SINGLEDISPATCH_REGISTER,
    OBJ_STATIC_OR_CLASS_METHOD,
    OBJ_TYPE_CALL,
    OBJ_WRAPS,
    Arg,
    Program,
)
from codeanatomy.relate.values.arguments import VARIADIC, ArgumentMatch, Passed, fits, match
from codeanatomy.relate.values.containers import CONTAINERS
from codeanatomy.relate.values.external_names import is_class_like, makes_instance
from codeanatomy.relate.values.function_copies import Copies
from codeanatomy.relate.values.models.builtins import BUILTIN_MODELS
from codeanatomy.relate.values.models.containers import container_method
from codeanatomy.relate.values.models.library import DECORATORS, LIBRARY_MODELS
from codeanatomy.relate.values.pending_call import NOWHERE, Call, SiteKey, positional
from codeanatomy.relate.values.solver import WEAK, Object, prefer_strong

MODELS = {**BUILTIN_MODELS, **LIBRARY_MODELS}
# Calls that a call stands for, one for the other.
MAX_DEPTH = 10
# Role of what is called as a member of something outside.
EXTERNAL_MEMBER = "member"
# Roles of what is called itself, and not on behalf of something outside.
DIRECT_ROLES = frozenset({"call", "decorator"})


class Calls(Copies):
    """What is called where."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self.calls: dict[SiteKey, dict[Object, str]] = {}
        self.arguments: dict[tuple[SiteKey, Object], tuple[Sequence[Arg], int]] = {}
        # Sites at which more is called than is told.
        self.truncated_sites: set[SiteKey] = set()
        self.invoked: set[Object] = set()
        self.dataclasses: set[Object] = set()
        self._entered_calls: set[tuple[Any, ...]] = set()
        self._argument_matches: dict[tuple[Any, ...], ArgumentMatch] = {}
        self._parameter_node_lists: dict[Object, list[int]] = {}
        self._accessors_called: set[tuple[Any, ...]] = set()
        self._entered_partials: set[tuple[Any, ...]] = set()
        # What a call of a thing does, by its kind.
        self._call_rules: Mapping[str, Callable[[Object, Call], None]] = {
            OBJ_FUNCTION: self._call_function,
            OBJ_BOUND_METHOD: self._call_bound,
            OBJ_CONTEXT_FUNCTION: self._call_context_function,
            OBJ_CLASS: self._call_class,
            OBJ_TYPE_CALL: self._call_type_call,
            OBJ_INSTANCE: self._call_instance,
            OBJ_EXTERNAL: self._call_external,
            OBJ_EXTERNAL_MEMBER: self._call_external_member,
            OBJ_EXTERNAL_INSTANCE: self._call_external_instance,
            OBJ_CONTAINER_METHOD: self._call_container_method,
            OBJ_STATIC_OR_CLASS_METHOD: self._call_static_or_class_method,
            OBJ_PARTIAL: self._call_partial,
            OBJ_SINGLEDISPATCH: self._call_singledispatch,
            OBJ_SINGLEDISPATCH_REGISTER: self._call_register,
            OBJ_WRAPS: self._call_wraps,
            OBJ_HINTED_CALLABLE: self._call_hinted,
            OBJ_PROPERTY_DECORATOR: self._call_property_decorator,
        }

    def bind_partial(self, obj: Object, receiver: Object, node: int) -> None:
        """A `partialmethod` on an instance: a partial that begins with it."""
        _, where, held, _ = self.objects[obj >> 1]
        first = self.new_node()
        self.add(first, receiver)
        made = self.object(OBJ_PARTIAL, (where, receiver), held.with_args([positional(first), *held.args]))
        self.flow(self.field(obj, "callee"), self.field(made, "callee"))
        self.add(node, made)

    def enter_context(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """What `with` binds, and what it runs."""
        raise NotImplementedError

    def add_instances(self, objects: Sequence[Object], dst: int, weak: int) -> None:
        """Instances of classes, of the repository or outside."""
        raise NotImplementedError

    def instantiate(self, cls: Object, call: Call) -> None:
        """A class is called."""
        raise NotImplementedError

    def construct(self, cls: Object, call: Call) -> None:
        """An instance is made."""
        raise NotImplementedError

    def constant_argument(self, call: Call, place: int) -> str | None:
        """A constant argument as Python spells it."""
        file, site = call.where
        texts = self.programs[file].texts.get(site, ()) if file >= 0 else ()
        return texts[place] if place < len(texts) else None

    def string_argument(self, call: Call, place: int) -> str | None:
        """A constant argument that is a string."""
        key = self.constant_argument(call, place)
        return key[1:-1] if key and key[0] in "'\"" else None

    def call_node(self, node: int, call: Call, weak: int = 0) -> None:
        """Call everything that is in a node."""
        self.subscribe(node, self._invoke_as_hints if weak else self.invoke, call)

    def _invoke_as_hints(self, objects: Sequence[Object], call: Call) -> None:
        self.invoke([obj | WEAK for obj in objects], call)

    def record(self, call: Call, obj: Object, role: str = "") -> None:
        """Note that a thing is called at a site."""
        if call.where[0] < 0:
            return
        found = self.calls.get(call.where)
        if found is None:
            found = self.calls[call.where] = {}
        elif obj in found:
            return
        # Copies of a function share their sites; a class comes with its constructors.
        if len(found) >= self.limit:
            classes = sum(self.objects[each >> 1].kind == OBJ_CLASS for each in found)
            if len(found) - 2 * classes >= self.limit:
                self.truncated_sites.add(call.where)
                return
        found[obj] = role or call.role

    def callees(self, where: SiteKey) -> list[tuple[Object, str]]:
        """What is called at a site, and as what.

        Hints count where there is nothing better; a member of something outside, of which only the name is
        known, is no better than a hint that names a function of the repository.
        """
        found = self.calls.get(where)
        if not found:
            return []
        strong = [obj for obj in found if not obj & WEAK]
        if len(strong) == len(found) and EXTERNAL_MEMBER not in found.values():
            return list(found.items())
        hinted = [
            obj for obj in found if obj & WEAK and self.objects[obj >> 1].kind in (OBJ_FUNCTION, OBJ_CLASS)
        ]
        if hinted and all(found[obj] == EXTERNAL_MEMBER for obj in strong):
            return [(obj, found[obj]) for obj in hinted]
        known = [obj for obj in strong if found[obj] != EXTERNAL_MEMBER]
        if any(self.objects[obj >> 1].kind == OBJ_FUNCTION and found[obj] in DIRECT_ROLES for obj in known):
            return [(obj, found[obj]) for obj in known]
        return [(obj, found[obj]) for obj in prefer_strong(found)]

    def invoke(self, objects: Sequence[Object], call: Call) -> None:
        """Call things."""
        if call.depth > MAX_DEPTH:
            return
        for obj in objects:
            run = self._call_rules.get(self.objects[obj >> 1].kind)
            if run is not None:
                run(obj, call)

    def _call_function(self, obj: Object, call: Call) -> None:
        self.enter_function(obj, None, call)

    def _call_bound(self, obj: Object, call: Call) -> None:
        _, function, receiver, _ = self.objects[obj >> 1]
        self._call_with_receiver(function | obj & WEAK, receiver, call)

    def _call_context_function(self, obj: Object, call: Call) -> None:
        self._call_with_receiver(obj, None, call)

    def _call_with_receiver(self, function: Object, receiver: Object | None, call: Call) -> None:
        """A function, or one that `contextmanager` has wrapped."""
        kind, inner, _, _ = self.objects[function >> 1]
        weak = function & WEAK
        if kind == OBJ_CONTEXT_FUNCTION:
            self.enter_function(inner | weak, receiver, call.with_args(call.args, -1))
            self.add(call.dst, self.object(OBJ_CONTEXT_MANAGER, inner) | weak)
        else:
            self.enter_function(function, receiver, call)

    def _call_class(self, obj: Object, call: Call) -> None:
        self.instantiate(obj, call)

    def _call_type_call(self, obj: Object, call: Call) -> None:
        self.construct(self.objects[obj >> 1].first, call)

    def _call_instance(self, obj: Object, call: Call) -> None:
        self.call_special_method([obj], ["__call__"], call)

    def _call_external(self, obj: Object, call: Call) -> None:
        self._call_external_name(obj, self.objects[obj >> 1].first, call)

    def _call_external_member(self, obj: Object, call: Call) -> None:
        _, name, receiver, _ = self.objects[obj >> 1]
        self._call_external_name(self.object(OBJ_EXTERNAL, name) | obj & WEAK, name, call, is_member=True)
        if receiver is not None:
            self._call_inherited(name, receiver, call)

    def _call_inherited(self, name: str, receiver: Object, call: Call) -> None:
        """What a method from outside does with an instance of the repository."""
        owner, _, method = name.rpartition(".")
        if name == "threading.Thread.start":
            self.call_node(self.attribute_node(receiver, "run"), call.with_args([], -1, "callback"))
        elif owner in CONTAINERS and self.objects[receiver >> 1].kind == OBJ_INSTANCE:
            container_method(self, self.instance_container(receiver, CONTAINERS[owner]), method, call)

    def _call_external_instance(self, obj: Object, call: Call) -> None:
        """An instance of a class outside: as a decorator it is taken to give the definition back."""
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)

    def _call_container_method(self, obj: Object, call: Call) -> None:
        """A method of a builtin container."""
        _, container, name, _ = self.objects[obj >> 1]
        self.record(call, self.object(OBJ_EXTERNAL, f"{self.container_class(container)}.{name}") | obj & WEAK)
        container_method(self, container, name, call)

    def _call_static_or_class_method(self, obj: Object, call: Call) -> None:
        self.call_node(self.field(obj, "inner"), call, obj & WEAK)

    def _call_singledispatch(self, obj: Object, call: Call) -> None:
        self.call_node(self.field(obj, "any"), call, obj & WEAK)

    def _call_register(self, obj: Object, call: Call) -> None:
        """`@f.register`, with or without the type in parentheses."""
        dispatcher = self.objects[obj >> 1].first
        for place in range(len(call.args)):
            self.subscribe(call.argument(place), self._register_overload, dispatcher)
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)
        else:
            self.add(call.dst, obj)

    def _call_wraps(self, obj: Object, call: Call) -> None:
        """`functools.wraps(f)` gives what it is applied to, which remembers f."""
        self.subscribe(call.argument(0), self.remember_wrapped, self.field(obj, "wrapped"))
        self.flow(call.argument(0), call.dst)

    def _call_hinted(self, obj: Object, call: Call) -> None:
        """Something that an annotation says is called, and what that gives."""
        self.flow(self.field(obj, "result"), call.dst, WEAK)

    def remember_wrapped(self, objects: Sequence[Object], wrapped: int) -> None:
        """Functions remember what they wrap."""
        for obj in objects:
            self.flow(wrapped, self.field(obj, "__wrapped__"))

    def _register_overload(self, objects: Sequence[Object], dispatcher: Object) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_FUNCTION:
                self.add(self.field(dispatcher, "any"), obj)

    def _call_property_decorator(self, obj: Object, call: Call) -> None:
        """`x.setter` and the like make another property."""
        _, prop, part, _ = self.objects[obj >> 1]
        made = self.object(OBJ_PROPERTY, call.where, part)
        for name in ("fget", "fset", "fdel"):
            self.flow(self.field(prop, name), self.field(made, name))
        self.flow(call.argument(0), self.field(made, {"setter": "fset", "getter": "fget"}.get(part, "fdel")))
        self.add(call.dst, made)

    def _call_partial(self, obj: Object, call: Call) -> None:
        # Once for a site: partials that hold each other would be followed along every path.
        key = (obj, call.where, call.role, call.dst)
        if key not in self._entered_partials:
            self._entered_partials.add(key)
            held: Call = self.objects[obj >> 1].second
            inner = call.with_args([*held.args, *call.args])
            self.call_node(self.field(obj, "callee"), inner, obj & WEAK)

    def enter_function(self, obj: Object, receiver: Object | None, call: Call) -> None:
        """A function runs with the arguments of a call."""
        key = (obj, receiver, call)
        if key in self._entered_calls:
            return
        self._entered_calls.add(key)
        _, function = self.function(obj)
        skip = int(receiver is not None)
        original = self.original(obj)
        passed, left, is_accepted = self.match_arguments(original, call.args, skip)
        if not is_accepted and call.role in DIRECT_ROLES:
            # Python would refuse it.
            return
        weak = obj & WEAK
        self.record(call, original | weak)
        if not weak:
            self.arguments.setdefault((call.where, original), (call.args, skip))
            self.invoked.add(original)
            obj = self.copy_for(obj, call.where)
            nodes = self._parameter_nodes(obj)
            if receiver is not None and nodes:
                self.add(nodes[0], receiver)
            for each in passed:
                how = function.parameters[each.parameter].how
                self._pass_argument(call.args[each.argument][2], how, nodes[each.parameter], each)
            for number in left:
                self.flow(self.function_node(obj, function.parameters[number].default), nodes[number])
        self._flow_result(obj, receiver, call, passed, left)

    def match_arguments(self, function: Object, args: Sequence[Arg], skip: int) -> ArgumentMatch:
        """What is passed to a function that is no copy; it is called in few ways from many places."""
        key = (function, skip, tuple([(how, keyword) for how, keyword, _ in args]))
        found = self._argument_matches.get(key)
        if found is None:
            parameters = self.function(function)[1].parameters
            passed, left = match(parameters, args, skip)
            found = self._argument_matches[key] = ArgumentMatch(
                passed, left, fits(parameters, args, passed, left)
            )
        return found

    def _parameter_nodes(self, obj: Object) -> list[int]:
        """The nodes of the parameters of a function, or of a copy."""
        found = self._parameter_node_lists.get(obj)
        if found is None:
            parameters = self.function(obj)[1].parameters
            found = self._parameter_node_lists[obj] = [
                self.function_node(obj, each.node) for each in parameters
            ]
        return found

    def _pass_argument(self, src: int, how: str, dst: int, each: Passed) -> None:
        if src < 0:
            return
        if each.is_spread:
            if how == "kwarg" or (how == "vararg" and each.key is None):
                if how == "kwarg":
                    self.subscribe(dst, self._merge_into, src)
                    return
                part = self.new_node()
                self.subscribe(src, self._unpack_objects, None, part)
                self.subscribe(dst, self._put_into, None, part, NOWHERE)
                return
            self.subscribe(src, self._pass_unpacked, each.key, dst)
        elif how in VARIADIC:
            self.subscribe(dst, self._put_into, each.key, src, NOWHERE)
        else:
            self.flow(src, dst)

    def _pass_unpacked(self, objects: Sequence[Object], key: str | None, dst: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER and self.container_kind(obj) in (
                "tuple",
                "list",
                "dict",
            ):
                for node in self.element_nodes(obj, key):
                    self.flow(node, dst, obj & WEAK)
            else:
                self.iterate_objects([obj], dst, NOWHERE)

    def _flow_result(
        self,
        obj: Object,
        receiver: Object | None,
        call: Call,
        passed: Sequence[Passed],
        left: Sequence[int],
    ) -> None:
        if call.dst < 0:
            return
        _, function = self.function(obj)
        weak = obj & WEAK
        if function.is_generator:
            self.add(call.dst, self.object(OBJ_GENERATOR, obj & ~1) | weak)
            return
        if function.is_async:
            self.add(call.dst, self.object(OBJ_COROUTINE, obj & ~1) | weak)
            return
        self.flow(self.function_node(obj, function.result), call.dst, weak)
        for number in function.returned:
            parameter = function.parameters[number]
            if number == 0 and receiver is not None:
                self.add(call.dst, receiver | weak)
            given = [each for each in passed if each.parameter == number]
            for each in given:
                if not each.is_spread:
                    self.flow(call.args[each.argument][2], call.dst, weak)
            if any(each.is_spread for each in given) or parameter.how in VARIADIC:
                self.flow(self.function_node(obj, parameter.node), call.dst, weak)
            if number in left:
                self.flow(self.function_node(obj, parameter.default), call.dst, weak)

    def _call_external_name(self, obj: Object, name: str, call: Call, *, is_member: bool = False) -> None:
        self.record(call, obj, EXTERNAL_MEMBER if is_member else "")
        model = MODELS.get(name)
        if model is not None:
            model(self, call, obj)
        elif call.is_decorator:
            # Whatever it makes of the definition still stands for it.
            self.flow(call.argument(0), call.dst)
        elif name.endswith(".__new__"):
            self.subscribe(call.argument(0), self.add_instances, call.dst, 0)
        elif name in DECORATORS:
            self.flow(call.argument(0), call.dst)
        elif call.dst >= 0 and is_class_like(name):
            self.add(call.dst, self.object(OBJ_EXTERNAL_INSTANCE, name) | obj & WEAK)
        elif call.dst >= 0 and makes_instance(name):
            self.add(call.dst, self.object(OBJ_EXTERNAL_INSTANCE, name.rpartition(".")[0]) | obj & WEAK)

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
        key = (node, dst, receiver, name, how, value)
        if key in self._accessors_called:
            return
        self._accessors_called.add(key)
        given = []
        for arg in args:
            holder = self.new_node()
            self.add(holder, arg)
            given.append(positional(holder))
        if value >= 0:
            given.append(positional(value))
        call = Call(NOWHERE, given, dst, role="attribute")
        self.subscribe(node, self._call_accessor, call, receiver & ~1, name, how, bound)

    def _call_accessor(
        self,
        objects: Sequence[Object],
        call: Call,
        receiver: Object,
        name: str,
        how: str,
        bound: Object | None,
    ) -> None:
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            function = first if kind == OBJ_BOUND_METHOD else obj
            if self.objects[function >> 1].kind != OBJ_FUNCTION:
                continue
            run = self.accessor_calls.setdefault((name, how), {})
            run.setdefault(receiver, {})[self.original(function)] = None
            if self.function(function)[1].name == "__getattr__":
                # What is asked for is told by name, so names must not mix.
                function = self.copy_of(function, (call.where[0], name)) | function & WEAK
            self.enter_function(function, second if kind == OBJ_BOUND_METHOD else bound, call)

    def call_special_method(self, objects: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        names = tuple(names)
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                self.watch_attribute(first, names[0], self._call_first_special, obj, names, call)
            elif kind == OBJ_CLASS:
                self._call_class_special(obj, names, call)

    def _call_class_special(self, obj: Object, names: Sequence[str], call: Call) -> None:
        for value in self.metaclass_nodes(obj):
            self.subscribe(value, self._call_metaclass_special, obj, names, call)

    def _call_metaclass_special(
        self, metas: Sequence[Object], obj: Object, names: Sequence[str], call: Call
    ) -> None:
        for meta in metas:
            if self.objects[meta >> 1].kind == OBJ_CLASS:
                self.call_special_method([self.object(OBJ_INSTANCE, meta & ~1)], names, call)

    def _call_first_special(self, _: Object | None, obj: Object, names: Sequence[str], call: Call) -> None:
        cls = self.objects[obj >> 1].first
        for name in names:
            holder = self.defining_class(cls, name)
            if self.is_repository_class(holder):
                self.call_node(self.attribute_node(obj, name), call, obj & WEAK)
                return
